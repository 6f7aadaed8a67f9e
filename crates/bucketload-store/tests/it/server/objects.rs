//! Objects: content, ranges, conditions, metadata, copies, deletion, tags.

use super::client::{Auth, Request, req, start};

const HELLO_MD5: &str = "5d41402abc4b2a76b9719d911017c592";

#[test]
fn put_get_head_delete() {
    let (_server, mut c) = start();
    let put = c.put("/bucket/k", "hello");
    assert_eq!(put.header("etag"), Some(&*format!("\"{HELLO_MD5}\"")));
    assert_eq!(put.header("server"), Some("bucketload"));
    let get = c.get("/bucket/k").is(200);
    assert_eq!(get.body, b"hello");
    assert_eq!(get.header("content-type"), Some("binary/octet-stream"));
    assert_eq!(get.header("accept-ranges"), Some("bytes"));
    assert_ne!(
        get.header("x-amz-request-id"),
        put.header("x-amz-request-id")
    );
    let head = c.send(&req("HEAD", "/bucket/k")).is(200);
    assert_eq!(head.header("content-length"), Some("5"));
    assert_eq!(head.header("last-modified"), get.header("last-modified"));
    c.send(&req("DELETE", "/bucket/k")).is(204);
    c.send(&req("DELETE", "/bucket/k")).is(204);
    c.get("/bucket/k").is_error(404, "NoSuchKey");
    assert_eq!(c.send(&req("HEAD", "/bucket/k")).status, 404);
    c.get("/absent/k").is_error(404, "NoSuchBucket");
    c.send(&req("PUT", "/absent/k").body("x"))
        .is_error(404, "NoSuchBucket");
    c.put("/bucket/empty", "");
    assert_eq!(c.get("/bucket/empty").is(200).body, b"");
}

#[test]
fn any_key_and_size() {
    let (_server, mut c) = start();
    let long = "k".repeat(1024);
    for key in [
        "a//b",
        ".",
        "..",
        "a/../b",
        " ",
        "ü/€?#%&+=\"<>",
        "\u{1}",
        &long,
        "/lead",
        "trail/",
    ] {
        let path = format!("/bucket/{key}");
        let mut put = req("PUT", "/");
        put.path.clone_from(&path);
        c.send(&put.body(key)).is(200);
        let mut get = req("GET", "/");
        get.path = path;
        assert_eq!(c.send(&get).is(200).body, key.as_bytes());
    }
    c.get(&format!("/bucket/{long}k"))
        .is_error(400, "KeyTooLongError");
    for size in [1, 4096, 65_535, 65_536, 100_000, 3_000_000] {
        let body: Vec<u8> = (0..size).map(|i: u32| (i * 7 + i / 251) as u8).collect();
        c.put("/bucket/sized", &body);
        assert_eq!(c.get("/bucket/sized").is(200).body, body);
    }
}

#[test]
fn ranges() {
    let (_server, mut c) = start();
    c.put("/bucket/k", "0123456789");
    for (range, status, body, content_range) in [
        ("bytes=2-4", 206, "234", Some("bytes 2-4/10")),
        ("bytes=5-", 206, "56789", Some("bytes 5-9/10")),
        ("bytes=-3", 206, "789", Some("bytes 7-9/10")),
        ("bytes=-30", 206, "0123456789", Some("bytes 0-9/10")),
        ("bytes=8-100", 206, "89", Some("bytes 8-9/10")),
        ("bytes=0-1,3-4", 200, "0123456789", None),
        ("lines=1-2", 200, "0123456789", None),
    ] {
        let get = c
            .send(&req("GET", "/bucket/k").header("Range", range))
            .is(status);
        assert_eq!(
            (get.text(), get.header("content-range")),
            (body, content_range),
            "{range}"
        );
    }
    let past = c.send(&req("GET", "/bucket/k").header("Range", "bytes=10-"));
    assert_eq!(past.header("content-range"), Some("bytes */10"));
    past.is_error(416, "InvalidRange");
    let head = c
        .send(&req("HEAD", "/bucket/k").header("Range", "bytes=2-4"))
        .is(206);
    assert_eq!(head.header("content-length"), Some("3"));
    let part = c.get("/bucket/k?partNumber=1").is(206);
    assert_eq!(part.body.len(), 10);
    c.get("/bucket/k?partNumber=2")
        .is_error(416, "InvalidPartNumber");
    c.get("/bucket/k?partNumber=0")
        .is_error(400, "InvalidArgument");
    c.send(&req("GET", "/bucket/k?partNumber=1").header("Range", "bytes=0-1"))
        .is_error(400, "InvalidRequest");
}

#[test]
fn conditions_of_reads() {
    let (_server, mut c) = start();
    c.put("/bucket/k", "hello");
    let modified = c
        .get("/bucket/k")
        .header("last-modified")
        .unwrap()
        .to_owned();
    let etag = format!("\"{HELLO_MD5}\"");
    let (past, future) = (
        "Thu, 01 Jan 1998 00:00:00 GMT",
        "Fri, 01 Jan 2100 00:00:00 GMT",
    );
    for (name, value, status) in [
        ("If-Match", etag.as_str(), 200),
        ("If-Match", "*", 200),
        (
            "If-Match",
            "\"x\", \"5d41402abc4b2a76b9719d911017c592\"",
            200,
        ),
        ("If-Match", "\"foreign\"", 412),
        ("If-None-Match", &etag, 304),
        ("If-None-Match", "*", 304),
        ("If-None-Match", "\"foreign\"", 200),
        ("If-Modified-Since", past, 200),
        ("If-Modified-Since", &modified, 304),
        // RFC 9110 requires dates in the future to be ignored.
        ("If-Modified-Since", future, 200),
        ("If-Modified-Since", "yesterday", 200),
        ("If-Unmodified-Since", past, 412),
        ("If-Unmodified-Since", future, 200),
    ] {
        let get = c.send(&req("GET", "/bucket/k").header(name, value));
        assert_eq!(get.status, status, "{name}: {value}");
        if status == 304 {
            assert_eq!((get.header("etag"), get.body.len()), (Some(&*etag), 0));
            assert_eq!(get.header("content-length"), None);
        }
        assert_eq!(
            c.send(&req("HEAD", "/bucket/k").header(name, value)).status,
            status
        );
    }
}

#[test]
fn conditions_of_writes() {
    let (_server, mut c) = start();
    let put = |name: &str, value: &str| req("PUT", "/bucket/k").header(name, value).body("v");
    c.send(&put("If-Match", "\"foreign\""))
        .is_error(404, "NoSuchKey");
    c.send(&put("If-None-Match", "*")).is(200);
    c.send(&put("If-None-Match", "*"))
        .is_error(412, "PreconditionFailed");
    c.send(&put("If-Match", "\"foreign\""))
        .is_error(412, "PreconditionFailed");
    let etag = c.get("/bucket/k").header("etag").unwrap().to_owned();
    c.send(&put("If-Match", &etag)).is(200);
    c.send(&put("If-None-Match", "\"x\""))
        .is_error(501, "NotImplemented");
    let delete = |value: &str| req("DELETE", "/bucket/k").header("If-Match", value);
    c.send(&delete("\"foreign\""))
        .is_error(412, "PreconditionFailed");
    c.send(&delete(&etag)).is(204);
}

#[test]
fn metadata_comes_back() {
    let (_server, mut c) = start();
    let put = req("PUT", "/bucket/k")
        .header("Content-Type", "text/plain")
        .header("Cache-Control", "no-cache")
        .header("Content-Disposition", "attachment")
        .header("Content-Encoding", "gzip")
        .header("Content-Language", "de")
        .header("Expires", "Fri, 01 Jan 2100 00:00:00 GMT")
        .header("x-amz-meta-colour", "grün")
        .header("X-Amz-Meta-Size", "large")
        .header("x-amz-storage-class", "STANDARD")
        .body("hello");
    c.send(&put).is(200);
    let get = c.get("/bucket/k").is(200);
    for (name, value) in [
        ("content-type", "text/plain"),
        ("cache-control", "no-cache"),
        ("content-disposition", "attachment"),
        ("content-encoding", "gzip"),
        ("content-language", "de"),
        ("expires", "Fri, 01 Jan 2100 00:00:00 GMT"),
        ("x-amz-meta-colour", "grün"),
        ("x-amz-meta-size", "large"),
    ] {
        assert_eq!(get.header(name), Some(value));
    }
    let get = c
        .get("/bucket/k?response-content-type=a/b&response-cache-control=x\r\ny: z")
        .is(200);
    assert_eq!(
        (get.header("content-type"), get.header("cache-control")),
        (Some("a/b"), Some("x  y: z"))
    );
    let big = req("PUT", "/bucket/k")
        .header("x-amz-meta-big", &"x".repeat(2048))
        .body("v");
    c.send(&big).is_error(400, "MetadataTooLarge");
    for (name, value, status, code) in [
        ("x-amz-storage-class", "GLACIER", 400, "InvalidStorageClass"),
        (
            "x-amz-server-side-encryption",
            "aws:kms",
            501,
            "NotImplemented",
        ),
        ("x-amz-acl", "public", 400, "InvalidArgument"),
        ("x-amz-grant-read", "id=1", 400, "InvalidArgument"),
        (
            "x-amz-object-lock-mode",
            "GOVERNANCE",
            400,
            "InvalidRequest",
        ),
    ] {
        c.send(&req("PUT", "/bucket/k").header(name, value).body("v"))
            .is_error(status, code);
    }
}

#[test]
fn storage_classes_are_remembered() {
    let class = "REDUCED_REDUNDANCY";
    let with = |request: Request| request.header("x-amz-storage-class", class);
    let (_server, mut c) = start();
    c.send(&with(req("PUT", "/bucket/a").body("v"))).is(200);
    let copy = |to: &str| req("PUT", to).header("x-amz-copy-source", "/bucket/a");
    c.send(&with(copy("/bucket/b"))).is(200);
    c.send(&copy("/bucket/c")).is(200);
    let upload = c.send(&with(req("POST", "/bucket/d?uploads"))).is(200);
    let id = upload.element("UploadId").unwrap();
    c.put(&format!("/bucket/d?partNumber=1&uploadId={id}"), "v");
    for listing in ["/bucket?uploads", &format!("/bucket/d?uploadId={id}")] {
        assert_eq!(c.get(listing).is(200).elements("StorageClass"), [class]);
    }
    let parts = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>";
    c.send(&req("POST", &format!("/bucket/d?uploadId={id}")).body(parts))
        .is(200);
    for (key, want) in [
        ("a", Some(class)),
        ("b", Some(class)),
        ("c", None),
        ("d", Some(class)),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = c.send(&req(method, &format!("/bucket/{key}"))).is(200);
            assert_eq!(answer.header("x-amz-storage-class"), want, "{method} {key}");
        }
        let attributes = req("GET", &format!("/bucket/{key}?attributes"))
            .header("x-amz-object-attributes", "StorageClass");
        let answer = c.send(&attributes).is(200);
        assert_eq!(answer.element("StorageClass"), want.or(Some("STANDARD")));
    }
    for listing in ["", "?list-type=2", "?versions"] {
        assert_eq!(
            c.get(&format!("/bucket{listing}")).elements("StorageClass"),
            [class, class, "STANDARD", class]
        );
    }
    for request in [copy("/bucket/x"), req("POST", "/bucket/x?uploads")] {
        c.send(&request.header("x-amz-storage-class", "reduced_redundancy"))
            .is_error(400, "InvalidStorageClass");
    }
}

#[test]
fn copies() {
    let (_server, mut c) = start();
    c.send(
        &req("PUT", "/bucket/a b")
            .header("x-amz-meta-m", "1")
            .header("x-amz-tagging", "t=1")
            .body("hello"),
    )
    .is(200);
    let copy = |to: &str, from: &str| req("PUT", to).header("x-amz-copy-source", from);
    let done = c.send(&copy("/bucket/copy", "/bucket/a%20b")).is(200);
    assert_eq!(
        done.element("ETag"),
        Some(&*format!("&quot;{HELLO_MD5}&quot;"))
    );
    let get = c.get("/bucket/copy").is(200);
    assert_eq!(
        (
            get.text(),
            get.header("x-amz-meta-m"),
            get.header("x-amz-tagging-count")
        ),
        ("hello", Some("1"), Some("1"))
    );
    let replaced = copy("/bucket/copy", "bucket/a%20b")
        .header("x-amz-metadata-directive", "REPLACE")
        .header("x-amz-tagging-directive", "REPLACE")
        .header("x-amz-meta-n", "2");
    c.send(&replaced).is(200);
    let get = c.get("/bucket/copy").is(200);
    assert_eq!(
        (get.header("x-amz-meta-m"), get.header("x-amz-meta-n")),
        (None, Some("2"))
    );
    assert_eq!(get.header("x-amz-tagging-count"), None);
    c.send(&copy("/bucket/copy", "/bucket/copy"))
        .is_error(400, "InvalidRequest");
    c.send(&copy("/bucket/copy", "/bucket/copy").header("x-amz-metadata-directive", "REPLACE"))
        .is(200);
    for (source, status, code) in [
        ("/bucket/absent", 404, "NoSuchKey"),
        ("/absent/k", 404, "NoSuchBucket"),
        ("nonsense", 400, "InvalidArgument"),
        ("/bucket/%zz", 400, "InvalidArgument"),
        ("/bucket/a%20b?versionId=7", 404, "NoSuchVersion"),
    ] {
        c.send(&copy("/bucket/x", source)).is_error(status, code);
    }
    let if_match = |value: &str| {
        copy("/bucket/x", "/bucket/a%20b").header("x-amz-copy-source-if-match", value)
    };
    c.send(&if_match("\"foreign\""))
        .is_error(412, "PreconditionFailed");
    c.send(&if_match(HELLO_MD5)).is(200);
    let if_none = copy("/bucket/x", "/bucket/a%20b").header("x-amz-copy-source-if-none-match", "*");
    c.send(&if_none).is_error(412, "PreconditionFailed");
    let bad = copy("/bucket/x", "/bucket/a%20b").header("x-amz-metadata-directive", "MERGE");
    c.send(&bad).is_error(400, "InvalidArgument");
}

#[test]
fn deleting_many() {
    let (_server, mut c) = start();
    for key in ["a", "b", "c&d"] {
        c.put(&format!("/bucket/{key}"), key);
    }
    let body = |quiet: &str, keys: &[&str]| {
        let objects: String = keys
            .iter()
            .map(|k| format!("<Object><Key>{k}</Key></Object>"))
            .collect();
        format!("<Delete>{quiet}{objects}</Delete>")
    };
    let done = c.send(
        &req("POST", "/bucket?delete")
            .auth(Auth::Signed)
            .body(body("", &["a", "c&amp;d", "absent"])),
    );
    assert_eq!(done.elements("Key"), ["a", "c&amp;d", "absent"]);
    let quiet = c
        .send(&req("POST", "/bucket?delete").body(body("<Quiet>true</Quiet>", &["b"])))
        .is(200);
    assert_eq!(quiet.elements("Key"), Vec::<&str>::new());
    assert_eq!(c.get("/bucket").elements("Key"), Vec::<&str>::new());
    let version = "<Delete><Object><Key>a</Key><VersionId>7</VersionId></Object></Delete>";
    let refused = c.send(&req("POST", "/bucket?delete").body(version)).is(200);
    assert_eq!(refused.element("Code"), Some("NoSuchVersion"));
    c.send(&req("POST", "/bucket?delete").body("<Delete/>"))
        .is_error(400, "MalformedXML");
    c.send(&req("POST", "/absent?delete").body(body("", &["a"])))
        .is_error(404, "NoSuchBucket");
    let md5 = req("POST", "/bucket?delete").header("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg==");
    c.send(&md5.body(body("", &["a"])))
        .is_error(400, "BadDigest");
}

/// Element of a deletion, header of a DELETE, value.
type Condition<'a> = (&'a str, &'a str, &'a str);

#[test]
fn conditions_of_deletes() {
    let (_server, mut c) = start();
    c.put("/bucket/k", "hello");
    let past = "Thu, 01 Jan 1998 00:00:00 GMT";
    let wrong = [
        ("ETag", "If-Match", "\"foreign\""),
        ("ETag", "If-Match", "\"d41d8cd98f00b204e9800998ecf8427e\""),
        ("Size", "x-amz-if-match-size", "4"),
        (
            "LastModifiedTime",
            "x-amz-if-match-last-modified-time",
            past,
        ),
    ];
    let one = |conditions: &[Condition<'_>]| {
        conditions
            .iter()
            .fold(req("DELETE", "/bucket/k"), |delete, (_, name, value)| {
                delete.header(name, value)
            })
    };
    let many = |conditions: &[Condition<'_>]| {
        let elements: String = conditions
            .iter()
            .map(|(name, _, value)| format!("<{name}>{value}</{name}>"))
            .collect();
        req("POST", "/bucket?delete").body(format!(
            "<Delete><Object><Key>k</Key>{elements}</Object><Object><Key>other</Key></Object></Delete>"
        ))
    };
    let size = ("Size", "x-amz-if-match-size", "5");
    for condition in wrong {
        c.send(&one(&[condition]))
            .is_error(412, "PreconditionFailed");
        let answer = c.send(&many(&[condition])).is(200);
        assert_eq!(answer.elements("Code"), ["PreconditionFailed"]);
        assert_eq!(answer.elements("Key"), ["k", "other"]);
    }
    // A condition that holds does not make up for one that does not.
    c.send(&one(&[size, wrong[0]]))
        .is_error(412, "PreconditionFailed");
    for single in [true, false] {
        for which in [0..3, 0..1, 1..2, 2..3] {
            c.put("/bucket/k", "hello");
            let head = c.send(&req("HEAD", "/bucket/k"));
            let written = head.header("last-modified").unwrap();
            let tag = ("ETag", "If-Match", HELLO_MD5);
            let modified = ("LastModifiedTime", wrong[3].1, written);
            let conditions = &[tag, size, modified][which];
            let delete = if single {
                one(conditions)
            } else {
                many(conditions)
            };
            let answer = c.send(&delete);
            assert!(matches!(answer.status, 200 | 204), "{}", answer.text());
            assert_eq!(answer.element("Code"), None);
            c.get("/bucket/k").is_error(404, "NoSuchKey");
        }
    }
    c.put("/bucket/k", "hello");
    for (name, value) in [
        ("x-amz-if-match-size", "many"),
        ("x-amz-if-match-last-modified-time", "yesterday"),
    ] {
        c.send(&req("DELETE", "/bucket/k").header(name, value))
            .is_error(400, "InvalidArgument");
    }
}

/// No object is ever archived, so a restore is refused as in S3.
#[test]
fn restoring_what_is_not_archived_is_refused() {
    let (_server, mut c) = start();
    c.send(&req("PUT", "/bucket/k").body("v")).is(200);
    let asked = |days: &str| format!("<RestoreRequest><Days>{days}</Days></RestoreRequest>");
    let mut restore = |key: &str, body: String| {
        c.send(&req("POST", &format!("/bucket/{key}?restore")).body(body))
    };
    restore("k", asked("1")).is_error(403, "InvalidObjectState");
    restore("absent", asked("1")).is_error(404, "NoSuchKey");
    restore("k", asked("0")).is_error(400, "InvalidArgument");
    restore("k", asked("soon")).is_error(400, "MalformedXML");
    restore("k", "<x/>".to_owned()).is_error(400, "MalformedXML");
    c.get("/bucket/k").is(200);
}

#[test]
fn tags() {
    let (_server, mut c) = start();
    c.send(
        &req("PUT", "/bucket/k")
            .header("x-amz-tagging", "a=1&b%20c=d")
            .body("v"),
    )
    .is(200);
    let get = c.get("/bucket/k?tagging").is(200);
    assert_eq!(
        (get.elements("Key"), get.elements("Value")),
        (vec!["a", "b c"], vec!["1", "d"])
    );
    let body = "<Tagging><TagSet><Tag><Key>x</Key><Value>y</Value></Tag></TagSet></Tagging>";
    c.send(&req("PUT", "/bucket/k?tagging").body(body)).is(200);
    assert_eq!(c.get("/bucket/k?tagging").elements("Key"), ["x"]);
    assert_eq!(c.get("/bucket/k").header("x-amz-tagging-count"), Some("1"));
    c.send(&req("DELETE", "/bucket/k?tagging")).is(204);
    assert_eq!(
        c.get("/bucket/k?tagging").elements("Key"),
        Vec::<&str>::new()
    );
    c.get("/bucket/absent?tagging").is_error(404, "NoSuchKey");
    c.send(&req("PUT", "/bucket/k?tagging").body("<x/>"))
        .is_error(400, "MalformedXML");
    c.send(
        &req("PUT", "/bucket/k")
            .header("x-amz-tagging", "a=1&a=2")
            .body("v"),
    )
    .is_error(400, "InvalidTag");
}

#[test]
fn subresources_of_objects() {
    let (_server, mut c) = start();
    c.put("/bucket/k", "hello");
    assert!(
        c.get("/bucket/k?acl")
            .is(200)
            .text()
            .contains("FULL_CONTROL")
    );
    c.send(&req("PUT", "/bucket/k?acl").header("x-amz-acl", "private"))
        .is(200);
    c.get("/bucket/k?retention").is_error(400, "InvalidRequest");
    c.get("/bucket/k?torrent").is_error(501, "NotImplemented");
    c.get("/bucket/k?versionId=7")
        .is_error(404, "NoSuchVersion");
    assert_eq!(
        c.get("/bucket/k?versionId=null&x-id=GetObject")
            .is(200)
            .text(),
        "hello"
    );
    let attributes = req("GET", "/bucket/k?attributes")
        .header("x-amz-object-attributes", "ETag,ObjectSize,StorageClass");
    let answer = c.send(&attributes).is(200);
    assert_eq!(
        (answer.element("ETag"), answer.element("ObjectSize")),
        (Some(HELLO_MD5), Some("5"))
    );
    c.get("/bucket/k?attributes")
        .is_error(400, "InvalidArgument");
    c.send(&req("PATCH", "/bucket/k"))
        .is_error(405, "MethodNotAllowed");
}
