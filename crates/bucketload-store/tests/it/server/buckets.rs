//! Buckets and their configurations.

use super::client::{Auth, config, req, start, start_with};

#[test]
fn the_life_of_a_bucket() {
    let (_server, mut c) = start();
    let made = c.send(&req("PUT", "/second")).is(200);
    assert_eq!(made.header("location"), Some("/second"));
    // In us-east-1 one's own bucket can be created again.
    c.send(&req("PUT", "/second")).is(200);
    let mut elsewhere = config();
    elsewhere.region = "eu-west-1".into();
    elsewhere.access = bucketload_server::Access::Unchecked;
    let (_elsewhere, mut other) = start_with(elsewhere);
    other
        .send(&req("PUT", "/bucket"))
        .is_error(409, "BucketAlreadyOwnedByYou");
    let head = c.send(&req("HEAD", "/second")).is(200);
    assert_eq!(head.header("x-amz-bucket-region"), Some("us-east-1"));
    let list = c.get("/").is(200);
    assert_eq!(list.elements("Name"), ["bucket", "second"]);
    c.put("/second/k", "x");
    c.send(&req("DELETE", "/second"))
        .is_error(409, "BucketNotEmpty");
    c.send(&req("DELETE", "/second/k")).is(204);
    c.send(&req("DELETE", "/second")).is(204);
    c.send(&req("DELETE", "/second"))
        .is_error(404, "NoSuchBucket");
    let head = c.send(&req("HEAD", "/second"));
    assert_eq!((head.status, head.body.len()), (404, 0));
    c.send(&req("PUT", "/Bad_Name"))
        .is_error(400, "InvalidBucketName");
}

#[test]
fn buckets_list_in_pages() {
    let (_server, mut c) = start();
    for name in ["aaa", "aab", "zzz"] {
        c.send(&req("PUT", &format!("/{name}"))).is(200);
    }
    assert_eq!(c.get("/?prefix=aa").elements("Name"), ["aaa", "aab"]);
    let first = c.get("/?max-buckets=3").is(200);
    assert_eq!(first.elements("Name"), ["aaa", "aab", "bucket"]);
    let token = first.element("ContinuationToken").unwrap();
    let second = c
        .get(&format!("/?max-buckets=3&continuation-token={token}"))
        .is(200);
    assert_eq!(second.elements("Name"), ["zzz"]);
    assert_eq!(second.element("ContinuationToken"), None);
    c.get("/?max-buckets=0").is_error(400, "InvalidArgument");
}

#[test]
fn locations_must_name_the_region() {
    let (_server, mut c) = start();
    let body = |region: &str| {
        format!(
            "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
        )
    };
    c.send(&req("PUT", "/here").body(body("us-east-1"))).is(200);
    c.send(&req("PUT", "/there").body(body("eu-west-1")))
        .is_error(400, "IllegalLocationConstraintException");
    c.send(&req("PUT", "/broken").body("<x"))
        .is_error(400, "MalformedXML");
    assert!(
        c.get("/bucket?location")
            .is(200)
            .text()
            .contains("LocationConstraint")
    );
    c.get("/absent?location").is_error(404, "NoSuchBucket");
}

#[test]
fn configurations_read_as_never_set() {
    let (_server, mut c) = start();
    for (name, root) in [
        ("versioning", "VersioningConfiguration"),
        ("acl", "AccessControlPolicy"),
        ("logging", "BucketLoggingStatus"),
        ("notification", "NotificationConfiguration"),
        ("requestPayment", "RequestPaymentConfiguration"),
        ("accelerate", "AccelerateConfiguration"),
    ] {
        let answer = c.get(&format!("/bucket?{name}")).is(200);
        assert!(
            answer.text().contains(&format!("<{root} xmlns=")),
            "{}",
            answer.text()
        );
    }
    for (name, code) in [
        ("policy", "NoSuchBucketPolicy"),
        ("object-lock", "ObjectLockConfigurationNotFoundError"),
        ("cors", "NoSuchCORSConfiguration"),
        ("lifecycle", "NoSuchLifecycleConfiguration"),
        ("tagging", "NoSuchTagSet"),
        (
            "encryption",
            "ServerSideEncryptionConfigurationNotFoundError",
        ),
        ("replication", "ReplicationConfigurationNotFoundError"),
        ("website", "NoSuchWebsiteConfiguration"),
        ("ownershipControls", "OwnershipControlsNotFoundError"),
        ("publicAccessBlock", "NoSuchPublicAccessBlockConfiguration"),
    ] {
        c.get(&format!("/bucket?{name}")).is_error(404, code);
        c.get(&format!("/absent?{name}"))
            .is_error(404, "NoSuchBucket");
        if name != "object-lock" {
            c.send(&req("DELETE", &format!("/bucket?{name}"))).is(204);
        }
    }
    for name in [
        "replication",
        "website",
        "logging",
        "notification",
        "accelerate",
    ] {
        c.send(&req("PUT", &format!("/bucket?{name}")).body("<x/>"))
            .is_error(501, "NotImplemented");
    }
    for name in [
        "cors",
        "lifecycle",
        "encryption",
        "tagging",
        "object-lock",
        "versioning",
    ] {
        c.send(&req("PUT", &format!("/bucket?{name}")).body("<x/>"))
            .is_error(400, "MalformedXML");
    }
    c.send(&req("PUT", "/bucket?policy").body("{}"))
        .is_error(400, "MalformedPolicy");
    c.get("/bucket?inventory").is_error(501, "NotImplemented");
    c.send(&req("PUT", "/bucket?acl").header("x-amz-acl", "private"))
        .is(200);
}

#[test]
fn documents_are_kept_as_they_come() {
    let (_server, mut c) = start();
    for (name, document, status) in [
        (
            "cors",
            "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>\
             </CORSConfiguration>",
            200,
        ),
        (
            "lifecycle",
            "<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status></Rule></LifecycleConfiguration>",
            200,
        ),
        (
            "tagging",
            "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
            204,
        ),
        ("policy", "{\"Statement\":[]}", 204),
    ] {
        let path = format!("/bucket?{name}");
        c.send(&req("PUT", &path).body(document)).is(status);
        assert_eq!(c.get(&path).is(200).text(), document);
        c.send(&req("DELETE", &path)).is(204);
        assert_eq!(c.get(&path).status, 404);
    }
}

#[test]
fn canned_lists_admit_everyone_to_what_they_name() {
    let (_server, mut c) = start();
    let put = |list: &str| req("PUT", "/bucket/k").header("x-amz-acl", list).body("v");
    let anonymous = |method: &str, path: &str| req(method, path).auth(Auth::Anonymous);
    c.send(&put("public-read")).is(200);
    let grants = c.get("/bucket/k?acl").is(200);
    assert_eq!(grants.elements("Permission"), ["READ", "FULL_CONTROL"]);
    assert_eq!(c.send(&anonymous("GET", "/bucket/k")).is(200).body, b"v");
    for (method, path) in [
        ("GET", "/bucket/absent"),
        ("GET", "/bucket?list-type=2"),
        ("PUT", "/bucket/k"),
        ("DELETE", "/bucket/k"),
        ("GET", "/bucket/k?acl"),
        ("GET", "/"),
    ] {
        c.send(&anonymous(method, path))
            .is_error(403, "AccessDenied");
    }
    c.send(&anonymous("GET", "/absent/k"))
        .is_error(404, "NoSuchBucket");
    c.send(&put("authenticated-read")).is(200);
    c.send(&anonymous("GET", "/bucket/k"))
        .is_error(403, "AccessDenied");
    c.send(&req("PUT", "/bucket/k?acl").header("x-amz-acl", "public-read"))
        .is(200);
    c.send(&anonymous("GET", "/bucket/k")).is(200);
    c.send(&req("PUT", "/bucket?acl").header("x-amz-acl", "public-read-write"))
        .is(200);
    c.send(&anonymous("PUT", "/bucket/mine").body("w")).is(200);
    c.send(&anonymous("GET", "/bucket/mine"))
        .is_error(403, "AccessDenied");
    c.send(&anonymous("GET", "/bucket/absent"))
        .is_error(404, "NoSuchKey");
    let listed = c.send(&anonymous("GET", "/bucket?list-type=2")).is(200);
    assert_eq!(listed.elements("Key"), ["k", "mine"]);
    let block = |setting: &str| {
        req("PUT", "/bucket?publicAccessBlock").body(format!(
            "<PublicAccessBlockConfiguration><{setting}>true</{setting}></PublicAccessBlockConfiguration>"
        ))
    };
    c.send(&block("BlockPublicAcls")).is(200);
    c.send(&put("public-read")).is_error(403, "AccessDenied");
    c.send(&put("private")).is(200);
    c.send(&anonymous("GET", "/bucket?list-type=2")).is(200);
    c.send(&block("IgnorePublicAcls")).is(200);
    c.send(&anonymous("GET", "/bucket?list-type=2"))
        .is_error(403, "AccessDenied");
    c.send(&req("DELETE", "/bucket?publicAccessBlock")).is(204);
    c.send(&anonymous("DELETE", "/bucket/mine")).is(204);
    c.send(&req("PUT", "/bucket?acl").header("x-amz-acl", "private"))
        .is(200);
    c.send(&anonymous("GET", "/bucket?list-type=2"))
        .is_error(403, "AccessDenied");
}
