//! Establishing connections: name, TCP, TLS, each timed by itself.

use std::net::{IpAddr, SocketAddr};

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::{ConnectTimes, Probe};
use bucketload_wire::{Conn, Sock};

use super::endpoint::Endpoint;

/// Connects to `endpoint` from `source` and tells `probe` how long each phase took.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    source: Option<IpAddr>,
    probe: &mut Probe,
) -> Result<Conn, OpError> {
    let began = probe.now();
    let addresses = resolve(endpoint).await?;
    let resolved = probe.now();
    let mut last = None;
    for addr in addresses {
        if source.is_some_and(|s| s.is_ipv4() != addr.is_ipv4()) {
            continue;
        }
        match Sock::connect(addr, source).await {
            Ok(sock) => {
                let connected = probe.now();
                probe.connected(ConnectTimes {
                    dns_ns: resolved - began,
                    tcp_ns: connected - resolved,
                    tls_ns: 0,
                });
                return Ok(Conn::plain(sock));
            }
            Err(error) => last = Some((addr, error)),
        }
    }
    let detail = match (last, source) {
        (Some((addr, error)), Some(source)) => {
            format!("cannot connect to {addr} from {source}: {error}")
        }
        (Some((addr, error)), None) => format!("cannot connect to {addr}: {error}"),
        (None, Some(source)) => format!(
            "`{}` has no address of the kind of the source address {source}",
            endpoint.host
        ),
        (None, None) => format!("`{}` has no address", endpoint.host),
    };
    Err(OpError::new(ErrorKind::Connect, detail))
}

async fn resolve(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, OpError> {
    if let Ok(ip) = endpoint.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, endpoint.port)]);
    }
    tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port))
        .await
        .map(Iterator::collect)
        .map_err(|error| {
            let detail = format!("cannot resolve `{}`: {error}", endpoint.host);
            OpError::new(ErrorKind::Connect, detail)
        })
}
