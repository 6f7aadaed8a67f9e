//! Appends: `x-amz-write-offset-bytes`.

use std::sync::Arc;

use bucketload_server::Server;
use bucketload_store::{NullOptions, NullStore, PosixOptions, PosixStore, Store};

use super::client::{Auth, Client, Request, config, memory, req};

fn append(offset: u64, body: &str) -> Request {
    req("PUT", "/bucket/k")
        .header("x-amz-write-offset-bytes", &offset.to_string())
        .body(body)
}

/// The same over memory and over a directory.
fn each(test: impl Fn(&mut Client)) {
    let root = tempfile::tempdir().unwrap();
    let posix = PosixStore::open(PosixOptions::new(root.path())).unwrap();
    for store in [memory(), Arc::new(posix) as Arc<dyn Store>] {
        store.create_bucket("bucket").unwrap();
        let server = Server::start(config(), store).unwrap();
        test(&mut Client::new(&server));
    }
}

#[test]
fn an_append_begins_where_the_object_ends() {
    each(|c| {
        c.send(&append(5, "x")).is_error(400, "InvalidWriteOffset");
        let created = append(0, "one")
            .header("x-amz-meta-m", "1")
            .header("x-amz-tagging", "t=1");
        assert_eq!(c.send(&created).is(200).header("x-amz-object-size"), None);
        let put = c.send(&append(3, "-two")).is(200);
        assert_eq!(put.header("x-amz-object-size"), Some("7"));
        let got = c.get("/bucket/k").is(200);
        assert_eq!(got.text(), "one-two");
        assert_eq!(got.header("etag"), put.header("etag"));
        assert_eq!(
            (
                got.header("x-amz-meta-m"),
                got.header("x-amz-tagging-count")
            ),
            (Some("1"), Some("1"))
        );
        for offset in [0, 3, 8] {
            c.send(&append(offset, "x"))
                .is_error(400, "InvalidWriteOffset");
        }
        let signed = append(7, "-three").auth(Auth::Signed);
        c.send(&signed).is(200);
        assert_eq!(c.get("/bucket/k").is(200).text(), "one-two-three");
        assert_eq!(c.get("/bucket/k?partNumber=3").is(206).text(), "-three");
        let listed = c.get("/bucket?list-type=2").is(200);
        assert_eq!(listed.element("Size"), Some("13"));
        // A PUT without an offset replaces.
        c.put("/bucket/k", "new");
        assert_eq!(c.get("/bucket/k").is(200).text(), "new");
    });
}

#[test]
fn what_cannot_be_appended_is_refused() {
    each(|c| {
        c.send(&append(0, "")).is_error(400, "InvalidRequest");
        let tag = c.put("/bucket/k", "one").header("etag").unwrap().to_owned();
        c.send(&append(3, "")).is_error(400, "InvalidRequest");
        c.send(&append(3, "x").header("x-amz-meta-m", "1"))
            .is_error(400, "InvalidRequest");
        c.send(&append(3, "x").header("x-amz-server-side-encryption", "AES256"))
            .is_error(400, "EncryptionTypeMismatch");
        c.send(&append(3, "x").header("If-None-Match", "*"))
            .is_error(412, "PreconditionFailed");
        c.send(&append(3, "x").header("If-Match", "\"0\""))
            .is_error(412, "PreconditionFailed");
        c.send(
            &req("PUT", "/bucket/k")
                .header("x-amz-write-offset-bytes", "-1")
                .body("x"),
        )
        .is_error(400, "InvalidArgument");
        c.send(&append(3, "hullo").header("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="))
            .is_error(400, "BadDigest");
        c.send(&req("POST", "/bucket/k?uploads").header("x-amz-write-offset-bytes", "3"))
            .is_error(501, "NotImplemented");
        assert_eq!(c.get("/bucket/k").is(200).text(), "one");
        c.send(&append(3, "-two").header("If-Match", &tag)).is(200);
        assert_eq!(c.get("/bucket/k").is(200).text(), "one-two");
    });
}

/// CRC-32 of "123456789" is 0xCBF43926, that of "12345" is 0xCBF53A1C (zlib).
#[test]
fn the_checksum_of_the_whole_object_follows() {
    const NAME: &str = "x-amz-checksum-crc32";
    each(|c| {
        let create = append(0, "12345").header(NAME, "y/U6HA==");
        c.send(&create).is(200);
        let wrong = append(5, "6789").header(NAME, "AAAAAA==");
        c.send(&wrong).is_error(400, "BadDigest");
        let other = append(5, "6789").header("x-amz-checksum-crc32c", "AAAAAA==");
        let refused = c.send(&other);
        assert!(refused.text().contains("expected checksum Type: crc32,"));
        refused.is_error(400, "InvalidRequest");
        // Without a checksum of its own, the server computes it.
        let put = c.send(&append(5, "6789")).is(200);
        let head = req("HEAD", "/bucket/k").header("x-amz-checksum-mode", "ENABLED");
        let head = c.send(&head).is(200);
        assert_eq!(head.header(NAME), Some("y/Q5Jg=="));
        assert_eq!(head.header("x-amz-checksum-type"), Some("FULL_OBJECT"));
        assert_ne!(put.header(NAME), head.header(NAME));
    });
}

#[test]
fn versions_and_nothing() {
    let store = memory();
    store.create_bucket("bucket").unwrap();
    let server = Server::start(config(), store).unwrap();
    let mut c = Client::new(&server);
    let enable = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    c.send(&req("PUT", "/bucket?versioning").body(enable))
        .is(200);
    c.put("/bucket/k", "one");
    c.send(&append(3, "x")).is_error(501, "NotImplemented");
    let nothing = Arc::new(NullStore::new(&NullOptions::default()));
    let server = Server::start(config(), nothing).unwrap();
    let put = Client::new(&server).send(&append(40, "xy")).is(200);
    assert_eq!(put.header("x-amz-object-size"), Some("42"));
}
