//! Settings that all HTTP services share: errors that name the place of a bad value, the report of where values came
//! from, and TLS.

use std::net::IpAddr;
use std::path::PathBuf;

use bucketload_core::driver::DriverFacts;
use bucketload_target::{OpenError, Settings, flags};
pub use bucketload_target::{Origin, Source};

use super::endpoint::Endpoint;

/// A setting that cannot be used: its place, the problem, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}; {remedy}")]
pub struct ConfigError {
    /// Where it is set: file, line, section and field; or variable; or flag.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What the user can do.
    pub remedy: String,
}

impl ConfigError {
    /// An error about the setting at `place`.
    pub fn new(
        place: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            place: place.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// Implements `name`, `Display`, `FromStr` and `ALL` for an enum whose values have names on the command line.
macro_rules! named_enum {
    ($name:ident, $what:literal, { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $name {
            /// All values, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name used on the command line and in results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|v| v.name() == text).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|v| v.name()).collect();
                    format!("`{text}` is not a valid {}; use one of {}", $what, names.join(", "))
                })
            }
        }
    };
}

pub(crate) use named_enum;

/// TLS settings of `https` endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// PEM file with the certificates to trust; `None` for the system's.
    pub ca_bundle: Option<PathBuf>,
    /// Accept any certificate.
    pub insecure: bool,
    /// Client certificate chain and key, PEM files.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Do a full handshake for each connection instead of resuming a session.
    pub no_resume: bool,
}

impl From<ConfigError> for OpenError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

impl TlsConfig {
    /// The settings from the command line.
    pub(crate) fn of(settings: &Settings) -> Self {
        let files = |flag| settings.path(flag);
        Self {
            ca_bundle: files(&flags::CA_BUNDLE),
            insecure: settings.has(&flags::NO_VERIFY_SSL),
            client: files(&flags::CLIENT_CERT).zip(files(&flags::CLIENT_KEY)),
            no_resume: false,
        }
    }

    /// Describes the encryption of connections to `endpoints`, for the result header.
    pub(crate) fn describe(&self, endpoints: &[Endpoint]) -> String {
        if endpoints.iter().all(|e| !e.tls) {
            return "off".to_owned();
        }
        let mut text = match (&self.ca_bundle, self.insecure) {
            (_, true) => "certificates unchecked".to_owned(),
            (Some(path), _) => format!("verified with {}", path.display()),
            (None, _) => "verified with the system's certificates".to_owned(),
        };
        if self.client.is_some() {
            text += ", client certificate";
        }
        if self.no_resume {
            text += ", no resumption";
        }
        text
    }
}

/// Adds a setting to the report of where values came from.
pub(crate) fn note(
    origins: &mut Vec<Origin>,
    name: &'static str,
    value: impl Into<String>,
    source: &Source,
) {
    origins.push(Origin {
        name,
        value: value.into(),
        source: source.clone(),
    });
}

/// IP addresses as one text, separated by commas.
pub(crate) fn join_addresses(addresses: &[IpAddr]) -> String {
    let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    shown.join(",")
}

/// The facts of a driver: `own` settings, then those of all HTTP services, so no driver can leave them out.
pub(crate) fn facts(
    name: &str,
    own: Vec<(&str, String)>,
    endpoints: &[Endpoint],
    tls: &TlsConfig,
    sources: &[IpAddr],
) -> DriverFacts {
    let mut settings: Vec<_> = own.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    settings.push(("tls".to_owned(), tls.describe(endpoints)));
    if !sources.is_empty() {
        settings.push(("source addresses".to_owned(), join_addresses(sources)));
    }
    DriverFacts {
        driver: name.to_owned(),
        engine: "native".to_owned(),
        endpoints: endpoints.iter().map(Endpoint::url).collect(),
        settings,
    }
}
