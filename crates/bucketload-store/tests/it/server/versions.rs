//! Versioning.

use super::client::{Client, Response, req, start};

/// Enables or suspends versioning of `bucket`.
fn set(c: &mut Client, state: &str) {
    let body =
        format!("<VersioningConfiguration><Status>{state}</Status></VersioningConfiguration>");
    c.send(&req("PUT", "/bucket?versioning").body(body)).is(200);
    let answer = c.get("/bucket?versioning").is(200);
    assert_eq!(answer.element("Status"), Some(state));
}

fn id(answer: &Response) -> String {
    answer.header("x-amz-version-id").unwrap().to_owned()
}

fn keys_and_ids(answer: &Response) -> Vec<(String, String)> {
    let keys = answer.elements("Key").into_iter().map(str::to_owned);
    let ids = answer.elements("VersionId").into_iter().map(str::to_owned);
    keys.zip(ids).collect()
}

#[test]
fn writes_add_versions_and_deletes_add_markers() {
    let (_server, mut c) = start();
    assert_eq!(c.put("/bucket/k", "zero").header("x-amz-version-id"), None);
    set(&mut c, "Enabled");
    let one = id(&c.put("/bucket/k", "one"));
    let two = id(&c.put("/bucket/k", "two"));
    assert!(one < two);
    let now = c.get("/bucket/k").is(200);
    assert_eq!((now.text(), id(&now)), ("two", two.clone()));
    for (version, text) in [("null", "zero"), (&*one, "one"), (&*two, "two")] {
        let path = format!("/bucket/k?versionId={version}");
        assert_eq!(c.get(&path).is(200).text(), text);
        let head = c.send(&req("HEAD", &path)).is(200);
        assert_eq!(
            head.header("content-length"),
            Some(&*text.len().to_string())
        );
    }
    c.get("/bucket/k?versionId=0000000000000001")
        .is_error(404, "NoSuchVersion");

    let deleted = c.send(&req("DELETE", "/bucket/k")).is(204);
    let marker = id(&deleted);
    assert_eq!(deleted.header("x-amz-delete-marker"), Some("true"));
    let gone = c.get("/bucket/k");
    assert_eq!(gone.header("x-amz-delete-marker"), Some("true"));
    assert_eq!(id(&gone), marker);
    gone.is_error(404, "NoSuchKey");
    let named = c.get(&format!("/bucket/k?versionId={marker}"));
    named.is_error(405, "MethodNotAllowed");
    assert!(c.get("/bucket?list-type=2").elements("Key").is_empty());
    let all = c.get("/bucket?versions").is(200);
    assert_eq!(
        all.elements("IsLatest"),
        ["true", "false", "false", "false"]
    );
    let ids: Vec<_> = keys_and_ids(&all).into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, [&*marker, &two, &one, "null"]);
    c.send(&req("DELETE", "/bucket"))
        .is_error(409, "BucketNotEmpty");

    // Without its marker the object is back; without its newest version, the one before.
    let undone = c.send(&req("DELETE", &format!("/bucket/k?versionId={marker}")));
    assert_eq!(undone.is(204).header("x-amz-delete-marker"), Some("true"));
    assert_eq!(c.get("/bucket/k").is(200).text(), "two");
    for version in [&*two, &*one, "null", "null"] {
        c.send(&req("DELETE", &format!("/bucket/k?versionId={version}")))
            .is(204);
    }
    c.get("/bucket/k").is_error(404, "NoSuchKey");
    assert!(keys_and_ids(&c.get("/bucket?versions")).is_empty());
    c.send(&req("DELETE", "/bucket")).is(204);
}

#[test]
fn a_suspended_bucket_writes_the_null_version() {
    let (_server, mut c) = start();
    set(&mut c, "Enabled");
    let one = id(&c.put("/bucket/k", "one"));
    set(&mut c, "Suspended");
    for text in ["two", "three"] {
        assert_eq!(c.put("/bucket/k", text).header("x-amz-version-id"), None);
        assert_eq!(id(&c.get("/bucket/k").is(200)), "null");
    }
    let ids = |c: &mut Client| -> Vec<String> {
        let all = keys_and_ids(&c.get("/bucket?versions"));
        all.into_iter().map(|(_, id)| id).collect()
    };
    assert_eq!(ids(&mut c), ["null", &*one]);
    let deleted = c.send(&req("DELETE", "/bucket/k")).is(204);
    assert_eq!(id(&deleted), "null");
    assert_eq!(ids(&mut c), ["null", &*one]);
    c.get("/bucket/k?versionId=null")
        .is_error(405, "MethodNotAllowed");
    c.send(&req("DELETE", "/bucket/k?versionId=null")).is(204);
    assert_eq!(c.get("/bucket/k").is(200).text(), "one");
    c.send(&req("PUT", "/bucket?versioning").body("<VersioningConfiguration/>"))
        .is_error(400, "MalformedXML");
}

#[test]
fn pages_of_versions() {
    let (_server, mut c) = start();
    c.put("/bucket/a", "old");
    set(&mut c, "Enabled");
    for key in ["a", "b/x", "b/y", "c", "c", "d"] {
        c.put(&format!("/bucket/{key}"), key);
    }
    c.send(&req("DELETE", "/bucket/d")).is(204);
    let whole = keys_and_ids(&c.get("/bucket?versions"));
    assert_eq!(whole.len(), 8);
    for size in 1..=8 {
        let mut all = Vec::new();
        let mut marker = String::new();
        loop {
            let page = c
                .get(&format!("/bucket?versions&max-keys={size}{marker}"))
                .is(200);
            all.extend(keys_and_ids(&page));
            let Some(key) = page.element("NextKeyMarker") else {
                assert_eq!(page.element("IsTruncated"), Some("false"));
                break;
            };
            let version = page.element("NextVersionIdMarker").unwrap();
            marker = format!("&key-marker={key}&version-id-marker={version}");
        }
        assert_eq!(all, whole, "pages of {size}");
    }
    let rolled = c.get("/bucket?versions&delimiter=/&max-keys=3").is(200);
    assert_eq!(rolled.elements("Key"), ["a", "a"]);
    assert_eq!(rolled.element("NextKeyMarker"), Some("b/"));
    assert_eq!(rolled.element("NextVersionIdMarker"), None);
    let rest = c.get("/bucket?versions&delimiter=/&key-marker=b/").is(200);
    assert_eq!(rest.elements("Key"), ["c", "c", "d", "d"]);
    let below = c.get("/bucket?versions&prefix=b/").is(200);
    assert_eq!(below.elements("Key"), ["b/x", "b/y"]);
    // A page goes on where a version was that has been deleted since.
    let (key, gone) = whole[4].clone();
    let newer = &whole[5];
    assert_eq!((&*key, &*newer.0), ("c", "c"));
    c.send(&req("DELETE", &format!("/bucket/{key}?versionId={gone}")))
        .is(204);
    let rest = c
        .get(&format!(
            "/bucket?versions&key-marker={key}&version-id-marker={gone}"
        ))
        .is(200);
    assert_eq!(keys_and_ids(&rest), whole[5..]);
    c.get(&format!("/bucket?versions&version-id-marker={gone}"))
        .is_error(400, "InvalidArgument");
}

#[test]
fn every_operation_takes_a_version() {
    let (_server, mut c) = start();
    set(&mut c, "Enabled");
    let put = req("PUT", "/bucket/k").header("x-amz-tagging", "n=1");
    let one = id(&c.send(&put.body("one")));
    let two = id(&c.put("/bucket/k", "two"));
    let old = |name: &str| format!("/bucket/k?{name}versionId={one}");
    assert_eq!(c.get(&old("tagging&")).is(200).element("Value"), Some("1"));
    let tags = "<Tagging><TagSet><Tag><Key>n</Key><Value>2</Value></Tag></TagSet></Tagging>";
    c.send(&req("PUT", &old("tagging&")).body(tags)).is(200);
    assert_eq!(c.get(&old("tagging&")).is(200).element("Value"), Some("2"));
    assert_eq!(c.get("/bucket/k?tagging").is(200).element("Value"), None);
    assert_eq!(c.get(&old("")).header("x-amz-tagging-count"), Some("1"));
    let attributes =
        req("GET", &old("attributes&")).header("x-amz-object-attributes", "ObjectSize");
    assert_eq!(id(&c.send(&attributes).is(200)), one);

    let source = format!("/bucket/k?versionId={one}");
    let copied = c.send(&req("PUT", "/bucket/copy").header("x-amz-copy-source", &source));
    assert_eq!(copied.header("x-amz-copy-source-version-id"), Some(&*one));
    assert_ne!(id(&copied), one);
    assert_eq!(c.get("/bucket/copy").is(200).text(), "one");
    // An old version is made current by copying it onto its own key.
    c.send(&req("PUT", "/bucket/k").header("x-amz-copy-source", &source))
        .is(200);
    assert_eq!(c.get("/bucket/k").is(200).text(), "one");

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
    let done = id(&c.send(&complete).is(200));
    assert_eq!(id(&c.get("/bucket/parts").is(200)), done);
    assert_eq!(id(&c.send(&complete).is(200)), done, "the same again");

    let many = format!(
        "<Delete><Object><Key>k</Key><VersionId>{two}</VersionId></Object><Object><Key>copy</Key></Object>\
         <Object><Key>k</Key><VersionId>x</VersionId></Object></Delete>"
    );
    let answer = c.send(&req("POST", "/bucket?delete").body(many)).is(200);
    assert_eq!(answer.elements("DeleteMarker"), ["true"]);
    assert_eq!(answer.element("Code"), Some("NoSuchVersion"));
    let marker = answer.element("DeleteMarkerVersionId").unwrap().to_owned();
    let gone = c.get("/bucket/copy");
    assert_eq!(id(&gone), marker);
    c.get(&format!("/bucket/k?versionId={two}"))
        .is_error(404, "NoSuchVersion");
}

#[test]
fn conditions_see_the_newest_version_only() {
    let (_server, mut c) = start();
    set(&mut c, "Enabled");
    let fresh = |c: &mut Client| {
        let put = req("PUT", "/bucket/k").header("If-None-Match", "*");
        c.send(&put.body("v"))
    };
    fresh(&mut c).is(200);
    fresh(&mut c).is_error(412, "PreconditionFailed");
    c.send(&req("DELETE", "/bucket/k")).is(204);
    // A delete marker counts as no object.
    fresh(&mut c).is(200);
    let other =
        req("DELETE", "/bucket/k").header("If-Match", "\"00000000000000000000000000000000\"");
    c.send(&other).is_error(412, "PreconditionFailed");
    let versions = c.get("/bucket?versions").is(200);
    assert_eq!(versions.elements("VersionId").len(), 3);
}
