//! Request heads. The parts that stay the same within a second are rendered once per second. A request copies them and
//! adds method, path, signature and its own header fields.
//!
//! ```text
//! GET /bucket/key ‖  HTTP/1.1\r\nHost: ‖ h:9000 … Credential=ID/scope, SignedHeaders= ‖ names,
//! Signature= ‖ signature ‖ x-amz-content-sha256: … ‖ own fields
//! ```
//!
//! A plain request has no signed fields of its own and no bucket in the host. For plain requests of one kind
//! ([`Standing`]), everything between path and signature, and between signature and own fields, is cached in one piece
//! each ([`PlainHead`]).

use std::fmt;

use bucketload_core::op::ByteRange;
use bucketload_s3::canonical::{self, Frame, Header, Parts, Standing};
use bucketload_s3::sign::Signer;
use bucketload_s3::sigv4::Signature;

use super::config::{Addressing, S3Config};
use crate::http::endpoint::Endpoint;
use crate::http::render::{Render as _, USER_AGENT};

/// Maximum number of a request's own signed header fields.
const MAX_HEADERS: usize = 8;
/// From the end of the path to the host.
const HOST: &[u8] = b" HTTP/1.1\r\nHost: ";
/// From the names of the signed fields to the signature.
const SIGNATURE: &[u8] = b", Signature=";

/// Signed header fields of one request, kept sorted by name.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'a> {
    list: [Header<'a>; MAX_HEADERS],
    len: usize,
}

impl<'a> Headers<'a> {
    /// The fields of `list`, which must be sorted.
    ///
    /// # Panics
    /// When there are more than [`MAX_HEADERS`].
    pub(crate) fn of(list: &[Header<'a>]) -> Self {
        let mut headers = Self {
            list: [const {
                Header {
                    name: "",
                    value: b"",
                }
            }; MAX_HEADERS],
            len: list.len(),
        };
        headers.list[..list.len()].copy_from_slice(list);
        headers
    }

    /// Adds a field.
    ///
    /// # Panics
    /// When there are more than [`MAX_HEADERS`].
    pub(crate) fn push(&mut self, name: &'static str, value: &'a [u8]) {
        let mut at = self.len;
        self.list[at] = Header { name, value };
        self.len += 1;
        while at > 0 && self.list[at - 1].name > name {
            self.list.swap(at - 1, at);
            at -= 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[Header<'a>] {
        &self.list[..self.len]
    }
}

/// Header fields that are not signed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unsigned {
    pub(crate) range: Option<ByteRange>,
    pub(crate) content_length: Option<u64>,
}

/// Renders the heads of requests to one endpoint, on one thread.
pub(crate) struct HeadWriter {
    authority: String,
    base_path: String,
    virtual_host: bool,
    signer: Option<Signer>,
    /// From the authority to the names of the signed headers (for anonymous requests: to the first own field).
    middle: Vec<u8>,
    plain: [PlainHead; Standing::KINDS],
    /// Path of an anonymous request.
    scratch: Vec<u8>,
    /// Seconds since 1970.
    clock: fn() -> u64,
}

/// The text that signed plain requests of one kind with one value of `x-amz-content-sha256` share within a second.
#[derive(Default)]
struct PlainHead {
    /// The value; empty if the rest is not rendered yet.
    payload: Vec<u8>,
    /// From the end of the path to the signature.
    before: Vec<u8>,
    /// From the signature to the unsigned fields.
    after: Vec<u8>,
}

impl fmt::Debug for HeadWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadWriter")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl HeadWriter {
    pub(crate) fn new(config: &S3Config, endpoint: &Endpoint, clock: fn() -> u64) -> Self {
        let signer = config
            .credentials
            .as_ref()
            .map(|credentials| credentials.signer(&config.region));
        let mut writer = Self {
            authority: endpoint.authority.clone(),
            base_path: endpoint.base_path.clone(),
            virtual_host: config.addressing == Addressing::Virtual,
            signer,
            middle: Vec::with_capacity(512),
            plain: Default::default(),
            scratch: Vec::new(),
            clock,
        };
        writer.render_middle();
        writer
    }

    fn render_middle(&mut self) {
        self.plain.iter_mut().for_each(|p| p.payload.clear());
        let out = &mut self.middle;
        out.clear();
        for part in [&self.authority, "\r\nUser-Agent: ", USER_AGENT, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        let Some(signer) = &self.signer else { return };
        out.extend_from_slice(b"x-amz-date: ");
        out.extend_from_slice(signer.timestamp());
        if !signer.token().is_empty() {
            out.extend_from_slice(b"\r\nx-amz-security-token: ");
            out.extend_from_slice(signer.token().as_bytes());
        }
        out.extend_from_slice(b"\r\nAuthorization: AWS4-HMAC-SHA256 Credential=");
        out.extend_from_slice(signer.access_key().as_bytes());
        out.push(b'/');
        out.extend_from_slice(signer.scope());
        out.extend_from_slice(b", SignedHeaders=");
    }

    /// Appends the head of a request to `out`; returns its signature, or `None` for anonymous requests.
    #[inline]
    pub(crate) fn render(
        &mut self,
        out: &mut Vec<u8>,
        parts: &Parts<'_>,
        unsigned: Unsigned,
    ) -> Option<Signature> {
        if let Some(signer) = &mut self.signer
            && signer.at((self.clock)())
        {
            self.render_middle();
        }
        let frame = Frame {
            authority: &self.authority,
            base_path: &self.base_path,
            virtual_host: self.virtual_host,
            timestamp: b"",
            token: "",
        };
        let signature = match &mut self.signer {
            None => {
                out.extend_from_slice(parts.method.as_bytes());
                out.push(b' ');
                self.scratch.clear();
                canonical::push_path(&mut self.scratch, frame, parts);
                push_target(out, &self.scratch, parts.query);
                self.push_host(out, parts);
                out.extend_from_slice(&self.middle);
                push_signed_fields(out, parts);
                None
            }
            Some(signer) => {
                let (signature, ranges) = signer.sign(frame, parts);
                let canonical = signer.canonical();
                // The canonical request starts like the request line, except for the line feed after the method.
                let from = out.len();
                push_target(out, &canonical[..ranges.path.end], parts.query);
                out[from + parts.method.len()] = b' ';
                let bucket_in_host = self.virtual_host && !parts.bucket.is_empty();
                if parts.headers.is_empty() && !bucket_in_host {
                    let plain = &mut self.plain[parts.standing.number()];
                    if plain.payload != parts.payload {
                        let names = &canonical[ranges.names];
                        plain.render(&self.middle, names, parts);
                    }
                    out.extend_from_slice(&plain.before);
                    out.extend_from_slice(&signature);
                    out.extend_from_slice(&plain.after);
                } else {
                    let names = ranges.names;
                    self.push_host(out, parts);
                    out.extend_from_slice(&self.middle);
                    if let Some(signer) = &self.signer {
                        out.extend_from_slice(&signer.canonical()[names]);
                    }
                    out.extend_from_slice(SIGNATURE);
                    out.extend_from_slice(&signature);
                    out.extend_from_slice(b"\r\n");
                    push_signed_fields(out, parts);
                }
                Some(signature)
            }
        };
        out.range(unsigned.range);
        if let Some(length) = unsigned.content_length {
            out.content_length(length);
        }
        out.extend_from_slice(b"\r\n");
        signature
    }

    /// Appends the text between the path and the authority.
    fn push_host(&self, out: &mut Vec<u8>, parts: &Parts<'_>) {
        out.extend_from_slice(HOST);
        if self.virtual_host && !parts.bucket.is_empty() {
            canonical::push_host_bucket(out, parts.bucket);
        }
    }

    /// The signer, in the state after the last head.
    pub(crate) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }
}

impl PlainHead {
    #[cold]
    fn render(&mut self, middle: &[u8], names: &[u8], parts: &Parts<'_>) {
        self.payload.clear();
        self.payload.extend_from_slice(parts.payload);
        self.before.clear();
        for part in [HOST, middle, names, SIGNATURE] {
            self.before.extend_from_slice(part);
        }
        self.after.clear();
        self.after.extend_from_slice(b"\r\n");
        push_signed_fields(&mut self.after, parts);
    }
}

/// Appends the request target.
#[inline]
fn push_target(out: &mut Vec<u8>, path: &[u8], query: &[u8]) {
    out.extend_from_slice(path);
    if !query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

/// Appends the signed fields of the request and of its kind.
fn push_signed_fields(out: &mut Vec<u8>, parts: &Parts<'_>) {
    if !parts.payload.is_empty() {
        out.field("x-amz-content-sha256", parts.payload);
    }
    for header in parts.headers {
        out.field(header.name, header.value);
    }
    for (name, value) in parts.standing.fields() {
        out.field(name, value);
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
