//! Multipart uploads.

use super::client::{Client, req, start};
use super::signer::hex;

const PART: usize = 5 << 20;

/// Starts an upload of `/bucket/k` and returns its id.
fn create(c: &mut Client, headers: &[(&str, &str)]) -> String {
    let mut request = req("POST", "/bucket/k?uploads");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    c.send(&request)
        .is(200)
        .element("UploadId")
        .unwrap()
        .to_owned()
}

fn part(c: &mut Client, id: &str, number: usize, body: &[u8]) -> String {
    let put = c
        .send(
            &req(
                "PUT",
                &format!("/bucket/k?partNumber={number}&uploadId={id}"),
            )
            .body(body),
        )
        .is(200);
    put.header("etag").unwrap().to_owned()
}

fn completion(parts: &[(usize, &str)]) -> String {
    let parts: String = parts
        .iter()
        .map(|(number, etag)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
        })
        .collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}

fn md5(data: &[u8]) -> Vec<u8> {
    use md5::{Digest, Md5};
    Md5::digest(data).to_vec()
}

#[test]
fn parts_become_an_object() {
    let (_server, mut c) = start();
    let id = create(&mut c, &[("x-amz-meta-m", "1"), ("Content-Type", "a/b")]);
    let (one, two) = (vec![1; PART], vec![2; 1000]);
    let second = part(&mut c, &id, 7, &two);
    let first = part(&mut c, &id, 2, &one);
    c.get("/bucket/k").is_error(404, "NoSuchKey");
    let listed = c.get(&format!("/bucket/k?uploadId={id}")).is(200);
    assert_eq!(
        (listed.elements("PartNumber"), listed.elements("Size")),
        (vec!["2", "7"], vec!["5242880", "1000"])
    );
    let page = c
        .get(&format!("/bucket/k?uploadId={id}&max-parts=1"))
        .is(200);
    assert_eq!(
        (
            page.element("IsTruncated"),
            page.element("NextPartNumberMarker")
        ),
        (Some("true"), Some("2"))
    );
    let page = c
        .get(&format!("/bucket/k?uploadId={id}&part-number-marker=2"))
        .is(200);
    assert_eq!(page.elements("PartNumber"), ["7"]);
    let target = format!("/bucket/k?uploadId={id}");
    let done = c
        .send(&req("POST", &target).body(completion(&[(2, &first), (7, &second)])))
        .is(200);
    let etag = format!("{}-2", hex(&md5(&[md5(&one), md5(&two)].concat())));
    assert_eq!(done.element("ETag"), Some(&*format!("&quot;{etag}&quot;")));
    // The same completion again: the client may have lost the first response.
    let again = |id: &str, parts: &[(usize, &str)]| {
        req("POST", &format!("/bucket/k?uploadId={id}")).body(completion(parts))
    };
    let repeated = c.send(&again(&id, &[(2, &first), (7, &second)])).is(200);
    assert_eq!(repeated.text(), done.text());
    c.send(&again(&id, &[(2, &first)]))
        .is_error(404, "NoSuchUpload");
    for unknown in ["nope", &"f".repeat(32)] {
        c.send(&again(unknown, &[(2, &first), (7, &second)]))
            .is_error(404, "NoSuchUpload");
    }
    let get = c.get("/bucket/k").is(200);
    assert!(get.body == [one.clone(), two.clone()].concat());
    assert_eq!(
        (get.header("x-amz-meta-m"), get.header("content-type")),
        (Some("1"), Some("a/b"))
    );
    let get = c.get("/bucket/k?partNumber=2").is(206);
    assert_eq!(
        (get.body == two, get.header("x-amz-mp-parts-count")),
        (true, Some("2"))
    );
    assert_eq!(
        get.header("content-range"),
        Some("bytes 5242880-5243879/5243880")
    );
    let across = c
        .send(&req("GET", "/bucket/k").header("Range", "bytes=5242879-5242880"))
        .is(206);
    assert_eq!(across.body, [1, 2]);
    let attributes =
        req("GET", "/bucket/k?attributes").header("x-amz-object-attributes", "ObjectParts");
    let all = c.send(&attributes).is(200);
    assert_eq!(all.element("PartsCount"), Some("2"));
    assert_eq!(all.elements("PartNumber"), ["1", "2"]);
    assert_eq!(all.elements("Size"), ["5242880", "1000"]);
    assert_eq!(all.element("IsTruncated"), Some("false"));
    let page = |max: &str, marker: &str| {
        req("GET", "/bucket/k?attributes")
            .header("x-amz-object-attributes", "ObjectParts")
            .header("x-amz-max-parts", max)
            .header("x-amz-part-number-marker", marker)
    };
    for (marker, numbers, next, truncated) in
        [("0", ["1"], "1", "true"), ("1", ["2"], "2", "false")]
    {
        let page = c.send(&page("1", marker)).is(200);
        assert_eq!(page.elements("PartNumber"), numbers);
        assert_eq!(page.element("MaxParts"), Some("1"));
        assert_eq!(page.element("PartNumberMarker"), Some(marker));
        assert_eq!(page.element("NextPartNumberMarker"), Some(next));
        assert_eq!(page.element("IsTruncated"), Some(truncated));
    }
    c.get(&format!("/bucket/k?uploadId={id}"))
        .is_error(404, "NoSuchUpload");
    c.put("/bucket/k", "overwritten");
    c.send(&again(&id, &[(2, &first), (7, &second)]))
        .is_error(404, "NoSuchUpload");
}

#[test]
fn bad_completions_are_refused() {
    let (_server, mut c) = start();
    let id = create(&mut c, &[]);
    let target = format!("/bucket/k?uploadId={id}");
    let small = part(&mut c, &id, 1, b"small");
    let last = part(&mut c, &id, 2, b"last");
    let complete = |parts: &[(usize, &str)]| req("POST", &target).body(completion(parts));
    let foreign = "\"d41d8cd98f00b204e9800998ecf8427e\"";
    c.send(&complete(&[(1, &small), (2, &last)]))
        .is_error(400, "EntityTooSmall");
    c.send(&complete(&[(2, &last), (1, &small)]))
        .is_error(400, "InvalidPartOrder");
    c.send(&complete(&[(3, &last)]))
        .is_error(400, "InvalidPart");
    c.send(&complete(&[(1, foreign)]))
        .is_error(400, "InvalidPart");
    c.send(&complete(&[])).is_error(400, "MalformedXML");
    c.send(&req("POST", "/bucket/k?uploadId=nope").body(completion(&[(1, &small)])))
        .is_error(404, "NoSuchUpload");
    // The store cannot have issued this tag.
    c.send(&complete(&[(1, "\"foreign\"")]))
        .is_error(400, "InvalidPart");
    c.send(&req("POST", "/bucket/k?uploadId=nope").body(completion(&[(1, "foreign")])))
        .is_error(404, "NoSuchUpload");
    c.put("/bucket/k", "there");
    c.send(&complete(&[(1, &small)]).header("If-None-Match", "*"))
        .is_error(412, "PreconditionFailed");
    c.send(&complete(&[(1, &small)])).is(200);
    assert_eq!(c.get("/bucket/k").text(), "small");
    for number in ["0", "10001", "x"] {
        let target = format!("/bucket/k?partNumber={number}&uploadId={id}");
        c.send(&req("PUT", &target).body("x"))
            .is_error(400, "InvalidArgument");
    }
    c.send(&req("PUT", "/bucket/k?partNumber=1&uploadId=nope").body("x"))
        .is_error(404, "NoSuchUpload");
}

#[test]
fn uploads_are_listed_and_aborted() {
    let (_server, mut c) = start();
    let id = create(&mut c, &[]);
    let other = c
        .send(&req("POST", "/bucket/a/b?uploads"))
        .is(200)
        .element("UploadId")
        .unwrap()
        .to_owned();
    let list = c.get("/bucket?uploads").is(200);
    assert_eq!(
        (list.elements("Key"), list.elements("UploadId")),
        (vec!["a/b", "k"], vec![&*other, &*id])
    );
    let page = c.get("/bucket?uploads&max-uploads=1").is(200);
    assert_eq!(
        (page.elements("Key"), page.element("NextKeyMarker")),
        (vec!["a/b"], Some("a/b"))
    );
    assert_eq!(
        c.get("/bucket?uploads&key-marker=a/b").elements("Key"),
        ["k"]
    );
    assert!(
        c.get("/bucket?uploads&delimiter=/")
            .text()
            .contains("<Prefix>a/</Prefix></CommonPrefixes>")
    );
    assert_eq!(c.get("/bucket?uploads&prefix=k").elements("Key"), ["k"]);
    part(&mut c, &id, 1, b"x");
    c.send(&req("DELETE", &format!("/bucket/k?uploadId={id}")))
        .is(204);
    c.send(&req("DELETE", &format!("/bucket/k?uploadId={id}")))
        .is_error(404, "NoSuchUpload");
    assert_eq!(c.get("/bucket?uploads").elements("Key"), ["a/b"]);
}

#[test]
fn parts_are_copied() {
    let (_server, mut c) = start();
    c.put("/bucket/src", "0123456789");
    for checksum in [None, Some(("x-amz-checksum-algorithm", "SHA256"))] {
        let headers: Vec<_> = checksum.into_iter().collect();
        let id = create(&mut c, &headers);
        let copy = |range: &str| {
            req("PUT", &format!("/bucket/k?partNumber=1&uploadId={id}"))
                .header("x-amz-copy-source", "/bucket/src")
                .header("x-amz-copy-source-range", range)
        };
        c.send(&copy("bytes=5-10")).is_error(416, "InvalidRange");
        c.send(&copy("bytes=5-")).is_error(400, "InvalidArgument");
        let done = c.send(&copy("bytes=2-5")).is(200);
        assert_eq!(done.element("ChecksumSHA256").is_some(), checksum.is_some());
        let etag = done.element("ETag").unwrap().to_owned();
        let complete =
            req("POST", &format!("/bucket/k?uploadId={id}")).body(completion(&[(1, &etag)]));
        assert_eq!(
            c.send(&complete)
                .is(200)
                .element("ChecksumSHA256")
                .is_some(),
            checksum.is_some()
        );
        assert_eq!(c.get("/bucket/k").text(), "2345");
    }
}

#[test]
fn checksums_of_multipart_objects() {
    let (_server, mut c) = start();
    let sums = "x-amz-checksum-algorithm";
    // CRC32 of 5 MiB of ones followed by "tail", and the composite of the parts' SHA-256.
    let (one, two) = (vec![1; PART], b"tail".to_vec());
    let whole = {
        let mut crc = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32IsoHdlc);
        crc.update(&one);
        crc.update(&two);
        base64(&(crc.finalize() as u32).to_be_bytes())
    };
    let composite = {
        use sha2::{Digest, Sha256};
        let parts = [Sha256::digest(&one), Sha256::digest(&two)].concat();
        format!("{}-2", base64(&Sha256::digest(parts)))
    };
    for (headers, element, want, wrong) in [
        (
            vec![(sums, "CRC32"), ("x-amz-checksum-type", "FULL_OBJECT")],
            "ChecksumCRC32",
            &whole,
            "AAAAAA==",
        ),
        (
            vec![(sums, "SHA256")],
            "ChecksumSHA256",
            &composite,
            "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=-2",
        ),
    ] {
        let id = create(&mut c, &headers);
        let tags = [part(&mut c, &id, 1, &one), part(&mut c, &id, 2, &two)];
        let target = format!("/bucket/k?uploadId={id}");
        let header = element
            .replace("Checksum", "x-amz-checksum-")
            .to_lowercase();
        let complete = |sum: &str| {
            let parts = completion(&[(1, &tags[0]), (2, &tags[1])]);
            req("POST", &target).header(&header, sum).body(parts)
        };
        c.send(&complete(wrong)).is_error(400, "BadDigest");
        // Some clients omit the number of parts.
        let bare = want.trim_end_matches("-2");
        assert_eq!(
            c.send(&complete(bare)).is(200).element(element),
            Some(&**want)
        );
        let head = c
            .send(&req("HEAD", "/bucket/k").header("x-amz-checksum-mode", "ENABLED"))
            .is(200);
        assert_eq!(head.header(&header), Some(&**want));
        let kind = head.header("x-amz-checksum-type");
        assert!(kind.is_some());
        for method in ["GET", "HEAD"] {
            let of_part = c
                .send(
                    &req(method, "/bucket/k?partNumber=2").header("x-amz-checksum-mode", "ENABLED"),
                )
                .is(206);
            assert_eq!(of_part.header("x-amz-checksum-type"), kind);
            // The checksum is that of the part.
            assert!(of_part.header(&header).is_some());
            assert_ne!(of_part.header(&header), Some(&**want));
        }
    }
    let bad = |name: &str, kind: &str| {
        req("POST", "/bucket/k?uploads")
            .header(sums, name)
            .header("x-amz-checksum-type", kind)
    };
    c.send(&bad("SHA1", "FULL_OBJECT"))
        .is_error(400, "InvalidRequest");
    c.send(&bad("CRC64NVME", "COMPOSITE"))
        .is_error(400, "InvalidRequest");
    c.send(&bad("MD5", "COMPOSITE"))
        .is_error(400, "InvalidRequest");
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn parts_keep_their_checksums() {
    const NAME: &str = "x-amz-checksum-crc32";
    let (_server, mut c) = start();
    for kind in ["COMPOSITE", "FULL_OBJECT"] {
        let announced = [
            ("x-amz-checksum-algorithm", "CRC32"),
            ("x-amz-checksum-type", kind),
        ];
        let id = create(&mut c, &announced);
        let mut parts = Vec::new();
        for (number, body) in [(3, vec![1; PART]), (8, vec![2; 1000])] {
            let target = format!("/bucket/k?partNumber={number}&uploadId={id}");
            let put = c.put(&target, body);
            let value = |name: &str| put.header(name).unwrap().to_owned();
            parts.push((number, value("etag"), value(NAME)));
        }
        let named: Vec<_> = parts.iter().map(|(n, tag, _)| (*n, &**tag)).collect();
        let complete = req("POST", &format!("/bucket/k?uploadId={id}")).body(completion(&named));
        c.send(&complete).is(200);
        let told = |c: &mut Client| {
            let ask = req("GET", "/bucket/k?attributes");
            let ask = ask.header("x-amz-object-attributes", "ObjectParts");
            let told = c.send(&ask).is(200);
            told.elements("ChecksumCRC32")
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let sums: Vec<_> = parts.iter().map(|(_, _, sum)| sum.clone()).collect();
        assert_eq!(told(&mut c), sums);
        for (number, sum) in sums.iter().enumerate() {
            for method in ["GET", "HEAD"] {
                let part = format!("/bucket/k?partNumber={}", number + 1);
                let ask = req(method, &part).header("x-amz-checksum-mode", "ENABLED");
                let part = c.send(&ask).is(206);
                assert_eq!(part.header(NAME), Some(&**sum));
                assert_eq!(part.header("x-amz-checksum-type"), Some(kind));
            }
        }
        // Tags change nothing about the parts; a copy has none.
        let tags = "<Tagging><TagSet></TagSet></Tagging>";
        c.send(&req("PUT", "/bucket/k?tagging").body(tags)).is(200);
        assert_eq!(told(&mut c), sums);
        c.send(
            &req("PUT", "/bucket/k")
                .header("x-amz-copy-source", "/bucket/k")
                .header("x-amz-metadata-directive", "REPLACE"),
        )
        .is(200);
        assert!(told(&mut c).is_empty());
    }
}
