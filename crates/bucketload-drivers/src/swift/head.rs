//! Request heads. The part that all requests of a thread to one endpoint share (host, agent, token) is rendered once per
//! token. A request adds method, path and its own fields.

use bucketload_core::op::ByteRange;

use crate::http::render::Render as _;
use crate::http::{Endpoint, Secret};
use bucketload_s3::encode;

/// A request. Drop it before the next await, so that the future does not store it.
#[derive(Clone, Copy)]
pub(crate) struct SwiftCall<'a> {
    method: &'static str,
    /// Empty for requests to the account.
    container: &'a str,
    /// Empty for requests to the container.
    object: &'a str,
    /// Encoded, without the question mark.
    query: &'a [u8],
    fields: &'a [(&'static str, &'a [u8])],
    range: Option<ByteRange>,
    length: Option<u64>,
}

impl<'a> SwiftCall<'a> {
    pub(crate) const fn new(method: &'static str, container: &'a str, object: &'a str) -> Self {
        Self {
            method,
            container,
            object,
            query: b"",
            fields: &[],
            range: None,
            length: None,
        }
    }

    pub(crate) const fn query(mut self, query: &'a [u8]) -> Self {
        self.query = query;
        self
    }

    pub(crate) const fn fields(mut self, fields: &'a [(&'static str, &'a [u8])]) -> Self {
        self.fields = fields;
        self
    }

    pub(crate) const fn range(mut self, range: Option<ByteRange>) -> Self {
        self.range = range;
        self
    }

    /// Adds the length of the body.
    pub(crate) const fn length(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// Renders the heads of requests to one endpoint, on one thread.
pub(crate) struct HeadWriter {
    base_path: String,
    /// The end of the request line, and the constant fields.
    fixed: Vec<u8>,
    /// From the end of the target to the first own field.
    middle: Vec<u8>,
    /// Generation of the token in `middle`.
    pub(crate) generation: u64,
}

impl HeadWriter {
    /// A writer without a token.
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        let mut writer = Self {
            base_path: endpoint.base_path.clone(),
            fixed: endpoint.fixed_fields(),
            middle: Vec::with_capacity(512),
            generation: 0,
        };
        writer.set_token(None, 0);
        writer
    }

    /// Replaces the token.
    #[cold]
    pub(crate) fn set_token(&mut self, token: Option<&Secret>, generation: u64) {
        self.generation = generation;
        let out = &mut self.middle;
        out.clear();
        out.extend_from_slice(&self.fixed);
        if let Some(token) = token {
            out.field("X-Auth-Token", token.expose().as_bytes());
        }
    }

    /// Appends the head of a request to `out`.
    #[inline]
    pub(crate) fn render(&self, out: &mut Vec<u8>, call: &SwiftCall<'_>) {
        out.text(call.method);
        out.push(b' ');
        out.text(&self.base_path);
        if call.container.is_empty() {
            if self.base_path.is_empty() {
                out.push(b'/');
            }
        } else {
            push_path(out, call.container, call.object);
        }
        if !call.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(call.query);
        }
        out.extend_from_slice(&self.middle);
        for (name, value) in call.fields {
            out.field(name, value);
        }
        out.range(call.range);
        if let Some(length) = call.length {
            out.content_length(length);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends `/container/object`, percent-encoded; the object may be empty.
pub(crate) fn push_path(out: &mut Vec<u8>, container: &str, object: &str) {
    out.push(b'/');
    encode::push_query(out, container);
    if !object.is_empty() {
        out.push(b'/');
        encode::push_key(out, object);
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::ByteRange;

    use super::{HeadWriter, SwiftCall};
    use crate::http::render::{Render as _, USER_AGENT};
    use crate::http::{Endpoint, Secret};

    fn writer(url: &str) -> HeadWriter {
        let mut writer = HeadWriter::new(&Endpoint::parse(url, "test").unwrap());
        writer.set_token(Some(&Secret::new("tk")), 1);
        writer
    }

    fn render(writer: &HeadWriter, call: &SwiftCall<'_>) -> String {
        let mut out = Vec::new();
        writer.render(&mut out, call);
        String::from_utf8(out).unwrap().replace(USER_AGENT, "agent")
    }

    #[test]
    fn heads_name_account_container_and_object() {
        let writer = writer("http://h:8085/v1/AUTH_test");
        let range = Some(ByteRange { offset: 5, len: 10 });
        assert_eq!(
            render(&writer, &SwiftCall::new("GET", "c d", "a/b ?").range(range)),
            "GET /v1/AUTH_test/c%20d/a/b%20%3F HTTP/1.1\r\nHost: h:8085\r\nUser-Agent: agent\r\n\
             X-Auth-Token: tk\r\nRange: bytes=5-14\r\n\r\n"
        );
        let mut query = Vec::new();
        query.parameter("prefix", "a/b&");
        query.number("limit", 5);
        let call = SwiftCall::new("PUT", "", "").query(&query).length(0);
        assert_eq!(
            render(&writer, &call.fields(&[("If-None-Match", b"*")])),
            "PUT /v1/AUTH_test?prefix=a%2Fb%26&limit=5 HTTP/1.1\r\nHost: h:8085\r\n\
             User-Agent: agent\r\nX-Auth-Token: tk\r\nIf-None-Match: *\r\nContent-Length: 0\r\n\r\n"
        );
    }

    #[test]
    fn a_new_token_replaces_the_old_one() {
        let mut writer = writer("http://h");
        writer.set_token(Some(&Secret::new("other")), 2);
        let head = render(&writer, &SwiftCall::new("GET", "", ""));
        assert!(head.starts_with("GET / HTTP/1.1\r\n"), "{head}");
        assert!(
            head.contains("X-Auth-Token: other\r\n") && !head.contains("tk\r\n"),
            "{head}"
        );
        writer.set_token(None, 3);
        assert!(!render(&writer, &SwiftCall::new("GET", "", "")).contains("Token"));
    }
}
