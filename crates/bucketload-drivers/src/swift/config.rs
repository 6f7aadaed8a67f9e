//! The settings of the Swift driver, and where each value came from.
//!
//! [`SwiftConfig::new`] builds them directly (tests); `SwiftConfig::discover` follows the conventions of the OpenStack
//! tools.

use std::net::IpAddr;

use crate::http::config::{ConfigError, Origin, TlsConfig, named_enum};
use crate::http::{Endpoint, Secret};

/// How to obtain a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwiftAuth {
    /// `GET` with `X-Auth-User` and `X-Auth-Key` (auth v1: tempauth, radosgw).
    V1 {
        /// URL of the service, including the path (`http://host:8080/auth/v1.0`).
        url: Endpoint,
        /// User, often `ACCOUNT:USER`.
        user: String,
        /// Key.
        key: Secret,
    },
    /// Keystone's Identity API v3.
    Keystone(Box<Keystone>),
    /// A token that was obtained elsewhere; it cannot be renewed.
    Token(Secret),
    /// No token, for public containers.
    Anonymous,
}

/// How to sign in to Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keystone {
    /// The service's URL, with or without a trailing `/v3`.
    pub url: Endpoint,
    /// The credentials.
    pub identity: Identity,
    /// The project whose account to use; `None` for application credentials, which imply theirs.
    pub scope: Option<Project>,
    /// Region in the catalogue; `None` for any.
    pub region: Option<String>,
    /// Interface in the catalogue: `public`, `internal` or `admin`.
    pub interface: String,
}

/// Credentials for Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// User and password.
    Password {
        /// The user.
        user: Named,
        /// The password.
        password: Secret,
    },
    /// An application credential.
    Application {
        /// Its id.
        id: String,
        /// Its secret.
        secret: Secret,
    },
}

/// A user or project, by id or by name within a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By id.
    Id(String),
    /// By name, in a domain.
    Name {
        /// The name.
        name: String,
        /// The domain.
        domain: Domain,
    },
}

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// By id.
    Id(String),
    /// By name.
    Name(String),
}

/// A project.
pub type Project = Named;

/// How to assemble an object of several parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LargeObject {
    /// Static: the manifest names each segment with its MD5.
    #[default]
    Slo,
    /// Dynamic: the manifest names a prefix, and the object consists of the segments that the container's listing shows
    /// below it. Listings may lag behind.
    Dlo,
}

named_enum!(LargeObject, "kind of large object", { Slo => "slo", Dlo => "dlo" });

/// Settings of a Swift target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwiftConfig {
    /// How to obtain a token.
    pub auth: SwiftAuth,
    /// The account's URL; `None` to use the one that the sign-in returns.
    pub storage_url: Option<Endpoint>,
    /// Hosts that replace the host of the storage URL, such as several proxies; worker `w` uses number `w` modulo their
    /// count. The account's path stays the same.
    pub hosts: Vec<Endpoint>,
    /// How to write objects of several parts.
    pub large_object: LargeObject,
    /// Send the MD5 of object content (`ETag`), which the server checks; computed before the timed start.
    pub etag: bool,
    /// TLS settings.
    pub tls: TlsConfig,
    /// Local addresses to connect from; worker `w` uses number `w` modulo their count.
    pub source_addresses: Vec<IpAddr>,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

impl SwiftConfig {
    /// A configuration with default settings: static large objects, no MD5.
    #[must_use]
    pub fn new(auth: SwiftAuth, storage_url: Option<Endpoint>) -> Self {
        Self {
            auth,
            storage_url,
            hosts: Vec::new(),
            large_object: LargeObject::default(),
            etag: false,
            tls: TlsConfig::default(),
            source_addresses: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Checks the values and their combinations.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let needs_url = matches!(self.auth, SwiftAuth::Token(_) | SwiftAuth::Anonymous);
        if needs_url && self.storage_url.is_none() {
            return Err(ConfigError::new(
                "storage URL",
                "there is none, and without a sign-in no service returns it",
                "set OS_STORAGE_URL to the account's URL, such as https://host/v1/AUTH_name",
            ));
        }
        let visible = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        let printable = |text: &str| !text.is_empty() && !text.contains(['\r', '\n', '\0']);
        let bad = |place: &str| {
            Err(ConfigError::new(
                place,
                "it is empty or contains characters that a header field cannot have",
                "check for stray blanks, quotes or line ends",
            ))
        };
        match &self.auth {
            SwiftAuth::Token(token) if !visible(token.expose()) => bad("token"),
            SwiftAuth::V1 { user, .. } if !printable(user) => bad("user"),
            SwiftAuth::V1 { key, .. } if !printable(key.expose()) => bad("key"),
            _ => Ok(()),
        }
    }
}

/// Checks a container's name: 1 to 256 bytes without a slash (OpenStack Swift API, "Create container"; radosgw requires
/// at least three).
///
/// # Errors
/// The problem with the name.
pub fn check_container(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a container's name cannot be empty".to_owned());
    }
    if name.contains('/') {
        return Err(format!(
            "`{name}`: a container's name cannot contain a slash"
        ));
    }
    let coded = name.bytes().map(|b| {
        let plain = b.is_ascii_alphanumeric() || b"-._~".contains(&b);
        if plain { 1 } else { 3 }
    });
    if name.len() > 256 || coded.sum::<usize>() > 256 {
        return Err("a container's name has at most 256 bytes, percent-encoded".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{SwiftAuth, SwiftConfig, check_container};
    use crate::http::Secret;

    #[test]
    fn tokens_need_a_storage_url_and_no_line_ends() {
        let config = SwiftConfig::new(SwiftAuth::Token(Secret::new("tok")), None);
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains("OS_STORAGE_URL"), "{error}");
        let url = crate::http::Endpoint::parse("http://h/v1/AUTH_x", "test").unwrap();
        let config = SwiftConfig::new(SwiftAuth::Token(Secret::new("t\r\nX: y")), Some(url));
        let error = config.check().unwrap_err().to_string();
        assert!(
            error.contains("token") && !error.contains("X: y"),
            "{error}"
        );
    }

    #[test]
    fn names_of_containers_are_checked() {
        assert!(check_container("a b-\u{e4}").is_ok());
        for wrong in ["", "a/b", &"x".repeat(257), &"\u{e4}".repeat(43)] {
            assert!(check_container(wrong).is_err(), "{wrong}");
        }
    }
}
