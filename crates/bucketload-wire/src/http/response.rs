//! Heads of answers, for clients.

use std::mem::MaybeUninit;

use super::{Body, Framing, HttpError, MAX_HEADERS};

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Status code.
    pub status: u16,
    /// Length of the head in bytes, with the empty line.
    pub len: usize,
    /// How the body is delimited.
    pub body: Body,
    /// Whether the connection may be used again after the body.
    pub keep_alive: bool,
}

impl ResponseHead {
    /// Whether this is an interim answer (1xx, such as `100 Continue`): the real head follows.
    #[must_use]
    pub const fn is_interim(&self) -> bool {
        self.status >= 100 && self.status < 200
    }
}

/// Parses the head of an answer at the start of `bytes` and shows every header field (name as
/// sent, in whatever case, and value) to `visit`. `Ok(None)`: the head is not complete yet.
/// `to_head` says that the request's method was HEAD: the answer has no body then, whatever its
/// `Content-Length` says (which `visit` sees).
///
/// `visit` is called only when the head is complete, so it never sees a field twice.
///
/// # Errors
/// The violation of HTTP. The framing follows RFC 9112 section 6.3.
pub fn parse_response<'b>(
    bytes: &'b [u8],
    to_head: bool,
    mut visit: impl FnMut(&'b str, &'b [u8]),
) -> Result<Option<ResponseHead>, HttpError> {
    let mut fields = [const { MaybeUninit::<httparse::Header<'b>>::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut fields,
    )?;
    let httparse::Status::Complete(len) = parsed else {
        return Ok(None);
    };
    let mut framing = Framing::default();
    for field in response.headers.iter() {
        framing.field(field.name, field.value)?;
        visit(field.name, field.value);
    }
    // Both are present once a head is complete.
    let status = response.code.unwrap_or(0);
    let minor_version = response.version.unwrap_or(0);
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
        len,
        body,
        keep_alive: framing.keeps_alive(minor_version) && body != Body::UntilClose,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Body, HttpError, parse_response};

    fn body_of(head: &str, to_head: bool) -> Result<Body, HttpError> {
        let head = parse_response(head.as_bytes(), to_head, |_, _| {})?;
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
            let head = parse_response(head.as_bytes(), false, |_, _| {});
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
    fn fields_are_shown_once_the_head_is_complete() {
        let head = b"HTTP/1.1 404 Not Found\r\nETag: \"a\"\r\nx-amz-request-id: 1\r\n\r\nrest";
        for cut in 0..head.len() - 4 {
            let mut seen = 0;
            let partial = parse_response(&head[..cut], false, |_, _| seen += 1);
            assert_eq!((partial, seen), (Ok(None), 0), "cut at {cut}");
        }
        let mut seen = Vec::new();
        let parsed = parse_response(head, false, |name, value| seen.push((name, value)));
        let parsed = parsed.unwrap().unwrap();
        assert_eq!((parsed.status, parsed.len), (404, head.len() - 4));
        assert_eq!(
            seen,
            [
                ("ETag", b"\"a\"".as_slice()),
                ("x-amz-request-id", b"1".as_slice())
            ]
        );
    }

    #[test]
    fn too_many_fields_are_refused() {
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(129));
        assert_eq!(
            parse_response(head.as_bytes(), false, |_, _| {}),
            Err(HttpError::TooManyHeaders)
        );
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), to_head: bool) {
            let _ = parse_response(&bytes, to_head, |_, _| {});
            let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
            head.extend_from_slice(&bytes);
            let _ = parse_response(&head, to_head, |_, _| {});
        }
    }
}
