//! Request heads. Those for the name node consist of parts rendered once; those for data nodes come from
//! the address that the name node gave.

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_s3::encode;

use super::config::WebHdfsConfig;
use crate::http::pool::Buffer;
use crate::http::render::{Render as _, USER_AGENT};

/// A request to the name node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameNodeCall<'a> {
    /// HTTP method.
    pub(super) method: &'static str,
    /// Operation and constant parameters: `OPEN&noredirect=true`.
    pub(super) op: &'static str,
    /// Bucket; empty for the root.
    pub(super) bucket: &'a str,
    /// Key; empty for the bucket.
    pub(super) key: &'a str,
    /// Further parameters, encoded.
    pub(super) query: &'a [u8],
}

impl<'a> NameNodeCall<'a> {
    pub(super) const fn new(
        method: &'static str,
        op: &'static str,
        bucket: &'a str,
        key: &'a str,
    ) -> Self {
        Self {
            method,
            op,
            bucket,
            key,
            query: b"",
        }
    }

    pub(super) const fn query(mut self, query: &'a [u8]) -> Self {
        self.query = query;
        self
    }
}

/// The parts common to all requests to one name node.
#[derive(Clone, Debug)]
pub(super) struct HeadTemplate {
    /// Path of the interface and the root directory, encoded.
    front: Vec<u8>,
    /// Whether buckets are directly below the interface.
    bare: bool,
    /// Query parameter with the user or the token.
    identity: Vec<u8>,
    /// From the end of the query to the end of the constant header fields.
    tail: Vec<u8>,
}

/// A header field of every request.
const ACCEPT: &str = "Accept: */*\r\n";

impl HeadTemplate {
    /// The parts for name node `index` of `config`.
    pub(super) fn new(config: &WebHdfsConfig, index: usize) -> Self {
        let endpoint = &config.endpoints[index];
        let mut front = endpoint.base_path.clone().into_bytes();
        encode::push_key(&mut front, &config.files.root);
        let mut identity = Vec::new();
        let (name, value) = match (&config.token, &config.files.user) {
            (Some(token), _) => ("&delegation=", token.expose()),
            (None, Some(user)) => ("&user.name=", user.as_str()),
            (None, None) => ("", ""),
        };
        identity.text(name);
        encode::push_query(&mut identity, value);
        let mut tail = endpoint.fixed_fields();
        tail.text(ACCEPT);
        Self {
            bare: config.files.root.is_empty(),
            front,
            identity,
            tail,
        }
    }

    /// Renders the head of `call`, a request without a body.
    pub(super) fn render(&self, call: &NameNodeCall<'_>) -> Buffer {
        let mut head = Buffer::take();
        head.text(call.method);
        head.push(b' ');
        head.extend_from_slice(&self.front);
        for part in [call.bucket, call.key] {
            if !part.is_empty() {
                head.push(b'/');
                encode::push_key(&mut head, part.trim_end_matches('/'));
            }
        }
        if call.bucket.is_empty() && self.bare {
            head.push(b'/');
        }
        head.extend_from_slice(b"?op=");
        head.text(call.op);
        if !call.query.is_empty() {
            head.push(b'&');
            head.extend_from_slice(call.query);
        }
        head.extend_from_slice(&self.identity);
        head.extend_from_slice(&self.tail);
        if matches!(call.method, "PUT" | "POST") {
            head.extend_from_slice(b"Content-Length: 0\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// The body of a request to a data node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecondStepBody {
    /// No body: a read.
    Nothing,
    /// A body of `length` bytes.
    Bytes {
        length: u64,
        /// Whether to wait for `100 Continue` before sending the body.
        expect_continue: bool,
    },
}

/// Renders the head of the second step to `location`, an absolute URL.
///
/// # Errors
/// `Protocol` when the URL contains characters that a request line cannot have.
pub(super) fn second_step(
    method: &'static str,
    location: &str,
    body: SecondStepBody,
) -> OpResult<Buffer> {
    let Some((origin, authority)) = origin(location) else {
        return Err(unusable());
    };
    let target = &location[origin.len()..];
    if !target.starts_with('/') || !target.bytes().all(|b| b.is_ascii_graphic() || b >= 0x80) {
        return Err(unusable());
    }
    let mut head = Buffer::take();
    head.text(method);
    head.push(b' ');
    // Name nodes do not escape characters beyond ASCII.
    if target.is_ascii() {
        head.text(target);
    } else {
        for byte in target.bytes() {
            match byte {
                0x80.. => encode::push_byte(&mut head, byte),
                byte => head.push(byte),
            }
        }
    }
    for part in [
        " HTTP/1.1\r\nHost: ",
        authority,
        "\r\nUser-Agent: ",
        USER_AGENT,
        "\r\n",
        ACCEPT,
    ] {
        head.text(part);
    }
    if let SecondStepBody::Bytes {
        length,
        expect_continue,
    } = body
    {
        head.extend_from_slice(b"Content-Type: application/octet-stream\r\nContent-Length: ");
        encode::push_decimal(&mut head, length);
        head.extend_from_slice(b"\r\n");
        if expect_continue {
            head.extend_from_slice(b"Expect: 100-continue\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    Ok(head)
}

/// `SCHEME://HOST:PORT` and `HOST:PORT` of a URL.
pub(super) fn origin(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..length];
    (!authority.is_empty()).then_some((&url[..scheme.len() + 3 + length], authority))
}

/// Does not show the address: its query may contain a token.
#[cold]
fn unusable() -> OpError {
    OpError::new(
        ErrorKind::Protocol,
        "the name node's redirect does not contain a usable address",
    )
}

#[cfg(test)]
mod tests {
    use super::{HeadTemplate, NameNodeCall, SecondStepBody, origin, second_step};
    use crate::http::secret::Secret;
    use crate::webhdfs::WebHdfsConfig;

    fn config() -> WebHdfsConfig {
        let mut config = WebHdfsConfig::new("http://nn:9870/webhdfs/v1/base").unwrap();
        config.files.user = Some("a&b".to_owned());
        config
    }

    fn render(config: &WebHdfsConfig, call: &NameNodeCall<'_>) -> String {
        let head = HeadTemplate::new(config, 0).render(call);
        String::from_utf8(head.to_vec()).unwrap()
    }

    #[test]
    fn names_are_encoded() {
        let call = NameNodeCall::new("GET", "OPEN&noredirect=true", "b", "k 1/\u{e4}?#%+;");
        let head = render(&config(), &call.query(b"offset=5"));
        assert!(
            head.starts_with(
                "GET /webhdfs/v1/base/b/k%201/%C3%A4%3F%23%25%2B%3B?op=OPEN&noredirect=true&offset=5\
                 &user.name=a%26b HTTP/1.1\r\nHost: nn:9870\r\n"
            ),
            "{head}"
        );
        assert!(head.ends_with("\r\n\r\n") && !head.contains("Content-Length"));
        let put = render(&config(), &NameNodeCall::new("PUT", "MKDIRS", "b", "d/"));
        assert!(
            put.starts_with("PUT /webhdfs/v1/base/b/d?op=MKDIRS"),
            "{put}"
        );
        assert!(put.contains("Content-Length: 0\r\n\r\n"));
    }

    #[test]
    fn a_token_replaces_the_user_name() {
        let mut config = WebHdfsConfig::new("http://nn:9870").unwrap();
        let root = NameNodeCall::new("GET", "LISTSTATUS", "", "");
        let head = render(&config, &root);
        assert!(
            head.starts_with("GET /webhdfs/v1/?op=LISTSTATUS HTTP/1.1\r\n"),
            "{head}"
        );
        config.files.user = Some("u".to_owned());
        config.token = Some(Secret::new("T+/="));
        let head = render(&config, &root);
        assert!(
            head.contains("?op=LISTSTATUS&delegation=T%2B%2F%3D HTTP"),
            "{head}"
        );
    }

    #[test]
    fn second_steps_go_to_the_redirected_address() {
        let url = "http://dn1:9864/webhdfs/v1/b/k?op=CREATE&namenoderpcaddress=nn:8020";
        assert_eq!(origin(url), Some(("http://dn1:9864", "dn1:9864")));
        let body = SecondStepBody::Bytes {
            length: 70,
            expect_continue: true,
        };
        let head = second_step("PUT", url, body).unwrap();
        let head = String::from_utf8(head.to_vec()).unwrap();
        assert!(
            head.starts_with(
                "PUT /webhdfs/v1/b/k?op=CREATE&namenoderpcaddress=nn:8020 HTTP/1.1\r\n\
                 Host: dn1:9864\r\n"
            ),
            "{head}"
        );
        assert!(head.contains("Content-Length: 70\r\nExpect: 100-continue\r\n\r\n"));
        let beyond =
            second_step("GET", "http://h:1/\u{e4}%20b?x", SecondStepBody::Nothing).unwrap();
        assert!(beyond.starts_with(b"GET /%C3%A4%20b?x HTTP/1.1\r\n"));
        let read = second_step("GET", url, SecondStepBody::Nothing).unwrap();
        assert!(
            !String::from_utf8(read.to_vec())
                .unwrap()
                .contains("Content-")
        );
    }

    #[test]
    fn redirects_cannot_smuggle_requests() {
        for bad in [
            "",
            "nowhere",
            "http://",
            "http://h",
            "http://h?x",
            "http://h/a b",
            "http://h/a\r\nX: y",
        ] {
            let error = second_step("GET", bad, SecondStepBody::Nothing)
                .map(drop)
                .unwrap_err();
            assert!(!error.detail.contains("X: y"), "{bad}");
        }
    }
}
