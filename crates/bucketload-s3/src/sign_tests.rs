//! The signer against the published examples and an independent implementation.
//!
//! Examples: Amazon S3 API Reference, "Signature Calculations for the Authorization Header" in a
//! single chunk, in multiple chunks, and with trailing headers.

use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::{Frame, Parts, Signature, Signer};
use crate::canonical::{Header, NO_STANDING, Standing};
use crate::date::basic;
use crate::encode::hex32;
use crate::sha256::BLOCKS;
use crate::sigv4::EMPTY_SHA256;

/// 2013-05-24T00:00:00Z, the instant of all examples.
const EXAMPLE: u64 = 1_369_353_600;

fn signer() -> Signer {
    let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    let mut signer = Signer::new("AKIAIOSFODNN7EXAMPLE", secret, "", "us-east-1");
    assert!(signer.at(EXAMPLE));
    signer
}

const AWS: Frame<'static> = Frame {
    authority: "s3.amazonaws.com",
    base_path: "",
    virtual_host: true,
    timestamp: b"",
    token: "",
};

fn sign(signer: &mut Signer, parts: Parts<'_>) -> String {
    let (signature, _) = signer.sign(AWS, &parts);
    text(&signature)
}

fn text(signature: &Signature) -> String {
    String::from_utf8(signature.to_vec()).unwrap()
}

fn header<'a>(name: &'static str, value: &'a str) -> Header<'a> {
    Header {
        name,
        value: value.as_bytes(),
    }
}

fn get<'a>(key: &'a str, query: &'a [u8], headers: &'a [Header<'a>]) -> Parts<'a> {
    Parts {
        method: "GET",
        bucket: "examplebucket",
        key,
        query,
        payload: EMPTY_SHA256,
        headers,
        standing: &NO_STANDING,
    }
}

#[test]
fn published_examples_in_a_single_chunk() {
    let mut signer = signer();
    let range = [header("range", "bytes=0-9")];
    assert_eq!(
        sign(&mut signer, get("test.txt", b"", &range)),
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    );
    let put = Parts {
        method: "PUT",
        payload: b"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        headers: &[
            header("date", "Fri, 24 May 2013 00:00:00 GMT"),
            header("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ],
        ..get("test$file.text", b"", &[])
    };
    assert_eq!(
        sign(&mut signer, put),
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
    );
    assert_eq!(
        sign(&mut signer, get("", b"lifecycle=", &[])),
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    );
    assert_eq!(
        sign(&mut signer, get("", b"max-keys=2&prefix=J", &[])),
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    );
}

fn streaming<'a>(payload: &'a [u8], headers: &'a [Header<'a>]) -> Parts<'a> {
    Parts {
        method: "PUT",
        bucket: "",
        key: "examplebucket/chunkObject.txt",
        query: b"",
        payload,
        headers,
        standing: &NO_STANDING,
    }
}

fn chunk(signer: &Signer, previous: &Signature, digest: &[u8; 32]) -> Signature {
    hex32(&signer.signing().chunk(previous, digest))
}

fn chain(signer: &Signer, seed: Signature) -> [Signature; 3] {
    let data = [b'a'; 65_536];
    let digest = |len: usize| -> [u8; 32] { Sha256::digest(&data[..len]).into() };
    let first = chunk(signer, &seed, &digest(65_536));
    let second = chunk(signer, &first, &digest(1024));
    [first, second, chunk(signer, &second, &digest(0))]
}

#[test]
fn published_example_in_chunks() {
    let mut signer = signer();
    let headers = [
        header("content-encoding", "aws-chunked"),
        header("content-length", "66824"),
        header("x-amz-decoded-content-length", "66560"),
        header("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    let parts = streaming(b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", &headers);
    let (seed, _) = signer.sign(AWS, &parts);
    assert_eq!(
        text(&seed),
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
    );
    assert_eq!(
        chain(&signer, seed).map(|s| text(&s)),
        [
            "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
            "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
            "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
        ]
    );
}

#[test]
fn published_example_with_a_trailer() {
    let mut signer = signer();
    let headers = [
        header("content-encoding", "aws-chunked"),
        header("x-amz-decoded-content-length", "66560"),
        header("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        header("x-amz-trailer", "x-amz-checksum-crc32c"),
    ];
    let parts = streaming(b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", &headers);
    let (seed, _) = signer.sign(AWS, &parts);
    assert_eq!(
        text(&seed),
        "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
    );
    let chunks = chain(&signer, seed);
    assert_eq!(
        text(&chunks[2]),
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"
    );
    let trailer = Sha256::digest(b"x-amz-checksum-crc32c:sOO8/Q==\n").into();
    assert_eq!(
        text(&hex32(&signer.signing().trailer(&chunks[2], &trailer))),
        "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"
    );
}

#[test]
fn timestamps() {
    assert_eq!(&basic(EXAMPLE + 3_661), b"20130524T010101Z");
    assert_eq!(&basic(1_709_164_800), b"20240229T000000Z");
    assert_eq!(&basic(u64::MAX), b"19700101T000000Z");
}

/// A request as a run sends it: path style, a 40-byte key.
fn typical(method: &'static str) -> Parts<'static> {
    Parts {
        method,
        bucket: "bucketload-0123456789abcdef",
        key: "run-0123456789abcdef/r/00/0000000000001234",
        query: b"",
        payload: b"UNSIGNED-PAYLOAD",
        headers: &[],
        standing: &NO_STANDING,
    }
}

#[test]
fn a_signature_costs_at_most_eight_blocks() {
    let mut signer = signer();
    let frame = Frame {
        authority: "storage.example.com:9000",
        virtual_host: false,
        ..AWS
    };
    for method in ["GET", "PUT", "HEAD", "DELETE"] {
        let before = BLOCKS.get();
        signer.sign(frame, &typical(method));
        let blocks = BLOCKS.get() - before;
        assert!((6..=8).contains(&blocks), "{method}: {blocks}");
        // The next object differs only after the first block.
        let before = BLOCKS.get();
        let next = Parts {
            key: "run-0123456789abcdef/r/00/0000000000005678",
            ..typical(method)
        };
        signer.sign(frame, &next);
        assert_eq!(BLOCKS.get() - before, blocks - 1, "{method}");
    }
    // A new second of the same day costs one more.
    let before = BLOCKS.get();
    assert!(signer.at(EXAMPLE + 1));
    assert_eq!(BLOCKS.get() - before, 1);
    assert!(!signer.at(EXAMPLE + 1));
}

/// SigV4 written directly from the documentation, with `format!` and the reference crates.
fn straightforward(
    second: u64,
    credentials: (&str, &str, Option<&str>),
    region: &str,
    host: &str,
    method: &str,
    path: &str,
    query: &[(String, String)],
    payload: &str,
    extra: &[(String, String)],
) -> String {
    fn hmac(key: &[u8], text: &str) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().to_vec()
    }
    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }
    fn encode(text: &str, slash: bool) -> String {
        text.bytes()
            .map(|b| match b {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    char::from(b).to_string()
                }
                b'/' if !slash => "/".to_owned(),
                _ => format!("%{b:02X}"),
            })
            .collect()
    }
    let date_time = String::from_utf8(basic(second).to_vec()).unwrap();
    let date = &date_time[..8];
    let mut pairs: Vec<_> = query
        .iter()
        .map(|(k, v)| (encode(k, true), encode(v, true)))
        .collect();
    pairs.sort();
    let query: Vec<_> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mut headers = extra.to_vec();
    headers.push(("host".to_owned(), host.to_owned()));
    headers.push(("x-amz-content-sha256".to_owned(), payload.to_owned()));
    headers.push(("x-amz-date".to_owned(), date_time.clone()));
    if let Some(token) = credentials.2 {
        headers.push(("x-amz-security-token".to_owned(), token.to_owned()));
    }
    headers.sort();
    let lines: String = headers.iter().map(|(k, v)| format!("{k}:{v}\n")).collect();
    let names: Vec<_> = headers.iter().map(|(k, _)| k.as_str()).collect();
    let canonical = format!(
        "{method}\n{}\n{}\n{lines}\n{}\n{payload}",
        encode(path, false),
        query.join("&"),
        names.join(";")
    );
    let scope = format!("{date}/{region}/s3/aws4_request");
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n{date_time}\n{scope}\n{}",
        hex(&Sha256::digest(canonical.as_bytes()))
    );
    let mut key = hmac(format!("AWS4{}", credentials.1).as_bytes(), date);
    for part in [region, "s3", "aws4_request"] {
        key = hmac(&key, part);
    }
    hex(&hmac(&key, &to_sign))
}

const EXTRA_NAMES: [&str; 6] = [
    "content-md5",
    "x-amz-checksum-crc32c",
    "x-amz-copy-source",
    "x-amz-decoded-content-length",
    "x-amz-tagging",
    "x-amz-trailer",
];

const STANDING_NAMES: [&str; 4] = [
    "x-amz-storage-class",
    "a-first",
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key",
];

proptest! {
    #[test]
    fn agrees_with_a_straightforward_signer(
        seconds in prop::collection::vec(0u64..4_000_000_000, 1..4),
        region in "[a-z]{1,2}(-[a-z]{1,9}-[0-9])?", secret in "[!-~]{1,80}",
        token in prop::option::of("[!-~]{1,200}"), virtual_host: bool,
        host in "[a-z]{1,30}(\\.[a-z]{2,9}){0,3}(:[0-9]{2,5})?",
        bucket in "[a-z0-9.-]{3,40}", key in "\\PC{1,120}",
        prefix in prop::option::of("\\PC{0,40}"), mask in 0usize..64, value in "[!-~]{1,40}",
    ) {
        let mut signer = Signer::new("AKID", &secret, token.as_deref().unwrap_or_default(), &region);
        let names = EXTRA_NAMES.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1);
        let names: Vec<_> = names.map(|(_, n)| *n).collect();
        let headers: Vec<_> = names.iter().map(|n| header(n, &value)).collect();
        let extra: Vec<_> = names.iter().map(|n| ((*n).to_owned(), value.clone())).collect();
        let mut query = Vec::new();
        if let Some(prefix) = &prefix {
            query.extend_from_slice(b"list-type=2&prefix=");
            crate::encode::push_query(&mut query, prefix);
        }
        let pairs: Vec<_> = prefix.iter()
            .flat_map(|p| [("prefix".to_owned(), p.clone()), ("list-type".to_owned(), "2".to_owned())])
            .collect();
        let parts = Parts {
            method: "GET", bucket: &bucket, key: &key, query: &query,
            payload: b"UNSIGNED-PAYLOAD", headers: &headers, standing: &NO_STANDING,
        };
        // Kinds of requests alternate as well; their headers lie between and behind the others.
        let standing = |number, names: &[&'static str]| {
            Standing::new(number, names.iter().map(|n| (*n, value.as_bytes().into())).collect())
        };
        let kinds = [
            (standing(1, &[]), &[][..]),
            (standing(1, &STANDING_NAMES), &STANDING_NAMES[..]),
            (standing(4, &STANDING_NAMES[1..]), &STANDING_NAMES[1..]),
        ];
        let frame = Frame { authority: &host, virtual_host, ..AWS };
        let (full_host, path) = if virtual_host {
            (format!("{bucket}.{host}"), format!("/{key}"))
        } else {
            (host.clone(), format!("/{bucket}/{key}"))
        };
        // Payloads and plain requests alternate, so a cached part of one cannot leak into another unnoticed.
        let payloads = ["UNSIGNED-PAYLOAD", std::str::from_utf8(EMPTY_SHA256).unwrap()];
        for (i, second) in seconds.iter().flat_map(|s| [s; 4]).enumerate() {
            signer.at(*second);
            let (payload, plain) = (payloads[i % 2], i % 3 == 0);
            // Methods and keys alternate too, for the cached first blocks.
            let method = ["GET", "PUT", "POST"][i / 2 % 3];
            let tail = ["", "x"][i / 4 % 2];
            let (key, path) = (format!("{key}{tail}"), format!("{path}{tail}"));
            let (standing, added) = &kinds[i / 3 % 3];
            let parts = Parts {
                standing,
                method,
                key: &key,
                payload: payload.as_bytes(),
                headers: if plain { &[] } else { &headers },
                ..parts
            };
            let extra = if plain { &[] } else { extra.as_slice() };
            let added = added.iter().map(|n| ((*n).to_owned(), value.clone()));
            let extra: Vec<_> = extra.iter().cloned().chain(added).collect();
            let (signature, ranges) = signer.sign(frame, &parts);
            let want = straightforward(
                *second, ("AKID", &secret, token.as_deref()), &region, &full_host, method, &path,
                &pairs, payload, &extra,
            );
            prop_assert_eq!(text(&signature), want);
            let names = &signer.canonical()[ranges.names];
            prop_assert!(names.starts_with(b"host;") || !plain || names.starts_with(b"a-first;"));
            prop_assert_eq!(names.iter().filter(|b| **b == b';').count(), 2 + extra.len() + usize::from(token.is_some()));
        }
    }
}
