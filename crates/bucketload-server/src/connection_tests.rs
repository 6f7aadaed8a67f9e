//! Arbitrary bytes never crash the thread, and every complete request gets a response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use proptest::prelude::*;

use super::*;
use crate::config::{Access, KeyPair, ServerConfig};
use crate::faults::{Faults, History};
use crate::stats::Counters;
use crate::thread::ServerState;
use bucketload_store::{MemoryOptions, MemoryStore, PutOptions, Store};

/// A thread over a memory store that holds the object `bucket/k`, open to anonymous requests.
fn thread(stats_page: bool) -> Thread {
    let store = MemoryStore::new(MemoryOptions::default());
    store.create_bucket("bucket").unwrap();
    let mut upload = store.put("bucket", "k", &PutOptions::sized(5)).unwrap();
    upload.write(b"hello").unwrap();
    upload.commit(bucketload_store::Commit::default()).unwrap();
    let keys = KeyPair {
        access_key: "key".into(),
        secret_key: "secret".into(),
    };
    let mut config = ServerConfig::new(keys);
    config.access = Access::Anonymous;
    config.domain = Some("s3.local".into());
    config.stats_page = stats_page;
    let server = ServerState {
        faults: Faults::new(&[]),
        fault_log: None,
        history: History::default(),
        tls: None,
        counters: Box::new([Counters::default()]),
        open: AtomicU64::new(0),
        default_encryption: AtomicBool::new(false),
        store: Arc::new(store),
        config,
    };
    Thread::new(Arc::new(server), 0).unwrap()
}

/// Handles `bytes` as if they arrived in two pieces. Returns the status of the response, if any.
fn handle(thread: &Thread, bytes: &[u8], cut: usize) -> Option<u16> {
    let (now, later) = bytes.split_at(cut.min(bytes.len()));
    let step = parse_and_begin(thread, now).or_else(|| parse_and_begin(thread, bytes))?;
    let Step::Done(used, (mut buffers, next)) = step else {
        panic!("begin never asks for more by itself");
    };
    assert!(used <= bytes.len());
    if let Next::Receive(mut pending) = next {
        let Ok(_) = pending.feed(thread, &mut buffers, later) else {
            return Some(400);
        };
        if !pending.is_done() {
            return None;
        }
        pending.finish(thread, &mut buffers);
    }
    buffers.head.end(0, false);
    assert!(buffers.head.bytes().ends_with(b"\r\n\r\n"));
    let status = buffers.head.status();
    thread.give_back(buffers);
    Some(status)
}

fn header() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "Host",
        "Range",
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "Content-Type",
        "Content-MD5",
        "Content-Encoding",
        "Expect",
        "Connection",
        "x-amz-copy-source",
        "x-amz-copy-source-range",
        "x-amz-content-sha256",
        "x-amz-decoded-content-length",
        "x-amz-trailer",
        "x-amz-tagging",
        "x-amz-meta-a",
        "x-amz-checksum-crc32",
        "x-amz-checksum-mode",
        "x-amz-checksum-algorithm",
        "x-amz-object-attributes",
        "x-amz-metadata-directive",
        "Authorization",
        "x-amz-date",
    ]);
    let value = prop_oneof![
        Just("bytes=0-1".to_owned()),
        Just("*".to_owned()),
        Just("/bucket/k".to_owned()),
        Just("b.s3.local".to_owned()),
        Just("STREAMING-UNSIGNED-PAYLOAD-TRAILER".to_owned()),
        Just("x-amz-checksum-crc32".to_owned()),
        Just("CRC32".to_owned()),
        Just("REPLACE".to_owned()),
        Just("5".to_owned()),
        "[ -~]{0,30}",
        "\\PC{0,10}",
    ];
    (name, value).prop_map(|(name, value)| format!("{name}: {value}\r\n"))
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    let method = prop::sample::select(vec!["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH"]);
    let path = prop_oneof![
        Just("/".to_owned()),
        Just("/bucket".to_owned()),
        Just("/bucket/k".to_owned()),
        Just("/-/bucketload/stats".to_owned()),
        "/[a-z%/.]{0,12}",
    ];
    let query = "(\\?((uploads|uploadId|partNumber|list-type|max-keys|prefix|delimiter|delete|tagging|acl|versions\
        |attributes|continuation-token|X-Amz-Signature|AWSAccessKeyId|Signature|location|policy)(=[a-z0-9%/]{0,6})?&?){0,4})?";
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        Just(b"<Delete><Object><Key>k</Key></Object></Delete>".to_vec()),
        Just(b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n".to_vec()),
    ];
    let framing = prop::sample::select(vec![0, 1, 2, 3]);
    (
        method,
        path,
        query,
        prop::collection::vec(header(), 0..5),
        body,
        framing,
    )
        .prop_map(|(method, path, query, headers, body, framing)| {
            let framing = match framing {
                0 => String::new(),
                1 => "Transfer-Encoding: chunked\r\n".to_owned(),
                n => format!("Content-Length: {}\r\n", body.len() + n - 2),
            };
            let head = format!(
                "{method} {path}{query} HTTP/1.1\r\nHost: h\r\n{}{framing}\r\n",
                headers.concat()
            );
            [head.as_bytes(), &body].concat()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_request_is_answered(bytes in request(), cut in 0usize..400, stats_page: bool) {
        if let Some(status) = handle(&thread(stats_page), &bytes, cut) {
            prop_assert!((200..600).contains(&status));
            prop_assert_ne!(status, 500);
        }
    }

    #[test]
    fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
        handle(&thread(false), &bytes, cut);
    }
}

#[test]
fn the_requests_of_the_property_reach_the_operations() {
    let thread = thread(true);
    for (request, status) in [
        ("GET / HTTP/1.0\r\n\r\n", 200),
        ("GET /bucket/k HTTP/1.0\r\nRange: bytes=0-1\r\n\r\n", 206),
        ("GET /-/bucketload/stats HTTP/1.0\r\n\r\n", 200),
        ("PUT /bucket/k HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", 200),
        ("DELETE /bucket/k HTTP/1.0\r\n\r\n", 204),
    ] {
        assert_eq!(
            handle(&thread, request.as_bytes(), 10),
            Some(status),
            "{request}"
        );
    }
}
