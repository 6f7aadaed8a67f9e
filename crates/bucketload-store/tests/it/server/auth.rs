//! Authorisation: signatures, regions, clocks, presigned URLs, anonymous access.

use bucketload_server::{Access, Server};

use super::client::{Auth, Client, SECRET, config, memory, req, start, start_with};
use super::signer::{amz_date, encode};

#[test]
fn wrong_signatures_get_distinct_errors() {
    let (_server, mut c) = start();
    c.put("/bucket/k", "v");
    let good = c.signer.clone();
    c.signer.secret = "wrong".into();
    c.get("/bucket/k").is_error(403, "SignatureDoesNotMatch");
    c.signer = good.clone();
    c.signer.key = "stranger".into();
    c.get("/bucket/k").is_error(403, "InvalidAccessKeyId");
    c.signer = good.clone();
    c.signer.region = "eu-west-1".into();
    let answer = c.get("/bucket/k");
    assert_eq!(answer.element("Region"), Some("us-east-1"));
    assert!(
        answer.text().contains("expecting &apos;us-east-1&apos;"),
        "{}",
        answer.text()
    );
    assert!(!answer.text().contains(SECRET));
    answer.is_error(400, "AuthorizationHeaderMalformed");
    c.signer = good.clone();
    for (offset, status) in [(-1000, 403), (1000, 403), (-600, 200), (600, 200)] {
        c.signer.date = amz_date(offset);
        assert_eq!(c.get("/bucket/k").status, status, "{offset}");
    }
    c.signer = good;
    c.get("/bucket/k").is(200);
}

#[test]
fn tampered_requests_are_refused() {
    let (_server, mut c) = start();
    c.put("/bucket/k", "v");
    let rendered = |request: &super::client::Request, c: &Client| {
        String::from_utf8(request.render(&c.signer)).unwrap()
    };
    let request = req("GET", "/bucket/k?partNumber=1").header("x-amz-meta-a", "1");
    let text = rendered(&request, &c);
    for (from, to, code) in [
        ("GET ", "PUT ", "SignatureDoesNotMatch"),
        ("/bucket/k", "/bucket/l", "SignatureDoesNotMatch"),
        ("partNumber=1", "partNumber=2", "SignatureDoesNotMatch"),
        (
            "x-amz-meta-a: 1",
            "x-amz-meta-a: 2",
            "SignatureDoesNotMatch",
        ),
        (
            "Host: localhost",
            "Host: elsewhere",
            "SignatureDoesNotMatch",
        ),
        (
            "x-amz-meta-a: 1",
            "x-amz-meta-a: 1\r\nx-amz-acl: private",
            "AccessDenied",
        ),
        ("x-amz-meta-a: 1", "y: 1", "AccessDenied"),
        (
            "AWS4-HMAC-SHA256",
            "AWS4-ECDSA-P256-SHA256",
            "InvalidArgument",
        ),
    ] {
        assert!(text.contains(from));
        let answer = c.raw(text.replacen(from, to, 1).as_bytes());
        assert_eq!(answer.element("Code"), Some(code), "{from} -> {to}");
    }
    c.raw(text.as_bytes()).is(206);
}

#[test]
fn anonymous_requests_need_the_option() {
    let (_server, mut c) = start();
    c.send(&req("GET", "/bucket/k").auth(Auth::Anonymous))
        .is_error(403, "AccessDenied");
    let mut open = config();
    open.access = Access::Anonymous;
    let (_server, mut c) = start_with(open);
    c.send(&req("PUT", "/bucket/k").auth(Auth::Anonymous).body("v"))
        .is(200);
    assert_eq!(
        c.send(&req("GET", "/bucket/k").auth(Auth::Anonymous))
            .is(200)
            .text(),
        "v"
    );
    c.signer.secret = "wrong".into();
    c.get("/bucket/k").is_error(403, "SignatureDoesNotMatch");
}

#[test]
fn unchecked_servers_ignore_signatures() {
    let mut unchecked = config();
    unchecked.access = Access::Unchecked;
    let (_server, mut c) = start_with(unchecked);
    c.signer.secret = "wrong".into();
    c.signer.key = "nobody".into();
    c.signer.region = "elsewhere".into();
    c.send(&req("PUT", "/bucket/k").body("v")).is(200);
    assert_eq!(c.get("/bucket/k").is(200).text(), "v");
    c.send(&req("DELETE", "/bucket/k").auth(Auth::Anonymous))
        .is(204);
    let target = presign(&c, "GET", "/bucket/k", "1");
    c.send(&req("GET", &target).auth(Auth::Anonymous))
        .is_error(404, "NoSuchKey");
}

/// The target of a presigned URL.
fn presign(c: &Client, method: &str, path: &str, expires: &str) -> String {
    let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
    let mut query = vec![
        pair("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        pair(
            "X-Amz-Credential",
            &format!("{}/{}", c.signer.key, c.signer.scope()),
        ),
        pair("X-Amz-Date", &c.signer.date),
        pair("X-Amz-Expires", expires),
        pair("X-Amz-SignedHeaders", "host"),
    ];
    let headers = [pair("host", "localhost")];
    let (_, signature) = c
        .signer
        .signature(method, path, &query, &headers, "UNSIGNED-PAYLOAD");
    query.push(pair("X-Amz-Signature", &signature));
    let query: Vec<_> = query
        .iter()
        .map(|(n, v)| format!("{n}={}", encode(v, false)))
        .collect();
    format!("{}?{}", encode(path, true), query.join("&"))
}

#[test]
fn presigned_urls() {
    let (_server, mut c) = start();
    let call = |c: &mut Client, method: &str, target: &str, body: &str| {
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        c.raw(
            format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n{body}")
                .as_bytes(),
        )
    };
    let put = presign(&c, "PUT", "/bucket/a b", "60");
    call(&mut c, "PUT", &put, "hello").is(200);
    let get = presign(&c, "GET", "/bucket/a b", "60");
    assert_eq!(call(&mut c, "GET", &get, "").is(200).text(), "hello");
    call(&mut c, "PUT", &get, "hello").is_error(403, "SignatureDoesNotMatch");
    call(&mut c, "GET", &get.replace("a%20b", "c"), "").is_error(403, "SignatureDoesNotMatch");
    call(&mut c, "GET", &get.replace("Expires=60", "Expires=61"), "")
        .is_error(403, "SignatureDoesNotMatch");
    let forever = presign(&c, "GET", "/bucket/a b", "604801");
    call(&mut c, "GET", &forever, "").is_error(400, "AuthorizationQueryParametersError");
    c.signer.date = amz_date(-120);
    let expired = presign(&c, "GET", "/bucket/a b", "60");
    call(&mut c, "GET", &expired, "").is_error(403, "AccessDenied");
    let alive = presign(&c, "GET", "/bucket/a b", "180");
    call(&mut c, "GET", &alive, "").is(200);
}

#[test]
fn virtual_hosts() {
    let mut with_domain = config();
    with_domain.domain = Some("s3.localhost".into());
    with_domain.region = "eu-north-1".into();
    let store = memory();
    let server = Server::start(with_domain, store).unwrap();
    let mut c = Client::new(&server);
    c.signer.region = "eu-north-1".into();
    let at = |method: &str, path: &str, host: &str| {
        let mut request = req(method, path);
        request.host = host.into();
        request
    };
    c.send(&at("PUT", "/", "my.bucket.s3.localhost:9000"))
        .is(200);
    c.send(&at("PUT", "/k/l", "my.bucket.s3.localhost").body("v"))
        .is(200);
    assert_eq!(
        c.send(&at("GET", "/k/l", "my.bucket.S3.localhost"))
            .is(200)
            .text(),
        "v"
    );
    assert_eq!(
        c.send(&at("GET", "/my.bucket/k/l", "s3.localhost"))
            .is(200)
            .text(),
        "v"
    );
    assert_eq!(
        c.send(&at("GET", "/my.bucket/k/l", "127.0.0.1:9000"))
            .is(200)
            .text(),
        "v"
    );
    assert_eq!(
        c.send(&at("GET", "/", "my.bucket.s3.localhost"))
            .elements("Key"),
        ["k/l"]
    );
    assert_eq!(
        c.send(&at("GET", "/my.bucket?location", "s3.localhost"))
            .element("Code"),
        None
    );
}
