//! TLS: versions, certificates, resumption, and ports that speak the other protocol.

use std::net::SocketAddr;

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_s3::date;
use bucketload_target::doctor::{Finding, State};
use bucketload_wire::tls::{self, ClientTls, TlsError};
use bucketload_wire::{Conn, Error as WireError, Sock, Step};

use super::certificate::Certificate;
use super::patiently;
use crate::http::config::TlsConfig;
use crate::http::connect::tls_of;
use crate::http::endpoint::Endpoint;

const ID: &str = "tls";
const ASKED: &str = "TLS with each address";
/// A certificate that ends within so many seconds is worth a word.
const SOON: u64 = 14 * 86_400;

/// How a handshake failed.
enum Failure {
    Tls(TlsError),
    Other(OpError),
}

/// Examines TLS with the first address of each endpoint.
pub(super) async fn examine(
    endpoints: &[Endpoint],
    config: &TlsConfig,
    addresses: &[(usize, SocketAddr)],
) -> Finding {
    let mut words = Vec::new();
    let mut worst = (State::NotTried, "");
    for (i, endpoint) in endpoints.iter().enumerate() {
        let Some((_, addr)) = addresses.iter().find(|(of, _)| *of == i) else {
            continue;
        };
        let (state, text, remedy) = match endpoint.tls {
            true => encrypted(endpoint, config, *addr).await,
            false => plain(endpoint, config, *addr).await,
        };
        words.push(text);
        if state > worst.0 || (state == State::Ok && worst.0 == State::NotTried) {
            worst = (state, remedy);
        }
    }
    Finding::new(ID, ASKED, worst.0, words.join("; ")).remedy(worst.1)
}

/// A port without TLS, unless it turns out to speak TLS.
async fn plain(
    endpoint: &Endpoint,
    config: &TlsConfig,
    addr: SocketAddr,
) -> (State, String, &'static str) {
    let url = endpoint.url();
    if speaks_http(endpoint, addr).await {
        return (State::NotTried, format!("{url} is without TLS"), "");
    }
    let encrypted = Endpoint {
        tls: true,
        ..endpoint.clone()
    };
    let config = TlsConfig {
        insecure: true,
        ..config.clone()
    };
    match handshake(&encrypted, &config, addr).await {
        Ok(_) => (
            State::Failed,
            format!("{url} speaks TLS"),
            "write https:// in the endpoint URL",
        ),
        // Not for TLS to judge; the request that follows says what is wrong.
        Err(_) => (State::NotTried, format!("{url} is without TLS"), ""),
    }
}

/// Whether the first bytes of an answer look like HTTP.
async fn speaks_http(endpoint: &Endpoint, addr: SocketAddr) -> bool {
    let asked = patiently(async {
        let sock = Sock::connect(addr, None).await.map_err(io)?;
        first_bytes(&mut Conn::plain(sock), endpoint).await
    });
    asked.await.is_ok_and(|bytes| bytes.starts_with(b"HTTP/"))
}

/// Sends a small request and returns the first bytes of the answer.
async fn first_bytes(conn: &mut Conn, endpoint: &Endpoint) -> OpResult<Vec<u8>> {
    let authority = &endpoint.authority;
    let head = format!("HEAD / HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    conn.send(head.as_bytes(), b"").await.map_err(wire)?;
    let first = |bytes: &[u8]| Ok::<_, WireError>(Step::Done(bytes.len(), bytes.to_vec()));
    conn.recv_with(first).await.map_err(wire)
}

fn io(error: std::io::Error) -> OpError {
    OpError::new(ErrorKind::Connect, error.to_string())
}

fn wire(error: WireError) -> OpError {
    OpError::new(ErrorKind::Reset, error.to_string())
}

async fn connect(tls: &ClientTls, endpoint: &Endpoint, addr: SocketAddr) -> Result<Conn, Failure> {
    let name = tls::server_name(&endpoint.host)
        .map_err(|e| Failure::Other(OpError::new(ErrorKind::Tls, e.to_string())))?;
    let mut refused = None;
    let made = patiently(async {
        let sock = Sock::connect(addr, None).await.map_err(io)?;
        Conn::connect_tls(sock, tls, &name).await.map_err(|error| {
            let text = error.to_string();
            if let WireError::Tls(reason) = error {
                refused = Some(reason);
            }
            OpError::new(ErrorKind::Tls, text)
        })
    });
    made.await.map_err(|error| match refused {
        Some(reason) => Failure::Tls(reason),
        None => Failure::Other(error),
    })
}

async fn handshake(
    endpoint: &Endpoint,
    config: &TlsConfig,
    addr: SocketAddr,
) -> Result<(ClientTls, Conn), Failure> {
    let other = |text: String| Failure::Other(OpError::new(ErrorKind::Tls, text));
    let tls = tls_of(std::slice::from_ref(endpoint), config).map_err(|e| other(e.to_string()))?;
    let tls = tls.ok_or_else(|| other("the endpoint is without TLS".to_owned()))?;
    let conn = connect(&tls, endpoint, addr).await?;
    Ok((tls, conn))
}

async fn encrypted(
    endpoint: &Endpoint,
    config: &TlsConfig,
    addr: SocketAddr,
) -> (State, String, &'static str) {
    let (tls, mut conn) = match handshake(endpoint, config, addr).await {
        Ok(both) => both,
        Err(Failure::Other(error)) => {
            return (
                State::Failed,
                format!("{addr}: {error}"),
                "check --ca-bundle, --client-cert and --client-key",
            );
        }
        Err(Failure::Tls(reason)) => {
            let remedy = remedy(&reason);
            let mut text = format!("{addr}: {reason}");
            if !matches!(reason, TlsError::NotTls) {
                text += &shown_anyway(endpoint, config, addr).await;
            }
            return (State::Failed, text, remedy);
        }
    };
    let facts = conn.tls_facts();
    let (version, cipher) = facts.map_or_else(Default::default, |f| (f.version, f.cipher));
    let (chain, ends) = chain(&conn);
    // A server sends the tickets for later sessions with its first answer.
    let answered = patiently(first_bytes(&mut conn, endpoint)).await.is_ok();
    drop(conn);
    let resumed = match connect(&tls, endpoint, addr).await {
        Ok(second) if answered => second.tls_facts().is_some_and(|facts| facts.resumed),
        _ => false,
    };
    let resumes = match resumed {
        true => "resumes sessions",
        false => "resumes no sessions, so each new connection takes a full handshake",
    };
    let text = format!("{addr}: {version}, {cipher}, {resumes}{chain}");
    match ends {
        Some(left) if left < SOON => (
            State::Differs,
            text,
            "the certificate ends soon: replace it",
        ),
        _ => (State::Ok, text, ""),
    }
}

const fn remedy(reason: &TlsError) -> &'static str {
    match reason {
        TlsError::NotTls => "the port speaks HTTP without TLS: write http:// in the endpoint URL",
        TlsError::Expired(_) => {
            "replace the server's certificate; to go on regardless: --no-verify-ssl"
        }
        TlsError::NotYetValid(_) => "set the clocks of both machines",
        TlsError::UnknownIssuer => {
            "trust its authority with --ca-bundle FILE; to go on unchecked: --no-verify-ssl"
        }
        TlsError::NameMismatch(_) => {
            "write the certificate's name in the endpoint URL; to go on unchecked: --no-verify-ssl"
        }
        TlsError::CertificateRefused(_) => "give a certificate with --client-cert and --client-key",
        TlsError::BadCertificate(_) | TlsError::ClosedInHandshake | TlsError::Handshake(_) => {
            "repair the server's TLS, or write the port that clients use; for a certificate of your own: --ca-bundle FILE"
        }
    }
}

/// The certificates of a server that is not trusted, as text.
async fn shown_anyway(endpoint: &Endpoint, config: &TlsConfig, addr: SocketAddr) -> String {
    let unchecked = TlsConfig {
        insecure: true,
        ..config.clone()
    };
    match handshake(endpoint, &unchecked, addr).await {
        Ok((_, conn)) => chain(&conn).0,
        Err(_) => String::new(),
    }
}

/// The certificates as text, and the seconds until the first of them ends.
fn chain(conn: &Conn) -> (String, Option<u64>) {
    let now = date::since_epoch(std::time::SystemTime::now()).as_secs();
    let (mut text, mut ends) = (String::new(), None::<u64>);
    for der in conn.peer_certificates() {
        let Some(certificate) = Certificate::read(&der) else {
            text += "; a certificate that cannot be read";
            continue;
        };
        let left = certificate.expires.saturating_sub(now);
        ends = Some(ends.map_or(left, |least| least.min(left)));
        let when = match left {
            0 => "ended",
            _ => "ends",
        };
        text += &format!(
            "; `{}` by `{}` {when} {}",
            certificate.subject,
            certificate.issuer,
            String::from_utf8_lossy(&date::iso(certificate.expires)),
        );
    }
    (text, ends)
}
