//! Finds out how to sign in by the conventions of the OpenStack tools.
//!
//! Tries complete sets of settings in turn and never mixes them: a named cloud (`--profile`, `OS_CLOUD`) of
//! `clouds.yaml`; an existing token (`OS_STORAGE_URL` and `OS_AUTH_TOKEN`); auth v1 (`ST_AUTH`, `ST_USER`, `ST_KEY`);
//! Keystone (`OS_AUTH_URL` and the other `OS_*`). The names are those of python-swiftclient ("swift tool,
//! authentication") and openstacksdk.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::clouds::Cloud;
use super::config::{Domain, Identity, Keystone, LargeObject, Named, SwiftAuth, SwiftConfig};
use crate::http::config::{ConfigError, Origin, Source, note};
use crate::http::{Endpoint, Secret};

/// Settings from the command line; everything else is looked up.
#[derive(Clone, Debug, Default)]
pub struct SwiftOverrides {
    /// `--profile`: a cloud of `clouds.yaml`.
    pub cloud: Option<String>,
    /// `--region`.
    pub region: Option<String>,
    /// `--endpoint-url`: hosts to use instead of the storage URL's, separated by commas, with ranges.
    pub endpoint_url: Option<String>,
    /// `--no-sign-request`: no token.
    pub anonymous: bool,
    /// `--no-verify-ssl`: accept any certificate.
    pub no_verify_ssl: bool,
    /// `--ca-bundle`.
    pub ca_bundle: Option<PathBuf>,
    /// `--client-cert` and `--client-key`.
    pub client_cert: Option<(PathBuf, PathBuf)>,
    /// `--swift-large-object`.
    pub large_object: LargeObject,
    /// `--checksum md5`.
    pub etag: bool,
    /// `--source-address`, repeated.
    pub source_addresses: Vec<IpAddr>,
}

/// Where one set of settings comes from: environment variables, or the fields of a cloud.
enum SettingSource<'a> {
    Env(&'a dyn Fn(&str) -> Option<String>),
    Cloud(&'a Cloud),
}

/// An environment variable, and the equivalent field of a cloud.
type Name = (&'static str, &'static str);

const AUTH_URL: Name = ("OS_AUTH_URL", "auth.auth_url");
const AUTH_TYPE: Name = ("OS_AUTH_TYPE", "auth_type");
const USERNAME: Name = ("OS_USERNAME", "auth.username");
const USER_ID: Name = ("OS_USER_ID", "auth.user_id");
const PASSWORD: Name = ("OS_PASSWORD", "auth.password");
const USER_DOMAIN_NAME: Name = ("OS_USER_DOMAIN_NAME", "auth.user_domain_name");
const USER_DOMAIN_ID: Name = ("OS_USER_DOMAIN_ID", "auth.user_domain_id");
const PROJECT_NAME: Name = ("OS_PROJECT_NAME", "auth.project_name");
const PROJECT_ID: Name = ("OS_PROJECT_ID", "auth.project_id");
const PROJECT_DOMAIN_NAME: Name = ("OS_PROJECT_DOMAIN_NAME", "auth.project_domain_name");
const PROJECT_DOMAIN_ID: Name = ("OS_PROJECT_DOMAIN_ID", "auth.project_domain_id");
const APPLICATION_ID: Name = (
    "OS_APPLICATION_CREDENTIAL_ID",
    "auth.application_credential_id",
);
const APPLICATION_SECRET: Name = (
    "OS_APPLICATION_CREDENTIAL_SECRET",
    "auth.application_credential_secret",
);
const REGION: Name = ("OS_REGION_NAME", "region_name");
const INTERFACE: Name = ("OS_INTERFACE", "interface");
const STORAGE_URL: Name = ("OS_STORAGE_URL", "object_store_endpoint_override");
const CA_BUNDLE: Name = ("OS_CACERT", "cacert");

impl SettingSource<'_> {
    fn get(&self, name: Name) -> Option<String> {
        match self {
            Self::Env(env) => env(name.0),
            Self::Cloud(cloud) => cloud.get(name.1),
        }
        .filter(|value| !value.is_empty())
    }

    fn place(&self, name: Name) -> String {
        match self {
            Self::Env(_) => name.0.to_owned(),
            Self::Cloud(cloud) => cloud.place(name.1),
        }
    }

    fn source(&self, name: Name) -> Source {
        match self {
            Self::Env(_) => Source::Env(name.0),
            Self::Cloud(cloud) => Source::File(cloud.place(name.1)),
        }
    }

    fn need(&self, name: Name) -> Result<String, ConfigError> {
        self.get(name).ok_or_else(|| {
            let remedy = "Keystone needs it; set it";
            ConfigError::new(self.place(name), "it is missing", remedy)
        })
    }

    fn domain(&self, id: Name, name: Name) -> Domain {
        match (self.get(id), self.get(name)) {
            (Some(id), _) => Domain::Id(id),
            (None, Some(name)) => Domain::Name(name),
            // The domain that exists after the installation of Keystone.
            (None, None) => Domain::Id("default".to_owned()),
        }
    }

    /// Reads the settings for Keystone.
    fn keystone(&self, region: Option<String>) -> Result<Keystone, ConfigError> {
        let url = self.need(AUTH_URL)?;
        let url = Endpoint::parse(&url, &self.place(AUTH_URL))?;
        let kind = self.get(AUTH_TYPE).unwrap_or_default();
        let (identity, scope) = match kind.as_str() {
            "" | "password" | "v3password" if self.get(APPLICATION_ID).is_none() => {
                let user = match self.get(USER_ID) {
                    Some(id) => Named::Id(id),
                    None => Named::Name {
                        name: self.need(USERNAME)?,
                        domain: self.domain(USER_DOMAIN_ID, USER_DOMAIN_NAME),
                    },
                };
                let project = match self.get(PROJECT_ID) {
                    Some(id) => Named::Id(id),
                    None => Named::Name {
                        name: self.need(PROJECT_NAME)?,
                        domain: self.domain(PROJECT_DOMAIN_ID, PROJECT_DOMAIN_NAME),
                    },
                };
                let password = Secret::new(self.need(PASSWORD)?);
                (Identity::Password { user, password }, Some(project))
            }
            "" | "v3applicationcredential" => {
                let identity = Identity::Application {
                    id: self.need(APPLICATION_ID)?,
                    secret: Secret::new(self.need(APPLICATION_SECRET)?),
                };
                (identity, None)
            }
            other => {
                return Err(ConfigError::new(
                    self.place(AUTH_TYPE),
                    format!("signing in by `{other}` is not supported"),
                    "use password or v3applicationcredential, or OS_STORAGE_URL with OS_AUTH_TOKEN",
                ));
            }
        };
        Ok(Keystone {
            url,
            identity,
            scope,
            region: region.or_else(|| self.get(REGION)),
            interface: self.get(INTERFACE).unwrap_or_else(|| "public".to_owned()),
        })
    }

    fn storage_url(&self) -> Result<Option<Endpoint>, ConfigError> {
        let url = self.get(STORAGE_URL);
        url.map(|url| Endpoint::parse(&url, &self.place(STORAGE_URL)))
            .transpose()
    }
}

impl SwiftConfig {
    /// Collects the configuration from `overrides`, the environment (`env` looks up a variable) and `clouds.yaml` (below
    /// `home` or elsewhere).
    ///
    /// # Errors
    /// When a setting cannot be used, with its place and a remedy; or when there are no credentials.
    pub fn discover(
        overrides: &SwiftOverrides,
        env: &dyn Fn(&str) -> Option<String>,
        home: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let variables = SettingSource::Env(env);
        let mut origins = Vec::new();
        let named = match &overrides.cloud {
            Some(cloud) => Some((cloud.clone(), Source::Flag("--profile"))),
            None => set("OS_CLOUD").map(|cloud| (cloud, Source::Env("OS_CLOUD"))),
        };
        let cloud = match &named {
            Some((name, source)) if !overrides.anonymous => {
                note(&mut origins, "cloud", name, source);
                Some(Cloud::find(name, &source.to_string(), env, home)?)
            }
            _ => None,
        };
        let settings = cloud
            .as_ref()
            .map_or(SettingSource::Env(env), SettingSource::Cloud);
        let region = overrides.region.clone();
        let mut config = if overrides.anonymous {
            Self::new(SwiftAuth::Anonymous, variables.storage_url()?)
        } else if cloud.is_some() {
            let auth = SwiftAuth::Keystone(Box::new(settings.keystone(region)?));
            Self::new(auth, settings.storage_url()?)
        } else if let (Some(_), Some(token)) = (set("OS_STORAGE_URL"), set("OS_AUTH_TOKEN")) {
            Self::new(
                SwiftAuth::Token(Secret::new(token)),
                variables.storage_url()?,
            )
        } else if let Some(auth) = version_one(env)? {
            Self::new(auth, variables.storage_url()?)
        } else if set("OS_AUTH_URL").is_some() {
            let auth = SwiftAuth::Keystone(Box::new(settings.keystone(region)?));
            Self::new(auth, variables.storage_url()?)
        } else {
            return Err(ConfigError::new(
                "credentials of Swift",
                "there are none",
                "set ST_AUTH, ST_USER and ST_KEY (auth v1); or OS_AUTH_URL, OS_USERNAME, \
                 OS_PASSWORD and OS_PROJECT_NAME (Keystone v3); or OS_CLOUD; or OS_STORAGE_URL \
                 and OS_AUTH_TOKEN",
            ));
        };
        if let (Some(region), false) = (
            &overrides.region,
            matches!(config.auth, SwiftAuth::Keystone(_)),
        ) {
            return Err(ConfigError::new(
                "--region",
                format!("`{region}` has no effect: only Keystone's catalogue has regions"),
                "remove it",
            ));
        }
        describe(&config, &settings, &mut origins);
        if let SwiftAuth::Keystone(keystone) = &config.auth
            && let Some(region) = &keystone.region
        {
            let source = match overrides.region {
                Some(_) => Source::Flag("--region"),
                None => settings.source(REGION),
            };
            note(&mut origins, "region", region, &source);
        }
        if let Some(urls) = &overrides.endpoint_url {
            config.hosts = Endpoint::parse_list(urls, "--endpoint-url")?;
            if let Some(path) = config.hosts.iter().find(|h| !h.base_path.is_empty()) {
                return Err(ConfigError::new(
                    "--endpoint-url",
                    format!("`{}` has a path", path.url()),
                    "name hosts only; the account's path comes from the storage URL",
                ));
            }
            note(&mut origins, "hosts", urls, &Source::Flag("--endpoint-url"));
        }
        config.large_object = overrides.large_object;
        config.etag = overrides.etag;
        config
            .source_addresses
            .clone_from(&overrides.source_addresses);
        config.tls.client.clone_from(&overrides.client_cert);
        config.tls.insecure =
            overrides.no_verify_ssl || cloud.as_ref().is_some_and(|c| off(c.get("verify")));
        config.tls.ca_bundle = match &overrides.ca_bundle {
            Some(path) => Some(path.clone()),
            None => settings.get(CA_BUNDLE).map(PathBuf::from),
        };
        if let Some(path) = &config.tls.ca_bundle {
            let source = match overrides.ca_bundle {
                Some(_) => Source::Flag("--ca-bundle"),
                None => settings.source(CA_BUNDLE),
            };
            note(
                &mut origins,
                "CA bundle",
                path.display().to_string(),
                &source,
            );
        }
        config.origins = origins;
        config.check()?;
        Ok(config)
    }
}

fn off(value: Option<String>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("false"))
}

/// Adds the sign-in settings and the storage URL, if set, to the report.
fn describe(config: &SwiftConfig, settings: &SettingSource<'_>, origins: &mut Vec<Origin>) {
    match &config.auth {
        SwiftAuth::V1 { url, user, .. } => {
            let text = format!("v1 at {}", url.url());
            note(origins, "auth", text, &Source::Env("ST_AUTH"));
            let text = format!("{user}:***");
            note(origins, "user", text, &Source::Env("ST_USER"));
        }
        SwiftAuth::Keystone(keystone) => {
            let text = format!("Keystone v3 at {}", keystone.url.url());
            note(origins, "auth", text, &settings.source(AUTH_URL));
            let (user, name) = match &keystone.identity {
                Identity::Password { user, .. } => (user.shown(), USERNAME),
                Identity::Application { id, .. } => (id.as_str(), APPLICATION_ID),
            };
            let text = format!("{user}:***");
            note(origins, "user", text, &settings.source(name));
            if let Some(project) = &keystone.scope {
                let source = settings.source(PROJECT_NAME);
                note(origins, "project", project.shown(), &source);
            }
        }
        SwiftAuth::Token(_) => note(origins, "auth", "token ***", &Source::Env("OS_AUTH_TOKEN")),
        SwiftAuth::Anonymous => note(origins, "auth", "none", &Source::Flag("--no-sign-request")),
    }
    if let Some(url) = &config.storage_url {
        let source = match config.auth {
            SwiftAuth::Keystone(_) => settings.source(STORAGE_URL),
            _ => Source::Env(STORAGE_URL.0),
        };
        note(origins, "storage URL", url.url(), &source);
    }
}

impl Named {
    /// Id or name, for messages.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Id(text) | Self::Name { name: text, .. } => text,
        }
    }
}

/// Reads `ST_AUTH`, `ST_USER` and `ST_KEY`, if they are set.
fn version_one(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<SwiftAuth>, ConfigError> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let Some(url) = set("ST_AUTH") else {
        return Ok(None);
    };
    let version = set("ST_AUTH_VERSION").unwrap_or_default();
    if !matches!(version.as_str(), "" | "1" | "1.0") {
        return Err(ConfigError::new(
            "ST_AUTH_VERSION",
            format!("version {version} of ST_* variables is not supported"),
            "use 1, or the OS_* variables for Keystone v3",
        ));
    }
    let need = |name: &str| {
        set(name).ok_or_else(|| {
            ConfigError::new(name, "it is missing", "ST_AUTH is set and needs it; set it")
        })
    };
    Ok(Some(SwiftAuth::V1 {
        url: Endpoint::parse(&url, "ST_AUTH")?,
        user: need("ST_USER")?,
        key: Secret::new(need("ST_KEY")?),
    }))
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
