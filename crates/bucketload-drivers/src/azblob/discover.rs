//! Finds account, endpoint and credentials by the conventions of the Azure tools.
//!
//! Precedence: flag, `AZURE_STORAGE_CONNECTION_STRING`, the single variables
//! (`AZURE_STORAGE_ACCOUNT` with `AZURE_STORAGE_SAS_TOKEN` or `AZURE_STORAGE_KEY`), default. As in
//! the Azure CLI, a connection string takes precedence over everything else in the environment, and
//! a SAS over a key.

use crate::http::{ConfigError, Endpoint, Origin, Source, TlsConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::config::{API_VERSION, Auth, AzureConfig, ContentChecksum};
use super::connection_string::{self, account_of, sas_token};

const CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";
const ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT";
const KEY: &str = "AZURE_STORAGE_KEY";
const SAS: &str = "AZURE_STORAGE_SAS_TOKEN";
const SERVICE_ENDPOINT: &str = "AZURE_STORAGE_SERVICE_ENDPOINT";
/// Variables of login methods that the driver does not support.
const OAUTH: [&str; 3] = [
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
];

/// Settings from the caller (command line, workload file); everything else is looked up.
#[derive(Clone, Debug, Default)]
pub struct AzureOverrides {
    /// `--endpoint-url`: URLs of the account's blob service, separated by commas, with ranges.
    pub endpoint_url: Option<String>,
    /// `--no-sign-request`: anonymous access.
    pub no_sign_request: bool,
    /// `--no-verify-ssl`, `--ca-bundle`, `--client-cert` and `--client-key`.
    pub tls: TlsConfig,
    /// `--checksum`.
    pub checksum: Option<ContentChecksum>,
    /// `--azure-api-version`.
    pub api_version: Option<String>,
    /// `--source-address`, repeated.
    pub source_addresses: Vec<IpAddr>,
}

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

impl AzureConfig {
    /// Collects the configuration from `overrides` and the environment (`env` looks a variable up).
    ///
    /// # Errors
    /// When a setting cannot be used, or no credentials are found.
    pub fn discover(overrides: &AzureOverrides, env: Env<'_>) -> Result<Self, ConfigError> {
        let get = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let string = get(CONNECTION_STRING)
            .map(|text| connection_string::parse(&text, CONNECTION_STRING))
            .transpose()?;
        let from_string = Source::Env(CONNECTION_STRING);

        let in_string = || {
            let account = string.as_ref()?.account.clone();
            (!account.is_empty()).then(|| (account, from_string.clone()))
        };
        let in_env = || Some((get(ACCOUNT)?, Source::Env(ACCOUNT)));
        let account = match &string {
            Some(_) => in_string(),
            None => in_env(),
        };

        let endpoint_url = match (&overrides.endpoint_url, &string) {
            (Some(text), _) => Some((text.clone(), Source::Flag("--endpoint-url"))),
            (None, Some(_)) => None,
            (None, None) => get(SERVICE_ENDPOINT).map(|t| (t, Source::Env(SERVICE_ENDPOINT))),
        };
        let (mut endpoints, endpoint_source) = match (endpoint_url, &string, &account) {
            (Some((text, source)), _, _) => {
                (Endpoint::parse_list(&text, &source.to_string())?, source)
            }
            (None, Some(string), _) => (vec![string.endpoint.clone()], from_string.clone()),
            (None, None, Some((account, source))) => {
                let url = format!("https://{account}.blob.core.windows.net");
                (
                    vec![Endpoint::parse(&url, &source.to_string())?],
                    Source::Default,
                )
            }
            (None, None, None) => {
                return Err(ConfigError::new(
                    ACCOUNT,
                    "neither an account nor an endpoint is set",
                    "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with \
                     AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
                ));
            }
        };
        let (account, account_source) = account.unwrap_or_else(|| {
            let account = endpoints.first().map(account_of).unwrap_or_default();
            (account, endpoint_source.clone())
        });
        for endpoint in &mut endpoints {
            put_account_in_path(endpoint, &account);
        }

        let (auth, auth_source) = authorisation(overrides, &get, string.map(|s| s.auth))?;
        let mut config = Self::new(endpoints, &account, auth);
        config.checksum = overrides.checksum;
        if let Some(version) = &overrides.api_version {
            config.api_version.clone_from(version);
        }
        config
            .source_addresses
            .clone_from(&overrides.source_addresses);
        config.tls = overrides.tls.clone();
        config.origins = origins(&config, account_source, endpoint_source, auth_source);
        config.check()?;
        Ok(config)
    }
}

/// Puts the account into the path for a bare address, where emulators expect it ("Use the Azurite
/// emulator", "IP style").
fn put_account_in_path(endpoint: &mut Endpoint, account: &str) {
    let host = endpoint.host.as_str();
    let bare =
        host == "localhost" || host.parse::<Ipv4Addr>().is_ok() || host.parse::<Ipv6Addr>().is_ok();
    if bare && endpoint.base_path.is_empty() && !account.is_empty() {
        endpoint.base_path = format!("/{account}");
    }
}

fn authorisation(
    overrides: &AzureOverrides,
    get: &dyn Fn(&str) -> Option<String>,
    string: Option<Auth>,
) -> Result<(Auth, Source), ConfigError> {
    if overrides.no_sign_request {
        return Ok((Auth::Anonymous, Source::Flag("--no-sign-request")));
    }
    if let Some(auth) = string {
        return Ok((auth, Source::Env(CONNECTION_STRING)));
    }
    if let Some(token) = get(SAS) {
        return Ok((Auth::Sas(sas_token(&token)), Source::Env(SAS)));
    }
    if let Some(key) = get(KEY) {
        return Ok((Auth::SharedKey(key.trim().into()), Source::Env(KEY)));
    }
    let remedy = "set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or \
                  AZURE_STORAGE_SAS_TOKEN; --no-sign-request reads public containers";
    Err(match OAUTH.into_iter().find(|name| get(name).is_some()) {
        Some(name) => ConfigError::new(
            name,
            "logging in through Microsoft Entra ID is not supported",
            remedy,
        ),
        None => ConfigError::new("credentials", "there are none", remedy),
    })
}

fn origins(config: &AzureConfig, account: Source, endpoint: Source, auth: Source) -> Vec<Origin> {
    let urls: Vec<_> = config.endpoints.iter().map(Endpoint::url).collect();
    let shown = match config.auth {
        Auth::SharedKey(_) => "account key ***",
        Auth::Sas(_) => "shared access signature ***",
        Auth::Anonymous => "anonymous",
    };
    let flag = |given: bool, name: &'static str| match given {
        true => Source::Flag(name),
        false => Source::Default,
    };
    let checksum = config.checksum.map_or("none", ContentChecksum::name);
    let mut list = vec![
        ("account", config.account.clone(), account),
        ("endpoint", urls.join(","), endpoint),
        ("credentials", shown.to_owned(), auth),
        (
            "checksum",
            checksum.to_owned(),
            flag(config.checksum.is_some(), "--checksum"),
        ),
        (
            "api version",
            config.api_version.clone(),
            flag(config.api_version != API_VERSION, "--azure-api-version"),
        ),
    ];
    let tls = &config.tls;
    let source = match (tls.insecure, &tls.ca_bundle, &tls.client) {
        (true, _, _) => Source::Flag("--no-verify-ssl"),
        (_, Some(_), _) => Source::Flag("--ca-bundle"),
        (_, _, Some(_)) => Source::Flag("--client-cert"),
        _ => Source::Default,
    };
    list.push(("tls", tls.describe(&config.endpoints), source));
    if !config.source_addresses.is_empty() {
        let shown: Vec<_> = config
            .source_addresses
            .iter()
            .map(ToString::to_string)
            .collect();
        list.push((
            "source addresses",
            shown.join(","),
            Source::Flag("--source-address"),
        ));
    }
    list.into_iter()
        .map(|(name, value, source)| Origin {
            name,
            value,
            source,
        })
        .collect()
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
