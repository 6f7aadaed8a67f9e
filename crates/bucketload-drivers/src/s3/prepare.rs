//! Everything that happens before the timed start: hashing content, rendering and signing the head, framing chunks.
//!
//! An [`S3Call`] describes a request; [`Prepared`] is ready to be sent. Content is hashed separately ([`ContentHashes`]),
//! so a multipart upload can hash all its parts before its first request.

use bucketload_core::op::ByteRange;
use bucketload_s3::canonical::{self, Header};
use bucketload_s3::encode;
use bucketload_s3::sha256::sha256;
use bucketload_s3::sigv4::EMPTY_SHA256;
use bucketload_wire::{Conn, Error as WireError};

use super::checksum::{Base64, content_md5};
use super::chunked::{self, BodyPieces, Layout};
use super::config::{PayloadMode, S3Config};
use super::keeping::{Fields, Kind};
use super::template::{HeadWriter, Headers, Unsigned};
use crate::http::outgoing::{self, Either, Outgoing, Plain, Rest, SLICE};
use crate::http::pool::Buffer;
use crate::http::span::Span;

/// The hashes of a request's content that its signature and headers need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContentHashes {
    /// SHA-256 in hexadecimal, for signed payloads.
    payload: Option<[u8; 64]>,
    /// The configured checksum, if any.
    pub(crate) sum: Option<Base64>,
}

impl ContentHashes {
    /// Computes the hashes of `span` that the configuration needs. For signed chunks, appends the SHA-256 of each chunk
    /// to `digests`.
    pub(crate) fn of(config: &S3Config, span: Span<'_>, digests: &mut Vec<u8>) -> Self {
        if matches!(
            config.payload,
            PayloadMode::Streaming | PayloadMode::StreamingTrailer
        ) {
            Layout::new(config.payload, config.checksum, span.len).digest(span, digests);
        }
        let signed = config.payload == PayloadMode::Signed;
        Self {
            payload: signed.then(|| encode::hex32(&span.sha256())),
            sum: config.checksum.map(|algorithm| algorithm.of(span)),
        }
    }
}

/// Object content to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upload<'a> {
    pub(crate) span: Span<'a>,
    pub(crate) hashes: ContentHashes,
    /// SHA-256 of each chunk, for signed chunks.
    pub(crate) digests: &'a [u8],
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
enum Body<'a> {
    None,
    /// A control document in memory, sent with its MD5.
    Document(&'a [u8]),
    /// Object content, sent in the configured payload mode.
    Content(Upload<'a>),
}

/// A request. Drop it before the next await, so that the future does not store it.
#[derive(Clone, Copy)]
pub(crate) struct S3Call<'a> {
    method: &'static str,
    bucket: &'a str,
    key: &'a str,
    /// In canonical form.
    query: &'a [u8],
    /// Sorted by name.
    headers: &'a [Header<'a>],
    kind: Kind,
    range: Option<ByteRange>,
    body: Body<'a>,
}

impl<'a> S3Call<'a> {
    pub(crate) const fn new(method: &'static str, bucket: &'a str, key: &'a str) -> Self {
        Self {
            method,
            bucket,
            key,
            query: b"",
            headers: &[],
            kind: Kind::Other,
            range: None,
            body: Body::None,
        }
    }

    pub(crate) const fn query(mut self, query: &'a [u8]) -> Self {
        self.query = query;
        self
    }

    /// Adds signed header fields, sorted by name. The fields that describe the body are added by [`Prepared::new`].
    pub(crate) const fn headers(mut self, headers: &'a [Header<'a>]) -> Self {
        self.headers = headers;
        self
    }

    /// Adds the fields about how objects are kept that requests of this kind carry.
    pub(crate) const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) const fn range(mut self, range: Option<ByteRange>) -> Self {
        self.range = range;
        self
    }

    pub(crate) const fn document(mut self, document: &'a [u8]) -> Self {
        self.body = Body::Document(document);
        self
    }

    pub(crate) const fn content(mut self, content: Upload<'a>) -> Self {
        self.body = Body::Content(content);
        self
    }
}

/// A request rendered and ready to be sent. Kept small: it lives as long as the request.
pub(crate) enum Prepared<'a> {
    Plain(Plain<'a>),
    /// Content in `aws-chunked` chunks.
    Chunks {
        head: Buffer,
        span: Span<'a>,
        frames: Buffer,
    },
}

/// Adds a signed header field to those of `call`.
#[cold]
fn add<'a>(
    headers: &mut Option<Headers<'a>>,
    call: &S3Call<'a>,
    name: &'static str,
    value: &'a [u8],
) {
    headers
        .get_or_insert_with(|| Headers::of(call.headers))
        .push(name, value);
}

impl<'a> Prepared<'a> {
    /// Renders, signs and frames.
    pub(crate) fn new(
        config: &S3Config,
        fields: &Fields,
        writer: &mut HeadWriter,
        call: &S3Call<'a>,
    ) -> Self {
        let anonymous = config.credentials.is_none();
        let mut signed = None;
        let digest;
        let mut digits = [0; 20];
        let mut layout = None;
        let mut content_length = None;
        let mut payload: &[u8] = match (config.payload, anonymous) {
            (_, true) => b"",
            (PayloadMode::Unsigned | PayloadMode::UnsignedTrailer, _) => b"UNSIGNED-PAYLOAD",
            _ => EMPTY_SHA256,
        };
        let md5;
        match &call.body {
            Body::None => {
                if matches!(call.method, "PUT" | "POST") {
                    content_length = Some(0);
                }
            }
            Body::Document(bytes) => {
                content_length = Some(bytes.len() as u64);
                md5 = content_md5(bytes);
                add(&mut signed, call, "content-md5", md5.as_bytes());
                if payload == EMPTY_SHA256 {
                    digest = encode::hex32(&sha256(bytes));
                    payload = &digest;
                }
            }
            Body::Content(Upload { span, hashes, .. }) => {
                if config.payload.is_chunked() {
                    payload = chunked::marker(config.payload);
                    let cut = Layout::new(config.payload, config.checksum, span.len);
                    content_length = Some(cut.wire_len());
                    layout = Some(cut);
                    add(&mut signed, call, "content-encoding", b"aws-chunked");
                    let decoded = encode::decimal(&mut digits, span.len);
                    add(&mut signed, call, "x-amz-decoded-content-length", decoded);
                } else {
                    content_length = Some(span.len);
                    if let Some(hex) = &hashes.payload {
                        payload = hex;
                    }
                }
                if let (Some(algorithm), Some(sum)) = (config.checksum, &hashes.sum) {
                    if config.payload.has_trailer() {
                        let name = algorithm.header().as_bytes();
                        add(&mut signed, call, "x-amz-trailer", name);
                    } else {
                        add(&mut signed, call, algorithm.header(), sum.as_bytes());
                    }
                }
            }
        }
        let parts = canonical::Parts {
            method: call.method,
            bucket: call.bucket,
            key: call.key,
            query: call.query,
            payload,
            headers: signed.as_ref().map_or(call.headers, Headers::as_slice),
            standing: fields.of_kind(call.kind),
        };
        let unsigned = Unsigned {
            range: call.range,
            content_length,
        };
        let mut head = Buffer::take();
        let seed = writer.render(&mut head, &parts, unsigned);
        let body = match (&call.body, layout) {
            (Body::None, _) => outgoing::Body::Bytes(b""),
            (Body::Document(bytes), _) => outgoing::Body::Bytes(bytes),
            (Body::Content(upload), None) => outgoing::Body::Content(upload.span),
            (Body::Content(upload), Some(layout)) => {
                let mut frames = Buffer::take();
                let signing = writer.signer().zip(seed);
                let sum = upload.hashes.sum.as_ref();
                layout.render(&mut frames, upload.digests, sum, signing);
                return Self::Chunks {
                    head,
                    span: upload.span,
                    frames,
                };
            }
        };
        Self::Plain(Plain::new(head, body, call.method == "HEAD"))
    }
}

impl Outgoing for Prepared<'_> {
    fn to_head(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.to_head(),
            Self::Chunks { .. } => false,
        }
    }

    fn release(&mut self) {
        match self {
            Self::Plain(plain) => plain.release(),
            Self::Chunks { head, frames, .. } => {
                *head = Buffer::NONE;
                *frames = Buffer::NONE;
            }
        }
    }

    #[inline]
    fn send<'s>(&'s self, conn: &'s mut Conn) -> Result<Option<impl Rest + 's>, WireError> {
        match self {
            Self::Plain(plain) => Ok(plain.send(conn)?.map(Either::A)),
            Self::Chunks { head, span, frames } => {
                let mut pieces = BodyPieces::new(*span, frames);
                let wire_len = pieces.wire_len();
                let piece = move |_| pieces.next(SLICE);
                let rest = conn.send_now(head, wire_len, piece, true)?;
                Ok(rest.map(Either::B))
            }
        }
    }
}
