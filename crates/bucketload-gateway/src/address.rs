//! Where a gateway listens: `HOST:PORT` or `unix:PATH`.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `HOST:PORT`; the host is a name or an IP address (IPv6 in brackets).
    Tcp(String),
    /// A Unix socket in the file system.
    Unix(PathBuf),
}

/// The text is not the address of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of a gateway; write tcp://HOST:PORT or unix:PATH")]
pub struct ParseAddressError(String);

impl Address {
    /// Resolves the host's addresses. Empty for a Unix socket.
    ///
    /// # Errors
    /// When the name cannot be resolved.
    pub fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        match self {
            Self::Tcp(text) => Ok(text.to_socket_addrs()?.collect()),
            Self::Unix(_) => Ok(Vec::new()),
        }
    }

    /// Whether only this host can reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(_) => self.resolve().is_ok_and(|all| {
                let loopback = |address: &SocketAddr| match address.ip() {
                    IpAddr::V6(six) => six.to_canonical().is_loopback(),
                    four => four.is_loopback(),
                };
                !all.is_empty() && all.iter().all(loopback)
            }),
        }
    }
}

impl FromStr for Address {
    type Err = ParseAddressError;

    /// Reads `tcp://HOST:PORT`, `HOST:PORT`, `unix:PATH` or `unix://PATH`.
    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let wrong = || ParseAddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            // The kernel's limit (sun_path, unix(7)) minus the final NUL.
            if path.is_empty() || path.len() > 107 || path.contains('\0') {
                return Err(wrong());
            }
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let rest = text.strip_prefix("tcp://").unwrap_or(text);
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || host.contains('/') || (host.contains(':') && !bracketed) {
            return Err(wrong());
        }
        port.parse::<u16>().map_err(|_| wrong())?;
        Ok(Self::Tcp(rest.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(text) => write!(f, "tcp://{text}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_are_read_and_printed() {
        for (text, printed) in [
            ("127.0.0.1:9020", "tcp://127.0.0.1:9020"),
            ("tcp://node7:9020", "tcp://node7:9020"),
            ("[::1]:9020", "tcp://[::1]:9020"),
            ("unix:/run/gateway", "unix:/run/gateway"),
            ("unix:///run/gateway", "unix:/run/gateway"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), printed);
            assert_eq!(printed.parse(), Ok(address));
        }
        for wrong in [
            "",
            "9020",
            ":9020",
            "host",
            "host:port",
            "host:70000",
            "unix:",
            "a/b:1",
            "::1:1",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
        let long = format!("unix:/{}", "x".repeat(107));
        assert!(long.parse::<Address>().is_err());
    }

    #[test]
    fn only_loopback_and_unix_sockets_are_local() {
        let local = |text: &str| text.parse::<Address>().unwrap().is_local();
        assert!(local("127.0.0.1:1") && local("[::1]:1") && local("unix:/x"));
        assert!(local("[::ffff:127.0.0.1]:1"));
        assert!(!local("0.0.0.0:1") && !local("[::]:1") && !local("192.0.2.1:1"));
    }
}
