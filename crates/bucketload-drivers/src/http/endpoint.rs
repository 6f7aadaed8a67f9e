//! Endpoint URLs and their ranges: `http://host{1...8}:9000` names eight endpoints.

use bucketload_wire::hosts;

use super::config::ConfigError;
use super::pool::Buffer;
use super::render::{Render as _, USER_AGENT};

/// Where requests are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Host name or IP literal (IPv6 without brackets).
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of the `Host` header: the host, plus the port unless it is the scheme's default.
    pub authority: String,
    /// Path before the bucket, without a trailing slash; usually empty.
    pub base_path: String,
}

impl Endpoint {
    /// Parses a single URL. `place` names the setting in errors.
    ///
    /// # Errors
    /// When `url` is not `http(s)://HOST[:PORT][/PATH]`.
    pub fn parse(url: &str, place: &str) -> Result<Self, ConfigError> {
        let fail = |problem: String, remedy: &str| Err(ConfigError::new(place, problem, remedy));
        let (tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => {
                return fail(
                    format!("scheme `{scheme}` cannot be used"),
                    "write http://HOST:PORT or https://HOST:PORT",
                );
            }
            None => {
                let url = clip(url);
                return fail(
                    format!("`{url}` has no scheme"),
                    &format!("write http://{url}, or https://{url} if it answers in TLS"),
                );
            }
        };
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return fail(
                "the URL holds a user name".to_owned(),
                "remove it; set credentials in the environment (S3: AWS_ACCESS_KEY_ID and \
                 AWS_SECRET_ACCESS_KEY) or in configuration files",
            );
        }
        if path.contains(['?', '#']) {
            return fail(
                "the URL holds a query or fragment".to_owned(),
                "end the URL after the host and port",
            );
        }
        // URLs need brackets around IPv6 addresses: without them the port would be ambiguous.
        let split = hosts::split_port(authority).filter(|(host, port)| {
            *port != Some(0) && (!host.contains(':') || authority.starts_with('['))
        });
        let Some((host, port)) = split else {
            return fail(
                format!("`{}` has no valid host and port", clip(authority)),
                "write HOST, HOST:PORT or [IPV6]:PORT with a port from 1 to 65535",
            );
        };
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._:%".contains(&b);
        if host.is_empty() || !host.bytes().all(legal) {
            return fail(
                format!("`{}` is not a host name", clip(host)),
                "use letters, digits, dots and hyphens, or an IP address",
            );
        }
        let base_path = path.trim_end_matches('/');
        if !base_path.bytes().all(|b| b.is_ascii_graphic() && b != b'%') {
            return fail(
                "the path of the URL holds characters that need escaping".to_owned(),
                "use a plain path or none",
            );
        }
        let standard = if tls { 443 } else { 80 };
        let shown = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let authority = match port {
            Some(port) if port != standard => format!("{shown}:{port}"),
            _ => shown,
        };
        Ok(Self {
            tls,
            host: host.to_owned(),
            port: port.unwrap_or(standard),
            authority,
            base_path: base_path.to_owned(),
        })
    }

    /// Parses URLs separated by commas, each with any number of ranges `{FIRST...LAST}`. Leading zeros of `FIRST` set the
    /// width.
    ///
    /// # Errors
    /// When a part is not a URL, a range is malformed, or there are more than [`hosts::MAX_HOSTS`].
    pub fn parse_list(text: &str, place: &str) -> Result<Vec<Self>, ConfigError> {
        let urls = hosts::expand(text).map_err(|e| {
            let remedy = "write URLs separated by commas, with ranges such as host{1...8}";
            ConfigError::new(place, e.to_string(), remedy)
        })?;
        urls.iter().map(|url| Self::parse(url, place)).collect()
    }

    /// Amazon's endpoint of `region`.
    #[must_use]
    pub fn aws(region: &str) -> Self {
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        let host = format!("s3.{region}.amazonaws.com{suffix}");
        Self {
            tls: true,
            authority: host.clone(),
            host,
            port: 443,
            base_path: String::new(),
        }
    }

    /// True for a host of Amazon's.
    #[must_use]
    pub fn is_aws(&self) -> bool {
        self.host.ends_with(".amazonaws.com") || self.host.ends_with(".amazonaws.com.cn")
    }

    /// Starts a request: method and base path.
    #[inline]
    pub(crate) fn begin(&self, method: &str) -> Buffer {
        let mut head = Buffer::take();
        head.text(method);
        head.push(b' ');
        head.text(&self.base_path);
        head
    }

    /// The text after the target of every request: the end of the request line, and the constant fields.
    pub(crate) fn fixed_fields(&self) -> Vec<u8> {
        let authority = &self.authority;
        format!(" HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {USER_AGENT}\r\n").into_bytes()
    }

    /// The endpoint as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.base_path)
    }
}

/// The first 80 characters of the user's text, for messages.
fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Endpoint;

    fn one(url: &str) -> Endpoint {
        Endpoint::parse(url, "test").unwrap()
    }

    #[test]
    fn urls_are_parsed() {
        let plain = one("http://127.0.0.1:9000");
        assert_eq!((plain.tls, plain.port), (false, 9000));
        assert_eq!(plain.authority, "127.0.0.1:9000");
        let tls = one("https://s3.example.com/");
        assert_eq!((tls.tls, tls.port), (true, 443));
        assert_eq!(tls.authority, "s3.example.com");
        assert_eq!(one("https://h:443").authority, "h");
        assert_eq!(one("http://h:443").authority, "h:443");
        let v6 = one("http://[::1]:8080/s3/");
        assert_eq!((v6.host.as_str(), v6.port), ("::1", 8080));
        assert_eq!(v6.authority, "[::1]:8080");
        assert_eq!(v6.base_path, "/s3");
        assert_eq!(v6.url(), "http://[::1]:8080/s3");
        assert_eq!(one("http://[fe80::1]").authority, "[fe80::1]");
    }

    #[test]
    fn amazon_has_an_endpoint_per_region() {
        assert_eq!(
            Endpoint::aws("eu-west-1").url(),
            "https://s3.eu-west-1.amazonaws.com"
        );
        assert_eq!(
            Endpoint::aws("cn-north-1").host,
            "s3.cn-north-1.amazonaws.com.cn"
        );
        assert!(Endpoint::aws("cn-north-1").is_aws() && !one("http://minio:9000").is_aws());
    }

    #[test]
    fn bad_urls_say_what_to_write() {
        for url in [
            "host:9000",
            "ftp://h",
            "http://",
            "http://h:0",
            "http://h:70000",
            "http://h:x",
            "http://a b",
            "http://h/?x=1",
            "http://::1:80",
            "http://h/a%20b",
            "http://[::1]x",
        ] {
            let error = Endpoint::parse(url, "AWS_ENDPOINT_URL")
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("AWS_ENDPOINT_URL: "), "{error}");
        }
        let error = Endpoint::parse("http://key:hush@h", "x")
            .unwrap_err()
            .to_string();
        assert!(!error.contains("hush") && error.contains("AWS_ACCESS_KEY_ID"));
    }

    #[test]
    fn ranges_expand() {
        let list = Endpoint::parse_list("http://n{08...10}:9000, http://m{1...2}x{1...2}", "t");
        let urls: Vec<_> = list.unwrap().iter().map(Endpoint::url).collect();
        assert_eq!(
            urls,
            [
                "http://n08:9000",
                "http://n09:9000",
                "http://n10:9000",
                "http://m1x1",
                "http://m1x2",
                "http://m2x1",
                "http://m2x2",
            ]
        );
        for bad in [
            "",
            "http://n{1..3}",
            "http://n{3...1}",
            "http://n{1...3",
            "http://n1}",
            "http://n{a...b}",
            "http://n{0...65536}",
            "http://n{0...999}{0...999}",
        ] {
            assert!(Endpoint::parse_list(bad, "t").is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = Endpoint::parse_list(&text, "t");
            let _ = Endpoint::parse(&format!("http://{text}"), "t");
        }
    }
}
