//! Additional checksums, payload hashes, `Content-MD5`, `aws-chunked` bodies.

use bucketload_server::Access;

use super::client::{Auth, Request, config, req, start, start_with};
use super::signer::{Signer, sha256_hex};

/// CRC32, CRC32C, CRC64NVME, SHA1 and SHA256 of `hello`.
const SUMS: [(&str, &str); 5] = [
    ("crc32", "NhCmhg=="),
    ("crc32c", "mnG7TA=="),
    ("crc64nvme", "M3eFcAZSQlc="),
    ("sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00="),
    ("sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="),
];

#[test]
fn header_checksums_are_verified_kept_and_returned() {
    let (_server, mut c) = start();
    for (name, value) in SUMS {
        let header = format!("x-amz-checksum-{name}");
        let put = c
            .send(&req("PUT", "/bucket/k").header(&header, value).body("hello"))
            .is(200);
        assert_eq!(put.header(&header), Some(value));
        assert_eq!(c.get("/bucket/k").header(&header), None);
        let mode = |method: &str| req(method, "/bucket/k").header("x-amz-checksum-mode", "ENABLED");
        let get = c.send(&mode("GET")).is(200);
        assert_eq!(
            (get.header(&header), get.header("x-amz-checksum-type")),
            (Some(value), Some("FULL_OBJECT"))
        );
        assert_eq!(c.send(&mode("HEAD")).header(&header), Some(value));
        let ranged = c.send(&mode("GET").header("Range", "bytes=0-1")).is(206);
        assert_eq!(ranged.header(&header), None);
        c.send(&req("PUT", "/bucket/k").header(&header, value).body("hullo"))
            .is_error(400, "BadDigest");
        assert_eq!(c.get("/bucket/k").text(), "hello");
        let attributes =
            req("GET", "/bucket/k?attributes").header("x-amz-object-attributes", "Checksum");
        let element = format!("Checksum{}", name.to_uppercase());
        assert_eq!(c.send(&attributes).element(&element), Some(value));
        assert_eq!(
            c.get("/bucket?prefix=k").element("ChecksumAlgorithm"),
            Some(&*name.to_uppercase())
        );
        let copy = req("PUT", "/bucket/copy").header("x-amz-copy-source", "/bucket/k");
        assert_eq!(c.send(&copy).is(200).element(&element), Some(value));
    }
    let asked = req("PUT", "/bucket/copy")
        .header("x-amz-copy-source", "/bucket/k")
        .header("x-amz-checksum-algorithm", "CRC32");
    assert_eq!(
        c.send(&asked).is(200).element("ChecksumCRC32"),
        Some(SUMS[0].1)
    );
    c.send(
        &req("PUT", "/bucket/k")
            .header("x-amz-checksum-crc32", "xx")
            .body("hello"),
    )
    .is_error(400, "InvalidRequest");
}

#[test]
fn digests_of_the_payload_are_verified() {
    let (_server, mut c) = start();
    let md5 = |value: &str| {
        req("PUT", "/bucket/k")
            .header("Content-MD5", value)
            .body("hello")
    };
    c.send(&md5("XUFAKrxLKna5cZ2REBfFkg==")).is(200);
    c.send(&md5("XUFAKrxLKna5cZ2REBfFkA=="))
        .is_error(400, "BadDigest");
    c.send(&md5("nonsense")).is_error(400, "InvalidDigest");
    c.send(&req("PUT", "/bucket/k").auth(Auth::Signed).body("hello"))
        .is(200);
    let wrong = req("PUT", "/bucket/k")
        .header("x-amz-content-sha256", &sha256_hex(b"hullo"))
        .body("hello");
    c.send(&wrong).is_error(400, "XAmzContentSHA256Mismatch");
    let bad = req("PUT", "/bucket/k")
        .header("x-amz-content-sha256", "abc")
        .body("hello");
    c.send(&bad).is_error(400, "InvalidArgument");
    let large = vec![7; 300_000];
    c.send(&req("PUT", "/bucket/k").auth(Auth::Signed).body(&large))
        .is(200);
    assert_eq!(c.get("/bucket/k").body, large);
}

/// A request with an `aws-chunked` body of `payload`.
fn streaming(sha256: &str, len: usize) -> Request {
    let mut request = req("PUT", "/bucket/k")
        .header("Content-Encoding", "aws-chunked,gzip")
        .header("x-amz-content-sha256", sha256)
        .header("x-amz-decoded-content-length", &len.to_string());
    request.length = false;
    request
}

/// The signature in a rendered request.
fn signature(signer: &Signer, request: &Request) -> String {
    let text = String::from_utf8(request.render(signer)).unwrap();
    text.split("Signature=").nth(1).unwrap()[..64].to_owned()
}

/// Renders `request` with `body` after its head.
fn with_body(signer: &Signer, request: &Request, body: &[u8], chunked: bool) -> Vec<u8> {
    let head = String::from_utf8(request.render(signer)).unwrap();
    let framing = if chunked {
        "Transfer-Encoding: chunked".to_owned()
    } else {
        format!("Content-Length: {}", body.len())
    };
    let mut out = head
        .replacen("\r\n\r\n", &format!("\r\n{framing}\r\n\r\n"), 1)
        .into_bytes();
    if chunked {
        for piece in body.chunks(1000) {
            out.extend(format!("{:x}\r\n", piece.len()).bytes());
            out.extend(piece);
            out.extend(b"\r\n");
        }
        out.extend(b"0\r\n\r\n");
    } else {
        out.extend(body);
    }
    out
}

#[test]
fn signed_chunks() {
    let (_server, mut c) = start();
    let payload: Vec<u8> = (0..150_000u32).map(|i| (i / 3) as u8).collect();
    for chunked in [false, true] {
        let chunks: Vec<_> = payload.chunks(65_536).collect();
        let request = streaming("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", payload.len());
        let seed = signature(&c.signer, &request);
        let mut body = c.signer.signed_chunks(&seed, &chunks, None);
        let bytes = with_body(&c.signer, &request, &body, chunked);
        c.raw(&bytes).is(200);
        let get = c.get("/bucket/k").is(200);
        assert_eq!(
            (get.body == payload, get.header("content-encoding")),
            (true, Some("gzip"))
        );
        body[70_000] ^= 1;
        let bytes = with_body(&c.signer, &request, &body, chunked);
        c.raw(&bytes).is_error(403, "SignatureDoesNotMatch");
        assert_eq!(c.get("/bucket/k").is(200).body, payload);
    }
}

#[test]
fn signed_chunks_with_trailer() {
    let (_server, mut c) = start();
    let kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
    for (name, value) in SUMS {
        let header = format!("x-amz-checksum-{name}");
        let request = streaming(kind, 5).header("x-amz-trailer", &header);
        let seed = signature(&c.signer, &request);
        let body = c
            .signer
            .signed_chunks(&seed, &[b"he", b"llo"], Some((&header, value)));
        let bytes = with_body(&c.signer, &request, &body, false);
        assert_eq!(c.raw(&bytes).is(200).header(&header), Some(value));
        let body = c
            .signer
            .signed_chunks(&seed, &[b"hu", b"llo"], Some((&header, value)));
        let bytes = with_body(&c.signer, &request, &body, false);
        c.raw(&bytes).is_error(400, "BadDigest");
    }
}

#[test]
fn unchecked_signed_chunks_still_have_their_checksums_verified() {
    let mut unchecked = config();
    unchecked.access = Access::Unchecked;
    let (_server, mut c) = start_with(unchecked);
    c.signer.secret = "wrong".into();
    let kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
    let sum = ("x-amz-checksum-crc32", SUMS[0].1);
    let request = streaming(kind, 5).header("x-amz-trailer", sum.0);
    let mut send = |chunks: &[&[u8]]| {
        let body = c.signer.signed_chunks("", chunks, Some(sum));
        let bytes = with_body(&c.signer, &request, &body, false);
        c.raw(&bytes)
    };
    send(&[b"he", b"llo"]).is(200);
    send(&[b"hu", b"llo"]).is_error(400, "BadDigest");
    assert_eq!(c.get("/bucket/k").is(200).text(), "hello");
}

#[test]
fn unsigned_chunks_with_trailer() {
    let (_server, mut c) = start();
    for (name, value) in SUMS {
        let header = format!("x-amz-checksum-{name}");
        let body = format!("5\r\nhello\r\n0\r\n{header}:{value}\r\n\r\n");
        let request = streaming("STREAMING-UNSIGNED-PAYLOAD-TRAILER", 5)
            .header("x-amz-trailer", &header)
            .header("x-amz-sdk-checksum-algorithm", name);
        for chunked in [false, true] {
            let bytes = with_body(&c.signer, &request, body.as_bytes(), chunked);
            assert_eq!(c.raw(&bytes).is(200).header(&header), Some(value));
        }
        let wrong = body.replace("hello", "hullo");
        let bytes = with_body(&c.signer, &request, wrong.as_bytes(), false);
        c.raw(&bytes).is_error(400, "BadDigest");
        let missing = b"5\r\nhello\r\n0\r\n\r\n";
        let bytes = with_body(&c.signer, &request, missing, false);
        c.raw(&bytes).is_error(400, "MalformedTrailerError");
    }
    let short = streaming("STREAMING-UNSIGNED-PAYLOAD-TRAILER", 6);
    let bytes = with_body(&c.signer, &short, b"5\r\nhello\r\n0\r\n\r\n", false);
    c.raw(&bytes).is_error(400, "IncompleteBody");
    let mut undeclared = streaming("STREAMING-UNSIGNED-PAYLOAD-TRAILER", 5);
    undeclared
        .headers
        .retain(|(name, _)| name != "x-amz-decoded-content-length");
    let bytes = with_body(&c.signer, &undeclared, b"5\r\nhello\r\n0\r\n\r\n", false);
    c.raw(&bytes).is_error(411, "MissingContentLength");
}
