//! TLS configuration: trusted CAs, certificates, and the causes of failed handshakes. The cryptographic
//! provider is explicit (aws-lc-rs), so no process-wide default is needed or changed. [`crate::Conn`]
//! drives the record layer.

mod client;
mod error;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

pub use client::{ClientOptions, ClientTls, ServerName, server_name};
pub use error::TlsError;
pub use server::{ServerOptions, ServerTls};

/// The only protocol offered and accepted in ALPN.
const ALPN: &[u8] = b"http/1.1";

/// The source of a PEM text.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// A file.
    File(PathBuf),
    /// The text itself.
    Text(Vec<u8>),
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // The text may be a private key.
            Self::Text(_) => f.write_str("Text(…)"),
        }
    }
}

impl std::fmt::Display for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Text(_) => f.write_str("PEM text"),
        }
    }
}

impl From<&Path> for Pem {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

/// A certificate chain and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain, starting with the end-entity certificate.
    pub certificates: Pem,
    /// The private key (PKCS#8, PKCS#1 or SEC 1).
    pub key: Pem,
}

/// Why a TLS configuration is unusable. Names the file and the remedy, never the contents.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No certificate in a PEM text.
    #[error(
        "{pem} holds no usable certificate: it must contain PEM sections \"BEGIN CERTIFICATE\""
    )]
    NoCertificate {
        /// The source of the text.
        pem: Pem,
    },
    /// No private key in a PEM text.
    #[error(
        "{pem} holds no usable private key: it must contain one PEM section \"BEGIN PRIVATE KEY\" \
         (PKCS#8, not encrypted), \"BEGIN RSA PRIVATE KEY\" or \"BEGIN EC PRIVATE KEY\""
    )]
    NoKey {
        /// The source of the text.
        pem: Pem,
    },
    /// The system has no trusted certificates.
    #[error(
        "no trusted CA certificates are installed on this system ({reason}): install them \
         (package ca-certificates) or name a CA bundle"
    )]
    NoSystemRoots {
        /// Errors of the search.
        reason: String,
    },
    /// A certificate in a CA bundle cannot be a trust anchor.
    #[error("{pem} holds a certificate that cannot be trusted as a CA: {reason}")]
    BadRoot {
        /// The source of the text.
        pem: Pem,
        /// The reason.
        reason: String,
    },
    /// Certificate and key do not match or are unusable.
    #[error("certificate {certificates} and key {key} cannot be used together: {reason}")]
    BadIdentity {
        /// The source of the chain.
        certificates: Pem,
        /// The source of the key.
        key: Pem,
        /// The reason.
        reason: String,
    },
    /// An invalid host name.
    #[error("{name:?} is neither a DNS name nor an IP address")]
    BadName {
        /// The name.
        name: String,
    },
    /// Any other refusal by the TLS library.
    #[error("TLS configuration: {0}")]
    Other(String),
}

/// The cryptographic provider of all connections. AES-128 comes first: all suites of TLS 1.3 are secure,
/// and AES-128 is the cheapest with hardware support.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    let is_cheapest = |suite: CipherSuite| suite == CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider
        .cipher_suites
        .sort_by_key(|suite| !is_cheapest(suite.suite()));
    Arc::new(provider)
}

impl Pem {
    fn read(&self) -> Result<Vec<u8>, ConfigError> {
        match self {
            Self::File(path) => std::fs::read(path).map_err(|source| ConfigError::Read {
                path: path.clone(),
                source,
            }),
            Self::Text(text) => Ok(text.clone()),
        }
    }

    /// All certificates in the text, as trust anchors.
    fn roots(&self) -> Result<RootCertStore, ConfigError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates()? {
            roots.add(certificate).map_err(|e| ConfigError::BadRoot {
                pem: self.clone(),
                reason: e.to_string(),
            })?;
        }
        Ok(roots)
    }

    /// All certificates in the text, at least one.
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
        let text = self.read()?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        match certificates {
            Ok(certificates) if !certificates.is_empty() => Ok(certificates),
            _ => Err(ConfigError::NoCertificate { pem: self.clone() }),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, ConfigError> {
        let text = self.read()?;
        PrivateKeyDer::from_pem_slice(&text).map_err(|_| ConfigError::NoKey { pem: self.clone() })
    }
}

impl Identity {
    fn bad(&self, error: &rustls::Error) -> ConfigError {
        ConfigError::BadIdentity {
            certificates: self.certificates.clone(),
            key: self.key.clone(),
            reason: error.to_string(),
        }
    }
}

fn other(error: impl std::fmt::Display) -> ConfigError {
    ConfigError::Other(error.to_string())
}
