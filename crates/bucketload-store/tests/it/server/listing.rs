//! Listings of objects.

use super::client::{Client, req, start};

const KEYS: [&str; 7] = ["a", "a/1", "a/2", "b/1", "b/2/x", "c d", "é"];

fn filled() -> (bucketload_server::ServerHandle, Client) {
    let (server, mut c) = start();
    for key in KEYS {
        c.put(&format!("/bucket/{key}"), key);
    }
    (server, c)
}

#[test]
fn version_2_pages() {
    let (_server, mut c) = filled();
    for max in 1..=8 {
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let mut list = req("GET", &format!("/bucket?list-type=2&max-keys={max}"));
            if !token.is_empty() {
                list.query
                    .push(("continuation-token".into(), token.clone()));
            }
            let page = c.send(&list).is(200);
            let keys: Vec<_> = page
                .elements("Key")
                .iter()
                .map(|k| (*k).to_owned())
                .collect();
            assert_eq!(page.element("KeyCount"), Some(&*keys.len().to_string()));
            assert!(keys.len() <= max);
            seen.extend(keys);
            match page.element("NextContinuationToken") {
                Some(next) => token = next.to_owned(),
                None => {
                    assert_eq!(page.element("IsTruncated"), Some("false"));
                    break;
                }
            }
            assert_eq!(page.element("IsTruncated"), Some("true"));
        }
        assert_eq!(seen, KEYS);
    }
    let page = c.get("/bucket?list-type=2&start-after=b/1").is(200);
    assert_eq!(page.elements("Key"), KEYS[4..]);
    assert_eq!(page.element("StartAfter"), Some("b/1"));
    assert_eq!(
        c.get("/bucket?list-type=2&max-keys=0")
            .is(200)
            .element("KeyCount"),
        Some("0")
    );
    assert_eq!(
        c.get("/bucket?list-type=2&max-keys=9999")
            .element("MaxKeys"),
        Some("1000")
    );
    assert_eq!(page.element("DisplayName"), None);
    assert!(
        c.get("/bucket?list-type=2&fetch-owner=true")
            .element("DisplayName")
            .is_some()
    );
    c.get("/bucket?list-type=2&max-keys=x")
        .is_error(400, "InvalidArgument");
    c.get("/bucket?list-type=2&continuation-token=!")
        .is_error(400, "InvalidArgument");
    c.get("/absent?list-type=2").is_error(404, "NoSuchBucket");
}

#[test]
fn prefixes_and_delimiters() {
    let (_server, mut c) = filled();
    let page = c.get("/bucket?list-type=2&delimiter=/").is(200);
    assert_eq!(page.elements("Key"), ["a", "c d", "é"]);
    let prefixes: Vec<_> = page
        .elements("CommonPrefixes")
        .iter()
        .map(|p| p.replace("<Prefix>", "").replace("</Prefix>", ""))
        .collect();
    assert_eq!(prefixes, ["a/", "b/"]);
    assert_eq!(page.element("KeyCount"), Some("5"));
    let page = c.get("/bucket?list-type=2&delimiter=/&prefix=b/").is(200);
    assert_eq!(
        (page.elements("Key"), page.element("Delimiter")),
        (vec!["b/1"], Some("/"))
    );
    assert!(
        page.text()
            .contains("<CommonPrefixes><Prefix>b/2/</Prefix></CommonPrefixes>")
    );
    let encoded = c
        .get("/bucket?list-type=2&encoding-type=url&prefix=c")
        .is(200);
    assert_eq!(
        (encoded.elements("Key"), encoded.element("EncodingType")),
        (vec!["c%20d"], Some("url"))
    );
    assert_eq!(
        c.get("/bucket?encoding-type=url&prefix=é").elements("Key"),
        ["%C3%A9"]
    );
    c.get("/bucket?encoding-type=base64")
        .is_error(400, "InvalidArgument");
}

#[test]
fn version_1_pages_by_marker() {
    let (_server, mut c) = filled();
    let (mut seen, mut marker) = (Vec::new(), String::new());
    loop {
        let mut list = req("GET", "/bucket?max-keys=2");
        list.query.push(("marker".into(), marker.clone()));
        let page = c.send(&list).is(200);
        assert_eq!(page.element("Marker"), Some(&*marker));
        assert!(page.element("DisplayName").is_some());
        seen.extend(page.elements("Key").iter().map(|k| (*k).to_owned()));
        match page.element("NextMarker") {
            Some(next) => marker = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, KEYS);
    let entry = c.get("/bucket?prefix=a/1").is(200);
    assert_eq!(
        (entry.element("Size"), entry.element("StorageClass")),
        (Some("3"), Some("STANDARD"))
    );
    assert_eq!(entry.element("ETag").unwrap().len(), 32 + 12);
}

#[test]
fn parameters_are_echoed_plain_unless_url_encoding_is_requested() {
    let (_server, mut c) = filled();
    let query = "prefix=c d\n&marker=a+b/&delimiter= /";
    for (list, want) in [
        ("", ["c d&#10;", "a+b/", " /"]),
        ("&encoding-type=url", ["c%20d%0A", "a%2Bb/", "%20/"]),
    ] {
        let page = c.get(&format!("/bucket?{query}{list}")).is(200);
        assert_eq!(
            ["Prefix", "Marker", "Delimiter"].map(|name| page.element(name)),
            want.map(Some)
        );
    }
}

#[test]
fn every_object_has_one_version() {
    let (_server, mut c) = filled();
    let page = c.get("/bucket?versions&max-keys=3").is(200);
    assert_eq!(
        (page.elements("Key"), page.element("IsLatest")),
        (vec!["a", "a/1", "a/2"], Some("true"))
    );
    assert_eq!(page.element("VersionId"), Some("null"));
    let next = page.element("NextKeyMarker").unwrap().to_owned();
    assert_eq!(
        c.get(&format!("/bucket?versions&key-marker={next}"))
            .elements("Key"),
        KEYS[3..]
    );
}
