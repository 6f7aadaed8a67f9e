//! The individual settings of discovery. Each comes from its flag, variable, profile field or default, in that order.

use std::str::FromStr;

use super::config::{Addressing, AppendMode, ChecksumAlgorithm, PayloadMode};
use super::credentials::Credentials;
use super::discover::S3Overrides;
use super::keeping::{CustomerKey, Encryption, KEY_VARIABLE};
use super::lookup::{Finder, Setting, expand_home, source_of};
use crate::http::config::{ConfigError, Origin, Source, TlsConfig, note};
use crate::http::secret::Secret;

const NO_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile \
    with --profile, or use --no-sign-request for anonymous access";
/// Profile fields for credentials that the driver cannot fetch.
const FOREIGN_SOURCES: [&str; 7] = [
    "credential_process",
    "credential_source",
    "role_arn",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
    "login_session",
];

impl Finder<'_> {
    pub(super) fn endpoint_url(&self, overrides: &S3Overrides) -> Result<Setting, ConfigError> {
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

    pub(super) fn credentials(
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
                    return Ok((Some(credentials), Source::Env("AWS_ACCESS_KEY_ID")));
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
                        "this program cannot fetch credentials of this kind",
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

    pub(super) fn addressing(
        &self,
        overrides: &S3Overrides,
        aws: bool,
    ) -> Result<(Addressing, Source), ConfigError> {
        if let Some(style) = overrides.addressing {
            return Ok((style, Source::Flag("--addressing")));
        }
        if let Some((text, source)) = &overrides.dialect.addressing {
            return Ok((parse_enum(text, source)?, source.clone()));
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

    pub(super) fn payload(
        &self,
        overrides: &S3Overrides,
        anonymous: bool,
    ) -> Result<(PayloadMode, Source), ConfigError> {
        if let Some(mode) = overrides.payload {
            return Ok((mode, Source::Flag("--payload")));
        }
        if let Some((text, source)) = &overrides.dialect.payload {
            return Ok((parse_enum(text, source)?, source.clone()));
        }
        if let Some((text, source)) = self.profile_s3_value("payload_signing_enabled")
            && !anonymous
            && parse_bool(&text, &source)?
        {
            return Ok((PayloadMode::Signed, source));
        }
        Ok((PayloadMode::Unsigned, Source::Default))
    }

    pub(super) fn checksum(
        &self,
        overrides: &S3Overrides,
        payload: PayloadMode,
    ) -> Result<(Option<ChecksumAlgorithm>, Source), ConfigError> {
        if let Some(algorithm) = overrides.checksum {
            return Ok((Some(algorithm), Source::Flag("--checksum")));
        }
        let calculation = self.env("AWS_REQUEST_CHECKSUM_CALCULATION");
        if let (None, Some((text, source))) = (&calculation, &overrides.dialect.checksum) {
            return Ok((Some(parse_enum(text, source)?), source.clone()));
        }
        let calculation =
            calculation.or_else(|| self.profile_value("request_checksum_calculation"));
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

    pub(super) fn append(overrides: &S3Overrides) -> Result<(AppendMode, Source), ConfigError> {
        if let Some(mode) = overrides.append {
            return Ok((mode, Source::Flag("--append")));
        }
        match &overrides.dialect.append {
            Some((text, source)) => Ok((parse_enum(text, source)?, source.clone())),
            None => Ok((AppendMode::None, Source::Default)),
        }
    }

    pub(super) fn encryption(
        &self,
        overrides: &S3Overrides,
    ) -> Result<Option<(Encryption, Source)>, ConfigError> {
        let customer = match &overrides.sse_c {
            Some(path) => Some((CustomerKey::read(path)?, Source::Flag("--sse-c"))),
            None => match self.env(KEY_VARIABLE) {
                Some((text, source)) => {
                    Some((CustomerKey::parse(text.as_bytes(), KEY_VARIABLE)?, source))
                }
                None => None,
            },
        };
        match (&overrides.sse, customer) {
            (Some(_), Some((_, source))) => Err(ConfigError::new(
                "--sse",
                format!("{source} gives a key for SSE-C as well"),
                "an object has one encryption: choose one of the two",
            )),
            (Some(sse), None) => Ok(Some((sse.clone(), Source::Flag("--sse")))),
            (None, Some((key, source))) => Ok(Some((Encryption::Customer(key), source))),
            (None, None) => Ok(None),
        }
    }

    pub(super) fn tls(&self, overrides: &S3Overrides, origins: &mut Vec<Origin>) -> TlsConfig {
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
            note(origins, "certificates", "accepted unchecked", &source);
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
