//! Authentication between coordinator and agents: a shared token, or certificates of one authority. Both
//! sides must also have the same version.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bucketload_token::AccessToken;
use http::HeaderMap;
use tonic::Status;
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::error::AgentsError;
use crate::message::PROTOCOL;

/// Environment variable that holds the token if no file is named.
pub const TOKEN_ENV: &str = "BUCKETLOAD_AGENT_TOKEN";

const AUTHORIZATION: &str = "authorization";
const VERSION: &str = "bucketload-version";
const PROTOCOL_HEADER: &str = "bucketload-protocol";

/// Certificate, key and certificate authority, as PEM.
#[derive(Clone)]
pub struct Tls {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(***)")
    }
}

/// Files of [`Tls`].
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// This side's certificate chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority that issued both sides' certificates.
    pub authority: PathBuf,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn read(files: &TlsFiles) -> Result<Self, AgentsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|e| AgentsError::usage(format!("{}: {e}", path.display())))
        };
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            authority: read(&files.authority)?,
        })
    }

    fn identity(&self) -> Identity {
        Identity::from_pem(&self.certificate, &self.key)
    }

    pub(crate) fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(self.identity())
            .client_ca_root(Certificate::from_pem(&self.authority))
    }

    pub(crate) fn client(&self, host: &str) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .identity(self.identity())
            .ca_certificate(Certificate::from_pem(&self.authority))
            .domain_name(host)
    }
}

/// The credentials and version that one side presents and expects of the other.
#[derive(Clone, Debug)]
pub struct Access {
    /// The version of this program.
    pub version: String,
    /// The version of its protocol.
    pub protocol: u32,
    /// The shared token, if any.
    pub token: Option<AccessToken>,
    /// Certificates, if any.
    pub tls: Option<Tls>,
}

impl Access {
    /// Access for a program of `version`.
    #[must_use]
    pub fn new(version: impl Into<String>, token: Option<AccessToken>, tls: Option<Tls>) -> Self {
        Self {
            version: version.into(),
            protocol: PROTOCOL,
            token,
            tls,
        }
    }

    /// Refuses to listen on an address that other machines can reach without a token or certificates.
    ///
    /// # Errors
    /// When the address is not loopback and callers need neither.
    pub fn check_listen(&self, address: IpAddr) -> Result<(), AgentsError> {
        if address.is_loopback() || self.token.is_some() || self.tls.is_some() {
            return Ok(());
        }
        Err(AgentsError::usage(format!(
            "{address} can be reached from other machines, so callers must prove who they are: name a \
             token ({TOKEN_ENV}, or a file) or certificates"
        )))
    }

    /// Adds credentials and version to the headers of a call.
    pub(crate) fn present(&self, headers: &mut HeaderMap) {
        let value = |text: &str| http::HeaderValue::from_str(text).ok();
        if let Some(mut token) = self
            .token
            .as_ref()
            .and_then(|token| value(&format!("Bearer {}", token.expose())))
        {
            token.set_sensitive(true);
            headers.insert(AUTHORIZATION, token);
        }
        if let Some(version) = value(&self.version) {
            headers.insert(VERSION, version);
        }
        if let Some(protocol) = value(&self.protocol.to_string()) {
            headers.insert(PROTOCOL_HEADER, protocol);
        }
    }

    /// Checks the headers of a call. The token comes first, so a caller without it learns nothing, not even
    /// the version.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<(), Status> {
        if let Some(token) = &self.token {
            let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
            let given = given.and_then(|value| value.strip_prefix(b"Bearer "));
            if !given.is_some_and(|given| token.matches(given)) {
                return Err(Status::unauthenticated(
                    "the token is missing or wrong; give both sides the same token",
                ));
            }
        }
        let text = |name: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or("unknown").to_owned()
        };
        self.check_version(&text(VERSION), &text(PROTOCOL_HEADER))
            .map_err(Status::failed_precondition)
    }

    /// Refuses a different version; the reason names both.
    pub(crate) fn check_version(&self, version: &str, protocol: &str) -> Result<(), String> {
        if version == self.version && protocol == self.protocol.to_string() {
            return Ok(());
        }
        Err(format!(
            "one side is bucketload {} (protocol {}), the other is bucketload {version} (protocol \
             {protocol}); install the same version on every host",
            self.version, self.protocol
        ))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{Access, AccessToken};

    const SECRET: &str = "0123456789abcdef";

    fn access(version: &str, token: Option<&str>) -> Access {
        let token = token.map(|token| AccessToken::parse("", token).unwrap());
        Access::new(version, token, None)
    }

    fn admitted(caller: &Access, side: &Access) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        caller.present(&mut headers);
        side.admit(&headers).map_err(|s| s.message().to_owned())
    }

    #[test]
    fn the_right_token_is_admitted_and_nothing_else() {
        let side = access("1.0", Some(SECRET));
        assert_eq!(admitted(&side, &side), Ok(()));
        for wrong in [None, Some("0123456789abcdeX"), Some("0123456789abcdef0")] {
            // A caller without the token does not learn the version either.
            let refused = admitted(&access("2.0", wrong), &side).unwrap_err();
            assert!(
                refused.contains("token") && !refused.contains("1.0"),
                "{refused}"
            );
        }
        assert_eq!(
            admitted(&side, &access("1.0", None)),
            Ok(()),
            "no token required"
        );
    }

    #[test]
    fn another_version_is_refused_with_both_named() {
        let refused = admitted(&access("2.0", None), &access("1.0", None)).unwrap_err();
        assert!(
            refused.contains("1.0") && refused.contains("2.0"),
            "{refused}"
        );
        let mut other = access("1.0", None);
        other.protocol += 1;
        let refused = admitted(&other, &access("1.0", None)).unwrap_err();
        assert!(
            refused.contains(&format!("protocol {}", other.protocol)),
            "{refused}"
        );
        let refused = access("1.0", None).admit(&HeaderMap::new()).unwrap_err();
        assert!(refused.message().contains("unknown"));
    }

    #[test]
    fn plain_listeners_stay_on_loopback() {
        let plain = access("1", None);
        assert!(plain.check_listen("127.0.0.1".parse().unwrap()).is_ok());
        assert!(plain.check_listen("::1".parse().unwrap()).is_ok());
        let refused = plain.check_listen("0.0.0.0".parse().unwrap()).unwrap_err();
        assert!(refused.to_string().contains("token"), "{refused}");
        let with = access("1", Some(SECRET));
        assert!(with.check_listen("10.0.0.1".parse().unwrap()).is_ok());
        assert!(!format!("{with:?}").contains(SECRET));
    }
}
