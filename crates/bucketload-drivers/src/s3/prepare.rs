//! What happens before the timed start: hashing content, rendering and signing the head, framing
//! chunks.
//!
//! A [`Call`] describes a request; [`Prepared`] is ready to leave. Content is hashed apart
//! ([`Hashes`]), so that a multipart upload can do it for all its parts before its first request.

use bucketload_core::op::ByteRange;
use bucketload_wire::{Conn, Error as WireError, SendEnd};

use super::checksum::{Base64, Span, content_md5};
use super::chunked::{self, Layout, Piece, Pieces};
use super::config::{PayloadMode, S3Config};
use super::pool::Buffer;
use super::sha256::sha256;
use super::sign::EMPTY_SHA256;
use super::template::{HeadWriter, Headers, Unsigned};
use super::{canonical, encode};

/// Bytes handed to one write.
const SLICE: usize = 256 * 1024;

/// What a request's signature and headers say about its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashes {
    /// SHA-256 in hexadecimal, for signed payloads.
    payload: Option<[u8; 64]>,
    /// Checksum, where one is configured.
    pub(crate) sum: Option<Base64>,
}

impl Hashes {
    /// Hashes `span` as far as the configuration needs it, and appends the SHA-256 of its chunks
    /// to `digests` for signed chunks.
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
pub(crate) struct Outgoing<'a> {
    pub(crate) span: Span<'a>,
    pub(crate) hashes: Hashes,
    /// SHA-256 of each chunk, for signed chunks.
    pub(crate) digests: &'a [u8],
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    None,
    /// A control document in memory, sent with its MD5.
    Document(&'a [u8]),
    /// Object content, sent as the payload mode says.
    Content(Outgoing<'a>),
}

/// A request.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'static str,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    /// In canonical form.
    pub(crate) query: &'a [u8],
    pub(crate) headers: Headers<'a>,
    pub(crate) range: Option<ByteRange>,
    pub(crate) body: Body<'a>,
}

impl<'a> Call<'a> {
    pub(crate) const fn new(method: &'static str, bucket: &'a str, key: &'a str) -> Self {
        Self {
            method,
            bucket,
            key,
            query: b"",
            headers: Headers::new(),
            range: None,
            body: Body::None,
        }
    }
}

/// A request rendered and ready to leave.
pub(crate) struct Prepared<'a> {
    head: Buffer,
    frames: Option<Buffer>,
    layout: Layout,
    body: Body<'a>,
}

impl<'a> Prepared<'a> {
    /// Hashes, renders and signs. This is the last step before the timed start.
    pub(crate) fn new(config: &S3Config, writer: &mut HeadWriter, call: &Call<'a>) -> Self {
        let anonymous = config.credentials.is_none();
        let mut headers = call.headers;
        let digest;
        let mut decimal = [0; 20];
        let mut sum = None;
        let mut frames = None;
        let mut layout = Layout::new(PayloadMode::Unsigned, None, 0);
        let mut content_length = None;
        let mut payload: &[u8] = match (config.payload, anonymous) {
            (_, true) => b"",
            (PayloadMode::Unsigned | PayloadMode::UnsignedTrailer, _) => b"UNSIGNED-PAYLOAD",
            _ => EMPTY_SHA256,
        };
        let md5;
        match call.body {
            Body::None => {
                if matches!(call.method, "PUT" | "POST") {
                    content_length = Some(0);
                }
            }
            Body::Document(bytes) => {
                content_length = Some(bytes.len() as u64);
                md5 = content_md5(bytes);
                headers.push("content-md5", md5.as_bytes());
                if payload == EMPTY_SHA256 {
                    digest = encode::hex32(&sha256(bytes));
                    payload = &digest;
                }
            }
            Body::Content(Outgoing { span, hashes, .. }) => {
                if config.payload.is_chunked() {
                    payload = chunked::marker(config.payload);
                    layout = Layout::new(config.payload, config.checksum, span.len);
                    content_length = Some(layout.wire_len());
                    headers.push("content-encoding", b"aws-chunked");
                    let decoded = decimal_of(&mut decimal, span.len);
                    headers.push("x-amz-decoded-content-length", decoded);
                    frames = Some(Buffer::take());
                } else {
                    content_length = Some(span.len);
                    if let Some(hex) = hashes.payload {
                        digest = hex;
                        payload = &digest;
                    }
                }
                sum = hashes.sum;
                if let (Some(algorithm), Some(sum)) = (config.checksum, &sum) {
                    if config.payload.has_trailer() {
                        headers.push("x-amz-trailer", algorithm.header().as_bytes());
                    } else {
                        headers.push(algorithm.header(), sum.as_bytes());
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
            headers: headers.as_slice(),
        };
        let unsigned = Unsigned {
            range: call.range,
            content_length,
        };
        let mut head = Buffer::take();
        let seed = writer.render(&mut head, &parts, unsigned);
        if let (Some(frames), Body::Content(outgoing)) = (&mut frames, call.body) {
            let signing = writer.signer().zip(seed);
            layout.render(frames, outgoing.digests, sum.as_ref(), signing);
        }
        Self {
            head,
            frames,
            layout,
            body: call.body,
        }
    }

    /// Sends the request: the head and the first bytes of the body in one write.
    pub(crate) async fn send(&self, conn: &mut Conn) -> Result<SendEnd, WireError> {
        match (self.body, &self.frames) {
            (Body::None, _) => conn.send(&self.head, b"").await,
            (Body::Document(bytes), _) => conn.send(&self.head, bytes).await,
            (Body::Content(Outgoing { span, .. }), None) => {
                let piece = |at| Piece::Content(span.content.segment(span.offset + at, SLICE));
                return conn.send_request(&self.head, span.len, piece).await;
            }
            (Body::Content(Outgoing { span, .. }), Some(frames)) => {
                let mut pieces = Pieces::new(&self.layout, span, frames);
                let len = self.layout.wire_len();
                return conn
                    .send_request(&self.head, len, |_| pieces.next(SLICE))
                    .await;
            }
        }
        .map(|()| SendEnd::Complete)
    }
}

fn decimal_of(out: &mut [u8; 20], value: u64) -> &[u8] {
    let mut at = out.len();
    let mut left = value;
    loop {
        at -= 1;
        out[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            return &out[at..];
        }
    }
}
