//! Finds endpoint, credentials and project by the conventions of Google's tools.
//!
//! Precedence of every value: flag, environment, file, default. Credentials are looked up in the order
//! of "How Application Default Credentials works" (Google Cloud), after an access token that is given
//! directly. Requests to an emulator are anonymous, as with Google's clients.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::auth::Account;
use super::auth::account;
use super::auth::grant::valid_token;
use super::config::{GcsConfig, LargeObject};
use crate::http::{ConfigError, Endpoint, Origin, Source, TlsConfig};

/// Google's own endpoint.
const ENDPOINT: &str = "https://storage.googleapis.com";

/// Host of a virtual machine's metadata server.
const METADATA_HOST: &str = "metadata.google.internal";

/// Settings from the caller (command line, workload file); everything else is looked up.
#[derive(Clone, Debug, Default)]
pub struct GcsOverrides {
    /// `--endpoint-url`: URLs separated by commas, with ranges.
    pub endpoint_url: Option<String>,
    /// `--token-file`.
    pub token_file: Option<PathBuf>,
    /// `--no-sign-request`: anonymous access.
    pub anonymous: bool,
    /// `--gcs-large-object`.
    pub large_object: Option<LargeObject>,
    /// How connections are encrypted.
    pub tls: TlsConfig,
    /// `--source-address`, repeated.
    pub source_addresses: Vec<IpAddr>,
}

/// A value and where it came from.
type Found<T> = Option<(T, Source)>;

impl GcsConfig {
    /// Collects the configuration from `overrides`, the environment (`env` looks a variable up) and the
    /// files of Google's tools below `home`.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn discover(
        overrides: &GcsOverrides,
        env: &dyn Fn(&str) -> Option<String>,
        home: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let named = |name: &'static str| -> Found<String> {
            let value = env(name).filter(|v| !v.is_empty())?;
            Some((value, Source::Env(name)))
        };
        let emulator = named("STORAGE_EMULATOR_HOST");
        let (url, source) = match (&overrides.endpoint_url, emulator) {
            (Some(url), _) => (url.clone(), Source::Flag("--endpoint-url")),
            (None, Some((host, source))) if host.contains("://") => (host, source),
            (None, Some((host, source))) => (format!("http://{host}"), source),
            (None, None) => (ENDPOINT.to_owned(), Source::Default),
        };
        let emulated = source == Source::Env("STORAGE_EMULATOR_HOST");
        let mut config = Self::new(Endpoint::parse_list(&url, &source.to_string())?);
        let mut origins = Vec::new();
        let mut note = |name, value: String, source: Source| {
            origins.push(Origin {
                name,
                value,
                source,
            });
        };
        note("endpoint", url, source);

        let (account, mut project, source) = credentials(overrides, &named, emulated, home)?;
        let shown = account
            .as_ref()
            .map_or_else(|| "anonymous".to_owned(), Account::describe);
        note("credentials", shown, source.clone());
        config.account = account;

        let mut from = source;
        if let Some((value, source)) = named("GOOGLE_CLOUD_PROJECT") {
            (project, from) = (value, source);
        }
        if !project.is_empty() {
            note("project", project.clone(), from);
        }
        config.project = project;

        config.large_object = overrides.large_object.unwrap_or_default();
        let source = match overrides.large_object {
            Some(_) => Source::Flag("--gcs-large-object"),
            None => Source::Default,
        };
        note("large objects", config.large_object.to_string(), source);

        config.tls = overrides.tls.clone();
        config
            .source_addresses
            .clone_from(&overrides.source_addresses);
        config.origins = origins;
        config.check()?;
        Ok(config)
    }
}

/// The account, the project that its file names, and the origin of both.
fn credentials(
    overrides: &GcsOverrides,
    named: &dyn Fn(&'static str) -> Found<String>,
    emulated: bool,
    home: Option<&Path>,
) -> Result<(Option<Account>, String, Source), ConfigError> {
    let without_project = |account, source| Ok((Some(account), String::new(), source));
    if overrides.anonymous {
        return Ok((None, String::new(), Source::Flag("--no-sign-request")));
    }
    if let Some(path) = &overrides.token_file {
        let account = Account::TokenFile(path.clone());
        return without_project(account, Source::Flag("--token-file"));
    }
    for name in ["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"] {
        if let Some((token, source)) = named(name) {
            let token = valid_token(token.trim()).ok_or_else(|| {
                ConfigError::new(
                    name,
                    "it contains blanks or control characters",
                    "set it to the token alone, as `gcloud auth print-access-token` prints it",
                )
            })?;
            return without_project(Account::Token(token), source);
        }
    }
    if emulated {
        return Ok((None, String::new(), Source::Env("STORAGE_EMULATOR_HOST")));
    }
    if let Some((path, source)) = named("GOOGLE_APPLICATION_CREDENTIALS") {
        let loaded = account::load(Path::new(&path))?;
        return Ok((Some(loaded.account), loaded.project, source));
    }
    let folder = match named("CLOUDSDK_CONFIG") {
        Some((folder, _)) => Some(PathBuf::from(folder)),
        None => home.map(|home| home.join(".config/gcloud")),
    };
    let file = folder.map(|folder| folder.join("application_default_credentials.json"));
    if let Some(file) = file.filter(|file| file.exists()) {
        let loaded = account::load(&file)?;
        let source = Source::File(file.display().to_string());
        return Ok((Some(loaded.account), loaded.project, source));
    }
    let (host, source) =
        named("GCE_METADATA_HOST").unwrap_or_else(|| (METADATA_HOST.to_owned(), Source::Default));
    let endpoint = Endpoint::parse(&format!("http://{host}"), &source.to_string())?;
    without_project(Account::Metadata(endpoint), source)
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
