//! Opening connections: name lookup, TCP and TLS handshake, each timed separately.

use std::fmt::Display;
use std::net::IpAddr;

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::record::{ConnectTimes, Probe};
use bucketload_wire::tls::{self, ClientOptions, ClientTls, Identity, Pem};
use bucketload_wire::{Conn, Error as WireError, Sock, dns};

use super::config::{ConfigError, TlsConfig};
use super::endpoint::Endpoint;

/// Loads certificates and keys if any endpoint is encrypted.
pub(crate) fn tls_of(
    endpoints: &[Endpoint],
    config: &TlsConfig,
) -> Result<Option<ClientTls>, ConfigError> {
    if endpoints.iter().all(|e| !e.tls) {
        return Ok(None);
    }
    for endpoint in endpoints.iter().filter(|e| e.tls) {
        tls::server_name(&endpoint.host).map_err(|e| {
            let remedy = "use a name or address that a certificate can be issued for";
            ConfigError::new("endpoint", e.to_string(), remedy)
        })?;
    }
    let file = |path: &std::path::PathBuf| Pem::File(path.clone());
    let options = ClientOptions {
        ca_bundle: config.ca_bundle.as_ref().map(file),
        identity: config.client.as_ref().map(|(certificates, key)| Identity {
            certificates: file(certificates),
            key: file(key),
        }),
        insecure: config.insecure,
        resumption: !config.no_resume,
    };
    ClientTls::new(&options).map(Some).map_err(|e| {
        let remedy = "check --ca-bundle (AWS_CA_BUNDLE), --client-cert and --client-key";
        ConfigError::new("TLS", e.to_string(), remedy)
    })
}

/// Connects to `endpoint` from the local address `source`, with TLS if `tls` is given. Reports to `probe` how long each
/// phase took. Tries the addresses of a name in order.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    tls: Option<&ClientTls>,
    source: Option<IpAddr>,
    probe: &mut Probe,
) -> OpResult<Conn> {
    let failed = |detail: String| Err(OpError::new(ErrorKind::Connect, detail));
    let resolved = match dns::resolve(&endpoint.host, endpoint.port).await {
        Ok(resolved) => resolved,
        Err(error) => return failed(format!("cannot resolve `{}`: {error}", endpoint.host)),
    };
    let mut last = None;
    for &addr in &resolved.addrs {
        if source.is_some_and(|s| s.is_ipv4() != addr.is_ipv4()) {
            continue;
        }
        let began = probe.now();
        match Sock::connect(addr, source).await {
            Ok(sock) => {
                let connected = probe.now();
                let conn = match tls {
                    None => Conn::plain(sock),
                    Some(tls) => handshake(sock, tls, &endpoint.host).await?,
                };
                probe.connected(ConnectTimes {
                    dns_ns: u64::try_from(resolved.took.as_nanos()).unwrap_or(u64::MAX),
                    tcp_ns: connected - began,
                    tls_ns: if conn.is_tls() {
                        probe.now() - connected
                    } else {
                        0
                    },
                });
                return Ok(conn);
            }
            Err(error) => last = Some((addr, error)),
        }
    }
    let from = source.map_or_else(String::new, |source| format!(" from {source}"));
    failed(match last {
        Some((addr, error)) => format!("cannot connect to {addr}{from}: {error}"),
        None => format!(
            "`{}` has no address that can be reached{from}",
            endpoint.host
        ),
    })
}

async fn handshake(sock: Sock, tls: &ClientTls, host: &str) -> OpResult<Conn> {
    let failed =
        |kind, reason: &dyn Display| OpError::new(kind, format!("TLS with `{host}`: {reason}"));
    let name = tls::server_name(host).map_err(|e| failed(ErrorKind::Tls, &e))?;
    match Conn::connect_tls(sock, tls, &name).await {
        Ok(conn) => Ok(conn),
        Err(WireError::Tls(error)) => Err(failed(ErrorKind::Tls, &error)),
        Err(error) => Err(failed(ErrorKind::Connect, &error)),
    }
}
