//! Rendered request heads.

use bucketload_core::op::ByteRange;

use super::super::config::{Addressing, S3Config};
use super::super::credentials::Credentials;
use super::{HeadWriter, Headers, Parts, Unsigned};
use crate::http::endpoint::Endpoint;
use bucketload_s3::canonical::NO_STANDING;

const PARTS: Parts<'static> = Parts {
    method: "GET",
    bucket: "examplebucket",
    key: "test.txt",
    query: b"",
    payload: b"UNSIGNED-PAYLOAD",
    headers: &[],
    standing: &NO_STANDING,
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
fn no_name_can_add_header_lines() {
    let mut config = config(None);
    let parts = Parts {
        bucket: "b\r\nX-Evil: 1",
        key: "k\r\nX-Evil: 2",
        payload: b"",
        ..PARTS
    };
    for style in Addressing::ALL {
        config.addressing = *style;
        let head = render(&config, &parts, Unsigned::default());
        assert!(!head.contains("\nX-Evil"), "{head}");
        assert_eq!(head.matches("\r\n").count(), 4, "{head}");
    }
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
    let mut headers = Headers::of(&[]);
    for name in ["x-amz-trailer", "content-md5", "x-amz-copy-source"] {
        headers.push(name, b"v");
    }
    let names: Vec<_> = headers.as_slice().iter().map(|h| h.name).collect();
    assert_eq!(names, ["content-md5", "x-amz-copy-source", "x-amz-trailer"]);
}
