//! Finds endpoint, region and credentials by the conventions of the AWS tools.
//!
//! Precedence of every value: flag, environment, profile, default. Endpoints follow the rules of "Service-specific
//! endpoints", names those of "Environment variables to configure the AWS CLI" (AWS SDKs and Tools Reference Guide). As
//! in botocore, an explicit `--profile` takes precedence over access keys in the environment; `AWS_PROFILE` does not.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::config::{Addressing, AppendMode, ChecksumAlgorithm, PayloadMode, S3Config};
use super::credentials::Credentials;
use super::keeping::Encryption;
use super::lookup::Finder;
use crate::http::config::{ConfigError, Source, join_addresses, note};
use crate::http::endpoint::Endpoint;

/// Settings from the caller (command line, workload file); everything else is looked up.
#[derive(Clone, Debug, Default)]
pub struct S3Overrides {
    /// `--profile`.
    pub profile: Option<String>,
    /// `--region`.
    pub region: Option<String>,
    /// `--endpoint-url`: URLs separated by commas, with ranges.
    pub endpoint_url: Option<String>,
    /// `--no-sign-request`: anonymous access.
    pub no_sign_request: bool,
    /// `--no-verify-ssl` (`--insecure`): accept any certificate.
    pub no_verify_ssl: bool,
    /// `--ca-bundle`.
    pub ca_bundle: Option<PathBuf>,
    /// `--client-cert` and `--client-key`.
    pub client_cert: Option<(PathBuf, PathBuf)>,
    /// `--addressing`.
    pub addressing: Option<Addressing>,
    /// `--payload`.
    pub payload: Option<PayloadMode>,
    /// `--checksum`.
    pub checksum: Option<ChecksumAlgorithm>,
    /// `--append`.
    pub append: Option<AppendMode>,
    /// `--storage-class`.
    pub storage_class: Option<String>,
    /// `--sse`.
    pub sse: Option<Encryption>,
    /// `--sse-c`: the file with the customer's key.
    pub sse_c: Option<PathBuf>,
    /// `--no-tls-resume`: a full handshake on each connection.
    pub no_tls_resume: bool,
    /// `--source-address`, repeated.
    pub source_addresses: Vec<IpAddr>,
    /// Credentials from another source, such as those of the embedded server.
    pub credentials: Option<Credentials>,
    /// `--dialect`.
    pub dialect: S3Dialect,
}

/// Values from a dialect, which precede profiles and defaults.
#[derive(Clone, Debug, Default)]
pub struct S3Dialect {
    /// Region.
    pub region: Option<(String, Source)>,
    /// Addressing style.
    pub addressing: Option<(String, Source)>,
    /// Payload mode.
    pub payload: Option<(String, Source)>,
    /// Checksum algorithm.
    pub checksum: Option<(String, Source)>,
    /// How objects are appended to.
    pub append: Option<(String, Source)>,
}

impl S3Config {
    /// Collects the configuration from `overrides`, the environment (`env` looks up a variable) and the profile files
    /// below `home`.
    ///
    /// # Errors
    /// When a setting cannot be used, with its place and a remedy; or when there are no credentials.
    pub fn discover(
        overrides: &S3Overrides,
        env: &dyn Fn(&str) -> Option<String>,
        home: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let (finder, profile) = Finder::open(overrides, env, home)?;
        let mut origins = vec![profile];

        let region = match &overrides.region {
            Some(region) => (region.clone(), Source::Flag("--region")),
            None => finder
                .env("AWS_REGION")
                .or_else(|| finder.env("AWS_DEFAULT_REGION"))
                .or_else(|| overrides.dialect.region.clone())
                .or_else(|| finder.profile_value("region"))
                .unwrap_or_else(|| ("us-east-1".to_owned(), Source::Default)),
        };
        note(&mut origins, "region", region.0.clone(), &region.1);
        let region = region.0;

        let endpoints = match finder.endpoint_url(overrides)? {
            Some((text, source)) => {
                let list = Endpoint::parse_list(&text, &source.to_string())?;
                note(&mut origins, "endpoint", text, &source);
                list
            }
            None => {
                let endpoint = Endpoint::aws(&region);
                note(&mut origins, "endpoint", endpoint.url(), &Source::Default);
                vec![endpoint]
            }
        };

        let (credentials, source) = finder.credentials(overrides)?;
        let shown = credentials.as_ref().map_or_else(
            || "anonymous".to_owned(),
            |c| format!("{}:***", c.access_key),
        );
        note(&mut origins, "credentials", shown, &source);

        let all_aws = endpoints.iter().all(Endpoint::is_aws);
        let mut config = Self::new(endpoints, &region, credentials);
        config
            .source_addresses
            .clone_from(&overrides.source_addresses);
        if !config.source_addresses.is_empty() {
            let source = Source::Flag("--source-address");
            let shown = join_addresses(&config.source_addresses);
            note(&mut origins, "source addresses", shown, &source);
        }

        let (addressing, source) = finder.addressing(overrides, all_aws)?;
        note(&mut origins, "addressing", addressing.to_string(), &source);
        config.addressing = addressing;

        let (payload, source) = finder.payload(overrides, config.credentials.is_none())?;
        note(&mut origins, "payload", payload.to_string(), &source);
        config.payload = payload;

        let (checksum, source) = finder.checksum(overrides, payload)?;
        let shown = checksum.map_or("none", ChecksumAlgorithm::name);
        note(&mut origins, "checksum", shown, &source);
        config.checksum = checksum;

        let (append, source) = Finder::append(overrides)?;
        note(&mut origins, "append", append.to_string(), &source);
        config.append = append;
        config
            .keeping
            .storage_class
            .clone_from(&overrides.storage_class);
        if let Some(class) = &config.keeping.storage_class {
            let source = Source::Flag("--storage-class");
            note(&mut origins, "storage class", class.clone(), &source);
        }
        if let Some((encryption, source)) = finder.encryption(overrides)? {
            note(&mut origins, "encryption", encryption.to_string(), &source);
            config.keeping.encryption = Some(encryption);
        }

        config.tls = finder.tls(overrides, &mut origins);
        config.origins = origins;
        config.check()?;
        Ok(config)
    }
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
