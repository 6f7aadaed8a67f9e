//! Name resolution off the load thread: `getaddrinfo` blocks, so it runs on the runtime's blocking
//! thread pool. Literal addresses need no resolution. A detour replaces the addresses of a name.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The detours of this process.
static DETOURS: OnceLock<BTreeMap<(String, u16), SocketAddr>> = OnceLock::new();

/// Leads connections of this process to other addresses: those to host and port of a key go to its value. Names in requests
/// and certificates stay. Set once, before the first connection; false if detours were set before.
#[must_use]
pub fn set_detours(detours: BTreeMap<(String, u16), SocketAddr>) -> bool {
    DETOURS.set(detours).is_ok()
}

/// Where connections to `host` and `port` really go, if there is a detour.
fn detour(host: &str, port: u16) -> Option<SocketAddr> {
    DETOURS.get()?.get(&(host.to_owned(), port)).copied()
}

/// The addresses of a name, and the time to find them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The addresses in the resolver's order of preference, without duplicates; at least one.
    pub addrs: Vec<SocketAddr>,
    /// Duration of the resolution; zero for a literal address.
    pub took: Duration,
}

/// Resolves `host` (a name or an address; IPv6 with or without brackets) for connections to `port`.
///
/// # Errors
/// The resolver's reason; `NotFound` if the name has no address.
///
/// # Panics
/// For names: outside a tokio runtime.
pub async fn resolve(host: &str, port: u16) -> io::Result<Resolved> {
    if let Some(address) = detour(host, port) {
        return Ok(Resolved {
            addrs: vec![address],
            took: Duration::ZERO,
        });
    }
    if let Some(ip) = literal(host) {
        return Ok(Resolved {
            addrs: vec![SocketAddr::new(ip, port)],
            took: Duration::ZERO,
        });
    }
    let began = Instant::now();
    let name = host.to_owned();
    let found = tokio::task::spawn_blocking(move || {
        (name.as_str(), port)
            .to_socket_addrs()
            .map(Iterator::collect::<Vec<_>>)
    });
    let mut addrs = found.await.map_err(io::Error::other)??;
    let mut i = 0;
    while i < addrs.len() {
        if addrs[..i].contains(&addrs[i]) {
            addrs.remove(i);
        } else {
            i += 1;
        }
    }
    if addrs.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{host} has no address"),
        ));
    }
    Ok(Resolved {
        addrs,
        took: began.elapsed(),
    })
}

/// The address `host`, if it is a literal one.
#[must_use]
pub fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{literal, resolve};

    #[test]
    fn literals_are_recognised() {
        assert_eq!(literal("127.0.0.1"), Some([127, 0, 0, 1].into()));
        assert_eq!(literal("[::1]"), Some("::1".parse().unwrap()));
        assert_eq!(literal("::1"), Some("::1".parse().unwrap()));
        for name in ["localhost", "[127.0.0.1]", "[::1", "1.2.3", ""] {
            assert_eq!(literal(name), None, "{name}");
        }
    }

    #[test]
    fn names_and_literals_resolve() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let here = resolve("localhost", 80).await.unwrap();
            assert!(here.addrs.iter().all(|addr| addr.ip().is_loopback()));
            assert!(here.addrs.iter().all(|addr| addr.port() == 80));
            assert!(here.took > Duration::ZERO);
            let literal = resolve("[::1]", 9).await.unwrap();
            assert_eq!(literal.addrs, ["[::1]:9".parse().unwrap()]);
            assert_eq!(literal.took, Duration::ZERO);
            // Syntactically invalid: refused without a query.
            assert!(resolve("a..b", 80).await.is_err());
        });
    }
}
