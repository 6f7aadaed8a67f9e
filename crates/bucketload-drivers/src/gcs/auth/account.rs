//! The kinds of Google credentials, and the files that contain them.
//!
//! The formats are those of "Application Default Credentials" (Google Cloud, "How Application Default
//! Credentials works"): a service account key, or the file that `gcloud auth application-default
//! login` writes.

use std::path::{Path, PathBuf};

use crate::http::{ConfigError, Endpoint, Secret};
use crate::json;

/// Google's token endpoint (RFC 6749 section 3.2), for files that name none.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";

/// The source of access tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// An access token that another program obtained.
    Token(Secret),
    /// A file with an access token that another program keeps fresh.
    TokenFile(PathBuf),
    /// The key of a service account.
    Service(ServiceKey),
    /// A user's refresh token.
    User(UserGrant),
    /// The metadata server of the virtual machine on which the program runs.
    Metadata(Endpoint),
}

/// The key of a service account: it signs assertions that are exchanged for access tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceKey {
    /// `client_email`.
    pub email: String,
    /// `private_key_id`; may be empty.
    pub key_id: String,
    /// `private_key`, PEM.
    pub key: Secret,
    /// `token_uri`.
    pub token_url: String,
}

/// The credentials that a user granted to the command-line tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserGrant {
    /// `client_id` of the tool.
    pub client_id: String,
    /// `client_secret` of the tool.
    pub client_secret: Secret,
    /// `refresh_token`.
    pub refresh_token: Secret,
    /// `token_uri`.
    pub token_url: String,
}

impl Account {
    /// A description of the account, without secrets.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Token(_) => "access token".to_owned(),
            Self::TokenFile(path) => format!("access token in {}", path.display()),
            Self::Service(key) => format!("service account {}", key.email),
            Self::User(_) => "user (refresh token)".to_owned(),
            Self::Metadata(endpoint) => format!("metadata server {}", endpoint.authority),
        }
    }
}

/// The contents of a credentials file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CredentialsFile {
    pub(crate) account: Account,
    /// `project_id` or `quota_project_id`; empty when there is none.
    pub(crate) project: String,
}

/// Reads the credentials file at `path`.
pub(crate) fn load(path: &Path) -> Result<CredentialsFile, ConfigError> {
    let place = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|e| {
        ConfigError::new(
            &place,
            format!("the credentials file cannot be read: {e}"),
            "check GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`",
        )
    })?;
    parse(&bytes, &place)
}

/// Parses a credentials file found at `place`. Messages name fields and never show secrets.
pub(crate) fn parse(bytes: &[u8], place: &str) -> Result<CredentialsFile, ConfigError> {
    const NAMES: [&str; 9] = [
        "type",
        "client_email",
        "private_key_id",
        "private_key",
        "token_uri",
        "client_id",
        "client_secret",
        "refresh_token",
        "project_id",
    ];
    let mut fields: [String; NAMES.len()] = Default::default();
    let mut quota_project = String::new();
    json::values(bytes, |path, value| {
        let ([name], Some(text)) = (path, value.text()) else {
            return;
        };
        if let Some(at) = NAMES.iter().position(|known| known == name) {
            fields[at] = text.get();
        } else if *name == "quota_project_id" {
            quota_project = text.get();
        }
    })
    .map_err(|e| {
        ConfigError::new(
            place,
            format!("the credentials file is not JSON: {e}"),
            "download the key again or run `gcloud auth application-default login`",
        )
    })?;
    let [
        kind,
        email,
        key_id,
        key,
        token_url,
        client_id,
        client_secret,
        refresh,
        project,
    ] = fields;
    let need = |name: &str, value: &str| match value.is_empty() {
        false => Ok(()),
        true => Err(ConfigError::new(
            format!("{place}: {name}"),
            "it is missing",
            "use the file as Google's tools wrote it",
        )),
    };
    let token_url = match token_url.is_empty() {
        true => TOKEN_URL.to_owned(),
        false => token_url,
    };
    Endpoint::parse(&token_url, &format!("{place}: token_uri"))?;
    let account = match kind.as_str() {
        "service_account" => {
            need("client_email", &email)?;
            need("private_key", &key)?;
            Account::Service(ServiceKey {
                email,
                key_id,
                key: Secret::new(key),
                token_url,
            })
        }
        "authorized_user" => {
            need("client_id", &client_id)?;
            need("client_secret", &client_secret)?;
            need("refresh_token", &refresh)?;
            Account::User(UserGrant {
                client_id,
                client_secret: Secret::new(client_secret),
                refresh_token: Secret::new(refresh),
                token_url,
            })
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            return Err(ConfigError::new(
                format!("{place}: type"),
                format!("credentials of type `{shown}` are not supported"),
                "use a service account key or `gcloud auth application-default login`, or put an \
                 access token into GOOGLE_OAUTH_ACCESS_TOKEN or --token-file",
            ));
        }
    };
    let project = match project.is_empty() {
        true => quota_project,
        false => project,
    };
    Ok(CredentialsFile { account, project })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Account, parse};

    const SERVICE: &str = r#"{"type":"service_account","project_id":"p-1","private_key_id":"k1",
        "private_key":"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
        "client_email":"bench@p-1.iam.gserviceaccount.com","client_id":"1",
        "token_uri":"https://oauth2.googleapis.com/token"}"#;

    #[test]
    fn service_account_keys_are_read_and_not_printed() {
        let loaded = parse(SERVICE.as_bytes(), "file").unwrap();
        assert_eq!(loaded.project, "p-1");
        let shown = format!("{loaded:?} {}", loaded.account.describe());
        assert!(!shown.contains("c2VjcmV0"), "{shown}");
        assert!(shown.contains("service account bench@p-1"), "{shown}");
        let Account::Service(key) = loaded.account else {
            panic!("no service account");
        };
        assert!(
            key.key.expose().contains("KEY-----\nc2Vj"),
            "escapes are undone"
        );
    }

    #[test]
    fn the_file_of_the_command_line_tools_is_read() {
        let text = r#"{"account":"","client_id":"c","client_secret":"very","quota_project_id":"q",
            "refresh_token":"hush","type":"authorized_user","universe_domain":"googleapis.com"}"#;
        let loaded = parse(text.as_bytes(), "file").unwrap();
        assert_eq!(loaded.project, "q");
        assert!(!format!("{loaded:?}").contains("hush"));
        let Account::User(user) = loaded.account else {
            panic!("no user");
        };
        assert_eq!(user.token_url, "https://oauth2.googleapis.com/token");
    }

    #[test]
    fn errors_name_file_and_field() {
        for (text, part) in [
            ("", "f.json: the credentials file is not JSON"),
            (
                r#"{"type":"external_account"}"#,
                "f.json: type: credentials of type `external_account`",
            ),
            (
                r#"{"type":"service_account","private_key":"x"}"#,
                "f.json: client_email: it is missing",
            ),
            (
                r#"{"type":"authorized_user","client_id":"x"}"#,
                "f.json: client_secret: it is missing",
            ),
            (
                r#"{"type":"authorized_user","token_uri":"ftp://x"}"#,
                "f.json: token_uri",
            ),
        ] {
            let error = parse(text.as_bytes(), "f.json").unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(at in 0usize..400, byte in any::<u8>()) {
            let mut text = SERVICE.as_bytes().to_vec();
            let at = at % text.len();
            text[at] = byte;
            let _ = parse(&text, "file");
        }
    }
}
