//! The client side: trusted roots, client certificate, resumption, and an explicit opt-out of
//! verification.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::{ALPN, ConfigError, Identity, Pem, other, provider};

pub use rustls_pki_types::ServerName;

/// Number of TLS sessions remembered for resumption, over all servers.
const SESSIONS: usize = 256;

/// A client's trust and identity. By default it verifies against the system's roots and resumes sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// CA certificates to trust *instead of* the system's.
    pub ca_bundle: Option<Pem>,
    /// The client's own certificate, for servers that ask for one.
    pub identity: Option<Identity>,
    /// Accept any certificate for any name. The connection is encrypted, but the peer may be anyone.
    pub insecure: bool,
    /// Resume earlier sessions, which saves two thirds of a reconnect's handshake. Turn it off to measure
    /// full handshakes.
    pub resumption: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            ca_bundle: None,
            identity: None,
            insecure: false,
            resumption: true,
        }
    }
}

/// A client's TLS configuration, ready for connections. Cheap to clone; shared by all threads.
#[derive(Clone, Debug)]
pub struct ClientTls {
    pub(crate) config: Arc<ClientConfig>,
}

impl ClientTls {
    /// Reads the files named in `options`, or the system's roots.
    ///
    /// # Errors
    /// The file and the problem.
    pub fn new(options: &ClientOptions) -> Result<Self, ConfigError> {
        let provider = provider();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(other)?;
        let verifier: Arc<dyn ServerCertVerifier> = if options.insecure {
            Arc::new(AcceptAny { provider })
        } else {
            let roots = Arc::new(roots(options.ca_bundle.as_ref())?);
            WebPkiServerVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(other)?
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.certificates.certificates()?, identity.key.key()?)
                .map_err(|e| identity.bad(&e))?,
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = if options.resumption {
            Resumption::in_memory_sessions(SESSIONS)
        } else {
            Resumption::disabled()
        };
        Ok(Self {
            config: Arc::new(config),
        })
    }
}

/// The name to verify a server's certificate against: a DNS name (also sent as SNI) or an IP address
/// (IPv6 with or without brackets).
///
/// # Errors
/// [`ConfigError::BadName`].
pub fn server_name(host: &str) -> Result<ServerName<'static>, ConfigError> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    ServerName::try_from(bare.to_owned()).map_err(|_| ConfigError::BadName {
        name: host.to_owned(),
    })
}

fn roots(bundle: Option<&Pem>) -> Result<RootCertStore, ConfigError> {
    if let Some(pem) = bundle {
        return pem.roots();
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // Skips the unparsable certificates that some systems have.
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(ConfigError::NoSystemRoots {
            reason: if reasons.is_empty() {
                "none found".into()
            } else {
                reasons.join("; ")
            },
        });
    }
    Ok(roots)
}

/// Accepts every certificate, but still checks that the peer has its private key.
#[derive(Debug)]
struct AcceptAny {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
