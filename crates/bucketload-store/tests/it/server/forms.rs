//! Uploads by HTML forms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};

use super::client::{Auth, KEY, Request, SECRET, req, start};

fn form(fields: &[(&str, &str)], content: &str) -> Request {
    let mut body = String::new();
    for (name, value) in fields {
        body +=
            &format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    body += &format!(
        "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\n\r\n{content}\r\n--x--\r\n"
    );
    req("POST", "/bucket")
        .auth(Auth::Anonymous)
        .header("Content-Type", "multipart/form-data; boundary=x")
        .body(body)
}

/// The base64 of a policy with `conditions`.
fn policy(conditions: &str) -> String {
    BASE64.encode(format!(
        "{{\"expiration\":\"2099-01-01T00:00:00Z\",\"conditions\":[{conditions}]}}"
    ))
}

#[test]
fn a_signed_policy_admits_what_it_names() {
    let (_server, mut c) = start();
    let policy = policy(
        "{\"bucket\":\"bucket\"},[\"starts-with\",\"$key\",\"up/\"],[\"content-length-range\",1,5],\
         [\"starts-with\",\"$x-amz-credential\",\"\"],{\"x-amz-algorithm\":\"AWS4-HMAC-SHA256\"},\
         {\"x-amz-meta-m\":\"1\"},[\"starts-with\",\"$success_action_status\",\"2\"]",
    );
    let mac = |key: &[u8], text: &str| {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes()
    };
    let mut key = mac(format!("AWS4{SECRET}").as_bytes(), "20300101");
    for text in ["us-east-1", "s3", "aws4_request"] {
        key = mac(&key, text);
    }
    let signature: String = mac(&key, &policy)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let credential = format!("{KEY}/20300101/us-east-1/s3/aws4_request");
    let send = |c: &mut super::client::Client, to: &str, signature: &str, content: &str| {
        let fields = [
            ("key", to),
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Signature", signature),
            ("x-amz-meta-m", "1"),
            ("success_action_status", "201"),
            ("Policy", &policy),
        ];
        c.send(&form(&fields, content))
    };
    let answer = send(&mut c, "up/${filename}", &signature, "12345").is(201);
    assert_eq!(answer.element("Key"), Some("up/f.txt"));
    let get = c.get("/bucket/up/f.txt").is(200);
    assert_eq!(
        (get.text(), get.header("x-amz-meta-m")),
        ("12345", Some("1"))
    );
    send(&mut c, "down/k", &signature, "1").is_error(403, "AccessDenied");
    send(&mut c, "up/k", &signature, "123456").is_error(400, "EntityTooLarge");
    send(&mut c, "up/k", &signature, "").is_error(400, "EntityTooSmall");
    send(&mut c, "up/k", &"0".repeat(64), "1").is_error(403, "SignatureDoesNotMatch");
}

#[test]
fn forms_without_a_policy_need_a_public_bucket() {
    let (_server, mut c) = start();
    c.send(&form(&[("key", "k")], "v"))
        .is_error(403, "AccessDenied");
    c.send(&req("PUT", "/bucket?acl").header("x-amz-acl", "public-read-write"))
        .is(200);
    let url = "http://localhost/done";
    c.send(&form(&[("key", "k"), ("acl", "public-read")], "v"))
        .is(204);
    assert_eq!(
        c.send(&req("GET", "/bucket/k").auth(Auth::Anonymous))
            .text(),
        "v"
    );
    let sent = c.send(&form(
        &[("key", "k"), ("success_action_redirect", url)],
        "v",
    ));
    let etag = "9e3669d19b675bd57058fd4664205d2a";
    assert_eq!(
        sent.is(303).header("location"),
        Some(&*format!("{url}?bucket=bucket&key=k&etag=%22{etag}%22"))
    );
    c.send(&form(&[("acl", "private")], "v"))
        .is_error(400, "InvalidArgument");
    c.send(&req("POST", "/bucket").body("v"))
        .is_error(400, "MalformedPOSTRequest");
}
