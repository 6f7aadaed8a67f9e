use super::{Field, Param, SignedParts, Signer, decode_key, push_string_to_sign};
use crate::azblob::API_VERSION;

/// The key of the emulator's account, which is public ("Use the Azurite emulator").
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const fn field(name: &'static str, value: &'static str) -> Field<'static> {
    (name, value.as_bytes())
}

fn parts<'a>(path: &'a str, fields: &'a [Field<'a>], query: &'a [Param<'a>]) -> SignedParts<'a> {
    SignedParts {
        method: "GET",
        length: 0,
        content_md5: b"",
        content_type: "",
        if_match: "",
        if_none_match: "",
        fields,
        path: path.as_bytes(),
        query,
    }
}

fn text(account: &str, parts: &SignedParts<'_>) -> String {
    let mut out = Vec::new();
    push_string_to_sign(&mut out, account, parts);
    String::from_utf8(out).unwrap()
}

fn signature(account: &str, parts: &SignedParts<'_>) -> String {
    let mut signer = Signer::new(account, KEY, API_VERSION).unwrap();
    String::from_utf8(signer.sign(parts).to_vec()).unwrap()
}

/// The example of "Authorize with Shared Key", section "Blob, Queue, and File services (Shared Key
/// authorization)". The documentation does not publish its key, so the expected signature comes from
/// another implementation of HMAC-SHA256.
#[test]
fn the_documented_request() {
    let fields = [
        field("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
        field("x-ms-version", "2015-02-21"),
    ];
    let query = [
        ("comp", "metadata"),
        ("restype", "container"),
        ("timeout", "20"),
    ];
    let parts = parts("/mycontainer", &fields, &query);
    assert_eq!(
        text("myaccount", &parts),
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n\
         x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\nrestype:container\n\
         timeout:20"
    );
    assert_eq!(
        signature("myaccount", &parts),
        "1u9lui2jDxj0+fpbHjQ5m5NnastJRSYM+PSmfi8TXx4="
    );
}

#[test]
fn every_signed_field_has_its_line() {
    let fields = [
        field("x-ms-blob-type", "BlockBlob"),
        field("x-ms-date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        field("x-ms-version", "2022-11-02"),
    ];
    let parts = SignedParts {
        method: "PUT",
        length: 11,
        content_md5: b"sQqNsWTgdUEFt6mb5y4/5Q==",
        if_none_match: "*",
        ..parts("/devstoreaccount1/box/a%20b", &fields, &[])
    };
    assert_eq!(
        signature("devstoreaccount1", &parts),
        "lEoaE2B+PDPF2FAsuDEhf6vXOzOZpOEabaMji13e8X8="
    );
    let typed = SignedParts {
        content_type: "application/xml",
        ..parts
    };
    let text = text("devstoreaccount1", &typed);
    let lines: Vec<&str> = text.split('\n').collect();
    assert_eq!(
        lines[3..6],
        ["11", "sQqNsWTgdUEFt6mb5y4/5Q==", "application/xml"]
    );
    assert_eq!(lines[9], "*");
    assert_eq!(lines[15], "/devstoreaccount1/devstoreaccount1/box/a%20b");
}

#[test]
fn a_signature_for_one_blob_has_the_documented_form() {
    let mut signer = Signer::new("devstoreaccount1", KEY, API_VERSION).unwrap();
    let mut out = Vec::new();
    signer.push_read_sas(&mut out, "box", "a b/c", 784_111_777);
    // The expected signature comes from another implementation of HMAC-SHA256.
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "sv=2022-11-02&sr=b&sp=r&se=1994-11-06T08%3A49%3A37Z\
         &sig=mXjO05X%2FnA3Ph0ZUcU1hI7SSN0Jo6mGlCC2iAh4uEp4%3D"
    );
}

#[test]
fn keys_are_base64() {
    assert_eq!(decode_key(KEY).unwrap().len(), 64);
    for wrong in ["", "*", "abc"] {
        assert!(decode_key(wrong).is_none(), "{wrong}");
    }
    assert!(!format!("{:?}", Signer::new("a", KEY, API_VERSION)).contains("key"));
}
