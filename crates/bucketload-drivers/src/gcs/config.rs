//! Configuration of the Google Cloud Storage driver, with the origin of each value.

use std::net::IpAddr;

use super::auth::Account;
use crate::http::config::named_enum;
use crate::http::{ConfigError, Endpoint, Origin, TlsConfig};

/// How an object is written in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LargeObject {
    /// One resumable upload, in which each part is a chunk.
    #[default]
    Resumable,
    /// Each part is a separate object; the parts are composed, then deleted.
    Compose,
}

named_enum!(LargeObject, "way of writing large objects", {
    Resumable => "resumable",
    Compose => "compose",
});

/// Settings of a Google Cloud Storage target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcsConfig {
    /// Where to connect; worker `w` uses endpoint `w` modulo their number.
    pub endpoints: Vec<Endpoint>,
    /// The account to authenticate as; `None` for anonymous requests.
    pub account: Option<Account>,
    /// Project in which buckets are created and listed; empty when unknown.
    pub project: String,
    /// How an object is written in parts.
    pub large_object: LargeObject,
    /// Encryption.
    pub tls: TlsConfig,
    /// Local addresses to connect from; worker `w` uses number `w` modulo their number.
    pub source_addresses: Vec<IpAddr>,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

impl GcsConfig {
    /// Anonymous access to `endpoints` with default settings.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self {
            endpoints,
            account: None,
            project: String::new(),
            large_object: LargeObject::default(),
            tls: TlsConfig::default(),
            source_addresses: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Checks the configuration as a whole.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.endpoints.is_empty() {
            return Err(ConfigError::new(
                "endpoint",
                "there is none",
                "set --endpoint-url or STORAGE_EMULATOR_HOST",
            ));
        }
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"-_.:".contains(&b);
        if !self.project.bytes().all(legal) {
            return Err(ConfigError::new(
                "project",
                "it contains characters that a project cannot have",
                "set GOOGLE_CLOUD_PROJECT to the project's id or number",
            ));
        }
        Ok(())
    }
}
