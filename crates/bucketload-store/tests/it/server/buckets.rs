//! Buckets and their configurations.

use super::client::{req, start};

#[test]
fn the_life_of_a_bucket() {
    let (_server, mut c) = start();
    let made = c.send(&req("PUT", "/second")).is(200);
    assert_eq!(made.header("location"), Some("/second"));
    c.send(&req("PUT", "/second"))
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
        c.send(&req("DELETE", &format!("/bucket?{name}"))).is(204);
        c.send(&req("PUT", &format!("/bucket?{name}")).body("<x/>"))
            .is_error(501, "NotImplemented");
    }
    c.get("/bucket?inventory").is_error(501, "NotImplemented");
    c.send(&req("PUT", "/bucket?acl").header("x-amz-acl", "private"))
        .is(200);
    c.send(&req("PUT", "/bucket?acl").header("x-amz-acl", "public-read"))
        .is_error(400, "AccessControlListNotSupported");
    c.send(&req("PUT", "/bucket?acl").body("<AccessControlPolicy/>"))
        .is_error(501, "NotImplemented");
    c.send(&req("PUT", "/locked").header("x-amz-bucket-object-lock-enabled", "true"))
        .is_error(501, "NotImplemented");
}
