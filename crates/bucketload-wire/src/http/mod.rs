//! HTTP/1.1 heads and chunked bodies as pure functions over bytes (RFC 9112). Nothing here does I/O
//! or, on success, allocates.
//!
//! [`parse_response`] (clients) and [`parse_request`] (servers) read a head and derive how the body
//! is delimited. The few clients that need other fields call [`response_fields`]. [`ChunkedDecoder`]
//! decodes chunked transfer coding, including its `aws-chunked` form.
//!
//! A client that sent `Expect: 100-continue` waits for [`crate::Conn::readable`] with a time limit
//! of its choice. If something arrives, the client parses a head; it sends the body if that head is
//! interim ([`ResponseHead::is_interim`]) or if nothing arrived. A server whose [`Request`] says
//! `expect_continue` sends [`CONTINUE`] before it receives the body, or a final answer instead.

mod chunked;
mod known;
mod request;
mod response;
mod scan;
mod wide;

pub use chunked::{ChunkedDecoder, Event};
pub use request::{Headers, Request, parse_request};
pub use response::{ResponseHead, parse_response, response_fields};

/// Most header fields in one head.
pub const MAX_HEADERS: usize = 128;

/// The interim answer to `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How a message body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// No body.
    Empty,
    /// `Content-Length` above zero.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Everything until the connection ends (answers only).
    UntilClose,
}

impl Body {
    /// The body's length in bytes, if the head states it.
    #[must_use]
    pub const fn length(self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Length(n) => Some(n),
            Self::Chunked | Self::UntilClose => None,
        }
    }
}

/// Bytes that violate HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The head cannot be parsed.
    #[error("malformed message head: {0}")]
    Head(httparse::Error),
    /// A TLS record where a head was expected.
    #[error("the peer answers in TLS")]
    Tls,
    /// More than [`MAX_HEADERS`] header fields.
    #[error("more than {MAX_HEADERS} header fields")]
    TooManyHeaders,
    /// `Content-Length` is not a number, or occurs with different values.
    #[error("invalid or contradictory Content-Length")]
    ContentLength,
    /// A transfer coding other than `chunked`.
    #[error("unsupported Transfer-Encoding")]
    TransferEncoding,
    /// A chunk's size line, a chunk's end or a trailer is malformed.
    #[error("malformed chunked body: {0}")]
    Chunk(&'static str),
}

impl From<httparse::Error> for HttpError {
    fn from(error: httparse::Error) -> Self {
        match error {
            httparse::Error::TooManyHeaders => Self::TooManyHeaders,
            other => Self::Head(other),
        }
    }
}

/// What the header fields say about the body and the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Framing {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Framing {
    /// The framing of a head without fields.
    const NONE: Self = Self {
        length: None,
        chunked: false,
        close: false,
        keep_alive: false,
    };

    /// Takes one header field into account.
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), HttpError> {
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = decimal(value).ok_or(HttpError::ContentLength)?;
                if self.length.is_some_and(|earlier| earlier != length) {
                    return Err(HttpError::ContentLength);
                }
                self.length = Some(length);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(HttpError::TransferEncoding);
                }
                self.chunked = true;
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for token in value.split(|&b| b == b',') {
                    let token = token.trim_ascii();
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// True if the connection stays open after the message.
    fn keeps_alive(&self, minor_version: u8) -> bool {
        !self.close && (minor_version >= 1 || self.keep_alive)
    }
}

/// Parses a decimal number without sign; `None` if it is malformed or too large.
fn decimal(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |n, &digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
