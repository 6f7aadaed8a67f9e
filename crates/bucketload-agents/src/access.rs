//! Who may talk to whom: a token that both sides know, or certificates of one authority, and the same
//! version.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::HeaderMap;
use subtle::ConstantTimeEq as _;
use tonic::Status;
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::error::AgentsError;
use crate::message::PROTOCOL;

/// Environment variable with the token, where no file is named.
pub const TOKEN_ENV: &str = "BUCKETLOAD_AGENT_TOKEN";

const AUTHORIZATION: &str = "authorization";
const VERSION: &str = "bucketload-version";
const PROTOCOL_HEADER: &str = "bucketload-protocol";
/// Shortest token that is accepted, characters.
const SHORTEST: usize = 16;

/// A secret that both sides know.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl Token {
    /// Takes a token.
    ///
    /// # Errors
    /// When it is too short to be one, or cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, AgentsError> {
        let text = text.trim();
        if text.len() < SHORTEST || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(AgentsError::usage(format!(
                "the agents' token must have at least {SHORTEST} visible ASCII characters; make one \
                 with: head -c 24 /dev/urandom | base64"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads the token from `file`, else from the environment (`variable` is its value).
    ///
    /// # Errors
    /// When the file cannot be read, or what is there is no token.
    pub fn find(file: Option<&Path>, variable: Option<&str>) -> Result<Option<Self>, AgentsError> {
        match (file, variable) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file).map_err(|e| {
                    AgentsError::usage(format!("the agents' token {}: {e}", file.display()))
                })?;
                Self::new(&text).map(Some)
            }
            (None, Some(text)) if !text.is_empty() => Self::new(text).map(Some),
            _ => Ok(None),
        }
    }

    /// The text, for the environment of a child process.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `text` is this token, in a time that does not tell how much of it is right.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }
}

/// Certificate, key and authority, as PEM.
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
    /// The authority that both certificates come from.
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

/// What one side presents and wants to see.
#[derive(Clone, Debug)]
pub struct Access {
    /// The version of this program.
    pub version: String,
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// The token, where there is one.
    pub token: Option<Token>,
    /// Certificates, where there are any.
    pub tls: Option<Tls>,
}

impl Access {
    /// Access for a program of `version`.
    #[must_use]
    pub fn new(version: impl Into<String>, token: Option<Token>, tls: Option<Tls>) -> Self {
        Self {
            version: version.into(),
            protocol: PROTOCOL,
            token,
            tls,
        }
    }

    /// Refuses to listen at an address that others can reach, unless callers must prove who they are.
    ///
    /// # Errors
    /// When they need not.
    pub fn check_listen(&self, address: IpAddr) -> Result<(), AgentsError> {
        if address.is_loopback() || self.token.is_some() || self.tls.is_some() {
            return Ok(());
        }
        Err(AgentsError::usage(format!(
            "{address} can be reached from other machines, so callers must prove who they are: name a \
             token ({TOKEN_ENV}, or a file) or certificates"
        )))
    }

    /// What to send with each call.
    pub(crate) fn present(&self, headers: &mut HeaderMap) {
        let value = |text: &str| http::HeaderValue::from_str(text).ok();
        if let Some(mut token) = self
            .token
            .as_ref()
            .and_then(|token| value(&format!("Bearer {}", token.0)))
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

    /// Judges a caller by the headers of its call. The token comes first: who has none learns
    /// nothing.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<(), Status> {
        if let Some(token) = &self.token {
            let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
            let given = given.and_then(|value| value.strip_prefix(b"Bearer "));
            if !given.is_some_and(|given| token.matches(given)) {
                return Err(Status::unauthenticated(
                    "the token is missing or not the one of this side; give both sides the same",
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

    /// Refuses another version; the reason names both.
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

    use super::{Access, Token};

    const SECRET: &str = "0123456789abcdef";

    fn access(version: &str, token: Option<&str>) -> Access {
        let token = token.map(|token| Token::new(token).unwrap());
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
            // Whoever does not know the token does not learn the version either.
            let refused = admitted(&access("2.0", wrong), &side).unwrap_err();
            assert!(
                refused.contains("token") && !refused.contains("1.0"),
                "{refused}"
            );
        }
        assert_eq!(
            admitted(&side, &access("1.0", None)),
            Ok(()),
            "none is asked for"
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
    }

    #[test]
    fn tokens_are_long_and_never_shown() {
        assert!(Token::new("short").is_err());
        assert!(Token::new(&"ä".repeat(20)).is_err());
        let token = Token::new(" 0123456789abcdef\n").unwrap();
        assert_eq!(token.expose(), SECRET);
        assert!(!format!("{:?}", access("1", Some(SECRET))).contains("0123"));
        assert_eq!(Token::find(None, Some("")).unwrap(), None);
        assert_eq!(Token::find(None, Some(SECRET)).unwrap(), Some(token));
    }
}
