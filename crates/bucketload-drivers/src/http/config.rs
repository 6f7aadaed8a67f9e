//! What the settings of every service have in common: errors that say where a value stood, where it
//! came from, and how connections are encrypted.

use std::net::IpAddr;
use std::path::PathBuf;

use bucketload_core::driver::DriverFacts;
use bucketload_target::{OpenError, Settings, flags};
pub use bucketload_target::{Origin, Source};

use super::endpoint::Endpoint;

/// A setting that cannot be used: where it stood, what is wrong, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}; {remedy}")]
pub struct ConfigError {
    /// File, line, section and field; or variable; or flag.
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

/// Gives an enum names for the command line: `name`, `Display`, `FromStr` and `ALL`.
macro_rules! named_enum {
    ($name:ident, $what:literal, { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $name {
            /// Every value, in the order of the documentation.
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
                    format!("`{text}` is no {}; use one of {}", $what, names.join(", "))
                })
            }
        }
    };
}

pub(crate) use named_enum;

/// How connections are encrypted; used by `https` endpoints only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// File with the certificates to trust, PEM; `None` = those of the system.
    pub ca_bundle: Option<PathBuf>,
    /// Accept any certificate.
    pub insecure: bool,
    /// Client certificate chain and key, PEM files.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Do a full handshake on each connection instead of resuming an earlier session.
    pub no_resume: bool,
}

impl From<ConfigError> for OpenError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

impl TlsConfig {
    /// What the flags say.
    pub(crate) fn of(settings: &Settings) -> Self {
        let files = |flag| settings.path(flag);
        Self {
            ca_bundle: files(&flags::CA_BUNDLE),
            insecure: settings.has(&flags::NO_VERIFY_SSL),
            client: files(&flags::CLIENT_CERT).zip(files(&flags::CLIENT_KEY)),
            no_resume: false,
        }
    }

    /// How connections to `endpoints` are encrypted, in words for the result header.
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

/// The facts of the driver called `name`: its own settings, then what all services over HTTP have, so that no driver
/// can leave it out.
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
        let shown: Vec<_> = sources.iter().map(ToString::to_string).collect();
        settings.push(("source addresses".to_owned(), shown.join(",")));
    }
    DriverFacts {
        driver: name.to_owned(),
        engine: "native".to_owned(),
        endpoints: endpoints.iter().map(Endpoint::url).collect(),
        settings,
    }
}
