//! The headers of server-side encryption.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::client::{Request, req, start};

/// `request` with the customer's key of 32 bytes `byte`.
fn with_key(request: Request, prefix: &str, byte: u8) -> Request {
    let key = BASE64.encode([byte; 32]);
    let md5 = match byte {
        1 => "4Funlf7OsLF0HL+vKU+fkg==",
        _ => "F3apf5enN9TQbA8CaOS4/g==",
    };
    let name = |end: &str| format!("{prefix}server-side-encryption-customer-{end}");
    request
        .header(&name("algorithm"), "AES256")
        .header(&name("key"), &key)
        .header(&name("key-MD5"), md5)
}

#[test]
fn a_customers_key_is_needed_to_read() {
    let (_server, mut c) = start();
    let amz = "x-amz-";
    let put = c
        .send(&with_key(req("PUT", "/bucket/k"), amz, 1).body("v"))
        .is(200);
    let md5 = "x-amz-server-side-encryption-customer-key-md5";
    assert!(put.header(md5).is_some() && put.header("x-amz-server-side-encryption").is_none());
    let get = c.send(&with_key(req("GET", "/bucket/k"), amz, 1)).is(200);
    assert_eq!((get.text(), get.header(md5)), ("v", put.header(md5)));
    c.get("/bucket/k").is_error(400, "InvalidRequest");
    assert_eq!(c.send(&req("HEAD", "/bucket/k")).status, 400);
    c.send(&with_key(req("GET", "/bucket/k"), amz, 2))
        .is_error(400, "InvalidRequest");
    let copy = || req("PUT", "/bucket/copy").header("x-amz-copy-source", "/bucket/k");
    c.send(&copy()).is_error(400, "InvalidRequest");
    c.send(&with_key(copy(), "x-amz-copy-source-", 1)).is(200);
    assert_eq!(c.get("/bucket/copy").is(200).text(), "v");
    c.send(&with_key(req("GET", "/bucket/copy"), amz, 1))
        .is_error(400, "InvalidRequest");
    let wrong =
        with_key(req("PUT", "/bucket/x"), amz, 1).header("x-amz-server-side-encryption", "AES256");
    c.send(&wrong.body("v")).is_error(400, "InvalidArgument");
    let without_md5 = req("PUT", "/bucket/x")
        .header("x-amz-server-side-encryption-customer-algorithm", "AES256")
        .header(
            "x-amz-server-side-encryption-customer-key",
            &BASE64.encode([1; 32]),
        );
    c.send(&without_md5.body("v"))
        .is_error(400, "InvalidArgument");
}

#[test]
fn managed_keys_are_named_and_may_be_the_default() {
    let (_server, mut c) = start();
    let header = "x-amz-server-side-encryption";
    let put = req("PUT", "/bucket/k").header(header, "AES256").body("v");
    assert_eq!(c.send(&put).is(200).header(header), Some("AES256"));
    assert_eq!(c.get("/bucket/k").is(200).header(header), Some("AES256"));
    c.send(&req("GET", "/bucket/k").header(header, "AES256"))
        .is_error(400, "InvalidRequest");
    assert_eq!(c.put("/bucket/plain", "v").header(header), None);
    let rule = |algorithm: &str| {
        req("PUT", "/bucket?encryption").body(format!(
            "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>{algorithm}\
             </SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>"
        ))
    };
    c.send(&rule("aws:kms")).is_error(501, "NotImplemented");
    c.send(&rule("AES256")).is(200);
    assert_eq!(c.put("/bucket/plain", "v").header(header), Some("AES256"));
    let keyed = with_key(req("PUT", "/bucket/keyed"), "x-amz-", 1).body("v");
    assert_eq!(c.send(&keyed).is(200).header(header), None);
    c.send(&req("DELETE", "/bucket?encryption")).is(204);
    assert_eq!(c.put("/bucket/plain", "v").header(header), None);
}
