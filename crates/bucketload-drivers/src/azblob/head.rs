//! Request heads. The part that is constant within a second is rendered once per second; each
//! request copies it and adds method, path, signature and its own header fields.
//!
//! ```text
//! GET /container/blob ‖  HTTP/1.1\r\nHost: … x-ms-date: … Authorization: SharedKey account: ‖
//! signature ‖ own fields
//! ```

use std::fmt;

use bucketload_core::op::ByteRange;
use bucketload_s3::date::{self, HttpDate};
use bucketload_s3::encode;

use crate::http::Endpoint;
use crate::http::render::{Render as _, USER_AGENT};

use super::config::{Auth, AzureConfig};
use super::sign::{Field, Param, SignedParts, Signer};

/// Most signed fields of a request.
const MAX_FIELDS: usize = 8;
/// How long the signature for the source of a copy is valid, in seconds.
const SOURCE_LIFETIME: u64 = 3600;

/// A request before rendering. Drop it before any await.
#[derive(Clone, Copy, Debug)]
pub(super) struct AzureCall<'a> {
    pub(super) method: &'static str,
    pub(super) container: &'a str,
    pub(super) key: &'a str,
    /// Sorted by name.
    pub(super) query: &'a [Param<'a>],
    /// Fields whose names begin with `x-ms-`, except date, version and range; sorted by name.
    pub(super) fields: &'a [Field<'a>],
    pub(super) content_md5: &'a [u8],
    pub(super) content_type: &'static str,
    pub(super) if_match: &'a str,
    pub(super) if_none_match: &'static str,
    pub(super) range: Option<ByteRange>,
}

impl<'a> AzureCall<'a> {
    pub(super) const fn new(method: &'static str, container: &'a str, key: &'a str) -> Self {
        Self {
            method,
            container,
            key,
            query: &[],
            fields: &[],
            content_md5: b"",
            content_type: "",
            if_match: "",
            if_none_match: "",
            range: None,
        }
    }

    pub(super) const fn query(mut self, query: &'a [Param<'a>]) -> Self {
        self.query = query;
        self
    }

    pub(super) const fn fields(mut self, fields: &'a [Field<'a>]) -> Self {
        self.fields = fields;
        self
    }
}

/// Signed fields of a request, sorted by name.
#[derive(Clone, Copy)]
struct Fields<'a> {
    list: [Field<'a>; MAX_FIELDS],
    len: usize,
}

impl<'a> Fields<'a> {
    /// The fields of `own`, which is sorted.
    ///
    /// # Panics
    /// When there are more than [`MAX_FIELDS`].
    fn of(own: &[Field<'a>]) -> Self {
        let mut fields = Self {
            list: [("", b""); MAX_FIELDS],
            len: own.len(),
        };
        fields.list[..own.len()].copy_from_slice(own);
        fields
    }

    fn insert(&mut self, name: &'static str, value: &'a [u8]) {
        let mut at = self.len;
        self.list[at] = (name, value);
        self.len += 1;
        while at > 0 && self.list[at - 1].0 > name {
            self.list.swap(at - 1, at);
            at -= 1;
        }
    }

    fn as_slice(&self) -> &[Field<'a>] {
        &self.list[..self.len]
    }
}

/// Renders the heads of requests to one endpoint, on one thread.
pub(super) struct HeadWriter {
    scheme: &'static str,
    authority: String,
    base_path: String,
    version: String,
    signer: Option<Signer>,
    /// Shared access signature; empty without one.
    sas: String,
    clock: fn() -> u64,
    /// The second (since 1970) for which `date` and `middle` were rendered.
    second: u64,
    date: HttpDate,
    /// From the end of the request target to the signature or the own fields.
    middle: Vec<u8>,
    range: Vec<u8>,
}

impl fmt::Debug for HeadWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadWriter")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl HeadWriter {
    /// A writer for requests to `endpoint`; `clock` gives seconds since 1970.
    pub(super) fn new(config: &AzureConfig, endpoint: &Endpoint, clock: fn() -> u64) -> Self {
        let signer = match &config.auth {
            // `AzureConfig::check` made sure that the key is base64.
            Auth::SharedKey(key) => Signer::new(&config.account, key.expose(), &config.api_version),
            _ => None,
        };
        let sas = match &config.auth {
            Auth::Sas(token) => token.expose().to_owned(),
            _ => String::new(),
        };
        let mut writer = Self {
            scheme: if endpoint.tls { "https" } else { "http" },
            authority: endpoint.authority.clone(),
            base_path: endpoint.base_path.clone(),
            version: config.api_version.clone(),
            signer,
            sas,
            clock,
            second: u64::MAX,
            date: date::http_date(0),
            middle: Vec::with_capacity(512),
            range: Vec::with_capacity(64),
        };
        writer.refresh();
        writer
    }

    #[inline]
    fn refresh(&mut self) {
        let now = (self.clock)();
        if now != self.second {
            self.move_to(now);
        }
    }

    #[cold]
    fn move_to(&mut self, now: u64) {
        self.second = now;
        self.date = date::http_date(now);
        let out = &mut self.middle;
        out.clear();
        for piece in [
            " HTTP/1.1\r\nHost: ",
            &self.authority,
            "\r\nUser-Agent: ",
            USER_AGENT,
            "\r\nx-ms-version: ",
            &self.version,
            "\r\nx-ms-date: ",
        ] {
            out.extend_from_slice(piece.as_bytes());
        }
        out.extend_from_slice(&self.date);
        out.extend_from_slice(b"\r\n");
        if let Some(signer) = &self.signer {
            push_authorization(out, signer);
        }
    }

    /// Appends the head of `call`, whose body has `length` bytes.
    #[inline]
    pub(super) fn render(&mut self, out: &mut Vec<u8>, call: &AzureCall<'_>, length: u64) {
        self.refresh();
        out.extend_from_slice(call.method.as_bytes());
        out.push(b' ');
        let path = out.len();
        push_path(out, &self.base_path, call.container, call.key);
        let path_end = out.len();
        push_target_query(out, call.query, &self.sas);
        self.range.clear();
        if let Some(range) = call.range {
            push_range(&mut self.range, range);
        }
        let mut fields = Fields::of(call.fields);
        if !self.range.is_empty() {
            fields.insert("x-ms-range", &self.range);
        }
        let signature = match &mut self.signer {
            None => None,
            Some(signer) => {
                let mut signed = fields;
                signed.insert("x-ms-date", &self.date);
                signed.insert("x-ms-version", self.version.as_bytes());
                Some(signer.sign(&SignedParts {
                    method: call.method,
                    length,
                    content_md5: call.content_md5,
                    content_type: call.content_type,
                    if_match: call.if_match,
                    if_none_match: call.if_none_match,
                    fields: signed.as_slice(),
                    path: &out[path..path_end],
                    query: call.query,
                }))
            }
        };
        out.extend_from_slice(&self.middle);
        if let Some(signature) = &signature {
            out.extend_from_slice(signature);
            out.extend_from_slice(b"\r\n");
        }
        for (name, value) in fields.as_slice() {
            out.field(name, value);
        }
        for (name, value) in [
            ("Content-MD5", call.content_md5),
            ("Content-Type", call.content_type.as_bytes()),
            ("If-Match", call.if_match.as_bytes()),
            ("If-None-Match", call.if_none_match.as_bytes()),
        ] {
            if !value.is_empty() {
                out.field(name, value);
            }
        }
        if matches!(call.method, "PUT" | "POST") {
            out.extend_from_slice(b"Content-Length: ");
            encode::push_decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Appends a DELETE for a batch, which carries the version for all its parts.
    pub(super) fn render_inner_delete(&mut self, out: &mut Vec<u8>, container: &str, key: &str) {
        self.refresh();
        out.extend_from_slice(b"DELETE ");
        let path = out.len();
        push_path(out, &self.base_path, container, key);
        let path_end = out.len();
        push_target_query(out, &[], &self.sas);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        out.field("x-ms-date", &self.date);
        if let Some(signer) = &mut self.signer {
            let signature = signer.sign(&SignedParts {
                method: "DELETE",
                length: 0,
                content_md5: b"",
                content_type: "",
                if_match: "",
                if_none_match: "",
                fields: &[("x-ms-date", &self.date)],
                path: &out[path..path_end],
                query: &[],
            });
            push_authorization(out, signer);
            out.extend_from_slice(&signature);
            out.text("\r\n");
        }
        out.text("Content-Length: 0\r\n\r\n");
    }

    /// Appends the URL of a blob for the service to read, with the permission to do so.
    pub(super) fn push_source_url(&mut self, out: &mut Vec<u8>, container: &str, key: &str) {
        self.refresh();
        for piece in [self.scheme, "://", &self.authority] {
            out.extend_from_slice(piece.as_bytes());
        }
        push_path(out, &self.base_path, container, key);
        if let Some(signer) = &mut self.signer {
            out.push(b'?');
            signer.push_read_sas(out, container, key, self.second + SOURCE_LIFETIME);
        } else if !self.sas.is_empty() {
            out.push(b'?');
            out.text(&self.sas);
        }
    }
}

fn push_authorization(out: &mut Vec<u8>, signer: &Signer) {
    for piece in ["Authorization: SharedKey ", signer.account(), ":"] {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// Appends `/base/container/key`; only `/` if all three are empty.
fn push_path(out: &mut Vec<u8>, base: &str, container: &str, key: &str) {
    out.text(base);
    out.push(b'/');
    encode::push_query(out, container);
    if !key.is_empty() {
        out.push(b'/');
        encode::push_key(out, key);
    }
}

fn push_target_query(out: &mut Vec<u8>, query: &[Param<'_>], sas: &str) {
    let mut mark = b'?';
    for (name, value) in query {
        out.push(mark);
        out.text(name);
        out.push(b'=');
        encode::push_query(out, value);
        mark = b'&';
    }
    if !sas.is_empty() {
        out.push(mark);
        out.text(sas);
    }
}

fn push_range(out: &mut Vec<u8>, range: ByteRange) {
    out.extend_from_slice(b"bytes=");
    encode::push_decimal(out, range.offset);
    out.push(b'-');
    encode::push_decimal(out, range.offset + range.len.max(1) - 1);
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
