//! Who may do what without a signature: grants, policies, ownership; and the questions of browsers.

use super::client::{Auth, Client, Request, Response, req, start};

const OTHER: &str = "1111111111111111111111111111111111111111111111111111111111111111";

fn anonymous(method: &str, path: &str) -> Request {
    req(method, path).auth(Auth::Anonymous)
}

fn set(c: &mut Client, path: &str, document: &str) {
    let answer = c.send(&req("PUT", path).body(document));
    assert!(matches!(answer.status, 200 | 204), "{}", answer.text());
}

#[test]
fn grants_are_kept_and_those_to_everyone_count() {
    let (_server, mut c) = start();
    let everyone = "uri=\"http://acs.amazonaws.com/groups/global/AllUsers\"";
    let put = req("PUT", "/bucket/k").body("v");
    let both = format!("id=\"{OTHER}\", {everyone}");
    c.send(&put.header("x-amz-grant-read", &both)).is(200);
    let list = c.get("/bucket/k?acl").is(200);
    assert_eq!(list.elements("Permission"), ["READ", "READ"]);
    assert_eq!(list.elements("ID")[1..], [OTHER]);
    c.send(&anonymous("GET", "/bucket/k")).is(200);
    // What was read can be written: the document of another object, without the grant to everyone.
    c.put("/bucket/l", "v");
    let own = c.get("/bucket/l?acl").is(200).text().to_owned();
    c.send(&req("PUT", "/bucket/k?acl").body(&own)).is(200);
    assert_eq!(c.get("/bucket/k?acl").is(200).text(), own);
    c.send(&anonymous("GET", "/bucket/k"))
        .is_error(403, "AccessDenied");
    let none = own.replace("FULL_CONTROL", "READ_ACP");
    c.send(&req("PUT", "/bucket?acl").body(&none)).is(200);
    let list = c.get("/bucket?acl").is(200);
    assert_eq!(list.elements("Permission"), ["READ_ACP"]);
    c.send(&req("PUT", "/bucket?acl").header("x-amz-grant-full-control", everyone))
        .is(200);
    c.send(&anonymous("GET", "/bucket?list-type=2")).is(200);
    c.send(&anonymous("PUT", "/bucket/theirs").body("v"))
        .is(200);
    for (document, code) in [
        ("", "MalformedACLError"),
        ("<AccessControlPolicy/>", "MalformedACLError"),
        (&own.replace("<Grant>", "<Grants>"), "MalformedACLError"),
    ] {
        c.send(&req("PUT", "/bucket?acl").body(document))
            .is_error(400, code);
    }
    c.send(&req("PUT", "/new").header("x-amz-grant-write", &format!("id={OTHER}")))
        .is(200);
    assert_eq!(c.get("/new?acl").is(200).elements("Permission"), ["WRITE"]);
}

#[test]
fn policies_admit_and_refuse_everyone() {
    let (_server, mut c) = start();
    c.put("/bucket/open/k", "v");
    c.put("/bucket/k", "v");
    let statement = |effect: &str, action: &str, resource: &str| {
        format!(
            "{{\"Effect\":\"{effect}\",\"Principal\":{{\"AWS\":[\"*\"]}},\"Action\":\"{action}\",\
             \"Resource\":[\"arn:aws:s3:::{resource}\"]}}"
        )
    };
    let policy = |statements: &[String]| {
        format!(
            "{{\"Version\":\"2012-10-17\",\"Statement\":[{}]}}",
            statements.join(",")
        )
    };
    let reads = statement("Allow", "s3:GetObject", "bucket/open/*");
    let lists = statement("Allow", "s3:ListBucket", "bucket");
    set(
        &mut c,
        "/bucket?policy",
        &policy(&[reads.clone(), lists.clone()]),
    );
    c.send(&anonymous("GET", "/bucket/open/k")).is(200);
    c.send(&anonymous("GET", "/bucket?list-type=2")).is(200);
    for (method, path) in [
        ("GET", "/bucket/k"),
        ("PUT", "/bucket/open/k"),
        ("DELETE", "/bucket/open/k"),
        ("GET", "/bucket?policy"),
        ("GET", "/bucket/open/k?versionId=null"),
    ] {
        c.send(&anonymous(method, path))
            .is_error(403, "AccessDenied");
    }
    // A refusal wins, also over a list.
    let never = statement("Deny", "s3:*", "bucket/open/k");
    set(&mut c, "/bucket?policy", &policy(&[reads, lists, never]));
    c.send(&req("PUT", "/bucket/open/k?acl").header("x-amz-acl", "public-read"))
        .is(200);
    c.send(&anonymous("GET", "/bucket/open/k"))
        .is_error(403, "AccessDenied");
    c.get("/bucket/open/k").is(200);
    let all = policy(&[statement("Allow", "s3:*", "bucket*")]);
    set(&mut c, "/bucket?policy", &all);
    c.send(&anonymous("PUT", "/bucket/new").body("v")).is(200);
    c.send(&anonymous("DELETE", "/bucket/new")).is(204);
    let block = |setting: &str| {
        format!(
            "<PublicAccessBlockConfiguration><{setting}>true</{setting}></PublicAccessBlockConfiguration>"
        )
    };
    set(
        &mut c,
        "/bucket?publicAccessBlock",
        &block("BlockPublicPolicy"),
    );
    c.send(&req("PUT", "/bucket?policy").body(&all))
        .is_error(403, "AccessDenied");
    c.send(&anonymous("GET", "/bucket/k")).is(200);
    set(
        &mut c,
        "/bucket?publicAccessBlock",
        &block("RestrictPublicBuckets"),
    );
    c.send(&anonymous("GET", "/bucket/k"))
        .is_error(403, "AccessDenied");
    c.send(&req("PUT", "/bucket?policy").body("{}"))
        .is_error(400, "MalformedPolicy");
}

#[test]
fn an_enforced_ownership_leaves_no_lists() {
    let (_server, mut c) = start();
    let enforced =
        |path: &str| req("PUT", path).header("x-amz-object-ownership", "BucketOwnerEnforced");
    c.send(&enforced("/mine")).is(200);
    let controls = c.get("/mine?ownershipControls").is(200);
    assert_eq!(
        controls.elements("ObjectOwnership"),
        ["BucketOwnerEnforced"]
    );
    let with = |path: &str, list: &str| req("PUT", path).header("x-amz-acl", list);
    for list in ["private", "public-read"] {
        for path in ["/mine/k", "/mine?acl"] {
            c.send(&with(path, list))
                .is_error(400, "AccessControlListNotSupported");
        }
    }
    c.send(&with("/mine/k", "bucket-owner-full-control"))
        .is(200);
    c.put("/mine/k", "v");
    c.send(&enforced("/theirs").header("x-amz-acl", "public-read"))
        .is_error(400, "InvalidBucketAclWithObjectOwnership");
    c.send(&req("HEAD", "/theirs")).is(404);
    c.send(&req("PUT", "/odd").header("x-amz-object-ownership", "Nobody"))
        .is_error(400, "InvalidArgument");
    c.send(&with("/bucket/k", "public-read").body("v")).is(200);
    let controls = controls.text();
    set(&mut c, "/bucket?ownershipControls", controls);
    c.send(&anonymous("GET", "/bucket/k"))
        .is_error(403, "AccessDenied");
    c.send(&req("PUT", "/bucket?ownershipControls").body("<OwnershipControls/>"))
        .is_error(400, "MalformedXML");
}

const RULES: &str = "<CORSConfiguration>\
    <CORSRule><AllowedOrigin>http://*.example</AllowedOrigin><AllowedMethod>PUT</AllowedMethod>\
    <AllowedMethod>DELETE</AllowedMethod><AllowedHeader>X-Abc-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader>\
    <MaxAgeSeconds>60</MaxAgeSeconds></CORSRule>\
    <CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>";

/// The origin, the methods and the headers that an answer allows.
fn allowed(answer: &Response) -> [Option<&str>; 3] {
    ["origin", "methods", "headers"]
        .map(|what| answer.header(&format!("access-control-allow-{what}")))
}

#[test]
fn answers_carry_what_the_rules_of_the_bucket_allow() {
    let (_server, mut c) = start();
    c.put("/bucket/k", "v");
    let from = |method: &str, origin: &str| req(method, "/bucket/k").header("Origin", origin);
    assert_eq!(
        allowed(&c.send(&from("GET", "http://a.example"))),
        [None; 3]
    );
    set(&mut c, "/bucket?cors", RULES);
    let put = c.send(&from("PUT", "http://a.example").body("w")).is(200);
    assert_eq!(
        allowed(&put),
        [Some("http://a.example"), Some("PUT, DELETE"), None]
    );
    for (name, value) in [
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "ETag"),
        ("access-control-max-age", "60"),
    ] {
        assert_eq!(put.header(name), Some(value));
    }
    assert!(
        put.header("vary")
            .is_some_and(|vary| vary.starts_with("Origin"))
    );
    let get = c.send(&from("GET", "https://b")).is(200);
    assert_eq!(allowed(&get), [Some("*"), Some("GET"), None]);
    assert_eq!(get.header("access-control-allow-credentials"), None);
    // Errors carry the headers too; the next answer on the connection does not.
    let absent = c.send(&req("GET", "/bucket/absent").header("Origin", "https://b"));
    absent.is_error(404, "NoSuchKey");
    assert_eq!(absent.header("access-control-allow-origin"), Some("*"));
    let refused = c.send(&from("GET", "https://b").auth(Auth::Anonymous));
    refused.is_error(403, "AccessDenied");
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
    assert_eq!(allowed(&c.get("/bucket/k").is(200)), [None; 3]);
    assert_eq!(
        allowed(&c.send(&from("PUT", "https://b").body("x")).is(200)),
        [None; 3]
    );
}

#[test]
fn browsers_may_ask_first() {
    let (_server, mut c) = start();
    let ask = |path: &str, more: &[(&str, &str)]| {
        let request = anonymous("OPTIONS", path);
        more.iter().fold(request, |request, (name, value)| {
            request.header(name, value)
        })
    };
    let origin = ("Origin", "http://a.example");
    let method = |method| ("Access-Control-Request-Method", method);
    let headers = |names| ("Access-Control-Request-Headers", names);
    c.send(&ask("/bucket/k", &[origin, method("PUT")]))
        .is_error(403, "AccessForbidden");
    set(&mut c, "/bucket?cors", RULES);
    let yes = c.send(&ask("/bucket/k", &[origin, method("PUT")])).is(200);
    assert_eq!(
        allowed(&yes),
        [Some("http://a.example"), Some("PUT, DELETE"), None]
    );
    let asked = [origin, method("PUT"), headers("x-abc-1,X-ABC-Two")];
    let yes = c.send(&ask("/bucket", &asked)).is(200);
    assert_eq!(allowed(&yes)[2], Some("x-abc-1, x-abc-two"));
    // A presigned URL is asked about as it stands; its signature is for another method.
    let presigned = "/bucket/k?X-Amz-Signature=0&X-Amz-Algorithm=AWS4-HMAC-SHA256";
    c.send(&ask(presigned, &[origin, method("PUT")])).is(200);
    for (more, status, code) in [
        (
            &[origin, method("PUT"), headers("x-other")][..],
            403,
            "AccessForbidden",
        ),
        (&[origin, method("POST")], 403, "AccessForbidden"),
        (&[origin, method("PATCH")], 400, "BadRequest"),
        (&[origin], 400, "BadRequest"),
        (&[method("PUT")], 400, "BadRequest"),
    ] {
        let no = c.send(&ask("/bucket/k", more));
        no.is_error(status, code);
        assert_eq!(no.header("access-control-allow-origin"), None);
    }
    c.send(&ask("/absent/k", &[origin, method("PUT")]))
        .is_error(404, "NoSuchBucket");
}
