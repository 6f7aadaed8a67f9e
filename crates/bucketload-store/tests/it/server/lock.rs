//! Object lock.

use super::client::{Client, req, start};

const FUTURE: &str = "2099-01-01T00:00:00Z";

/// A server with the bucket `locked`.
fn locked() -> (bucketload_server::ServerHandle, Client) {
    let (server, mut c) = start();
    c.send(&req("PUT", "/locked").header("x-amz-bucket-object-lock-enabled", "true"))
        .is(200);
    (server, c)
}

fn put(c: &mut Client, mode: &str) -> String {
    let put = req("PUT", "/locked/k")
        .header("x-amz-object-lock-mode", mode)
        .header("x-amz-object-lock-retain-until-date", FUTURE);
    let answer = c.send(&put.body("v")).is(200);
    let id = answer.header("x-amz-version-id").unwrap();
    format!("/locked/k?versionId={id}")
}

fn retain(path: &str, mode: &str, until: &str) -> super::client::Request {
    let path = path.replace('?', "?retention&");
    req("PUT", &path).body(format!(
        "<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>"
    ))
}

#[test]
fn retained_versions_stay() {
    let (_server, mut c) = locked();
    let bypass = ("x-amz-bypass-governance-retention", "true");
    for mode in ["GOVERNANCE", "COMPLIANCE"] {
        let version = put(&mut c, mode);
        let get = c.get(&version).is(200);
        assert_eq!(get.header("x-amz-object-lock-mode"), Some(mode));
        let until = get.header("x-amz-object-lock-retain-until-date");
        assert_eq!(until, Some(FUTURE));
        c.send(&req("DELETE", &version))
            .is_error(403, "AccessDenied");
        // A delete marker hides it and can go again.
        let marker = c.send(&req("DELETE", "/locked/k")).is(204);
        let marker = marker.header("x-amz-version-id").unwrap().to_owned();
        c.send(&req("DELETE", &format!("/locked/k?versionId={marker}")))
            .is(204);
        c.send(&retain(&version, mode, "2098-01-01T00:00:00Z"))
            .is_error(403, "AccessDenied");
        c.send(&retain(&version, mode, "2099-06-01T00:00:00Z"))
            .is(200);
        let kept = c.get(&version.replace('?', "?retention&")).is(200);
        assert_eq!(
            kept.element("RetainUntilDate"),
            Some("2099-06-01T00:00:00Z")
        );
        let forced = c.send(&req("DELETE", &version).header(bypass.0, bypass.1));
        match mode {
            "GOVERNANCE" => drop(forced.is(204)),
            _ => forced.is_error(403, "AccessDenied"),
        }
    }
}

#[test]
fn legal_holds() {
    let (_server, mut c) = locked();
    let id = c.put("/locked/k", "v");
    let version = format!(
        "/locked/k?versionId={}",
        id.header("x-amz-version-id").unwrap()
    );
    let hold = |status: &str| {
        req("PUT", "/locked/k?legal-hold")
            .body(format!("<LegalHold><Status>{status}</Status></LegalHold>"))
    };
    c.get("/locked/k?legal-hold")
        .is_error(404, "NoSuchObjectLockConfiguration");
    c.send(&hold("ON")).is(200);
    let head = c.send(&req("HEAD", "/locked/k")).is(200);
    assert_eq!(head.header("x-amz-object-lock-legal-hold"), Some("ON"));
    let bypass = req("DELETE", &version).header("x-amz-bypass-governance-retention", "true");
    c.send(&bypass).is_error(403, "AccessDenied");
    c.send(&hold("maybe")).is_error(400, "MalformedXML");
    c.send(&hold("OFF")).is(200);
    c.send(&bypass).is(204);
}

#[test]
fn rules_of_buckets() {
    let (_server, mut c) = locked();
    let rule = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
                <Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>";
    c.send(&req("PUT", "/locked?object-lock").body(rule))
        .is(200);
    assert_eq!(c.get("/locked?object-lock").is(200).text(), rule);
    c.put("/locked/k", "v");
    let kept = c.get("/locked/k?retention").is(200);
    assert_eq!(kept.element("Mode"), Some("GOVERNANCE"));
    let suspend = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    c.send(&req("PUT", "/locked?versioning").body(suspend))
        .is_error(409, "InvalidBucketState");
    c.send(&req("PUT", "/bucket?object-lock").body(rule))
        .is_error(409, "InvalidBucketState");
    c.put("/bucket/k", "v");
    c.send(&retain("/bucket/k?", "GOVERNANCE", FUTURE))
        .is_error(400, "InvalidRequest");
    for (mode, until) in [
        ("GOVERNANCE", "2001-01-01T00:00:00Z"),
        ("governance", FUTURE),
        ("GOVERNANCE", "soon"),
        ("GOVERNANCE", ""),
    ] {
        let put = req("PUT", "/locked/x")
            .header("x-amz-object-lock-mode", mode)
            .header("x-amz-object-lock-retain-until-date", until);
        c.send(&put.body("v")).is_error(400, "InvalidArgument");
    }
}
