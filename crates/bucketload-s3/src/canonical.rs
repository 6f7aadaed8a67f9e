//! The canonical request of SigV4 (Amazon S3 API Reference, "Signature Calculations for the
//! Authorization Header"), built in one reused buffer.
//!
//! Some parts also appear in the request head: path, query, names of the signed headers. Their ranges in the buffer are
//! returned, so they are encoded only once.

use std::ops::Range;

use crate::encode;

/// A signed header besides the standard ones.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    /// Lowercase name.
    pub name: &'static str,
    /// Value without leading or trailing blanks or runs of blanks.
    pub value: &'a [u8],
}

/// Signed headers that all requests of one kind carry, such as those of an encryption. Their values never change, so what
/// is rendered from them is kept. May hold secrets.
#[derive(Default)]
pub struct Standing {
    number: usize,
    /// Sorted by name.
    fields: Vec<(&'static str, Box<[u8]>)>,
}

/// The headers of requests that carry none.
pub static NO_STANDING: Standing = Standing {
    number: 0,
    fields: Vec::new(),
};

impl Standing {
    /// Most kinds of requests to one endpoint, including those without such headers.
    pub const KINDS: usize = 5;

    /// The headers `fields` of requests of kind `number`; kind 0 has none.
    ///
    /// # Panics
    /// When `number` is 0, or not below [`Self::KINDS`].
    #[must_use]
    pub fn new(number: usize, mut fields: Vec<(&'static str, Box<[u8]>)>) -> Self {
        assert!((1..Self::KINDS).contains(&number), "kind {number}");
        fields.sort_unstable_by_key(|field| field.0);
        // All kinds without headers are alike and share what is kept.
        let number = if fields.is_empty() { 0 } else { number };
        Self { number, fields }
    }

    /// The number of the kind.
    #[inline]
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Names and values, sorted by name.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.fields.iter().map(|(name, value)| (*name, &**value))
    }
}

/// The inputs that differ from request to request.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// `GET` and so on.
    pub method: &'static str,
    /// Bucket; empty for requests to the service.
    pub bucket: &'a str,
    /// Key; empty for requests to the bucket.
    pub key: &'a str,
    /// Query in canonical form: sorted, encoded, with `=` even after names without a value.
    pub query: &'a [u8],
    /// Value of `x-amz-content-sha256`.
    pub payload: &'a [u8],
    /// Further signed headers, sorted by name.
    pub headers: &'a [Header<'a>],
    /// The signed headers of all requests of this kind.
    pub standing: &'a Standing,
}

/// The inputs that all requests to one endpoint share within a second. Requests of one kind with the same payload value
/// and no further signed headers also share everything from the headers on.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// `Host` header without the bucket.
    pub authority: &'a str,
    /// Path in front of the bucket.
    pub base_path: &'a str,
    /// Whether the bucket is part of the host name.
    pub virtual_host: bool,
    /// `YYYYMMDDTHHMMSSZ`.
    pub timestamp: &'a [u8],
    /// Session token; empty for none.
    pub token: &'a str,
}

/// Where the reusable parts are in the buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The encoded path.
    pub path: Range<usize>,
    /// The names of the signed headers.
    pub names: Range<usize>,
}

/// The start that canonical requests for objects of one bucket share: from the method to the slash before the key.
#[derive(Default)]
pub(crate) struct CachedStart {
    method: String,
    bucket: String,
    text: Vec<u8>,
}

impl CachedStart {
    /// As [`begin`], for object requests. The frame must be the same in every call.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        out: &mut Vec<u8>,
        frame: Frame<'_>,
        parts: &Parts<'_>,
    ) -> Range<usize> {
        if self.bucket != parts.bucket || self.method != parts.method {
            self.render(frame, parts);
        }
        out.clear();
        out.extend_from_slice(&self.text);
        encode::push_key(out, parts.key);
        let path = self.method.len() + 1..out.len();
        out.push(b'\n');
        if !parts.query.is_empty() {
            out.extend_from_slice(parts.query);
        }
        out.push(b'\n');
        path
    }

    #[cold]
    fn render(&mut self, frame: Frame<'_>, parts: &Parts<'_>) {
        self.method.clear();
        self.method.push_str(parts.method);
        self.bucket.clear();
        self.bucket.push_str(parts.bucket);
        let any = Parts { key: "-", ..*parts };
        let path = begin(&mut self.text, frame, &any);
        self.text.truncate(path.end - any.key.len());
    }
}

/// Replaces the contents of `out` with the first lines: method, path, query.
#[inline]
pub(crate) fn begin(out: &mut Vec<u8>, frame: Frame<'_>, parts: &Parts<'_>) -> Range<usize> {
    out.clear();
    out.extend_from_slice(parts.method.as_bytes());
    out.push(b'\n');
    let path = push_path(out, frame, parts);
    out.push(b'\n');
    out.extend_from_slice(parts.query);
    out.push(b'\n');
    path
}

/// Appends the rest: headers, their names, payload. Returns the range of the names.
pub(crate) fn end(out: &mut Vec<u8>, frame: Frame<'_>, parts: &Parts<'_>) -> Range<usize> {
    let bucket = if frame.virtual_host { parts.bucket } else { "" };
    each_header(frame, parts, |name, value| {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        if name == "host" && !bucket.is_empty() {
            push_host_bucket(out, bucket);
        }
        out.extend_from_slice(value);
        out.push(b'\n');
    });
    out.push(b'\n');
    let from = out.len();
    each_header(frame, parts, |name, _| {
        out.extend_from_slice(name.as_bytes());
        out.push(b';');
    });
    out.pop();
    let names = from..out.len();
    out.push(b'\n');
    out.extend_from_slice(parts.payload);
    names
}

/// Appends the encoded path; returns its range.
pub fn push_path(out: &mut Vec<u8>, frame: Frame<'_>, parts: &Parts<'_>) -> Range<usize> {
    let from = out.len();
    out.extend_from_slice(frame.base_path.as_bytes());
    if !frame.virtual_host && !parts.bucket.is_empty() {
        out.push(b'/');
        encode::push_query(out, parts.bucket);
    }
    if !parts.key.is_empty() {
        out.push(b'/');
        encode::push_key(out, parts.key);
    } else if frame.virtual_host || parts.bucket.is_empty() {
        out.push(b'/');
    }
    from..out.len()
}

/// Appends the bucket's part of a virtual host. It is escaped, so an invalid name cannot add header lines; the server
/// refuses it.
#[inline]
pub fn push_host_bucket(out: &mut Vec<u8>, bucket: &str) {
    encode::push_query(out, bucket);
    out.push(b'.');
}

/// Calls `f` for every signed header, sorted by name.
#[inline]
fn each_header(frame: Frame<'_>, parts: &Parts<'_>, mut f: impl FnMut(&str, &[u8])) {
    let standard = [
        ("host", frame.authority.as_bytes()),
        ("x-amz-content-sha256", parts.payload),
        ("x-amz-date", frame.timestamp),
        ("x-amz-security-token", frame.token.as_bytes()),
    ];
    let standard = &standard[..if frame.token.is_empty() { 3 } else { 4 }];
    let extra = parts.headers;
    debug_assert!(extra.is_sorted_by_key(|h| h.name), "headers are sorted");
    let mut extra = extra.iter().map(|h| (h.name, h.value)).peekable();
    let mut standing = parts.standing.fields().peekable();
    // The next field whose name comes before `end`.
    let mut before = |end: Option<&str>| {
        let fits = |field: &(&'static str, &[u8])| end.is_none_or(|end| field.0 < end);
        match (extra.peek(), standing.peek()) {
            (Some(a), Some(b)) if b.0 < a.0 => standing.next_if(fits),
            (None, _) => standing.next_if(fits),
            _ => extra.next_if(fits),
        }
    };
    for &(name, value) in standard {
        while let Some((name, value)) = before(Some(name)) {
            f(name, value);
        }
        f(name, value);
    }
    while let Some((name, value)) = before(None) {
        f(name, value);
    }
}
