//! Serves the console: connections, TLS, limits.
//!
//! HTTP/1.1 by hyper. The server closes a connection that does not complete its TLS handshake or the head of a
//! request in time, or that accepts no data for a minute. There are at most [`MAX_CONNECTIONS`]; the oldest one
//! whose client has not shown the token makes room for a new one.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::connections::{Connections, Peer};

/// Maximum number of connections.
pub const MAX_CONNECTIONS: usize = 256;
/// Time limit of a TLS handshake, and of the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(15);
/// Maximum time for which sent data may stay unacknowledged or the client's window closed, milliseconds.
const STUCK_MS: u32 = 60_000;
/// Size of a connection's send buffer in the kernel, bytes.
const SEND_BUFFER: usize = 256 << 10;

/// A listening socket and its TLS settings.
pub struct Server {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("listener", &self.listener)
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

impl Server {
    /// Listens at `address`, with TLS if the PEM files of a certificate chain and its key are given.
    ///
    /// # Errors
    /// When the address cannot be bound or a file cannot be used.
    pub fn bind(address: SocketAddr, tls: Option<(&Path, &Path)>) -> Result<Self, String> {
        let tls = tls.map(|(cert, key)| acceptor(cert, key)).transpose()?;
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|e| format!("--listen {address}: {e}"))?;
        Ok(Self { listener, tls })
    }

    /// The bound address.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `stopping` becomes true.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub async fn serve(
        self,
        router: Router,
        mut stopping: watch::Receiver<bool>,
    ) -> std::io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let connections = Connections::new(MAX_CONNECTIONS);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopping.wait_for(|stop| *stop) => return Ok(()),
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors, or the client is gone already.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let Some(place) = connections.admit() else {
                continue;
            };
            let (tls, router) = (self.tls.clone(), router.clone());
            tokio::spawn(async move {
                let peer = Arc::clone(&place.peer);
                tokio::select! {
                    () = connection(stream, tls, router, peer) => {}
                    () = place.peer.closing() => {}
                }
            });
        }
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, peer: Arc<Peer>) {
    // Events are small and should not wait for more.
    let _ = stream.set_nodelay(true);
    // Drops clients that accept no data, even when only the kernel still has data to send, and bounds that data.
    let _ = sockopt::set_tcp_user_timeout(&stream, STUCK_MS);
    let _ = sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER);
    match tls {
        None => http(stream, router, peer).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_LIMIT, tls.accept(stream)).await {
                http(stream, router, peer).await;
            }
        }
    }
}

async fn http<S: AsyncRead + AsyncWrite + Unpin>(stream: S, router: Router, peer: Arc<Peer>) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        // The guard notes on it whether the client is known.
        request.extensions_mut().insert(Arc::clone(&peer));
        router.call(request)
    });
    // Errors of a connection concern only its client.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| format!("--tls-cert {}: {e}", cert.display()))?;
    if chain.is_empty() {
        return Err(format!(
            "--tls-cert {}: the file contains no certificate (PEM)",
            cert.display()
        ));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|e| format!("--tls-key {}: {e}", key.display()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, private)
        })
        .map_err(|e| format!("--tls-cert {}: {e}", cert.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
