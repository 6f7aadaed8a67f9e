//! Keys, names of encryptions, and which requests carry which fields.

use super::{CustomerKey, Encryption, Fields, Keeping, Kind};
use crate::http::endpoint::Endpoint;

fn names(keeping: &Keeping, kind: Kind) -> Vec<String> {
    let fields = Fields::of(keeping);
    let standing = fields.of_kind(kind);
    let short = |name: &str| {
        name.replace("x-amz-", "")
            .replace("server-side-encryption", "sse")
            .replace("copy-source", "source")
    };
    standing.fields().map(|(name, _)| short(name)).collect()
}

fn keeping(encryption: Encryption) -> Keeping {
    Keeping {
        storage_class: Some("COLD".to_owned()),
        encryption: Some(encryption),
    }
}

#[test]
fn each_kind_of_request_carries_its_fields() {
    let none = Keeping::default();
    let kinds = [
        Kind::Other,
        Kind::Object,
        Kind::Content,
        Kind::Copy,
        Kind::PartCopy,
    ];
    for kind in kinds {
        assert_eq!(Fields::of(&none).of_kind(kind).number(), 0);
    }
    let service = keeping("aws:kms:arn:aws:kms:r:1:key/k".parse().unwrap());
    for kind in [Kind::Object, Kind::Copy] {
        let want = ["sse", "sse-aws-kms-key-id", "storage-class"];
        assert_eq!(names(&service, kind), want);
    }
    for kind in [Kind::Other, Kind::Content, Kind::PartCopy] {
        assert!(names(&service, kind).is_empty(), "{kind:?}");
    }
    let own = [
        "sse-customer-algorithm",
        "sse-customer-key",
        "sse-customer-key-md5",
    ];
    let source = own.map(|name| format!("source-{name}"));
    let customer = keeping(Encryption::Customer(CustomerKey::new(&[7; 32])));
    let class = "storage-class";
    assert!(names(&customer, Kind::Other).is_empty());
    assert_eq!(names(&customer, Kind::Content), own);
    assert_eq!(
        names(&customer, Kind::Object),
        [&own[..], &[class]].concat()
    );
    let copied: Vec<_> = source.iter().map(String::as_str).chain(own).collect();
    assert_eq!(names(&customer, Kind::PartCopy), copied);
    assert_eq!(
        names(&customer, Kind::Copy),
        [&copied[..], &[class]].concat()
    );
}

#[test]
fn encryptions_have_names() {
    for name in [
        "AES256",
        "aws:kms",
        "aws:kms:my-key",
        "aws:kms:dsse",
        "aws:kms:dsse:k",
    ] {
        assert_eq!(name.parse::<Encryption>().unwrap().to_string(), name);
    }
    for wrong in ["", "aes256", "aws:kms:", "aws:kmsx", "aws:kms:a b", "none"] {
        let error = wrong.parse::<Encryption>().unwrap_err();
        assert!(error.contains("AES256, aws:kms"), "{error}");
    }
}

#[test]
fn keys_are_read_in_three_forms_and_never_shown() {
    let key = CustomerKey::new(&[0xab; 32]);
    let base64 = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=";
    let hex = "Ab".repeat(32);
    assert_eq!(
        CustomerKey::parse(format!("{base64}\n").as_bytes(), "p"),
        Ok(key.clone())
    );
    assert_eq!(CustomerKey::parse(hex.as_bytes(), "p"), Ok(key.clone()));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    for contents in [&[0xab; 32][..], hex.as_bytes()] {
        std::fs::write(&path, contents).unwrap();
        assert_eq!(CustomerKey::read(&path), Ok(key.clone()));
    }
    for wrong in ["hush", &"xy".repeat(32), &base64[4..], ""] {
        std::fs::write(&path, wrong).unwrap();
        let error = CustomerKey::read(&path).unwrap_err().to_string();
        assert!(
            error.starts_with("--sse-c ") && error.contains("openssl"),
            "{error}"
        );
        assert!(wrong.is_empty() || !error.contains(wrong), "{error}");
    }
    let shown = format!("{key:?} {}", Encryption::Customer(key.clone()));
    assert!(shown.contains("***") && !shown.contains("q6ur"), "{shown}");
    assert_eq!(key.scrub(&format!("bad {base64}")), "bad ***");
}

#[test]
fn a_key_does_not_cross_a_network_in_the_clear() {
    let customer = keeping(Encryption::Customer(CustomerKey::new(&[7; 32])));
    let check =
        |keeping: &Keeping, url: &str| keeping.check(&[Endpoint::parse(url, "test").unwrap()]);
    for url in [
        "http://localhost:1",
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "https://far.example",
    ] {
        assert_eq!(check(&customer, url), Ok(()), "{url}");
    }
    let error = check(&customer, "http://far.example:9000").unwrap_err();
    assert!(
        error.to_string().contains("http://far.example:9000"),
        "{error}"
    );
    assert_eq!(
        check(&keeping(Encryption::Managed), "http://far.example"),
        Ok(())
    );
}
