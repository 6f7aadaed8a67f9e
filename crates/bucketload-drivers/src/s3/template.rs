//! Request heads. What does not change within a second is rendered once per second; a request
//! copies it and adds method, path, signature and its own header fields.
//!
//! ```text
//! GET /bucket/key HTTP/1.1\r\nHost: ‖ h:9000 … Credential=ID/scope, SignedHeaders= ‖ names,
//! Signature= ‖ signature ‖ x-amz-content-sha256: … ‖ own fields
//! ```

use std::fmt;

use bucketload_core::op::ByteRange;

use super::canonical::{self, Frame, Header, Parts};
use super::config::{Addressing, S3Config};
use super::encode;
use super::endpoint::Endpoint;
use super::sign::{Signature, Signer};

/// No request has more signed header fields of its own.
const MAX_HEADERS: usize = 8;
const USER_AGENT: &str = concat!("bucketload/", env!("CARGO_PKG_VERSION"));

/// Signed header fields of one request, kept sorted by name.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'a> {
    list: [Header<'a>; MAX_HEADERS],
    len: usize,
}

impl<'a> Headers<'a> {
    pub(crate) const fn new() -> Self {
        Self {
            list: [const {
                Header {
                    name: "",
                    value: b"",
                }
            }; MAX_HEADERS],
            len: 0,
        }
    }

    /// Adds a field.
    ///
    /// # Panics
    /// When there are more than any operation needs.
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
    /// From the authority to the place of the signed headers' names (or, for anonymous requests,
    /// of the first own field).
    middle: Vec<u8>,
    /// Path of an anonymous request.
    scratch: Vec<u8>,
    /// Seconds since 1970.
    clock: fn() -> u64,
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
            .clone()
            .map(|credentials| Signer::new(credentials, &config.region));
        let mut writer = Self {
            authority: endpoint.authority.clone(),
            base_path: endpoint.base_path.clone(),
            virtual_host: config.addressing == Addressing::Virtual,
            signer,
            middle: Vec::with_capacity(512),
            scratch: Vec::new(),
            clock,
        };
        writer.render_middle();
        writer
    }

    fn render_middle(&mut self) {
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

    /// Appends the head of a request to `out`; returns its signature unless it is anonymous.
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
        let signed = self.signer.as_mut().map(|signer| {
            let (signature, ranges) = signer.sign(frame, parts);
            let canonical = signer.canonical();
            let path = &canonical[ranges.path];
            (signature, path, &canonical[ranges.names])
        });
        let path = match &signed {
            Some((_, path, _)) => path,
            None => {
                self.scratch.clear();
                canonical::push_path(&mut self.scratch, frame, parts);
                self.scratch.as_slice()
            }
        };
        out.extend_from_slice(parts.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(path);
        if !parts.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(parts.query);
        }
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        if self.virtual_host && !parts.bucket.is_empty() {
            canonical::push_host_bucket(out, parts.bucket);
        }
        out.extend_from_slice(&self.middle);
        if let Some((signature, _, names)) = &signed {
            out.extend_from_slice(names);
            out.extend_from_slice(b", Signature=");
            out.extend_from_slice(signature);
            out.extend_from_slice(b"\r\n");
        }
        if !parts.payload.is_empty() {
            push_field(out, "x-amz-content-sha256", parts.payload);
        }
        for header in parts.headers {
            push_field(out, header.name, header.value);
        }
        if let Some(range) = unsigned.range {
            out.extend_from_slice(b"Range: bytes=");
            encode::push_decimal(out, range.offset);
            out.push(b'-');
            encode::push_decimal(out, range.offset + range.len.max(1) - 1);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(length) = unsigned.content_length {
            out.extend_from_slice(b"Content-Length: ");
            encode::push_decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        signed.map(|(signature, _, _)| signature)
    }

    /// The signer, in the state of the last head.
    pub(crate) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }
}

#[inline]
fn push_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The wall clock in seconds since 1970, from the kernel's coarse clock (4 ms steps): a signature
/// needs the second only.
pub(crate) fn wall_seconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec that the call fills in; the clock id is a constant that
    // Linux has had since 2.6.32, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0)
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
