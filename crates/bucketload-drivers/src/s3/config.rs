//! Everything the S3 driver needs to know, with a note of where each value came from.
//!
//! [`S3Config::new`] builds one directly (embedded server, tests); `S3Config::discover` follows
//! the AWS conventions. Precedence: flag, environment, profile, default.

use std::net::IpAddr;

use super::credentials::Credentials;
use crate::http::config::{ConfigError, Origin, TlsConfig, named_enum};
use crate::http::endpoint::Endpoint;

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
