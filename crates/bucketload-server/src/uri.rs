//! Percent decoding, the request target and the query string.
//!
//! A [`Target`] holds the decoded bucket, key and query parameters of one request. The next request
//! reuses its buffers, so a steady stream of requests does not allocate.

use bucketload_s3::encode::{is_unreserved, push_decoded, push_query};

use super::error::{Code, S3Error, S3Result};
use bucketload_store::names::MAX_KEY_BYTES;

/// Maximum number of query parameters in one request.
const MAX_PARAMS: usize = 64;

/// Appends `bytes` percent-decoded; `None` for a broken escape. If `plus` is set, a plus sign becomes
/// a space, as in queries.
pub(crate) fn decode(out: &mut Vec<u8>, bytes: &[u8], plus: bool) -> Option<()> {
    let sound = push_decoded(out, bytes, plus);
    sound.map_err(|length| out.truncate(length)).ok()
}

/// Percent-decodes `text` to UTF-8, for header values such as the copy source.
pub(crate) fn decode_text(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    decode(&mut out, text.as_bytes(), false)?;
    String::from_utf8(out).ok()
}

/// The target of a request: decoded bucket, key and parameters.
#[derive(Debug, Default)]
pub(crate) struct Target {
    /// The decoded path followed by the decoded parameters.
    text: String,
    path_len: usize,
    bucket: (usize, usize),
    key_start: usize,
    /// Start, end of the name and end of the value of each parameter in `text`.
    params: Vec<(usize, usize, usize)>,
    /// The bucket's name if the host name gives it, else empty.
    host_bucket: String,
}

impl Target {
    /// Parses the request target `raw` (path and query as sent). `host_bucket` is the bucket in the
    /// host name under virtual-host addressing.
    ///
    /// # Errors
    /// `InvalidURI` for broken escapes, text that is not UTF-8, or too many parameters;
    /// `KeyTooLongError` for a key of more than 1024 bytes.
    pub(crate) fn parse(&mut self, raw: &str, host_bucket: Option<&str>) -> S3Result<()> {
        let mut text = std::mem::take(&mut self.text).into_bytes();
        text.clear();
        self.params.clear();
        self.host_bucket.clear();
        let parsed = self.decode_all(strip_authority(raw), &mut text);
        self.text = match String::from_utf8(text) {
            Ok(text) if self.ends().all(|end| text.is_char_boundary(end)) => text,
            _ => {
                self.path_len = 0;
                self.params.clear();
                self.split_path(None);
                return Err(S3Error::new(
                    Code::InvalidURI,
                    "Keys and parameters must be UTF-8.",
                ));
            }
        };
        self.split_path(host_bucket);
        parsed?;
        if self.key().len() > MAX_KEY_BYTES {
            return Err(Code::KeyTooLongError.into());
        }
        Ok(())
    }

    /// Decodes path and parameters of `raw` into `text`. On an error, `text` holds the part before it.
    fn decode_all(&mut self, raw: &str, text: &mut Vec<u8>) -> S3Result<()> {
        let bad = |what: &'static str| S3Error::new(Code::InvalidURI, what);
        let (path, query) = raw.split_once('?').unwrap_or((raw, ""));
        self.path_len = 0;
        if !path.starts_with('/') {
            return Err(bad("The request target must start with a slash."));
        }
        let decoded = decode(text, path.as_bytes(), false);
        self.path_len = text.len();
        decoded.ok_or_else(|| bad("The path holds a broken percent escape."))?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if self.params.len() == MAX_PARAMS {
                return Err(bad("The query string has more than 64 parameters."));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let broken = || bad("The query string holds a broken percent escape.");
            let start = text.len();
            decode(text, name.as_bytes(), true).ok_or_else(broken)?;
            let mid = text.len();
            decode(text, value.as_bytes(), true).ok_or_else(broken)?;
            self.params.push((start, mid, text.len()));
        }
        Ok(())
    }

    /// The ends of path, names and values. Each part must be valid UTF-8 by itself.
    fn ends(&self) -> impl Iterator<Item = usize> {
        let params = self
            .params
            .iter()
            .flat_map(|&(start, mid, end)| [start, mid, end]);
        params.chain([self.path_len])
    }

    fn split_path(&mut self, host_bucket: Option<&str>) {
        let path = &self.text.as_bytes()[..self.path_len];
        if let Some(bucket) = host_bucket {
            self.host_bucket.push_str(bucket);
            self.bucket = (0, 0);
            self.key_start = path.len().min(1);
        } else {
            let start = path.len().min(1);
            let slash = path[start..].iter().position(|&c| c == b'/');
            let end = slash.map_or(path.len(), |at| at + start);
            self.bucket = (start, end);
            self.key_start = (end + 1).min(path.len());
        }
    }

    /// The whole decoded path with its leading slash, as covered by the signature.
    pub(crate) fn path(&self) -> &[u8] {
        &self.text.as_bytes()[..self.path_len]
    }

    /// Whether the host name gives the bucket.
    pub(crate) fn is_virtual_host(&self) -> bool {
        !self.host_bucket.is_empty()
    }

    /// The bucket's name; empty for requests to the service.
    pub(crate) fn bucket(&self) -> &str {
        if self.host_bucket.is_empty() {
            &self.text[self.bucket.0..self.bucket.1]
        } else {
            &self.host_bucket
        }
    }

    /// The object's key; empty for requests to a bucket or to the service.
    pub(crate) fn key(&self) -> &str {
        &self.text[self.key_start..self.path_len]
    }

    /// The value of the first parameter called `name`, empty if it has none.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        if self.params.is_empty() {
            return None;
        }
        self.params()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| value)
    }

    /// The upload id of a multipart request; empty if missing.
    pub(crate) fn upload_id(&self) -> &str {
        self.param("uploadId").unwrap_or_default()
    }

    /// Whether there is a parameter called `name`, with or without a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.param(name).is_some()
    }

    /// Forgets the parameters called `name`.
    pub(crate) fn forget(&mut self, name: &str) {
        let text = &self.text;
        self.params
            .retain(|&(start, mid, _)| &text[start..mid] != name);
    }

    /// Turns each plus sign of the key into a space.
    pub(crate) fn plus_to_space(&mut self) {
        let key = self.key().replace('+', " ");
        self.text.replace_range(self.key_start..self.path_len, &key);
    }

    /// Every parameter in the order of the request.
    pub(crate) fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        self.params
            .iter()
            .map(|&(start, mid, end)| (&self.text[start..mid], &self.text[mid..end]))
    }

    /// Appends the canonical query string of SigV4: the parameters sorted by encoded name and value,
    /// without `X-Amz-Signature`. Sorts the parameters in place.
    pub(crate) fn canonical_query(&mut self, out: &mut Vec<u8>) {
        let text = self.text.as_bytes();
        if self.params.len() > 1 {
            self.params.sort_unstable_by(|a, b| {
                encoded_cmp(&text[a.0..a.1], &text[b.0..b.1])
                    .then_with(|| encoded_cmp(&text[a.1..a.2], &text[b.1..b.2]))
            });
        }
        let mut first = true;
        for &(start, mid, end) in &self.params {
            if &text[start..mid] == b"X-Amz-Signature" {
                continue;
            }
            if !first {
                out.push(b'&');
            }
            first = false;
            push_query(out, &text[start..mid]);
            out.push(b'=');
            push_query(out, &text[mid..end]);
        }
    }
}

/// Compares two texts by their percent-encoded forms.
fn encoded_cmp(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    // An escaped byte starts with '%', which sorts before every unreserved byte. Two escaped bytes
    // sort by value, because upper-case hex preserves the order.
    let rank = |&byte: &u8| (is_unreserved(byte), byte);
    a.iter().map(rank).cmp(b.iter().map(rank))
}

/// Drops `http://host` of an absolute-form target.
fn strip_authority(raw: &str) -> &str {
    let authority = raw
        .strip_prefix("http://")
        .or_else(|| raw.strip_prefix("https://"));
    let Some(rest) = authority else { return raw };
    rest.find(['/', '?']).map_or("/", |at| &rest[at..])
}

/// The bucket in `host`, if `host` is a subdomain of `domain`: `b` for `b.domain:port`.
pub(crate) fn host_bucket<'a>(host: &'a str, domain: &str) -> Option<&'a str> {
    let name = match host.rfind(':') {
        Some(at) if !host[at..].contains(']') => &host[..at],
        _ => host,
    };
    let cut = name.len().checked_sub(domain.len())?;
    if cut < 2 || !name.is_char_boundary(cut) || !name[cut..].eq_ignore_ascii_case(domain) {
        return None;
    }
    name[..cut].strip_suffix('.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(raw: &str) -> Target {
        let mut target = Target::default();
        target.parse(raw, None).unwrap();
        target
    }

    #[test]
    fn paths_split_into_bucket_and_key() {
        for (raw, bucket, key) in [
            ("/", "", ""),
            ("/b", "b", ""),
            ("/b/", "b", ""),
            ("/b/k", "b", "k"),
            ("/b//k", "b", "/k"),
            ("/b/a//b/../c/.", "b", "a//b/../c/."),
            ("/b/a%2Fb%20+%c3%a9", "b", "a/b +é"),
            ("http://h:1/b/k?x", "b", "k"),
            ("http://h", "", ""),
        ] {
            let t = target(raw);
            assert_eq!((t.bucket(), t.key()), (bucket, key), "{raw}");
        }
    }

    #[test]
    fn virtual_hosts_give_the_bucket() {
        assert_eq!(
            host_bucket("b.s3.localhost:9000", "s3.localhost"),
            Some("b")
        );
        assert_eq!(host_bucket("a.b.S3.localhost", "s3.localhost"), Some("a.b"));
        assert_eq!(host_bucket("s3.localhost", "s3.localhost"), None);
        assert_eq!(host_bucket("xs3.localhost", "s3.localhost"), None);
        assert_eq!(host_bucket(".s3.localhost", "s3.localhost"), None);
        assert_eq!(host_bucket("[::1]:80", "s3.localhost"), None);
        let mut t = Target::default();
        t.parse("/k/l", Some("b")).unwrap();
        assert_eq!((t.bucket(), t.key()), ("b", "k/l"));
    }

    #[test]
    fn queries_decode_and_canonicalise() {
        let mut t =
            target("/b?prefix=a%2Fb+c&list-type=2&delimiter=%2F&acl&a=2&a=1&X-Amz-Signature=f");
        assert_eq!(t.param("prefix"), Some("a/b c"));
        assert_eq!(t.param("acl"), Some(""));
        assert!(!t.has("nope"));
        let mut out = Vec::new();
        t.canonical_query(&mut out);
        let want = "a=1&a=2&acl=&delimiter=%2F&list-type=2&prefix=a%2Fb%20c";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn bad_targets_are_refused() {
        let mut t = Target::default();
        for raw in [
            "", "b", "/%", "/%4", "/%zz", "/b?%", "/b?x=%g0", "/%ff", "/b?%ff=1",
        ] {
            assert_eq!(
                t.parse(raw, None).unwrap_err().code,
                Code::InvalidURI,
                "{raw}"
            );
        }
        let long = format!("/b/{}", "k".repeat(1025));
        assert_eq!(
            t.parse(&long, None).unwrap_err().code,
            Code::KeyTooLongError
        );
        t.parse(&long[..long.len() - 1], None).unwrap();
    }

    proptest! {
        #[test]
        fn keys_survive_the_wire(key in "\\PC{1,100}") {
            let mut raw = b"/bucket/".to_vec();
            bucketload_s3::encode::push_key(&mut raw, &key);
            let t = target(std::str::from_utf8(&raw).unwrap());
            prop_assert_eq!(t.key(), key.as_str());
        }

        #[test]
        fn canonical_order_is_the_order_of_the_encoded_bytes(a in "\\PC{0,8}", b in "\\PC{0,8}") {
            let enc = |s: &str| { let mut o = Vec::new(); push_query(&mut o, s); o };
            prop_assert_eq!(encoded_cmp(a.as_bytes(), b.as_bytes()), enc(&a).cmp(&enc(&b)));
        }

        #[test]
        fn any_target_is_safe(raw in "\\PC*", host in "\\PC{0,20}") {
            let mut t = Target::default();
            let _ = t.parse(&raw, None);
            let _ = (t.bucket(), t.key(), t.params().count());
            let _ = host_bucket(&host, "s3.localhost");
        }
    }
}
