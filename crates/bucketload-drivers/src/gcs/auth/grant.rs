//! Obtaining an access token: one exchange with a token endpoint or with the metadata server.

use std::time::Duration;

use bucketload_core::driver::{ErrorKind, OpError, OpResult, Probe};
use bucketload_wire::clock::wall_seconds;

use super::account::{Account, ServiceKey};
use super::jwt::Signer;
use crate::gcs::error_map;
use crate::http::{
    Body, Buffer, Client, Collect, ConfigError, Connection, Endpoint, IdFields, Plain, Render as _,
    Secret, TlsConfig,
};
use crate::json;

/// Path of the access token on the metadata server (Compute Engine, "Authenticate workloads using
/// service accounts").
const METADATA_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// Most bytes of an answer.
const MAX_ANSWER: usize = 64 * 1024;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Assumed lifetime of a token that comes without one. A token that another program obtained is
/// read again this often.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(60);

/// An access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessToken {
    pub(crate) secret: Secret,
    /// How long the token stays valid from now on.
    pub(crate) lifetime: Duration,
}

/// Obtains tokens for one account.
pub(crate) struct TokenSource {
    account: Account,
    /// Client of the token endpoint; none for a given token or a token file.
    client: Option<Client>,
    /// Only for a service account.
    signer: Option<Signer>,
}

impl TokenSource {
    /// # Errors
    /// When the account's key or token endpoint cannot be used.
    pub(crate) fn new(account: Account, tls: &TlsConfig) -> Result<Self, ConfigError> {
        let endpoint = match &account {
            Account::Token(_) | Account::TokenFile(_) => None,
            Account::Service(key) => Some(Endpoint::parse(&key.token_url, "token_uri")?),
            Account::User(user) => Some(Endpoint::parse(&user.token_url, "token_uri")?),
            Account::Metadata(endpoint) => Some(endpoint.clone()),
        };
        let ids = IdFields {
            request: "x-request-id",
            extended: "",
        };
        let signer = match &account {
            Account::Service(key) => Some(Signer::new(key.key.expose()).map_err(|problem| {
                ConfigError::new(
                    format!("private_key of {}", key.email),
                    problem,
                    "download the key of the service account again",
                )
            })?),
            _ => None,
        };
        let client = endpoint.map(|endpoint| Client::new(vec![endpoint], tls, ids));
        Ok(Self {
            client: client.transpose()?,
            account,
            signer,
        })
    }

    /// Obtains a token.
    ///
    /// # Errors
    /// `Auth` when the token is refused, else the kind of the failed exchange. No message contains a
    /// secret.
    pub(crate) async fn obtain(&self) -> OpResult<AccessToken> {
        match &self.account {
            Account::Token(secret) => Ok(AccessToken {
                secret: secret.clone(),
                lifetime: UNKNOWN_LIFETIME,
            }),
            Account::TokenFile(path) => {
                let failed = |text: String| OpError::new(ErrorKind::Auth, text);
                let text = std::fs::read_to_string(path)
                    .map_err(|e| failed(format!("--token-file {}: {e}", path.display())))?;
                let token = valid_token(text.trim()).ok_or_else(|| {
                    failed(format!(
                        "--token-file {}: it contains no token",
                        path.display()
                    ))
                })?;
                Ok(AccessToken {
                    secret: token,
                    lifetime: UNKNOWN_LIFETIME,
                })
            }
            Account::Service(key) => {
                let grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                let mut form = Vec::new();
                form.parameter("grant_type", grant_type);
                form.parameter("assertion", &self.assertion(key)?);
                self.ask(Some(&form)).await
            }
            Account::User(user) => {
                let mut form = Vec::new();
                form.parameter("grant_type", "refresh_token");
                form.parameter("client_id", &user.client_id);
                form.parameter("client_secret", user.client_secret.expose());
                form.parameter("refresh_token", user.refresh_token.expose());
                self.ask(Some(&form)).await
            }
            Account::Metadata(_) => self.ask(None).await,
        }
    }

    fn assertion(&self, key: &ServiceKey) -> OpResult<String> {
        let signer = self.signer.as_ref().ok_or("there is no key".to_owned());
        signer
            .and_then(|signer| signer.assertion(key, wall_seconds()))
            .map_err(|text| OpError::new(ErrorKind::Auth, text))
    }

    /// Performs one exchange: a POST of `form`, or a GET from the metadata server.
    async fn ask(&self, form: Option<&[u8]>) -> OpResult<AccessToken> {
        let Some(client) = &self.client else {
            return Err(OpError::new(ErrorKind::Auth, "there is no token endpoint"));
        };
        let endpoint = &client.endpoints()[0];
        let mut head = Buffer::take();
        match form {
            Some(form) => {
                let path = match endpoint.base_path.as_str() {
                    "" => "/",
                    path => path,
                };
                let authority = &endpoint.authority;
                head.extend_from_slice(
                    format!(
                        "POST {path} HTTP/1.1\r\nhost: {authority}\r\n\
                         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n",
                        form.len()
                    )
                    .as_bytes(),
                );
            }
            None => head.extend_from_slice(
                format!(
                    "GET {METADATA_PATH} HTTP/1.1\r\nhost: {}\r\nmetadata-flavor: Google\r\n\r\n",
                    endpoint.authority
                )
                .as_bytes(),
            ),
        }
        let mut body = Vec::new();
        let mut sink = Collect::new(&mut body, MAX_ANSWER);
        let mut outgoing = Plain::new(head, Body::Bytes(form.unwrap_or_default()), false);
        let mut connection = Connection::new(0, None);
        let mut probe = Probe::untimed();
        let exchange = connection.perform(client, endpoint, &mut outgoing, &mut sink, &mut probe);
        let place = format!("access token from {}", endpoint.url());
        let reply = match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(mut error)) => {
                error.detail = format!("{place}: {}", error.detail).into();
                return Err(error);
            }
            Err(_) => {
                let text = format!("{place}: no answer within {} s", PATIENCE.as_secs());
                return Err(OpError::new(ErrorKind::Timeout, text));
            }
        };
        match reply.refusal {
            None => read(&body).map_err(|mut error| {
                error.detail = format!("{place}: {}", error.detail).into();
                error
            }),
            Some(refusal) => Err(refused(&place, reply.status, &refusal.body)),
        }
    }
}

/// Reads a token endpoint's answer (RFC 6749 section 5.1).
pub(crate) fn read(body: &[u8]) -> OpResult<AccessToken> {
    let wrong = |text: String| OpError::new(ErrorKind::Protocol, text);
    let (mut token, mut seconds) = (String::new(), None);
    json::values(body, |path, value| match path {
        ["access_token"] => token = value.text().map(json::Text::get).unwrap_or_default(),
        ["expires_in"] => seconds = value.whole(),
        _ => {}
    })
    .map_err(|e| wrong(format!("the answer cannot be read: {e}")))?;
    let secret =
        valid_token(&token).ok_or_else(|| wrong("the answer contains no token".to_owned()))?;
    Ok(AccessToken {
        secret,
        lifetime: seconds.map_or(UNKNOWN_LIFETIME, Duration::from_secs),
    })
}

/// `text` as a token, if it may appear in a header field (RFC 6750 section 2.1).
pub(crate) fn valid_token(text: &str) -> Option<Secret> {
    let legal = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    legal.then(|| Secret::new(text))
}

/// The error for a refusal of a token endpoint (RFC 6749 section 5.2).
fn refused(place: &str, status: u16, body: &[u8]) -> OpError {
    let mut error = error_map::to_error(status, body);
    error.kind = match status {
        429 => ErrorKind::Throttled,
        500.. => ErrorKind::Server,
        _ => ErrorKind::Auth,
    };
    error.detail = format!("{place} was refused: {}", error.detail).into();
    error
}

#[cfg(test)]
mod tests {
    use super::{read, refused};
    use bucketload_core::error::ErrorKind;
    use std::time::Duration;

    #[test]
    fn answers_are_read() {
        let token = read(br#"{"access_token":"ya29.x","expires_in":3599,"token_type":"Bearer"}"#);
        let token = token.unwrap();
        assert_eq!(token.secret.expose(), "ya29.x");
        assert_eq!(token.lifetime, Duration::from_secs(3599));
        assert!(!format!("{token:?}").contains("ya29"));
        for wrong in [
            "",
            "{}",
            r#"{"access_token":"two words"}"#,
            r#"{"access_token":7}"#,
        ] {
            assert_eq!(
                read(wrong.as_bytes()).unwrap_err().kind,
                ErrorKind::Protocol
            );
        }
    }

    #[test]
    fn refusals_give_the_reason() {
        let body =
            br#"{"error":"invalid_grant","error_description":"Invalid JWT\u0007 Signature."}"#;
        let error = refused("access token from x", 400, body);
        assert_eq!(error.kind, ErrorKind::Auth);
        assert!(
            error
                .detail
                .contains("invalid_grant: Invalid JWT Signature.")
        );
        assert_eq!(refused("x", 503, b"").kind, ErrorKind::Server);
    }
}
