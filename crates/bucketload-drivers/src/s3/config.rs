//! The settings of the S3 driver, and where each value came from.
//!
//! [`S3Config::new`] builds them directly (embedded server, tests); `S3Config::discover` follows the AWS conventions:
//! flag, environment, profile, default.

use std::net::IpAddr;

use super::credentials::Credentials;
use super::keeping::Keeping;
use crate::http::config::{ConfigError, Origin, TlsConfig, named_enum};
use crate::http::endpoint::Endpoint;

/// Where requests carry the bucket's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// In the path: `http://host/bucket/key`.
    Path,
    /// In the `Host` header: `http://bucket.host/key`. Connections still go to the endpoint's address, and certificates
    /// are checked against the endpoint's name.
    Virtual,
}

named_enum!(Addressing, "addressing style", { Path => "path", Virtual => "virtual" });

/// How a signature covers the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadMode {
    /// Not at all (`UNSIGNED-PAYLOAD`).
    Unsigned,
    /// By its SHA-256, computed before the timed start.
    Signed,
    /// By a chain of signed chunks (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD`).
    Streaming,
    /// By signed chunks followed by a signed checksum (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER`).
    StreamingTrailer,
    /// Not at all: unsigned chunks followed by a checksum (`STREAMING-UNSIGNED-PAYLOAD-TRAILER`).
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
    /// True if the body is sent in `aws-chunked` chunks.
    #[must_use]
    pub const fn is_chunked(self) -> bool {
        !matches!(self, Self::Unsigned | Self::Signed)
    }

    /// True if a checksum follows the body.
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

/// How objects are appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendMode {
    /// Not at all, as in general purpose buckets.
    None,
    /// By a PUT whose `x-amz-write-offset-bytes` is the size of the object, as in S3 Express One Zone.
    WriteOffset,
}

named_enum!(AppendMode, "way to append", { None => "none", WriteOffset => "write-offset" });

/// Settings of an S3 target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Config {
    /// Endpoints; worker `w` uses number `w` modulo their count.
    pub endpoints: Vec<Endpoint>,
    /// Region that requests are signed for.
    pub region: String,
    /// The keys that sign requests; `None` sends anonymous requests.
    pub credentials: Option<Credentials>,
    /// Where requests carry the bucket's name.
    pub addressing: Addressing,
    /// How signatures cover bodies. Anonymous requests are sent plain or, with [`PayloadMode::UnsignedTrailer`], in
    /// unsigned chunks.
    pub payload: PayloadMode,
    /// Checksum of object bodies; required by the trailer modes.
    pub checksum: Option<ChecksumAlgorithm>,
    /// How objects are appended to.
    pub append: AppendMode,
    /// How the store is asked to keep objects.
    pub keeping: Keeping,
    /// TLS settings.
    pub tls: TlsConfig,
    /// Local addresses to connect from; worker `w` uses number `w` modulo their count.
    pub source_addresses: Vec<IpAddr>,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

impl S3Config {
    /// A configuration for `endpoints` with default settings: path style, unsigned payload, no
    /// checksum, no appends, anonymous when `credentials` is `None`.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, region: &str, credentials: Option<Credentials>) -> Self {
        Self {
            endpoints,
            region: region.to_owned(),
            credentials,
            addressing: Addressing::Path,
            payload: PayloadMode::Unsigned,
            checksum: None,
            append: AppendMode::None,
            keeping: Keeping::default(),
            tls: TlsConfig::default(),
            source_addresses: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Whether objects can be appended to.
    pub(crate) fn appends(&self) -> bool {
        self.append != AppendMode::None
    }

    /// Checks the values and their combinations.
    ///
    /// # Errors
    /// The first setting that cannot work.
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
                "it is empty or contains characters that a region name cannot have",
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
        self.keeping.check(&self.endpoints)?;
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
                    "it is empty or contains characters that an access key cannot have",
                    "check for stray blanks or quotes",
                );
            }
            let secret = credentials.secret_key.expose();
            if secret.is_empty() || !printable(secret) || !printable(token) {
                return fail(
                    "secret key or session token",
                    "it is empty or contains blanks or control characters",
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
