//! Configuration of the driver, and its form for calls of the library.

use std::ffi::{CString, OsString};
use std::fmt;

use libs3_abi::{
    S3_PROTOCOL_HTTP as HTTP, S3_PROTOCOL_HTTPS as HTTPS, S3_URI_STYLE_PATH,
    S3_URI_STYLE_VIRTUAL_HOST,
};

/// Longest host name, without the final NUL.
const MAX_HOST_NAME: usize = 254;

/// Position of the bucket's name in requests, for libraries that send requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// In the path.
    #[default]
    Path,
    /// In the host name.
    VirtualHost,
}

/// Configuration of the driver.
#[derive(Clone)]
pub struct Libs3Config {
    /// The library: a path, or a name for the dynamic linker to search.
    pub library: OsString,
    /// The host to pass to the library: a URL `http://HOST:PORT` or `https://HOST:PORT`, or an absolute directory
    /// for a library that stores files. `None`: the library's default.
    pub host: Option<String>,
    /// Access key; libraries that store files ignore it.
    pub access_key: String,
    /// Secret key. Never printed.
    pub secret_key: String,
    /// Token of temporary credentials. Never printed.
    pub session_token: Option<String>,
    /// Region for signing requests; `None`: the library's default.
    pub region: Option<String>,
    /// Position of the bucket's name.
    pub style: Style,
}

impl fmt::Debug for Libs3Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Libs3Config")
            .field("library", &self.library)
            .field("host", &self.host)
            .field("region", &self.region)
            .field("style", &self.style)
            .finish_non_exhaustive()
    }
}

impl Libs3Config {
    /// The defaults: no host, no credentials.
    #[must_use]
    pub fn new(library: impl Into<OsString>) -> Self {
        Self {
            library: library.into(),
            host: None,
            access_key: "bucketload".to_owned(),
            secret_key: "bucketload".to_owned(),
            session_token: None,
            region: None,
            style: Style::default(),
        }
    }
}

/// The configuration in the library's form.
pub(super) struct CConfig {
    pub(super) host: Option<CString>,
    pub(super) protocol: i32,
    pub(super) style: i32,
    pub(super) access_key: CString,
    pub(super) secret_key: CString,
    pub(super) session_token: Option<CString>,
    pub(super) region: Option<CString>,
}

impl CConfig {
    /// Converts a configuration.
    ///
    /// # Errors
    /// When a value cannot be passed to the library.
    pub(super) fn of(config: &Libs3Config) -> Result<Self, String> {
        let text = |what: &str, text: &str| {
            CString::new(text).map_err(|_| format!("{what} contains a NUL character"))
        };
        let optional = |what: &str, value: &Option<String>| {
            value.as_deref().map(|value| text(what, value)).transpose()
        };
        let (protocol, host) = match config.host.as_deref() {
            None => (HTTPS, None),
            Some(host) => {
                let (protocol, name) = split(host)?;
                if name.len() > MAX_HOST_NAME {
                    return Err(format!("{host}: libs3 accepts names of at most 254 bytes"));
                }
                (protocol, Some(text("the endpoint", name)?))
            }
        };
        Ok(Self {
            host,
            protocol,
            style: match config.style {
                Style::Path => S3_URI_STYLE_PATH,
                Style::VirtualHost => S3_URI_STYLE_VIRTUAL_HOST,
            },
            access_key: text("the access key", &config.access_key)?,
            secret_key: text("the secret key", &config.secret_key)?,
            session_token: optional("the session token", &config.session_token)?,
            region: optional("the region", &config.region)?,
        })
    }
}

/// Protocol and host of an endpoint.
fn split(host: &str) -> Result<(i32, &str), String> {
    let (protocol, rest) = match host.split_once("://") {
        Some(("http", rest)) => (HTTP, rest),
        Some(("https", rest)) => (HTTPS, rest),
        None if host.starts_with('/') => return Ok((HTTP, host)),
        _ => (HTTPS, ""),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.is_empty() || rest.contains('/') {
        return Err(format!(
            "{host:?} is not a valid host for libs3; write http://HOST:PORT, https://HOST:PORT or an absolute \
             directory"
        ));
    }
    Ok((protocol, rest))
}

#[cfg(test)]
mod tests {
    use super::{CConfig, HTTP, HTTPS, Libs3Config, split};

    #[test]
    fn hosts_are_urls_or_directories() {
        assert_eq!(split("http://h:9000/"), Ok((HTTP, "h:9000")));
        assert_eq!(split("https://h"), Ok((HTTPS, "h")));
        assert_eq!(split("/srv/objects"), Ok((HTTP, "/srv/objects")));
        for wrong in ["h:9000", "", "ftp://h", "http://", "http://h/path"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
        let mut config = Libs3Config::new("libs3.so.4");
        assert!(CConfig::of(&config).unwrap().host.is_none());
        config.host = Some(format!("/{}", "d".repeat(254)));
        assert!(CConfig::of(&config).is_err());
        config.secret_key = "precious".to_owned();
        assert!(!format!("{config:?}").contains("precious"));
    }
}
