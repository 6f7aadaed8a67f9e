//! Small requests do not allocate in steady state. This is the only test of its program, because it
//! counts the allocations of all threads, including the server's.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use bucketload_server::{KeyPair, Server, ServerConfig};
use bucketload_store::{EtagMode, NullOptions, NullStore};
use bucketload_testkit::alloc::{Counting, calls_of_all};

#[path = "it/server/signer.rs"]
#[allow(dead_code, reason = "the other tests use more of it")]
mod signer;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A signed request with `body` bytes of payload.
fn request(method: &str, body: usize) -> Vec<u8> {
    let signer = signer::Signer::new("key", "secret");
    let headers = [
        ("host", "127.0.0.1"),
        ("range", "bytes=0-"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        ("x-amz-date", &signer.date),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (names, signature) = signer.signature(
        method,
        "/bucket/some/key",
        &[],
        &headers,
        "UNSIGNED-PAYLOAD",
    );
    let lines: String = headers
        .iter()
        .map(|(n, v)| format!("{n}: {v}\r\n"))
        .collect();
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=key/{}, SignedHeaders={names}, Signature={signature}",
        signer.scope()
    );
    let head = format!(
        "{method} /bucket/some/key HTTP/1.1\r\n{lines}Authorization: {authorization}\r\nContent-Length: {body}\r\n\r\n"
    );
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + body, 0);
    bytes
}

/// Sends `bytes` `count` times, each after the response to the previous one.
fn repeat(stream: &mut TcpStream, bytes: &[u8], body: usize, count: usize) {
    let mut buffer = [0; 16_384];
    for _ in 0..count {
        stream.write_all(bytes).unwrap();
        let mut got = 0;
        let end = loop {
            got += stream.read(&mut buffer[got..]).unwrap();
            if let Some(at) = buffer[..got].windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4 + body;
            }
        };
        while got < end {
            got += stream.read(&mut buffer[got..]).unwrap();
        }
        assert!(buffer.starts_with(b"HTTP/1.1 20"));
    }
}

#[test]
fn small_requests_allocate_nothing() {
    let options = NullOptions {
        object_bytes: 4096,
        etag: EtagMode::Opaque,
    };
    let keys = KeyPair {
        access_key: "key".into(),
        secret_key: "secret".into(),
    };
    let server =
        Server::start(ServerConfig::new(keys), Arc::new(NullStore::new(&options))).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    for (bytes, body) in [
        (request("GET", 0), 4096),
        (request("PUT", 4096), 0),
        (request("HEAD", 0), 0),
    ] {
        repeat(&mut stream, &bytes, body, 100);
        let before = calls_of_all();
        repeat(&mut stream, &bytes, body, 1000);
        assert_eq!(calls_of_all() - before, 0);
    }
}
