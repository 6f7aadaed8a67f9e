//! Test vectors of the Amazon S3 API reference, and a differential test against a plain signer.

use bucketload_s3::encode::{parse_hex32, push_key, push_query};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;
use crate::headers::list;

const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
/// 2013-05-24T00:00:00Z, the time of the documented examples.
const NOW: u64 = 1_369_353_600;
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn verifier() -> Verifier {
    let keys = KeyPair {
        access_key: KEY.into(),
        secret_key: SECRET.into(),
    };
    Verifier::new(keys, "us-east-1".into(), Access::Signed)
}

fn check(method: &str, uri: &str, headers: &[(&str, &str)], now: u64) -> S3Result<PayloadAuth> {
    check_with(&mut verifier(), method, uri, headers, now)
}

fn check_with(
    verifier: &mut Verifier,
    method: &str,
    uri: &str,
    headers: &[(&str, &str)],
    now: u64,
) -> S3Result<PayloadAuth> {
    let mut target = Target::default();
    target.parse(uri, Some("examplebucket"))?;
    let all = list(headers);
    let headers = Headers::new(&all)?;
    verifier
        .verify(method, &mut target, &headers, now)
        .map(|verified| verified.payload)
}

fn authorization(signed: &str, signature: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={KEY}/20130524/us-east-1/s3/aws4_request,SignedHeaders={signed},Signature={signature}"
    )
}

/// The headers of the documented "GET object" example.
fn get_object(authorization: &str) -> [(&str, &str); 5] {
    [
        ("Host", "examplebucket.s3.amazonaws.com"),
        ("Authorization", authorization),
        ("Range", "bytes=0-9"),
        ("x-amz-content-sha256", EMPTY),
        ("x-amz-date", "20130524T000000Z"),
    ]
}

const GET_SIGNED: &str = "host;range;x-amz-content-sha256;x-amz-date";
const GET_SIGNATURE: &str = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";

#[test]
fn documented_get_object() {
    let auth = authorization(GET_SIGNED, GET_SIGNATURE);
    let payload = check("GET", "/test.txt", &get_object(&auth), NOW).unwrap();
    assert_eq!(
        payload,
        PayloadAuth::Sha256(parse_hex32(EMPTY.as_bytes()).unwrap())
    );
}

#[test]
fn documented_put_object() {
    let hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    let auth = authorization(
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    );
    let headers = [
        ("Host", "examplebucket.s3.amazonaws.com"),
        ("Date", "Fri, 24 May 2013 00:00:00 GMT"),
        ("Authorization", &auth),
        ("x-amz-date", "20130524T000000Z"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ("x-amz-content-sha256", hash),
    ];
    check("PUT", "/test$file.text", &headers, NOW).unwrap();
    check("PUT", "/test%24file.text", &headers, NOW).unwrap();
}

#[test]
fn documented_bucket_requests() {
    for (uri, signature) in [
        (
            "/?lifecycle",
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            "/?max-keys=2&prefix=J",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
        (
            "/?prefix=J&max-keys=2",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ] {
        let auth = authorization("host;x-amz-content-sha256;x-amz-date", signature);
        let headers = [
            ("Host", "examplebucket.s3.amazonaws.com"),
            ("Authorization", &auth),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
        ];
        check("GET", uri, &headers, NOW).unwrap();
    }
}

const PRESIGNED: &str = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
    &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
    &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
    &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";

#[test]
fn documented_presigned_url() {
    let host = [("Host", "examplebucket.s3.amazonaws.com")];
    for now in [NOW, NOW + 86_400] {
        assert_eq!(
            check("GET", PRESIGNED, &host, now),
            Ok(PayloadAuth::Unsigned)
        );
    }
    for (now, uri, code) in [
        (NOW + 86_401, PRESIGNED.to_owned(), Code::AccessDenied),
        (NOW - 901, PRESIGNED.to_owned(), Code::AccessDenied),
        (
            NOW,
            PRESIGNED.replace("604d404", "604d405"),
            Code::SignatureDoesNotMatch,
        ),
        (
            NOW,
            PRESIGNED.replace("86400", "86401"),
            Code::SignatureDoesNotMatch,
        ),
        (
            NOW,
            PRESIGNED.replace("86400", "604801"),
            Code::AuthorizationQueryParametersError,
        ),
        (
            NOW,
            PRESIGNED.replace("us-east-1", "eu-west-1"),
            Code::AuthorizationQueryParametersError,
        ),
        (
            NOW,
            PRESIGNED.replace("AKIA", "AKIB"),
            Code::InvalidAccessKeyId,
        ),
        (
            NOW,
            PRESIGNED.replace("X-Amz-Date", "X-Amz-Dat"),
            Code::AuthorizationQueryParametersError,
        ),
    ] {
        assert_eq!(
            check("GET", &uri, &host, now).unwrap_err().code,
            code,
            "{now} {uri}"
        );
    }
    let extra = [host[0], ("x-amz-acl", "private")];
    assert_eq!(
        check("GET", PRESIGNED, &extra, NOW).unwrap_err().code,
        Code::AccessDenied
    );
    assert_eq!(
        check("PUT", PRESIGNED, &host, NOW).unwrap_err().code,
        Code::SignatureDoesNotMatch
    );
    let hash = [host[0], ("x-amz-content-sha256", "invalid-sha256")];
    assert_eq!(
        check("GET", PRESIGNED, &hash, NOW).unwrap_err().code,
        Code::SignatureDoesNotMatch
    );
}

#[test]
fn documented_seed_signature_of_signed_chunks() {
    let auth = authorization(
        "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class",
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    );
    let headers = [
        ("Host", "s3.amazonaws.com"),
        ("x-amz-date", "20130524T000000Z"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ("Authorization", &auth),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        ("Content-Encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", "66560"),
        ("Content-Length", "66824"),
    ];
    let mut target = Target::default();
    target
        .parse("/examplebucket/chunkObject.txt", None)
        .unwrap();
    let all = list(&headers);
    let verified = verifier()
        .verify("PUT", &mut target, &Headers::new(&all).unwrap(), NOW)
        .unwrap();
    assert_eq!(
        verified.payload,
        PayloadAuth::SignedChunks { trailer: false }
    );
    let chunks = verified.chunks.unwrap();
    assert_eq!(
        [&*chunks.timestamp, &*chunks.scope],
        ["20130524T000000Z", "20130524/us-east-1/s3/aws4_request"]
    );
    assert_eq!(hex32(&chunks.seed)[..8], *b"4f232c43");
}

#[test]
fn errors_name_the_defect() {
    let good = authorization(GET_SIGNED, GET_SIGNATURE);
    let with = |from: &str, to: &str| good.replace(from, to);
    for (auth, code) in [
        (with("f0e8", "f0e9"), Code::SignatureDoesNotMatch),
        (with("f0e8", "F0E8"), Code::SignatureDoesNotMatch),
        (with("AKIA", "AKIB"), Code::InvalidAccessKeyId),
        (with("/s3/", "/ec2/"), Code::AuthorizationHeaderMalformed),
        (
            with("20130524/", "20130525/"),
            Code::AuthorizationHeaderMalformed,
        ),
        (
            with("Credential=", "Cred="),
            Code::AuthorizationHeaderMalformed,
        ),
        (with("host;", ""), Code::AccessDenied),
        (with(";x-amz-date", ""), Code::AccessDenied),
        (with("range", "ranges"), Code::AccessDenied),
        (with("host;", "host;host;host;host;"), Code::AccessDenied),
        (
            "AWS AKIAIOSFODNN7EXAMPLE:frJIUN8DYpKDtOLCwo//yllqDzg=".into(),
            Code::SignatureDoesNotMatch,
        ),
        ("Bearer x".into(), Code::InvalidArgument),
    ] {
        let error = check("GET", "/test.txt", &get_object(&auth), NOW).unwrap_err();
        assert_eq!(error.code, code, "{auth}");
    }
    let error = check(
        "GET",
        "/test.txt",
        &get_object(&with("us-east-1", "eu-west-1")),
        NOW,
    )
    .unwrap_err();
    assert_eq!(error.code, Code::AuthorizationHeaderMalformed);
    assert!(
        error.message().contains("expecting 'us-east-1'"),
        "{}",
        error.message()
    );
    assert_eq!(error.region.as_deref(), Some("us-east-1"));

    let fine = get_object(&good);
    for now in [NOW - 900, NOW + 900] {
        check("GET", "/test.txt", &fine, now).unwrap();
    }
    for now in [NOW - 901, NOW + 901] {
        assert_eq!(
            check("GET", "/test.txt", &fine, now).unwrap_err().code,
            Code::RequestTimeTooSkewed
        );
    }
    let anonymous = &fine[..1];
    assert_eq!(
        check("GET", "/test.txt", anonymous, NOW).unwrap_err().code,
        Code::AccessDenied
    );
    let keys = KeyPair {
        access_key: KEY.into(),
        secret_key: SECRET.into(),
    };
    let mut open = Verifier::new(keys, "us-east-1".into(), Access::Anonymous);
    check_with(&mut open, "GET", "/test.txt", anonymous, NOW).unwrap();
}

#[test]
fn secrets_do_not_reach_debug_output() {
    let keys = KeyPair {
        access_key: KEY.into(),
        secret_key: SECRET.into(),
    };
    assert!(!format!("{keys:?}").contains(SECRET));
}

/// HMAC-SHA256 from the `hmac` crate, independent of [`HmacKey`].
fn plain_hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    use hmac::{KeyInit, Mac};
    let mut mac = hmac::Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

/// Signs literally as the specification describes, with strings and sorted maps.
fn plain_signature(
    method: &str,
    path: &str,
    query: &[(String, String)],
    headers: &[(String, String)],
) -> (String, String) {
    let enc = |text: &str, slash: bool| -> String {
        text.bytes()
            .map(|b| match b {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    (b as char).to_string()
                }
                b'/' if slash => "/".into(),
                b => format!("%{b:02X}"),
            })
            .collect()
    };
    let mut pairs: Vec<_> = query
        .iter()
        .map(|(n, v)| (enc(n, false), enc(v, false)))
        .collect();
    pairs.sort();
    let query: Vec<_> = pairs.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let map: std::collections::BTreeMap<_, _> = headers
        .iter()
        .map(|(n, v)| {
            (
                n.to_lowercase(),
                v.split_whitespace().collect::<Vec<_>>().join(" "),
            )
        })
        .collect();
    let lines: String = map.iter().map(|(n, v)| format!("{n}:{v}\n")).collect();
    let names = map.keys().cloned().collect::<Vec<_>>().join(";");
    let canonical = format!(
        "{method}\n{}\n{}\n{lines}\n{names}\nUNSIGNED-PAYLOAD",
        enc(path, true),
        query.join("&")
    );
    let hash: String = Sha256::digest(canonical)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let text =
        format!("AWS4-HMAC-SHA256\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n{hash}");
    let mut key = format!("AWS4{SECRET}").into_bytes();
    for part in ["20130524", "us-east-1", "s3", "aws4_request"] {
        key = plain_hmac(&key, part.as_bytes());
    }
    (
        names,
        plain_hmac(&key, text.as_bytes())
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect(),
    )
}

#[test]
fn a_cached_header_parses_like_a_new_one() {
    let mut verifier = verifier();
    let good = authorization(GET_SIGNED, GET_SIGNATURE);
    let other = authorization(GET_SIGNED, &GET_SIGNATURE.replace("f0e8", "f0e9"));
    let spaced = good.replace(",Signature", ", Signature");
    let short = &good[..good.len() - 1];
    let foreign = good.replace("AKIA", "AKIB");
    for _ in 0..2 {
        for (auth, code) in [
            (good.as_str(), None),
            (&good, None),
            (&other, Some(Code::SignatureDoesNotMatch)),
            (&spaced, None),
            (short, Some(Code::SignatureDoesNotMatch)),
            (&foreign, Some(Code::InvalidAccessKeyId)),
        ] {
            let got = check_with(&mut verifier, "GET", "/test.txt", &get_object(auth), NOW);
            assert_eq!(got.err().map(|e| e.code), code, "{auth}");
        }
    }
}

proptest! {
    #[test]
    fn an_independent_signer_is_understood(
        key in "\\PC{1,40}",
        query in prop::collection::vec(("[a-zA-Z-]{1,8}", "\\PC{0,12}"), 0..5),
        meta in prop::collection::btree_map("[a-z]{1,6}", "[ -~]{1,20}", 0..4),
        method in prop::sample::select(vec!["GET", "PUT", "HEAD", "DELETE", "POST"]),
    ) {
        let path = format!("/{key}");
        let mut headers = vec![
            ("Host".to_owned(), "h:9000".to_owned()),
            ("x-amz-content-sha256".to_owned(), "UNSIGNED-PAYLOAD".to_owned()),
            ("x-amz-date".to_owned(), "20130524T000000Z".to_owned()),
        ];
        headers.extend(meta.into_iter().map(|(n, v)| (format!("x-amz-meta-{n}"), v)));
        let (names, signature) = plain_signature(method, &path, &query, &headers);
        headers.push(("Authorization".into(), authorization(&names, &signature)));
        let mut uri = Vec::new();
        push_key(&mut uri, &path);
        for (number, (name, value)) in query.iter().enumerate() {
            uri.push(if number == 0 { b'?' } else { b'&' });
            push_query(&mut uri, name);
            uri.push(b'=');
            push_query(&mut uri, value);
        }
        let uri = String::from_utf8(uri).unwrap();
        let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        prop_assert_eq!(check(method, &uri, &headers, NOW), Ok(PayloadAuth::Unsigned));
    }

    #[test]
    fn any_authorization_is_safe(auth in "\\PC*", tail in "\\PC*", uri in "/\\PC*") {
        let _ = check("GET", "/x", &get_object(&auth), NOW);
        let auth = format!("AWS4-HMAC-SHA256 Credential={auth},SignedHeaders={tail},Signature={auth}");
        let _ = check("GET", &uri, &get_object(&auth), NOW);
    }
}
