//! The TLS handshake and the parameters it negotiated.

use std::future::poll_fn;
use std::sync::Arc;

use rustls::HandshakeKind;
use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls_pki_types::ServerName;

use super::Conn;
use super::tls::{LayerError, Side, TlsLayer};
use crate::error::Error;
use crate::scratch::{SMALL, Spill};
use crate::sock::Sock;
use crate::tls::{ClientTls, ServerTls, TlsError};

/// The parameters a TLS handshake negotiated, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// Protocol version, such as `TLSv1_3`.
    pub version: String,
    /// Cipher suite, such as `TLS13_AES_128_GCM_SHA256`.
    pub cipher: String,
    /// True if an earlier session was resumed.
    pub resumed: bool,
}

impl TlsLayer {
    pub(super) fn facts(&self) -> TlsFacts {
        let state = self.state();
        TlsFacts {
            version: state
                .protocol_version()
                .map_or_else(String::new, |version| format!("{version:?}")),
            cipher: state
                .negotiated_cipher_suite()
                .map_or_else(String::new, |suite| format!("{:?}", suite.suite())),
            resumed: state.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

impl Conn {
    /// Performs a client's TLS handshake over a connected socket and verifies the server's
    /// certificate for `name` (see [`crate::tls::server_name`]).
    ///
    /// # Errors
    /// [`Error::Tls`] with the reason; socket errors.
    pub async fn connect_tls(
        sock: Sock,
        tls: &ClientTls,
        name: &ServerName<'static>,
    ) -> Result<Self, Error> {
        let connection = UnbufferedClientConnection::new(Arc::clone(&tls.config), name.clone())
            .map_err(TlsError::from)?;
        Self::handshake(sock, Side::Client(connection)).await
    }

    /// Performs a server's TLS handshake over an accepted socket.
    ///
    /// # Errors
    /// [`Error::Tls`] with the reason; socket errors.
    pub async fn accept_tls(sock: Sock, tls: &ServerTls) -> Result<Self, Error> {
        let connection =
            UnbufferedServerConnection::new(Arc::clone(&tls.config)).map_err(TlsError::from)?;
        Self::handshake(sock, Side::Server(connection)).await
    }

    async fn handshake(mut sock: Sock, side: Side) -> Result<Self, Error> {
        let mut layer = Box::new(TlsLayer::new(side));
        let mut early = Spill::default();
        let result = async {
            layer
                .process(&mut [], None, &mut |_| {})
                .map_err(LayerError::Tls)?;
            loop {
                poll_fn(|cx| layer.poll_flush(cx, &mut sock))
                    .await
                    .map_err(LayerError::Io)?;
                if !layer.state().is_handshaking() {
                    return Ok(());
                }
                let sink = &mut |plain: &[u8]| early.push(plain);
                let n = poll_fn(|cx| layer.poll_recv(cx, &mut sock, SMALL, sink)).await?;
                if n == 0 || layer.peer_closed() {
                    return Err(LayerError::Tls(TlsError::ClosedInHandshake));
                }
            }
        }
        .await;
        match result {
            Ok(()) => {
                let mut conn = Self::plain(sock);
                conn.spill = early;
                conn.tls = Some(layer);
                Ok(conn)
            }
            Err(LayerError::Tls(error)) => Err(Error::Tls(error)),
            Err(LayerError::Io(error)) => Err(match Error::from(error) {
                Error::Reset => Error::Tls(TlsError::ClosedInHandshake),
                other => other,
            }),
        }
    }

    /// The parameters the TLS handshake negotiated; `None` for a plain connection.
    #[must_use]
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.tls.as_ref().map(|layer| layer.facts())
    }

    /// The certificates that the peer showed, its own first, in DER; empty for a plain connection and after a resumed
    /// handshake of some servers.
    #[must_use]
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let shown = self
            .tls
            .as_ref()
            .and_then(|layer| layer.state().peer_certificates());
        let shown = shown.unwrap_or_default().iter();
        shown
            .map(|certificate| certificate.as_ref().to_vec())
            .collect()
    }
}
