//! Everything the S3 driver needs to know, with a note of where each value came from.
//!
//! [`S3Config::new`] builds one directly (embedded server, tests); `S3Config::discover` follows
//! the AWS conventions. Precedence: flag, environment, profile, default.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::credentials::Credentials;
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

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
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

/// Where the bucket's name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// In the path: `http://host/bucket/key`.
    Path,
    /// In the `Host` header: `http://bucket.host/key`. The connection goes to the endpoint's own
    /// address and its certificate is checked for the endpoint's own name.
    Virtual,
}

named_enum!(Addressing, "addressing style", { Path => "path", Virtual => "virtual" });

/// What the signature says about a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadMode {
    /// Nothing (`UNSIGNED-PAYLOAD`).
    Unsigned,
    /// Its SHA-256, computed before the timed start.
    Signed,
    /// A chain of signed chunks (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD`).
    Streaming,
    /// Signed chunks and a signed checksum after them
    /// (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER`).
    StreamingTrailer,
    /// Unsigned chunks and a checksum after them (`STREAMING-UNSIGNED-PAYLOAD-TRAILER`).
    UnsignedTrailer,
}

named_enum!(PayloadMode, "payload mode", {
    Unsigned => "unsigned",
    Signed => "signed",
    Streaming => "streaming",
    StreamingTrailer => "streaming-trailer",
    UnsignedTrailer => "unsigned-trailer",
});

impl PayloadMode {
    /// Whether the body is cut into `aws-chunked` chunks.
    #[must_use]
    pub const fn is_chunked(self) -> bool {
        !matches!(self, Self::Unsigned | Self::Signed)
    }

    /// Whether a checksum follows the body.
    #[must_use]
    pub const fn has_trailer(self) -> bool {
        matches!(self, Self::StreamingTrailer | Self::UnsignedTrailer)
    }
}

/// Checksum sent with every object body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumAlgorithm {
    /// CRC-32 (ISO-HDLC).
    Crc32,
    /// CRC-32C (iSCSI).
    Crc32c,
    /// CRC-64/NVME.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

named_enum!(ChecksumAlgorithm, "checksum algorithm", {
    Crc32 => "crc32",
    Crc32c => "crc32c",
    Crc64Nvme => "crc64nvme",
    Sha1 => "sha1",
    Sha256 => "sha256",
});

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

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A command-line flag or the caller.
    Flag(&'static str),
    /// An environment variable.
    Env(&'static str),
    /// `FILE:LINE [section] field` of a configuration file.
    File(String),
    /// Built in.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Env(name) => f.write_str(name),
            Self::File(place) => f.write_str(place),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One effective setting, for `config show` and `doctor`. Never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the setting.
    pub name: &'static str,
    /// Its effective value; secrets are shown as `***`.
    pub value: String,
    /// Where it came from.
    pub source: Source,
}

/// Settings of an S3 target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Config {
    /// Where to connect; worker `w` uses endpoint `w` modulo their number.
    pub endpoints: Vec<Endpoint>,
    /// Region that requests are signed for.
    pub region: String,
    /// What to sign with; `None` sends anonymous requests.
    pub credentials: Option<Credentials>,
    /// Where the bucket's name stands.
    pub addressing: Addressing,
    /// What signatures say about bodies. Anonymous requests are sent plain or, with
    /// [`PayloadMode::UnsignedTrailer`], in unsigned chunks.
    pub payload: PayloadMode,
    /// Checksum of object bodies; the trailer modes need one.
    pub checksum: Option<ChecksumAlgorithm>,
    /// Encryption.
    pub tls: TlsConfig,
    /// Local addresses to connect from; worker `w` uses number `w` modulo their number.
    pub source_addresses: Vec<IpAddr>,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

impl S3Config {
    /// A configuration for `endpoints` with default settings: path style, unsigned payload, no
    /// checksum, anonymous when `credentials` is `None`.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, region: &str, credentials: Option<Credentials>) -> Self {
        Self {
            endpoints,
            region: region.to_owned(),
            credentials,
            addressing: Addressing::Path,
            payload: PayloadMode::Unsigned,
            checksum: None,
            tls: TlsConfig::default(),
            source_addresses: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Checks what no single field can: combinations that cannot work are refused with a reason.
    ///
    /// # Errors
    /// The first impossible combination.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |place: &str, problem: &str, remedy: &str| {
            Err(ConfigError::new(place, problem, remedy))
        };
        if self.endpoints.is_empty() {
            return fail("endpoint", "there is none", "set --endpoint-url");
        }
        if self.region.is_empty()
            || !self
                .region
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b'/')
        {
            return fail(
                "region",
                "it is empty or holds characters that a region name cannot have",
                "use a name such as us-east-1",
            );
        }
        if self.payload.has_trailer() && self.checksum.is_none() {
            return fail(
                "payload mode",
                "a trailer needs a checksum algorithm",
                "choose one of crc32, crc32c, crc64nvme, sha1, sha256",
            );
        }
        if self.credentials.is_none()
            && !matches!(
                self.payload,
                PayloadMode::Unsigned | PayloadMode::UnsignedTrailer
            )
        {
            return fail(
                "payload mode",
                "anonymous requests cannot sign their payload",
                "use `unsigned` or `unsigned-trailer`, or give credentials",
            );
        }
        if let Some(credentials) = &self.credentials {
            let token = credentials
                .session_token
                .as_ref()
                .map_or("", |t| t.expose());
            let printable = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
            let id = credentials.access_key.as_str();
            if id.is_empty() || !printable(id) || id.contains(['/', ',']) {
                return fail(
                    "access key",
                    "it is empty or holds characters that an access key cannot have",
                    "check for stray blanks or quotes",
                );
            }
            let secret = credentials.secret_key.expose();
            if secret.is_empty() || !printable(secret) || !printable(token) {
                return fail(
                    "secret key or session token",
                    "it is empty or holds blanks or control characters",
                    "check for stray blanks or line ends",
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
