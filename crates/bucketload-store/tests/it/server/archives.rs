//! Archives that the server extracts: `X-Amz-Meta-Snowball-Auto-Extract`.

use std::sync::Arc;

use bucketload_server::Server;
use bucketload_store::{MemoryOptions, MemoryStore, PosixOptions, PosixStore, Store};

use super::client::{Auth, Client, Request, config, memory, req, start};

/// An archive with one entry per path; a path that ends in a slash is a directory.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (path, content) in files {
        let mut header = [0; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = if path.ends_with('/') { b'5' } else { b'0' };
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        out.extend(header);
        out.extend(*content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn put(body: Vec<u8>) -> Request {
    req("PUT", "/bucket/some.tar")
        .header("X-Amz-Meta-Snowball-Auto-Extract", "true")
        .body(body)
}

#[test]
fn the_files_of_an_archive_become_objects() {
    let root = tempfile::tempdir().unwrap();
    let posix = PosixStore::open(PosixOptions::new(root.path())).unwrap();
    for store in [memory(), Arc::new(posix) as Arc<dyn Store>] {
        store.create_bucket("bucket").unwrap();
        let server = Server::start(config(), store).unwrap();
        let mut c = Client::new(&server);
        let large: Vec<u8> = (0..700_001u32).map(|i| (i / 5) as u8).collect();
        let files = [
            ("./a/one", &b"first"[..]),
            ("/b//two", &large),
            ("empty", b""),
        ];
        c.send(&put(archive(&files)).auth(Auth::Signed)).is(200);
        assert_eq!(
            c.get("/bucket?list-type=2").elements("Key"),
            ["a/one", "b/two", "empty"]
        );
        assert!(c.get("/bucket/b/two").is(200).body == large);
        let one = c.get("/bucket/a/one").is(200);
        assert_eq!(one.text(), "first");
        assert_eq!(one.header("x-amz-meta-snowball-auto-extract"), None);
        // The same key again, below a prefix and with tags.
        let again = put(archive(&[("a/one", b"second"), ("dir/", b"")]))
            .header("X-Amz-Meta-Minio-Snowball-Prefix", "/p/q")
            .header("x-amz-tagging", "t=1");
        c.send(&again).is(200);
        let one = c.get("/bucket/p/q/a/one").is(200);
        assert_eq!(one.text(), "second");
        assert_eq!(one.header("x-amz-tagging-count"), Some("1"));
        assert_eq!(c.get("/bucket/p/q/dir/").is(200).body, b"");
        let flat = put(archive(&[("x/", b""), ("x/y", b"third")]));
        let flat = flat.header("X-Amz-Meta-Minio-Snowball-Ignore-Dirs", "true");
        c.send(&flat).is(200);
        c.get("/bucket/x/").is_error(404, "NoSuchKey");
        assert_eq!(c.get("/bucket/x/y").is(200).text(), "third");
        c.get("/bucket/some.tar").is_error(404, "NoSuchKey");
        // Any other value stores the archive itself.
        let kept = req("PUT", "/bucket/kept.tar")
            .header("X-Amz-Meta-Snowball-Auto-Extract", "false")
            .body("not an archive");
        c.send(&kept).is(200);
        assert_eq!(c.get("/bucket/kept.tar").is(200).text(), "not an archive");
    }
}

#[test]
fn what_cannot_be_extracted_is_refused() {
    let (_server, mut c) = start();
    c.send(&put(b"not an archive".repeat(100)))
        .is_error(400, "InvalidRequest");
    let whole = archive(&[("one", b"first"), ("two", b"second")]);
    c.send(&put(whole[..1026].to_vec()))
        .is_error(400, "IncompleteBody");
    c.send(&put(archive(&[("three", b"third"), ("../up", b"x")])))
        .is_error(400, "InvalidArgument");
    let wrong = put(whole.clone()).header("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==");
    c.send(&wrong).is_error(400, "BadDigest");
    c.send(&put(whole.clone()).header("If-None-Match", "*"))
        .is_error(501, "NotImplemented");
    let mut absent = put(whole);
    absent.path = "/absent/some.tar".into();
    c.send(&absent).is_error(404, "NoSuchBucket");
    // What came before the fault stays.
    assert_eq!(
        c.get("/bucket?list-type=2").elements("Key"),
        ["one", "three", "two"]
    );
}

#[test]
fn errors_of_single_files_can_be_ignored() {
    let store = MemoryStore::new(MemoryOptions {
        limit_bytes: 100_000,
        ..MemoryOptions::default()
    });
    store.create_bucket("bucket").unwrap();
    let server = Server::start(config(), Arc::new(store)).unwrap();
    let mut c = Client::new(&server);
    let large = vec![1; 200_000];
    let files = [
        ("one", &b"first"[..]),
        ("large", &large),
        ("../up", b"x"),
        ("two", b"second"),
    ];
    c.send(&put(archive(&files))).is_error(507, "StorageFull");
    let ignoring = put(archive(&files)).header("X-Amz-Meta-Minio-Snowball-Ignore-Errors", "true");
    c.send(&ignoring).is(200);
    assert_eq!(c.get("/bucket?list-type=2").elements("Key"), ["one", "two"]);
}
