//! The causes of a failed TLS handshake or a broken record, as the user needs to know them.

use rustls::{AlertDescription, CertificateError, InvalidMessage};

/// Why a TLS connection failed. Each variant calls for a different remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The peer's certificate has expired.
    #[error("the certificate has expired ({0})")]
    Expired(String),
    /// The peer's certificate is not valid yet: a clock is wrong, here or at the peer.
    #[error("the certificate is not valid yet ({0}); check the clocks of both machines")]
    NotYetValid(String),
    /// The peer's certificate was not issued by a trusted CA.
    #[error("the certificate was issued by an authority that is not trusted here")]
    UnknownIssuer,
    /// The certificate is not for the name connected to.
    #[error("the certificate is not valid for this name ({0})")]
    NameMismatch(String),
    /// The peer's certificate is revoked, malformed, incorrectly signed or not meant for this use.
    #[error("the certificate cannot be accepted: {0}")]
    BadCertificate(String),
    /// The peer does not accept this side's certificate, or requires one and got none. For a client, that
    /// is the client certificate; for a server, its own.
    #[error("the peer does not accept this side's certificate: {0}")]
    CertificateRefused(String),
    /// The peer sent plain bytes, such as an HTTP response: the port does not speak TLS.
    #[error("the peer does not speak TLS: plain bytes where a TLS record was expected")]
    NotTls,
    /// The peer ended the connection during the handshake.
    #[error("the peer closed the connection during the TLS handshake")]
    ClosedInHandshake,
    /// No common protocol version, cipher suite or application protocol, or any other failure.
    #[error("TLS: {0}")]
    Handshake(String),
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        use rustls::Error as E;
        match error {
            E::InvalidCertificate(certificate) => from_certificate(&certificate),
            E::AlertReceived(
                alert @ (AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
                | AlertDescription::CertificateRequired),
            ) => Self::CertificateRefused(match alert {
                AlertDescription::CertificateRequired => "it demands one".into(),
                AlertDescription::UnknownCA => "it does not know the issuer".into(),
                AlertDescription::CertificateExpired => "it has expired".into(),
                other => format!("alert {other:?}"),
            }),
            E::NoCertificatesPresented => Self::BadCertificate("the peer shows none".into()),
            E::InvalidMessage(
                InvalidMessage::InvalidContentType
                | InvalidMessage::UnknownProtocolVersion
                | InvalidMessage::MessageTooLarge,
            ) => Self::NotTls,
            other => Self::Handshake(other.to_string()),
        }
    }
}

fn from_certificate(error: &CertificateError) -> TlsError {
    use CertificateError as C;
    match error {
        C::Expired => TlsError::Expired(error.to_string()),
        C::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
            TlsError::Expired(format!("{days} days ago"))
        }
        C::NotValidYet | C::NotValidYetContext { .. } => TlsError::NotYetValid(error.to_string()),
        C::UnknownIssuer => TlsError::UnknownIssuer,
        C::NotValidForName => TlsError::NameMismatch(error.to_string()),
        C::NotValidForNameContext {
            expected,
            presented,
        } => {
            // `DnsName("a.example")`, `IpAddress(127.0.0.1)`.
            let bare = |name: &String| -> String {
                let inside = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest);
                inside.trim_matches(['"', ')']).to_owned()
            };
            let names: Vec<String> = presented.iter().map(bare).collect();
            TlsError::NameMismatch(format!(
                "it is for {}, not for {}",
                names.join(", "),
                expected.to_str()
            ))
        }
        other => {
            let text = other.to_string();
            TlsError::BadCertificate(if text.contains("CaUsedAsEndEntity") {
                "it is a CA certificate; a server needs one of its own, issued by that CA".into()
            } else {
                text
            })
        }
    }
}
