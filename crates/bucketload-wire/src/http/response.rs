//! Response heads, for clients.

use std::mem::MaybeUninit;

use super::known;
use super::scan::{self, ParsedHead, scan};
use super::{Body, Framing, HttpError, MAX_HEADERS};

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Status code.
    pub status: u16,
    /// Length of the head in bytes, including the empty line.
    pub len: usize,
    /// How the body is delimited.
    pub body: Body,
    /// Value of `Content-Length`, even if there is no body (answers to HEAD).
    pub content_length: Option<u64>,
    /// Position of the first byte in a `Content-Range: bytes …`.
    pub range_start: Option<u64>,
    /// True if the connection may be reused after the body.
    pub keep_alive: bool,
}

impl ResponseHead {
    /// True for an interim answer (1xx, such as `100 Continue`), which the final head follows.
    #[must_use]
    pub const fn is_interim(&self) -> bool {
        self.status >= 100 && self.status < 200
    }
}

/// Parses the response head at the start of `bytes`. Returns `Ok(None)` if the head is not complete
/// yet. `to_head` is true if the request's method was HEAD: the answer has no body then, whatever its
/// `Content-Length` says.
///
/// # Errors
/// The violation of HTTP. The framing follows RFC 9112 section 6.3.
#[inline]
pub fn parse_response(bytes: &[u8], to_head: bool) -> Result<Option<ResponseHead>, HttpError> {
    let parsed = match known::recall(bytes) {
        Some(parsed) => parsed,
        None => match unknown(bytes)? {
            Some(parsed) => parsed,
            None => return Ok(None),
        },
    };
    let ParsedHead {
        status, framing, ..
    } = parsed;
    let body = if to_head || matches!(status, 100..=199 | 204 | 304) {
        Body::Empty
    } else if framing.chunked {
        Body::Chunked
    } else {
        match framing.length {
            Some(0) => Body::Empty,
            Some(n) => Body::Length(n),
            None => Body::UntilClose,
        }
    };
    Ok(Some(ResponseHead {
        status,
        len: parsed.len,
        body,
        content_length: framing.length,
        range_start: parsed.range_start,
        keep_alive: framing.keeps_alive(parsed.minor_version) && body != Body::UntilClose,
    }))
}

/// Calls `visit` with the name (in the case it was sent) and value of every header field of the
/// complete head at the start of `bytes`. Visits nothing if the head cannot be parsed.
pub fn response_fields<'b>(bytes: &'b [u8], visit: impl FnMut(&'b str, &'b [u8])) {
    let _ = general(bytes, visit);
}

/// Parses a head whose shape is not cached.
fn unknown(bytes: &[u8]) -> Result<Option<ParsedHead>, HttpError> {
    match scan(bytes) {
        Some(scanned) => {
            known::learn(bytes, &scanned);
            Ok(Some(scanned.head))
        }
        None => general(bytes, |_, _| {}),
    }
}

/// Parses any head that HTTP allows, including incomplete ones. Visits the fields once the head is
/// complete.
#[cold]
pub(super) fn general<'b>(
    bytes: &'b [u8],
    mut visit: impl FnMut(&'b str, &'b [u8]),
) -> Result<Option<ParsedHead>, HttpError> {
    let mut fields = [const { MaybeUninit::<httparse::Header<'b>>::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut response, bytes, &mut fields)
        .map_err(|error| match bytes {
            // An alert or a handshake record, SSL 3.0 to TLS 1.3 (RFC 8446 section 5.1).
            [0x15 | 0x16, 3, ..] => HttpError::Tls,
            _ => error.into(),
        })?;
    let httparse::Status::Complete(len) = parsed else {
        return Ok(None);
    };
    let mut framing = Framing::NONE;
    let mut range_start = None;
    for field in response.headers.iter() {
        framing.field(field.name.as_bytes(), field.value)?;
        if field.name.eq_ignore_ascii_case("content-range") {
            range_start = scan::range_start(field.value);
        }
        visit(field.name, field.value);
    }
    Ok(Some(ParsedHead {
        // A complete head has both.
        status: response.code.unwrap_or(0),
        minor_version: response.version.unwrap_or(0),
        len,
        framing,
        range_start,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Body, HttpError, parse_response, response_fields};

    fn body_of(head: &str, to_head: bool) -> Result<Body, HttpError> {
        let head = parse_response(head.as_bytes(), to_head)?;
        Ok(head.expect("complete").body)
    }

    #[test]
    fn framing_follows_the_rfc() {
        let ok = "HTTP/1.1 200 OK\r\n";
        let body = |fields: &str| body_of(&format!("{ok}{fields}\r\n"), false);
        assert_eq!(body("Content-Length: 5\r\n"), Ok(Body::Length(5)));
        assert_eq!(body("content-length:  0 \r\n"), Ok(Body::Empty));
        assert_eq!(body(""), Ok(Body::UntilClose));
        assert_eq!(body("Transfer-Encoding: Chunked\r\n"), Ok(Body::Chunked));
        assert_eq!(
            body("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            Ok(Body::Chunked)
        );
        assert_eq!(
            body("Content-Length: 5\r\nContent-Length: 5\r\n"),
            Ok(Body::Length(5))
        );
        for wrong in ["5x", "-5", "", "5, 6", "99999999999999999999"] {
            let fields = format!("Content-Length: {wrong}\r\n");
            assert_eq!(body(&fields), Err(HttpError::ContentLength), "{wrong}");
        }
        assert_eq!(
            body("Content-Length: 5\r\nContent-Length: 6\r\n"),
            Err(HttpError::ContentLength)
        );
        assert_eq!(
            body("Transfer-Encoding: gzip, chunked\r\n"),
            Err(HttpError::TransferEncoding)
        );
        let with_length = format!("{ok}Content-Length: 9\r\n\r\n");
        assert_eq!(body_of(&with_length, true), Ok(Body::Empty));
        for status in [100, 204, 304] {
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 9\r\n\r\n");
            assert_eq!(body_of(&head, false), Ok(Body::Empty));
        }
    }

    #[test]
    fn keep_alive_follows_version_and_connection() {
        let keeps = |head: &str| {
            let head = format!("{head}\r\n\r\n");
            let head = parse_response(head.as_bytes(), false);
            head.unwrap().unwrap().keep_alive
        };
        let length = "Content-Length: 1";
        assert!(keeps(&format!("HTTP/1.1 200 OK\r\n{length}")));
        assert!(!keeps(&format!(
            "HTTP/1.1 200 OK\r\n{length}\r\nConnection: Close"
        )));
        assert!(!keeps(&format!("HTTP/1.0 200 OK\r\n{length}")));
        assert!(keeps(&format!(
            "HTTP/1.0 200 OK\r\n{length}\r\nConnection: keep-alive"
        )));
        assert!(!keeps("HTTP/1.1 200 OK"), "only the end delimits the body");
    }

    #[test]
    fn fields_are_visited_once_the_head_is_complete() {
        let head = b"HTTP/1.1 404 Not Found\r\nETag: \"a\"\r\nContent-Range: bytes 7-9/12\r\n\
            Content-Length: 3\r\n\r\nrest";
        for cut in 0..head.len() - 4 {
            let mut seen = 0;
            response_fields(&head[..cut], |_, _| seen += 1);
            let partial = parse_response(&head[..cut], false);
            assert_eq!((partial, seen), (Ok(None), 0), "cut at {cut}");
        }
        let mut seen = Vec::new();
        response_fields(head, |name, value| seen.push((name, value)));
        let parsed = parse_response(head, true).unwrap().unwrap();
        assert_eq!((parsed.status, parsed.len), (404, head.len() - 4));
        assert_eq!(parsed.body, Body::Empty);
        assert_eq!(parsed.content_length, Some(3));
        assert_eq!(parsed.range_start, Some(7));
        let names: Vec<_> = seen.iter().map(|field| field.0).collect();
        assert_eq!(names, ["ETag", "Content-Range", "Content-Length"]);
        assert_eq!(seen[0].1, b"\"a\"");
    }

    #[test]
    fn too_many_fields_are_refused() {
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(129));
        assert_eq!(
            parse_response(head.as_bytes(), false),
            Err(HttpError::TooManyHeaders)
        );
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), to_head: bool) {
            let _ = parse_response(&bytes, to_head);
            let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
            head.extend_from_slice(&bytes);
            let _ = parse_response(&head, to_head);
        }
    }
}
