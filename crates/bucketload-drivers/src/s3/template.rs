//! Request heads. What does not change within a second is rendered once per second; a request
//! copies it and adds method, path, signature and its own header fields.
//!
//! ```text
//! GET /bucket/key HTTP/1.1\r\nHost: ‖ h:9000 … Credential=ID/scope, SignedHeaders= ‖ names,
//! Signature= ‖ signature ‖ x-amz-content-sha256: … ‖ own fields
//! ```

use std::fmt;

use bucketload_core::op::ByteRange;

use super::canonical::{self, Frame, Header, Parts};
use super::config::{Addressing, S3Config};
use super::encode;
use super::endpoint::Endpoint;
use super::sign::{Signature, Signer};

/// No request has more signed header fields of its own.
const MAX_HEADERS: usize = 8;
const USER_AGENT: &str = concat!("bucketload/", env!("CARGO_PKG_VERSION"));

/// Signed header fields of one request, kept sorted by name.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'a> {
    list: [Header<'a>; MAX_HEADERS],
    len: usize,
}

impl<'a> Headers<'a> {
    pub(crate) const fn new() -> Self {
        Self {
            list: [const {
                Header {
                    name: "",
                    value: b"",
                }
            }; MAX_HEADERS],
            len: 0,
        }
    }

    /// Adds a field.
    ///
    /// # Panics
    /// When there are more than any operation needs.
    pub(crate) fn push(&mut self, name: &'static str, value: &'a [u8]) {
        let mut at = self.len;
        self.list[at] = Header { name, value };
        self.len += 1;
        while at > 0 && self.list[at - 1].name > name {
            self.list.swap(at - 1, at);
            at -= 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[Header<'a>] {
        &self.list[..self.len]
    }
}

/// Header fields that are not signed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unsigned {
    pub(crate) range: Option<ByteRange>,
    pub(crate) content_length: Option<u64>,
}

/// Renders the heads of requests to one endpoint, on one thread.
pub(crate) struct HeadWriter {
    authority: String,
    base_path: String,
    virtual_host: bool,
    signer: Option<Signer>,
    /// From the authority to the place of the signed headers' names (or, for anonymous requests,
    /// of the first own field).
    middle: Vec<u8>,
    /// Path of an anonymous request.
    scratch: Vec<u8>,
    /// Seconds since 1970.
    clock: fn() -> u64,
}

impl fmt::Debug for HeadWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadWriter")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl HeadWriter {
    pub(crate) fn new(config: &S3Config, endpoint: &Endpoint, clock: fn() -> u64) -> Self {
        let signer = config
            .credentials
            .clone()
            .map(|credentials| Signer::new(credentials, &config.region));
        let mut writer = Self {
            authority: endpoint.authority.clone(),
            base_path: endpoint.base_path.clone(),
            virtual_host: config.addressing == Addressing::Virtual,
            signer,
            middle: Vec::with_capacity(512),
            scratch: Vec::new(),
            clock,
        };
        writer.render_middle();
        writer
    }

    fn render_middle(&mut self) {
        let out = &mut self.middle;
        out.clear();
        for part in [&self.authority, "\r\nUser-Agent: ", USER_AGENT, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        let Some(signer) = &self.signer else { return };
        out.extend_from_slice(b"x-amz-date: ");
        out.extend_from_slice(signer.timestamp());
        if !signer.token().is_empty() {
            out.extend_from_slice(b"\r\nx-amz-security-token: ");
            out.extend_from_slice(signer.token().as_bytes());
        }
        out.extend_from_slice(b"\r\nAuthorization: AWS4-HMAC-SHA256 Credential=");
        out.extend_from_slice(signer.access_key().as_bytes());
        out.push(b'/');
        out.extend_from_slice(signer.scope());
        out.extend_from_slice(b", SignedHeaders=");
    }

    /// Appends the head of a request to `out`; returns its signature unless it is anonymous.
    #[inline]
    pub(crate) fn render(
        &mut self,
        out: &mut Vec<u8>,
        parts: &Parts<'_>,
        unsigned: Unsigned,
    ) -> Option<Signature> {
        if let Some(signer) = &mut self.signer
            && signer.at((self.clock)())
        {
            self.render_middle();
        }
        let frame = Frame {
            authority: &self.authority,
            base_path: &self.base_path,
            virtual_host: self.virtual_host,
            timestamp: b"",
            token: "",
        };
        let signed = self.signer.as_mut().map(|signer| {
            let (signature, ranges) = signer.sign(frame, parts);
            let canonical = signer.canonical();
            let path = &canonical[ranges.path];
            (signature, path, &canonical[ranges.names])
        });
        let path = match &signed {
            Some((_, path, _)) => path,
            None => {
                self.scratch.clear();
                canonical::push_path(&mut self.scratch, frame, parts);
                self.scratch.as_slice()
            }
        };
        out.extend_from_slice(parts.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(path);
        if !parts.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(parts.query);
        }
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        if self.virtual_host && !parts.bucket.is_empty() {
            out.extend_from_slice(parts.bucket.as_bytes());
            out.push(b'.');
        }
        out.extend_from_slice(&self.middle);
        if let Some((signature, _, names)) = &signed {
            out.extend_from_slice(names);
            out.extend_from_slice(b", Signature=");
            out.extend_from_slice(signature);
            out.extend_from_slice(b"\r\n");
        }
        if !parts.payload.is_empty() {
            push_field(out, "x-amz-content-sha256", parts.payload);
        }
        for header in parts.headers {
            push_field(out, header.name, header.value);
        }
        if let Some(range) = unsigned.range {
            out.extend_from_slice(b"Range: bytes=");
            encode::push_decimal(out, range.offset);
            out.push(b'-');
            encode::push_decimal(out, range.offset + range.len.max(1) - 1);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(length) = unsigned.content_length {
            out.extend_from_slice(b"Content-Length: ");
            encode::push_decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        signed.map(|(signature, _, _)| signature)
    }

    /// The signer, in the state of the last head.
    pub(crate) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }
}

#[inline]
fn push_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The wall clock in seconds since 1970, from the kernel's coarse clock (4 ms steps): a signature
/// needs the second only.
pub(crate) fn wall_seconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec that the call fills in; the clock id is a constant that
    // Linux has had since 2.6.32, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::ByteRange;

    use super::super::config::{Addressing, S3Config};
    use super::super::credentials::Credentials;
    use super::super::endpoint::Endpoint;
    use super::{HeadWriter, Headers, Parts, Unsigned};

    const PARTS: Parts<'static> = Parts {
        method: "GET",
        bucket: "examplebucket",
        key: "test.txt",
        query: b"",
        payload: b"UNSIGNED-PAYLOAD",
        headers: &[],
    };

    fn config(credentials: Option<Credentials>) -> S3Config {
        let endpoint = Endpoint::parse("http://s3.test:9000", "t").unwrap();
        S3Config::new(vec![endpoint], "us-east-1", credentials)
    }

    fn render(config: &S3Config, parts: &Parts<'_>, unsigned: Unsigned) -> String {
        let mut writer = HeadWriter::new(config, &config.endpoints[0], || 1_369_353_600);
        let mut out = Vec::new();
        let signature = writer.render(&mut out, parts, unsigned);
        assert_eq!(signature.is_some(), config.credentials.is_some());
        let first = out.clone();
        out.clear();
        writer.render(&mut out, parts, unsigned);
        assert_eq!(out, first, "rendering has no memory");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_signed_head() {
        let credentials = Credentials::new("AKID", "secret").with_token("tok");
        let unsigned = Unsigned {
            range: Some(ByteRange { offset: 5, len: 10 }),
            content_length: None,
        };
        let head = render(&config(Some(credentials)), &PARTS, unsigned);
        let lines: Vec<_> = head.split("\r\n").collect();
        assert_eq!(lines[0], "GET /examplebucket/test.txt HTTP/1.1");
        assert_eq!(lines[1], "Host: s3.test:9000");
        assert_eq!(lines[3], "x-amz-date: 20130524T000000Z");
        assert_eq!(lines[4], "x-amz-security-token: tok");
        let prefix = "Authorization: AWS4-HMAC-SHA256 \
            Credential=AKID/20130524/us-east-1/s3/aws4_request, \
            SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=";
        let signature = lines[5].strip_prefix(prefix).unwrap();
        assert_eq!(signature.len(), 64);
        assert_eq!(lines[6], "x-amz-content-sha256: UNSIGNED-PAYLOAD");
        assert_eq!(lines[7], "Range: bytes=5-14");
        assert_eq!(lines[8..], ["", ""]);
        assert!(!head.contains("secret\r") && !head.contains("secret,"));
    }

    #[test]
    fn an_anonymous_head_in_virtual_style() {
        let mut config = config(None);
        config.addressing = Addressing::Virtual;
        let parts = Parts {
            payload: b"",
            query: b"list-type=2",
            key: "",
            ..PARTS
        };
        let unsigned = Unsigned {
            range: None,
            content_length: Some(0),
        };
        let head = render(&config, &parts, unsigned);
        let want = format!(
            "GET /?list-type=2 HTTP/1.1\r\nHost: examplebucket.s3.test:9000\r\n\
             User-Agent: {}\r\nContent-Length: 0\r\n\r\n",
            super::USER_AGENT
        );
        assert_eq!(head, want);
    }

    #[test]
    fn a_new_second_changes_date_and_signature() {
        use std::cell::Cell;
        thread_local!(static NOW: Cell<u64> = const { Cell::new(1_369_353_600) });
        let config = config(Some(Credentials::new("AKID", "secret")));
        let mut writer = HeadWriter::new(&config, &config.endpoints[0], || NOW.get());
        let mut at = |second: u64| {
            NOW.set(second);
            let mut out = Vec::new();
            writer.render(&mut out, &PARTS, Unsigned::default());
            String::from_utf8(out).unwrap()
        };
        let first = at(1_369_353_600);
        assert!(at(1_369_353_601).contains("x-amz-date: 20130524T000001Z"));
        assert!(at(1_369_440_000).contains("Credential=AKID/20130525/"));
        assert_eq!(at(1_369_353_600), first);
    }

    #[test]
    fn headers_are_kept_sorted() {
        let mut headers = Headers::new();
        for name in ["x-amz-trailer", "content-md5", "x-amz-copy-source"] {
            headers.push(name, b"v");
        }
        let names: Vec<_> = headers.as_slice().iter().map(|h| h.name).collect();
        assert_eq!(names, ["content-md5", "x-amz-copy-source", "x-amz-trailer"]);
    }

    #[test]
    fn the_coarse_clock_is_the_system_clock() {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        assert!(super::wall_seconds().abs_diff(now) <= 2);
    }
}
