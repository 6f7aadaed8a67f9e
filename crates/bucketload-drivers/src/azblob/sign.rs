//! Shared Key signatures and shared access signatures.
//!
//! "Authorize with Shared Key" (Azure Storage REST API reference) defines the string to sign for
//! requests: the form for Blob Storage since version 2009-09-19, with an empty length for empty
//! bodies since 2015-02-21. "Create a service SAS" defines it for shared access signatures (form of
//! version 2020-12-06). The HMAC states of the key are computed once.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bucketload_s3::sha256::HmacKey;
use bucketload_s3::{date, encode};

/// An HMAC-SHA256 in base64.
pub(super) type Signature = [u8; 44];

/// Name, in lower case, and value of a header field.
pub(super) type Field<'a> = (&'static str, &'a [u8]);

/// Name, in lower case, and unescaped value of a query parameter.
pub(super) type Param<'a> = (&'static str, &'a str);

/// The signed parts of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedParts<'a> {
    pub(super) method: &'static str,
    /// Length of the body.
    pub(super) length: u64,
    pub(super) content_md5: &'a [u8],
    pub(super) content_type: &'a str,
    pub(super) if_match: &'a str,
    pub(super) if_none_match: &'a str,
    /// The fields whose names begin with `x-ms-`, sorted by name.
    pub(super) fields: &'a [Field<'a>],
    /// Path as written in the request line.
    pub(super) path: &'a [u8],
    /// Sorted by name.
    pub(super) query: &'a [Param<'a>],
}

/// An account with its key.
pub(super) struct Signer {
    account: String,
    /// Version of the service.
    version: String,
    key: HmacKey,
    /// Reused for the string to sign.
    scratch: Vec<u8>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

/// The bytes of a key; `None` when it is empty or not base64.
pub(super) fn decode_key(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok().filter(|key| !key.is_empty())
}

impl Signer {
    /// A signer for `account` by `version` of the service; `None` when `key` is not base64.
    pub(super) fn new(account: &str, key: &str, version: &str) -> Option<Self> {
        Some(Self {
            account: account.to_owned(),
            version: version.to_owned(),
            key: HmacKey::new(&decode_key(key)?),
            scratch: Vec::with_capacity(1024),
        })
    }

    pub(super) fn account(&self) -> &str {
        &self.account
    }

    /// The signature of a request.
    pub(super) fn sign(&mut self, parts: &SignedParts<'_>) -> Signature {
        self.scratch.clear();
        push_string_to_sign(&mut self.scratch, &self.account, parts);
        self.mac()
    }

    fn mac(&self) -> Signature {
        let mut out = [0; 44];
        // 32 bytes make exactly 44 characters.
        let _ = STANDARD.encode_slice(self.key.mac(&self.scratch), &mut out);
        out
    }

    /// Appends a query that permits its holder to read one blob until `expiry` (seconds since
    /// 1970). The service needs it to fetch the source of a copy.
    pub(super) fn push_read_sas(
        &mut self,
        out: &mut Vec<u8>,
        container: &str,
        key: &str,
        expiry: u64,
    ) {
        let expiry = date::iso(expiry);
        self.scratch.clear();
        for piece in [
            &b"r\n\n"[..],
            &expiry,
            b"\n/blob/",
            self.account.as_bytes(),
            b"/",
        ] {
            self.scratch.extend_from_slice(piece);
        }
        for piece in [container, "/", key, "\n\n\n\n", &self.version] {
            self.scratch.extend_from_slice(piece.as_bytes());
        }
        // The resource is a blob; no snapshot, no scope, no headers to override.
        self.scratch.extend_from_slice(b"\nb\n\n\n\n\n\n\n");
        let signature = self.mac();
        out.extend_from_slice(b"sv=");
        out.extend_from_slice(self.version.as_bytes());
        out.extend_from_slice(b"&sr=b&sp=r&se=");
        encode::push_query(out, std::str::from_utf8(&expiry).unwrap_or_default());
        out.extend_from_slice(b"&sig=");
        encode::push_query(out, std::str::from_utf8(&signature).unwrap_or_default());
    }
}

/// Appends the string to sign.
fn push_string_to_sign(out: &mut Vec<u8>, account: &str, parts: &SignedParts<'_>) {
    out.extend_from_slice(parts.method.as_bytes());
    // Content-Encoding and Content-Language are never sent.
    out.extend_from_slice(b"\n\n\n");
    if parts.length > 0 {
        encode::push_decimal(out, parts.length);
    }
    out.push(b'\n');
    out.extend_from_slice(parts.content_md5);
    out.push(b'\n');
    out.extend_from_slice(parts.content_type.as_bytes());
    // Date (replaced by x-ms-date) and If-Modified-Since are never sent.
    out.extend_from_slice(b"\n\n\n");
    out.extend_from_slice(parts.if_match.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(parts.if_none_match.as_bytes());
    // Nor are If-Unmodified-Since and Range (replaced by x-ms-range).
    out.extend_from_slice(b"\n\n\n");
    for (name, value) in parts.fields {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    out.push(b'/');
    out.extend_from_slice(account.as_bytes());
    out.extend_from_slice(parts.path);
    for (name, value) in parts.query {
        out.push(b'\n');
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
