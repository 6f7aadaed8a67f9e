//! How the store is asked to keep objects: storage class and encryption.
//!
//! ```text
//!             write, create upload   read, head, part   copy              part from a copy
//! class       yes                                       yes
//! managed     yes                                       yes
//! customer's  yes                    yes                yes, and source   yes, and source
//! ```
//!
//! The header fields are made once per driver ([`Fields`]); what is rendered and signed from them is kept per kind of
//! request ([`Standing`]).

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bucketload_s3::canonical::{NO_STANDING, Standing};
use md5::{Digest as _, Md5};

use crate::http::config::ConfigError;
use crate::http::endpoint::Endpoint;
use crate::http::secret::Secret;

/// The variable that holds the customer's key.
pub(super) const KEY_VARIABLE: &str = "BUCKETLOAD_SSE_C_KEY";
/// Length of the customer's key in bytes.
const KEY: usize = 32;

/// What the store is asked to do with the objects it keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// Storage class; `None` for the store's default.
    pub storage_class: Option<String>,
    /// Encryption; `None` for the bucket's default.
    pub encryption: Option<Encryption>,
}

/// Encryption of objects by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// With keys that the store manages (SSE-S3).
    Managed,
    /// With keys of a key service (SSE-KMS).
    Service {
        /// `aws:kms`, or `aws:kms:dsse` for two layers.
        method: &'static str,
        /// Identifier of the key; `None` for the bucket's.
        key: Option<String>,
    },
    /// With a key that each request carries (SSE-C).
    Customer(CustomerKey),
}

impl FromStr for Encryption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of = |method, rest: &str| match rest.strip_prefix(':') {
            None if rest.is_empty() => Some(Self::Service { method, key: None }),
            Some(key) if !key.is_empty() && key.bytes().all(|b| b.is_ascii_graphic()) => {
                let key = Some(key.to_owned());
                Some(Self::Service { method, key })
            }
            _ => None,
        };
        let service = |method| of(method, text.strip_prefix(method)?);
        match text {
            "AES256" => Ok(Self::Managed),
            _ => service("aws:kms:dsse")
                .or_else(|| service("aws:kms"))
                .ok_or_else(|| {
                    format!("`{text}` is no encryption; use AES256, aws:kms or aws:kms:KEY")
                }),
        }
    }
}

impl fmt::Display for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Managed => f.write_str("AES256"),
            Self::Service { method, key: None } => f.write_str(method),
            Self::Service {
                method,
                key: Some(key),
            } => write!(f, "{method}:{key}"),
            Self::Customer(_) => f.write_str("AES256 with the customer's key ***"),
        }
    }
}

/// A customer's key of 256 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerKey {
    /// In base64.
    key: Secret,
    /// MD5 of the key, in base64.
    md5: Secret,
}

impl CustomerKey {
    /// The key `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8; KEY]) -> Self {
        Self {
            key: Secret::new(BASE64.encode(bytes)),
            md5: Secret::new(BASE64.encode(Md5::digest(bytes))),
        }
    }

    /// Reads the key from the file `path`.
    ///
    /// # Errors
    /// When the file cannot be read or holds no key.
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let place = format!("--sse-c {}", path.display());
        let bytes = std::fs::read(path).map_err(|error| {
            let remedy = "name a file with the key";
            ConfigError::new(&place, format!("the file cannot be read: {error}"), remedy)
        })?;
        match <&[u8; KEY]>::try_from(&*bytes) {
            Ok(key) => Ok(Self::new(key)),
            Err(_) => Self::parse(&bytes, &place),
        }
    }

    /// The key that `text` gives in base64 or hexadecimal. `place` names its origin in errors.
    ///
    /// # Errors
    /// When it gives none of 32 bytes.
    pub(super) fn parse(text: &[u8], place: &str) -> Result<Self, ConfigError> {
        let text = text.trim_ascii();
        let bytes = match text.len() {
            64 => unhex(text),
            _ => BASE64.decode(text).ok(),
        };
        match bytes.and_then(|bytes| <[u8; KEY]>::try_from(bytes).ok()) {
            Some(key) => Ok(Self::new(&key)),
            None => Err(ConfigError::new(
                place,
                "this is no key of 32 bytes",
                "give 32 bytes in base64 or hexadecimal, such as what `openssl rand -base64 32` prints",
            )),
        }
    }

    /// Replaces the key with `***` in `text`, which came from a server.
    pub(super) fn scrub(&self, text: &str) -> String {
        text.replace(self.key.expose(), "***")
    }
}

/// The bytes of hexadecimal digits; `None` for other characters.
fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.iter().map(|b| char::from(*b).to_digit(16));
    let digits: Vec<u32> = digits.collect::<Option<_>>()?;
    let bytes = digits.chunks_exact(2).map(|d| (d[0] << 4 | d[1]) as u8);
    Some(bytes.collect())
}

impl Keeping {
    /// The customer's key, if there is one.
    pub(super) fn customer_key(&self) -> Option<&CustomerKey> {
        match &self.encryption {
            Some(Encryption::Customer(key)) => Some(key),
            _ => None,
        }
    }

    /// Checks that the key does not cross a network in the clear.
    ///
    /// # Errors
    /// When it would.
    pub(super) fn check(&self, endpoints: &[Endpoint]) -> Result<(), ConfigError> {
        let clear = |endpoint: &&Endpoint| {
            let local = match endpoint.host.parse::<IpAddr>() {
                Ok(ip) => ip.is_loopback(),
                Err(_) => endpoint.host == "localhost",
            };
            !endpoint.tls && !local
        };
        match (self.customer_key(), endpoints.iter().find(clear)) {
            (Some(_), Some(endpoint)) => Err(ConfigError::new(
                "--sse-c",
                format!(
                    "each request would carry the key to {} without TLS, where anyone who can listen obtains it",
                    endpoint.url()
                ),
                "use an https:// endpoint",
            )),
            _ => Ok(()),
        }
    }

    /// Facts for the result, if anything is set.
    pub(super) fn facts(&self) -> impl Iterator<Item = (&'static str, String)> {
        let class = self.storage_class.clone().map(|c| ("storage class", c));
        let encryption = self.encryption.as_ref();
        let encryption = encryption.map(|e| ("encryption", e.to_string()));
        class.into_iter().chain(encryption)
    }
}

/// The kinds of requests by the fields that they carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None of them.
    Other,
    /// Writes an object in one request, or creates an upload.
    Object,
    /// Sends or receives the content of an object that is described elsewhere: read, head, part.
    Content,
    /// Copies an object.
    Copy,
    /// Copies a part from an object.
    PartCopy,
}

/// The fields of each kind of request.
pub(crate) struct Fields([Standing; Standing::KINDS - 1]);

/// Names of a customer's method, key and MD5 of the key: for the object of the request, and for the source of a copy.
const CUSTOMER: [[&str; 3]; 2] = [
    [
        "x-amz-server-side-encryption-customer-algorithm",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-server-side-encryption-customer-key-md5",
    ],
    [
        "x-amz-copy-source-server-side-encryption-customer-algorithm",
        "x-amz-copy-source-server-side-encryption-customer-key",
        "x-amz-copy-source-server-side-encryption-customer-key-md5",
    ],
];

impl Fields {
    /// The fields that ask for `keeping`.
    pub(crate) fn of(keeping: &Keeping) -> Self {
        let kinds = [Kind::Object, Kind::Content, Kind::Copy, Kind::PartCopy];
        Self(kinds.map(|kind| Standing::new(kind as usize, fields(keeping, kind))))
    }

    /// The fields of requests of `kind`.
    #[inline]
    pub(crate) fn of_kind(&self, kind: Kind) -> &Standing {
        match kind {
            Kind::Other => &NO_STANDING,
            kind => &self.0[kind as usize - 1],
        }
    }
}

fn fields(keeping: &Keeping, kind: Kind) -> Vec<(&'static str, Box<[u8]>)> {
    let mut list: Vec<(&'static str, Box<[u8]>)> = Vec::new();
    let mut add = |name, value: &str| list.push((name, value.as_bytes().into()));
    if matches!(kind, Kind::Object | Kind::Copy) {
        if let Some(class) = &keeping.storage_class {
            add("x-amz-storage-class", class);
        }
        match &keeping.encryption {
            Some(Encryption::Managed) => add("x-amz-server-side-encryption", "AES256"),
            Some(Encryption::Service { method, key }) => {
                add("x-amz-server-side-encryption", method);
                if let Some(key) = key {
                    add("x-amz-server-side-encryption-aws-kms-key-id", key);
                }
            }
            Some(Encryption::Customer(_)) | None => {}
        }
    }
    if let Some(key) = keeping.customer_key() {
        let sets = match kind {
            Kind::Copy | Kind::PartCopy => &CUSTOMER[..],
            _ => &CUSTOMER[..1],
        };
        for [algorithm, name, md5] in sets {
            add(algorithm, "AES256");
            add(name, key.key.expose());
            add(md5, key.md5.expose());
        }
    }
    list
}

#[cfg(test)]
#[path = "keeping_tests.rs"]
mod tests;
