//! The server over the other stores: a directory and the null store.

use std::sync::Arc;

use bucketload_server::Server;
use bucketload_store::{EtagMode, NullOptions, NullStore, PosixOptions, PosixStore};

use super::client::{Auth, Client, config, req};

#[test]
fn a_directory() {
    let root = tempfile::tempdir().unwrap();
    let store = || Arc::new(PosixStore::open(PosixOptions::new(root.path())).unwrap());
    let mut faulty = config();
    faulty.faults = vec!["corrupt,prefix=bad".parse().unwrap()];
    let server = Server::start(faulty, store()).unwrap();
    let mut c = Client::new(&server);
    c.send(&req("PUT", "/bucket")).is(200);
    // Across the boundaries of the pieces in which files are sent.
    let body: Vec<u8> = (0..700_001u32).map(|i| (i / 5) as u8).collect();
    let put = req("PUT", "/bucket/a//b")
        .header("x-amz-meta-m", "1")
        .header("x-amz-tagging", "t=1");
    c.send(&put.auth(Auth::Signed).body(&body)).is(200);
    let get = c.get("/bucket/a//b").is(200);
    assert!(get.body == body);
    assert_eq!(
        (
            get.header("x-amz-meta-m"),
            get.header("x-amz-tagging-count")
        ),
        (Some("1"), Some("1"))
    );
    let ranged = c
        .send(&req("GET", "/bucket/a//b").header("Range", "bytes=262140-524300"))
        .is(206);
    assert!(ranged.body == body[262_140..=524_300]);
    c.put("/bucket/small", "v");
    assert_eq!(c.get("/bucket/small").text(), "v");
    assert_eq!(
        c.get("/bucket?list-type=2").elements("Key"),
        ["a//b", "small"]
    );
    let enable = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    c.send(&req("PUT", "/bucket?versioning").body(enable))
        .is_error(501, "NotImplemented");
    c.send(&req("PUT", "/locked").header("x-amz-bucket-object-lock-enabled", "true"))
        .is_error(501, "NotImplemented");
    c.get("/locked?location").is_error(404, "NoSuchBucket");
    let versions = c.get("/bucket?versions").is(200);
    assert_eq!(versions.elements("VersionId"), ["null", "null"]);
    c.put("/bucket/bad", &body);
    let bad = c.get("/bucket/bad").is(200).body;
    assert_eq!(bad.iter().zip(&body).filter(|(a, b)| a != b).count(), 1);
    let created = c.send(&req("POST", "/bucket/parts?uploads")).is(200);
    let target = format!(
        "/bucket/parts?uploadId={}",
        created.element("UploadId").unwrap()
    );
    let part = c.put(&format!("{target}&partNumber=1"), "v");
    let tag = part.header("etag").unwrap();
    let complete = req("POST", &target).body(format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part></CompleteMultipartUpload>"
    ));
    let done = c.send(&complete).is(200);
    assert_eq!(c.send(&complete).is(200).text(), done.text());
    std::os::unix::fs::symlink("/", root.path().join("bucket/link")).unwrap();
    for source in [None, Some("/bucket/small")] {
        let mut put = req("PUT", "/bucket/link/k").body("v");
        if let Some(source) = source {
            put = put.header("x-amz-copy-source", source);
        }
        c.send(&put).is_error(400, "InvalidArgument");
    }
    server.stop();
    let server = Server::start(config(), store()).unwrap();
    let mut c = Client::new(&server);
    assert!(c.get("/bucket/bad").is(200).body == body);
}

#[test]
fn nothing() {
    let store = |etag| {
        Arc::new(NullStore::new(&NullOptions {
            object_bytes: 4096,
            etag,
        }))
    };
    let server = Server::start(config(), store(EtagMode::Opaque)).unwrap();
    let mut c = Client::new(&server);
    assert_eq!(c.get("/bucket/any").is(200).body, vec![0; 4096]);
    assert_eq!(c.get("/bucket/3000000B/x").is(200).body.len(), 3_000_000);
    for size in [0, 4096, 100_000, 20_000_000] {
        let put = c.put("/bucket/k", vec![1; size]);
        assert!(put.header("etag").unwrap().ends_with("-1\""));
    }
    let signed = c.send(
        &req("PUT", "/bucket/k")
            .auth(Auth::Signed)
            .body(vec![1; 100_000]),
    );
    assert_eq!(signed.status, 200);
    let md5 = req("PUT", "/bucket/k")
        .header("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg==")
        .body("hullo");
    c.send(&md5).is_error(400, "BadDigest");
    let sum = req("PUT", "/bucket/k")
        .header("x-amz-checksum-crc32", "NhCmhg==")
        .body("hullo");
    c.send(&sum).is_error(400, "BadDigest");
    c.send(&req("PUT", "/Bad_Name/k").body("x"))
        .is_error(400, "InvalidBucketName");
    assert_eq!(server.stats().body_bytes_in, 20_204_107);

    let server = Server::start(config(), store(EtagMode::Md5)).unwrap();
    let mut c = Client::new(&server);
    assert_eq!(
        c.put("/bucket/k", "hello").header("etag"),
        Some("\"5d41402abc4b2a76b9719d911017c592\"")
    );
}
