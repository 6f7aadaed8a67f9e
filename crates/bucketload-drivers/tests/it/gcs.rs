//! The Google Cloud Storage driver against a fake of the JSON API: the shared suite, tokens, uploads in
//! parts, and wrong answers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{WORKER, clock, op, probe, request, run, suite_passes};
use bucketload_core::driver::{Admin, Driver, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::conformance::{Differential, Quirks};
use bucketload_drivers::gcs::{
    Account, GcsConfig, GcsDriver, GcsSession, LargeObject, ServiceKey, UserGrant,
};
use bucketload_drivers::http::{Endpoint, Secret};
use bucketload_testkit::gcs::FakeGcs;
use bucketload_testkit::http::{HttpResponse, decode, serve};

fn config(gcs: &FakeGcs) -> GcsConfig {
    let endpoint = Endpoint::parse(&format!("http://{}", gcs.addr), "test").unwrap();
    let mut config = GcsConfig::new(vec![endpoint]);
    config.project = "project".to_owned();
    config
}

async fn try_open(config: GcsConfig) -> Result<GcsSession, OpError> {
    GcsDriver::new(config)
        .unwrap()
        .open(WORKER, &mut probe())
        .await
}

/// A write of `size` bytes in parts of `part` bytes.
fn in_parts(size: u64, part: u64) -> Op {
    Op {
        count: part,
        ..op(OpClass::MultipartPut, size)
    }
}

#[test]
fn the_suite_passes_with_resumable_uploads() {
    let driver = GcsDriver::new(config(&FakeGcs::start(str::is_empty))).unwrap();
    run(suite_passes(&driver, Quirks::of("gcs").unwrap(), "gcs"));
}

#[test]
fn small_objects_are_replaced_only_if_nobody_else_has() {
    let gcs = FakeGcs::start(str::is_empty);
    run(async {
        let mut session = try_open(config(&gcs)).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
        session.put_small("bucket", "k", b"one").await.unwrap();
        let (body, version) = session.get_small_version("bucket", "k").await.unwrap();
        assert_eq!(body, b"one");
        let seen = version.as_deref();
        assert!(seen.is_some());
        let put = session.put_small_if("bucket", "k", b"two", seen);
        put.await.unwrap();
        let late = session.put_small_if("bucket", "k", b"three", seen).await;
        assert_eq!(late.unwrap_err().kind, ErrorKind::Conflict);
        assert_eq!(session.get_small("bucket", "k").await.unwrap(), b"two");
    });
}

#[test]
fn composed_objects_leave_no_parts() {
    let gcs = FakeGcs::start(str::is_empty);
    let arena = Arena::new(PayloadKind::Random, 1);
    let mut config = config(&gcs);
    config.large_object = LargeObject::Compose;
    run(async {
        let mut session = try_open(config).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
        // One part, one level, two levels.
        for (size, parts) in [(0, 1), (5000, 5), (70_500, 71)] {
            let put_op = in_parts(size, 1000);
            let mut put = request(&put_op);
            put.content = Some(arena.content(0, 1, 0, size));
            let done = session.execute(&put, &mut probe()).await.unwrap();
            assert_eq!((done.bytes, done.items), (size, parts));
            let get_op = op(OpClass::Get, size);
            let mut get = request(&get_op);
            get.content = put.content;
            get.verify = true;
            session.execute(&get, &mut probe()).await.unwrap();
            assert_eq!(gcs.names("bucket"), ["key"]);
        }
        let put_op = in_parts(2000, 1);
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 1, 0, 2000));
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected);
        assert!(error.detail.contains("at most 1024 parts"), "{error}");
    });
}

#[test]
fn chunks_are_checked() {
    let gcs = FakeGcs::start(str::is_empty);
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let mut session = try_open(config(&gcs)).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
        let (odd, whole) = (in_parts(600_000, 100_000), in_parts(600_000, 256 * 1024));
        let mut put = request(&odd);
        put.content = Some(arena.content(0, 1, 0, 600_000));
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert!(error.detail.contains("multiples of 256 KiB"), "{error}");
        put.op = &whole;
        put.key = "forgetful";
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Server);
        assert!(
            error.detail.contains("131072 of the 262144 bytes"),
            "{error}"
        );
        assert!(gcs.names("bucket").is_empty());
    });
}

#[test]
fn a_truncated_object_is_detected() {
    let gcs = FakeGcs::start(str::is_empty);
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let mut session = try_open(config(&gcs)).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
        let put_op = op(OpClass::Put, 100);
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 1, 0, 100));
        put.key = "short";
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(error.detail.contains("has 99 of 100 bytes"), "{error}");
    });
}

#[test]
fn unsupported_classes_are_refused_with_a_reason() {
    let gcs = FakeGcs::start(str::is_empty);
    run(async {
        let mut session = try_open(config(&gcs)).await.unwrap();
        for class in [
            OpClass::ListV1,
            OpClass::ListUploads,
            OpClass::MultipartCopy,
        ] {
            let result = session.execute(&request(&op(class, 0)), &mut probe()).await;
            let error = result.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unsupported);
            assert!(error.detail.contains("Cloud Storage"), "{error}");
        }
    });
}

/// An RSA key for tests only.
const KEY: &str = include_str!("../data/rsa-pkcs8.pem");

/// A token endpoint that issues `t1`, `t2` and so on, and records the requests.
fn token_endpoint(seconds: u32, asked: &'static Mutex<Vec<String>>) -> String {
    let count = AtomicU32::new(0);
    let addr = serve(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        asked
            .lock()
            .unwrap()
            .push(format!("{} {body}", request.path));
        let n = count.fetch_add(1, Ordering::Relaxed) + 1;
        HttpResponse::new(
            200,
            format!(r#"{{"access_token":"t{n}","expires_in":{seconds},"token_type":"Bearer"}}"#),
        )
    });
    format!("http://{addr}/token")
}

#[test]
fn a_service_account_gets_a_token_before_the_first_request_and_renews_it_in_the_background() {
    static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let gcs = FakeGcs::start(|who| who.starts_with("Bearer t"));
    let mut config = config(&gcs);
    config.account = Some(Account::Service(ServiceKey {
        email: "bench@example.iam.gserviceaccount.com".to_owned(),
        key_id: String::new(),
        key: Secret::new(KEY),
        // The shortest lifetime: renewed after a second.
        token_url: token_endpoint(1, &ASKED),
    }));
    run(async {
        let mut session = try_open(config).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
        let began = std::time::Instant::now();
        while !gcs.requests().last().unwrap().ends_with("Bearer t2") {
            session.head_bucket("bucket").await.unwrap();
            assert!(began.elapsed().as_secs() < 30, "no new token");
        }
        assert!(gcs.requests()[0].ends_with("Bearer t1"));
    });
    let asked = ASKED.lock().unwrap();
    let form = decode(&asked[0]);
    assert!(
        form.starts_with(
            "/token grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=eyJ"
        ),
        "{form}"
    );
}

#[test]
fn a_user_gets_a_token_for_the_refresh_token() {
    static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let gcs = FakeGcs::start(|who| who == "Bearer t1");
    let mut config = config(&gcs);
    config.account = Some(Account::User(UserGrant {
        client_id: "id".to_owned(),
        client_secret: Secret::new("s&s"),
        refresh_token: Secret::new("1//r"),
        token_url: token_endpoint(3600, &ASKED),
    }));
    run(async {
        let mut session = try_open(config).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
    });
    let asked = ASKED.lock().unwrap();
    assert_eq!(
        asked.as_slice(),
        ["/token grant_type=refresh_token&client_id=id&client_secret=s%26s&refresh_token=1%2F%2Fr"]
    );
}

#[test]
fn a_machine_asks_its_metadata_server() {
    let metadata = serve(|request| match request.header("metadata-flavor") {
        "Google" => HttpResponse::new(200, r#"{"access_token":"m","expires_in":3000}"#),
        _ => HttpResponse::new(403, ""),
    });
    let gcs = FakeGcs::start(|who| who == "Bearer m");
    let mut config = config(&gcs);
    let endpoint = Endpoint::parse(&format!("http://{metadata}"), "test").unwrap();
    config.account = Some(Account::Metadata(endpoint));
    run(async {
        let mut session = try_open(config).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
    });
}

#[test]
fn refused_credentials_are_reported_without_showing_them() {
    let gcs = FakeGcs::start(|who| who == "Bearer right");
    let mut wrong = config(&gcs);
    wrong.account = Some(Account::Token(Secret::new("secret-token")));
    run(async {
        let mut session = try_open(wrong).await.unwrap();
        let error = session.head_bucket("bucket").await.unwrap_err();
        assert_eq!((error.kind, error.status), (ErrorKind::Auth, 401));
        assert!(
            error.detail.contains("authError: Invalid Credentials"),
            "{error}"
        );
        assert!(!format!("{error:?} {session:?}").contains("secret-token"));
    });
    let refusing = serve(|_| HttpResponse::new(400, r#"{"error":"invalid_grant"}"#));
    let mut expired = config(&gcs);
    expired.account = Some(Account::User(UserGrant {
        client_id: "id".to_owned(),
        client_secret: Secret::new("s"),
        refresh_token: Secret::new("secret-refresh"),
        token_url: format!("http://{refusing}/token"),
    }));
    run(async {
        let error = try_open(expired).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth);
        assert!(
            error.detail.contains("was refused: invalid_grant"),
            "{error}"
        );
        assert!(!error.detail.contains("secret-refresh"));
    });
}

#[test]
fn random_operations_agree_with_the_model() {
    let driver = GcsDriver::new(config(&FakeGcs::start(str::is_empty))).unwrap();
    let test = Differential {
        bucket: "differential".to_owned(),
        quirks: Quirks::of("gcs").unwrap(),
        clock,
        seed: 6,
        operations: 1000,
    };
    let verdict = run(test.run(&driver)).unwrap();
    assert!(verdict.differences.is_empty(), "{verdict:#?}");
}
