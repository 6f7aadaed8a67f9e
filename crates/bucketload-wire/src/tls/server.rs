//! The server side: the server's certificate, and optionally the verification of client certificates.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;

use super::{ALPN, ConfigError, Identity, Pem, other, provider};

/// A server's identity, and its requirement for client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Certificate chain and key.
    pub identity: Identity,
    /// Require a client certificate issued by one of these CAs.
    pub client_ca: Option<Pem>,
}

/// A server's TLS configuration, ready for connections. Cheap to clone; shared by all threads.
#[derive(Clone, Debug)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads the files named in `options`.
    ///
    /// # Errors
    /// The file and the problem.
    pub fn new(options: &ServerOptions) -> Result<Self, ConfigError> {
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(other)?;
        let builder = match &options.client_ca {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let roots = Arc::new(pem.roots()?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(other)?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let identity = &options.identity;
        let mut config = builder
            .with_single_cert(identity.certificates.certificates()?, identity.key.key()?)
            .map_err(|e| identity.bad(&e))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self {
            config: Arc::new(config),
        })
    }
}
