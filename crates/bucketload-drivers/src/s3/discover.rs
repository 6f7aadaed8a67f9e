//! Finds endpoint, region and credentials by the conventions of the AWS tools.
//!
//! Precedence of every value: flag, environment, profile, default. The rules for endpoints are
//! those of "Service-specific endpoints", the names those of "Environment variables to configure
//! the AWS CLI" (AWS SDKs and Tools Reference Guide). An explicit `--profile` wins over access
//! keys in the environment, `AWS_PROFILE` does not, as in botocore.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::config::{
    Addressing, ChecksumAlgorithm, ConfigError, Origin, PayloadMode, S3Config, Source, TlsConfig,
};
use super::credentials::{Credentials, Secret};
use super::endpoint::Endpoint;
use super::profile::{Field, ProfileFile, Section};

/// What the caller (command line, workload file) sets; everything else is looked up.
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
    /// `--no-tls-resume`: a full handshake on each connection.
    pub no_tls_resume: bool,
    /// `--source-address`, repeated.
    pub source_addresses: Vec<IpAddr>,
    /// Credentials from elsewhere, such as those of the embedded server.
    pub credentials: Option<Credentials>,
}

/// Variables that credentials come from, for the report.
const ENV_KEYS: &str = "AWS_ACCESS_KEY_ID";
const NO_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile \
    with --profile, or use --no-sign-request for anonymous access";
/// Profile fields that lead to credentials we cannot fetch.
const FOREIGN_SOURCES: [&str; 7] = [
    "credential_process",
    "credential_source",
    "role_arn",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
    "login_session",
];

/// A value and where it came from.
type Found<T> = Option<(T, Source)>;

/// The lookups of one discovery.
struct Finder<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    home: Option<&'a Path>,
    config: ProfileFile,
    shared: ProfileFile,
    profile: String,
}

impl S3Config {
    /// Collects the configuration from `overrides`, the environment (`env` looks a variable up)
    /// and the profile files below `home`.
    ///
    /// # Errors
    /// A setting that cannot be used, with its place and a remedy; or no credentials at all.
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
            let shown: Vec<_> = config
                .source_addresses
                .iter()
                .map(ToString::to_string)
                .collect();
            note(
                &mut origins,
                "source addresses",
                shown.join(","),
                &Source::Flag("--source-address"),
            );
        }

        let (addressing, source) = finder.addressing(overrides, all_aws)?;
        note(&mut origins, "addressing", addressing.to_string(), &source);
        config.addressing = addressing;

        let (payload, source) = finder.payload(overrides, config.credentials.is_none())?;
        note(&mut origins, "payload", payload.to_string(), &source);
        config.payload = payload;

        let (checksum, source) = finder.checksum(overrides, payload)?;
        let shown = checksum.map_or("none", ChecksumAlgorithm::name);
        note(&mut origins, "checksum", shown.to_owned(), &source);
        config.checksum = checksum;

        config.tls = finder.tls(overrides, &mut origins);
        config.origins = origins;
        config.check()?;
        Ok(config)
    }
}

fn note(origins: &mut Vec<Origin>, name: &'static str, value: String, source: &Source) {
    origins.push(Origin {
        name,
        value,
        source: source.clone(),
    });
}

impl<'a> Finder<'a> {
    fn open(
        overrides: &S3Overrides,
        env: &'a dyn Fn(&str) -> Option<String>,
        home: Option<&'a Path>,
    ) -> Result<(Self, Origin), ConfigError> {
        let file = |name: &str, default: &str| {
            let path = match env(name).filter(|v| !v.is_empty()) {
                Some(path) => Some(expand_home(&path, home)),
                None => home.map(|home| home.join(".aws").join(default)),
            };
            path.map_or_else(
                || Ok(ProfileFile::default()),
                |path| ProfileFile::read(&path),
            )
        };
        let config = file("AWS_CONFIG_FILE", "config")?;
        let shared = file("AWS_SHARED_CREDENTIALS_FILE", "credentials")?;
        let named = |name: &'static str| {
            let value = env(name).filter(|v| !v.is_empty());
            value.map(|value| (value, Source::Env(name)))
        };
        let (profile, source) = match &overrides.profile {
            Some(profile) => (profile.clone(), Source::Flag("--profile")),
            None => named("AWS_PROFILE")
                .or_else(|| named("AWS_DEFAULT_PROFILE"))
                .unwrap_or_else(|| ("default".to_owned(), Source::Default)),
        };
        let finder = Self {
            env,
            home,
            config,
            shared,
            profile,
        };
        if source != Source::Default && finder.profile_sections().next().is_none() {
            let names = finder.profile_names().join(", ");
            let known = if names.is_empty() {
                "no profile exists".to_owned()
            } else {
                format!("known profiles are {names}")
            };
            return Err(ConfigError::new(
                source.to_string(),
                format!("there is no profile `{}`", finder.profile),
                format!("{known}; add it to ~/.aws/config or choose another"),
            ));
        }
        let origin = Origin {
            name: "profile",
            value: finder.profile.clone(),
            source,
        };
        Ok((finder, origin))
    }

    /// The profile's sections with their files: credentials first.
    fn profile_sections(&self) -> impl Iterator<Item = (&ProfileFile, &Section)> {
        let prefixed = format!("profile {}", self.profile);
        let config = self.config.section(&prefixed).or_else(|| {
            // Only `default` may stand without the word `profile`.
            (self.profile == "default")
                .then(|| self.config.section("default"))
                .flatten()
        });
        let shared = self
            .shared
            .section(&self.profile)
            .map(|s| (&self.shared, s));
        shared.into_iter().chain(config.map(|s| (&self.config, s)))
    }

    fn profile_names(&self) -> Vec<String> {
        let config = self
            .config
            .sections
            .iter()
            .filter_map(|s| match s.title.as_str() {
                "default" => Some("default".to_owned()),
                title => title.strip_prefix("profile ").map(str::to_owned),
            });
        let mut names: Vec<_> = config
            .chain(self.shared.sections.iter().map(|s| s.title.clone()))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn env(&self, name: &'static str) -> Found<String> {
        let value = (self.env)(name).filter(|v| !v.is_empty())?;
        Some((value, Source::Env(name)))
    }

    fn profile_value(&self, name: &str) -> Found<String> {
        self.profile_sections().find_map(|(file, section)| {
            let field = section.get(name)?;
            Some((field.value.clone(), source_of(file, section, field)))
        })
    }

    fn profile_s3_value(&self, name: &str) -> Found<String> {
        self.profile_sections().find_map(|(file, section)| {
            let field = section.nested("s3", name)?;
            Some((field.value.clone(), source_of(file, section, field)))
        })
    }

    fn endpoint_url(&self, overrides: &S3Overrides) -> Result<Found<String>, ConfigError> {
        if let Some(url) = &overrides.endpoint_url {
            return Ok(Some((url.clone(), Source::Flag("--endpoint-url"))));
        }
        let ignore = self
            .env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
            .or_else(|| self.profile_value("ignore_configured_endpoint_urls"));
        if let Some((text, source)) = ignore
            && parse_bool(&text, &source)?
        {
            return Ok(None);
        }
        let found = self
            .env("AWS_ENDPOINT_URL_S3")
            .or_else(|| self.env("AWS_ENDPOINT_URL"));
        if found.is_some() {
            return Ok(found);
        }
        if let Some((services, source)) = self.profile_value("services") {
            let title = format!("services {services}");
            let Some(section) = self.config.section(&title) else {
                return Err(ConfigError::new(
                    source.to_string(),
                    format!("there is no section [{title}]"),
                    "add it to the file, or remove this line",
                ));
            };
            if let Some(field) = section.nested("s3", "endpoint_url") {
                let source = source_of(&self.config, section, field);
                return Ok(Some((field.value.clone(), source)));
            }
        }
        Ok(self.profile_value("endpoint_url"))
    }

    fn credentials(
        &self,
        overrides: &S3Overrides,
    ) -> Result<(Option<Credentials>, Source), ConfigError> {
        if overrides.no_sign_request {
            return Ok((None, Source::Flag("--no-sign-request")));
        }
        if let Some(credentials) = &overrides.credentials {
            return Ok((
                Some(credentials.clone()),
                Source::Flag("given by the caller"),
            ));
        }
        if overrides.profile.is_none() {
            let id = self.env("AWS_ACCESS_KEY_ID");
            let secret = self.env("AWS_SECRET_ACCESS_KEY");
            match (id, secret) {
                (Some((id, _)), Some((secret, _))) => {
                    let mut credentials = Credentials::new(id, Secret::new(secret));
                    if let Some((token, _)) = self.env("AWS_SESSION_TOKEN") {
                        credentials = credentials.with_token(Secret::new(token));
                    }
                    return Ok((Some(credentials), Source::Env(ENV_KEYS)));
                }
                (Some(_), None) => return Err(half("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
                (None, Some(_)) => return Err(half("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")),
                (None, None) => {}
            }
        }
        for (file, section) in self.profile_sections() {
            let Some(id) = section.get("aws_access_key_id") else {
                continue;
            };
            let place = file.place(section, id);
            let Some(secret) = section.get("aws_secret_access_key") else {
                return Err(half(&place, "aws_secret_access_key in the same section"));
            };
            let mut credentials = Credentials::new(&*id.value, Secret::new(&*secret.value));
            if let Some(token) = section.get("aws_session_token") {
                credentials = credentials.with_token(Secret::new(&*token.value));
            }
            return Ok((Some(credentials), Source::File(place)));
        }
        for (file, section) in self.profile_sections() {
            for name in FOREIGN_SOURCES {
                if let Some(field) = section.get(name) {
                    return Err(ConfigError::new(
                        file.place(section, field),
                        "credentials of this kind are not fetched by this program",
                        "run `aws configure export-credentials --format env` and set the \
                         variables it prints",
                    ));
                }
            }
        }
        let problem = match self.env("AWS_ACCESS_KEY") {
            Some(_) => "none were found (AWS_ACCESS_KEY is set, but is not the variable's name)",
            None => "none were found",
        };
        Err(ConfigError::new("credentials", problem, NO_CREDENTIALS))
    }

    fn addressing(
        &self,
        overrides: &S3Overrides,
        aws: bool,
    ) -> Result<(Addressing, Source), ConfigError> {
        if let Some(style) = overrides.addressing {
            return Ok((style, Source::Flag("--addressing")));
        }
        if let Some((text, source)) = self.profile_s3_value("addressing_style")
            && text != "auto"
        {
            return Ok((parse_enum(&text, &source)?, source));
        }
        let style = if aws {
            Addressing::Virtual
        } else {
            Addressing::Path
        };
        Ok((style, Source::Default))
    }

    fn payload(
        &self,
        overrides: &S3Overrides,
        anonymous: bool,
    ) -> Result<(PayloadMode, Source), ConfigError> {
        if let Some(mode) = overrides.payload {
            return Ok((mode, Source::Flag("--payload")));
        }
        if let Some((text, source)) = self.profile_s3_value("payload_signing_enabled")
            && !anonymous
            && parse_bool(&text, &source)?
        {
            return Ok((PayloadMode::Signed, source));
        }
        Ok((PayloadMode::Unsigned, Source::Default))
    }

    fn checksum(
        &self,
        overrides: &S3Overrides,
        payload: PayloadMode,
    ) -> Result<(Option<ChecksumAlgorithm>, Source), ConfigError> {
        if let Some(algorithm) = overrides.checksum {
            return Ok((Some(algorithm), Source::Flag("--checksum")));
        }
        let calculation = self
            .env("AWS_REQUEST_CHECKSUM_CALCULATION")
            .or_else(|| self.profile_value("request_checksum_calculation"));
        match calculation {
            Some((text, source)) if text.eq_ignore_ascii_case("when_supported") => {
                Ok((Some(ChecksumAlgorithm::Crc64Nvme), source))
            }
            Some((text, source)) if !text.eq_ignore_ascii_case("when_required") => {
                Err(ConfigError::new(
                    source.to_string(),
                    "the value is neither when_supported nor when_required",
                    "write one of the two",
                ))
            }
            _ if payload.has_trailer() => Ok((Some(ChecksumAlgorithm::Crc64Nvme), Source::Default)),
            Some((_, source)) => Ok((None, source)),
            None => Ok((None, Source::Default)),
        }
    }

    fn tls(&self, overrides: &S3Overrides, origins: &mut Vec<Origin>) -> TlsConfig {
        let bundle = match &overrides.ca_bundle {
            Some(path) => Some((path.clone(), Source::Flag("--ca-bundle"))),
            None => self
                .env("AWS_CA_BUNDLE")
                .or_else(|| self.profile_value("ca_bundle"))
                .map(|(path, source)| (expand_home(&path, self.home), source)),
        };
        if let Some((path, source)) = &bundle {
            note(origins, "CA bundle", path.display().to_string(), source);
        }
        if overrides.no_verify_ssl {
            let source = Source::Flag("--no-verify-ssl");
            note(
                origins,
                "certificates",
                "accepted unchecked".to_owned(),
                &source,
            );
        }
        if let Some((cert, key)) = &overrides.client_cert {
            let shown = format!("{}, {}", cert.display(), key.display());
            note(
                origins,
                "client certificate",
                shown,
                &Source::Flag("--client-cert"),
            );
        }
        TlsConfig {
            ca_bundle: bundle.map(|(path, _)| path),
            insecure: overrides.no_verify_ssl,
            client: overrides.client_cert.clone(),
            no_resume: overrides.no_tls_resume,
        }
    }
}

fn source_of(file: &ProfileFile, section: &Section, field: &Field) -> Source {
    Source::File(file.place(section, field))
}

fn half(place: &str, missing: &str) -> ConfigError {
    ConfigError::new(
        place,
        format!("is set without {missing}"),
        "set both or neither",
    )
}

fn parse_bool(text: &str, source: &Source) -> Result<bool, ConfigError> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(ConfigError::new(
            source.to_string(),
            "the value is neither true nor false",
            "write one of the two",
        )),
    }
}

fn parse_enum<T: FromStr<Err = String>>(text: &str, source: &Source) -> Result<T, ConfigError> {
    text.parse()
        .map_err(|problem| ConfigError::new(source.to_string(), problem, "correct the value"))
}

fn expand_home(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
