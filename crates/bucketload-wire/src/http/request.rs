//! Request heads, for servers.

use std::mem::MaybeUninit;

use super::{Body, Framing, HttpError, MAX_HEADERS};

/// The head of a request, borrowed from the receive buffer.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Method, as sent (`GET`).
    pub method: &'a str,
    /// Request target, as sent: still percent-encoded, with the query.
    pub target: &'a str,
    /// Minor version of HTTP: 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub version: u8,
    /// The header fields in the order received.
    pub headers: Headers<'a>,
    /// How the body is delimited; never [`Body::UntilClose`].
    pub body: Body,
    /// Length of the head in bytes, including the empty line.
    pub len: usize,
    /// True if the client wants to reuse the connection.
    pub keep_alive: bool,
    /// True if the client waits for [`super::CONTINUE`] before it sends the body.
    pub expect_continue: bool,
}

/// The header fields of a request.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    fields: &'a [httparse::Header<'a>],
}

impl<'a> Headers<'a> {
    /// Name and value of every field, in the order received.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.fields.iter().map(|field| (field.name, field.value))
    }

    /// The fields as a slice, for callers that index them.
    #[must_use]
    pub const fn fields(&self) -> &'a [httparse::Header<'a>] {
        self.fields
    }

    /// The value of the first field called `name`, ignoring case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let field = |field: &&httparse::Header<'a>| field.name.eq_ignore_ascii_case(name);
        self.fields.iter().find(field).map(|field| field.value)
    }

    /// As [`Headers::get`], if the value is UTF-8.
    #[must_use]
    pub fn get_str(&self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(self.get(name)?).ok()
    }
}

/// Parses the request head at the start of `bytes` and passes it to `f`. Returns `Ok(None)`,
/// without calling `f`, if the head is not complete yet. An empty line before the request is
/// skipped (RFC 9112 section 2.2).
///
/// # Errors
/// The violation of HTTP. A request with both `Content-Length` and `Transfer-Encoding` is refused:
/// the two ends of a proxy could disagree about its length.
pub fn parse_request<R>(
    bytes: &[u8],
    f: impl FnOnce(&Request<'_>) -> R,
) -> Result<Option<R>, HttpError> {
    let mut fields = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut fields)?;
    let httparse::Status::Complete(len) = parsed else {
        return Ok(None);
    };
    let mut framing = Framing::NONE;
    let mut expect_continue = false;
    for field in request.headers.iter() {
        framing.field(field.name.as_bytes(), field.value)?;
        if field.name.eq_ignore_ascii_case("expect") {
            expect_continue = field
                .value
                .trim_ascii()
                .eq_ignore_ascii_case(b"100-continue");
        }
    }
    let body = match (framing.chunked, framing.length) {
        (true, Some(_)) => return Err(HttpError::ContentLength),
        (true, None) => Body::Chunked,
        (false, None | Some(0)) => Body::Empty,
        (false, Some(n)) => Body::Length(n),
    };
    let version = request.version.unwrap_or(0);
    Ok(Some(f(&Request {
        // A complete head has a method and a target.
        method: request.method.unwrap_or_default(),
        target: request.path.unwrap_or_default(),
        version,
        headers: Headers {
            fields: request.headers,
        },
        body,
        len,
        keep_alive: framing.keeps_alive(version),
        expect_continue,
    })))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Body, HttpError, parse_request};

    #[test]
    fn a_head_is_parsed() {
        let head = b"PUT /b/k%20x?partNumber=1 HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\n\
            content-length: 12\r\nX-Amz-Meta-A: \xff\r\n\r\nbody";
        for cut in 0..head.len() - 4 {
            assert_eq!(parse_request(&head[..cut], |_| ()), Ok(None));
        }
        parse_request(head, |request| {
            assert_eq!(request.method, "PUT");
            assert_eq!(request.target, "/b/k%20x?partNumber=1");
            assert_eq!((request.version, request.body), (1, Body::Length(12)));
            assert_eq!(request.len, head.len() - 4);
            assert!(request.keep_alive && request.expect_continue);
            assert_eq!(request.headers.get_str("HOST"), Some("h"));
            assert_eq!(
                request.headers.get("x-amz-meta-a"),
                Some(b"\xff".as_slice())
            );
            assert_eq!(request.headers.get_str("x-amz-meta-a"), None);
            assert_eq!(request.headers.get("x-amz-meta-b"), None);
            assert_eq!(request.headers.iter().count(), 4);
        })
        .unwrap()
        .expect("complete");
    }

    #[test]
    fn ambiguous_framing_is_refused() {
        let body = |fields: &str| {
            let head = format!("PUT / HTTP/1.1\r\n{fields}\r\n");
            parse_request(head.as_bytes(), |request| request.body).map(Option::unwrap)
        };
        assert_eq!(body(""), Ok(Body::Empty));
        assert_eq!(body("Transfer-Encoding: chunked\r\n"), Ok(Body::Chunked));
        assert_eq!(
            body("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
            Err(HttpError::ContentLength)
        );
        assert_eq!(
            body("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            Err(HttpError::TransferEncoding)
        );
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_request(&bytes, |_| ());
            let mut head = b"GET / HTTP/1.1\r\n".to_vec();
            head.extend_from_slice(&bytes);
            let _ = parse_request(&head, |_| ());
        }
    }
}
