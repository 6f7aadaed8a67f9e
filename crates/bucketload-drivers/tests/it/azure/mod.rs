//! The Azure Blob driver against a fake service: the shared suite with every authorisation and checksum,
//! refusals, and clean-up.

mod fake;

use crate::support::{Responder, WORKER, clock, op, probe, request, run, suite_passes};
use bucketload_core::driver::{Admin, Driver, Session};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::azblob::{Auth, AzureConfig, AzureDriver, AzureSession, ContentChecksum};
use bucketload_drivers::conformance::{Differential, Expect, Quirks};
use bucketload_drivers::http::Endpoint;
use fake::{ACCOUNT, FakeAzure, KEY, SAS};

async fn start(fake: &FakeAzure) -> Responder {
    let fake = fake.clone();
    Responder::start(move |request| fake.answer(request)).await
}

fn config(server: &Responder, auth: Auth) -> AzureConfig {
    let endpoint = Endpoint::parse(&format!("http://{}/{ACCOUNT}", server.addr), "test").unwrap();
    AzureConfig::new(vec![endpoint], ACCOUNT, auth)
}

fn key() -> Auth {
    Auth::SharedKey(KEY.into())
}

async fn open(config: AzureConfig) -> AzureSession {
    let driver = AzureDriver::new(config).unwrap();
    driver.open(WORKER, &mut probe()).await.unwrap()
}

fn passes(auth: &Auth, checksum: Option<ContentChecksum>) {
    run(async {
        let server = start(&FakeAzure::default()).await;
        let mut config = config(&server, auth.clone());
        config.checksum = checksum;
        let driver = AzureDriver::new(config).unwrap();
        let quirks = Quirks {
            min_part: 0,
            ..Quirks::default()
        };
        suite_passes(&driver, quirks, &format!("{auth:?} {checksum:?}")).await;
    });
}

/// A write of `size` bytes in parts of `part` bytes.
fn in_parts(size: u64, part: u64) -> Op {
    Op {
        count: part,
        ..op(OpClass::MultipartPut, size)
    }
}

#[test]
fn the_suite_passes_with_a_shared_key() {
    passes(&key(), None);
}

#[test]
fn the_suite_passes_with_a_shared_access_signature() {
    passes(&Auth::Sas(SAS.into()), None);
}

#[test]
fn the_suite_passes_with_either_checksum() {
    for checksum in ContentChecksum::ALL {
        passes(&key(), Some(*checksum));
    }
}

#[test]
fn refusals_are_explained() {
    run(async {
        let fake = FakeAzure::default();
        let server = start(&fake).await;
        let expired = "sv=2022-11-02&se=2020-01-01T00%3A00%3A00Z&sig=c2VjcmV0";
        for (auth, word) in [
            (Auth::SharedKey("b3RoZXI=".into()), "AZURE_STORAGE_KEY"),
            (Auth::Sas(expired.into()), "expired at 2020-01-01"),
            (Auth::Anonymous, "--no-sign-request"),
        ] {
            let mut session = open(config(&server, auth)).await;
            // One refusal without a body and one with.
            for error in [
                session.ensure_bucket("box").await.unwrap_err(),
                session.get_small("box", "key").await.unwrap_err(),
            ] {
                assert_eq!(error.kind, ErrorKind::Auth, "{error}");
                assert!(error.detail.contains(word), "{error}");
                assert!(!error.detail.contains("c2VjcmV0"), "{error}");
            }
        }
        fake.ahead.set(3600);
        let mut session = open(config(&server, Auth::SharedKey("b3RoZXI=".into()))).await;
        let error = session.ensure_bucket("box").await.unwrap_err();
        assert!(error.detail.contains("minutes behind"), "{error}");
        let mut session = open(config(&server, key())).await;
        let error = session.head_bucket("box").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
        assert!(error.detail.contains("no container `box`"), "{error}");
    });
}

#[test]
fn small_objects_are_replaced_only_if_nobody_else_has() {
    run(async {
        let fake = FakeAzure::default();
        let server = start(&fake).await;
        let mut session = open(config(&server, key())).await;
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
fn clean_up_discards_uncommitted_blocks() {
    run(async {
        let fake = FakeAzure::default();
        let server = start(&fake).await;
        let mut session = open(config(&server, key())).await;
        session.ensure_bucket("bucket").await.unwrap();
        session
            .put_small("bucket", "run/kept", b"old")
            .await
            .unwrap();
        let arena = Arena::new(PayloadKind::Random, 1);
        // Two uploads that are never committed: of a new blob, and over an existing one.
        for key in ["run/lost", "run/kept"] {
            fake.refuse_lists.set(1);
            let put_op = in_parts(1000, 400);
            let mut put = request(&put_op);
            put.key = key;
            put.content = Some(arena.content(0, 1, 0, 1000));
            let error = session.execute(&put, &mut probe()).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Throttled, "{error}");
        }
        assert_eq!(session.abort_uploads("bucket", "other/").await.unwrap(), 0);
        // A container with blocks in it is not empty.
        session
            .delete_keys("bucket", &["run/kept".to_owned()])
            .await
            .unwrap();
        let error = session.delete_bucket("bucket").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
        session
            .put_small("bucket", "run/kept", b"old")
            .await
            .unwrap();
        assert_eq!(session.abort_uploads("bucket", "run/").await.unwrap(), 1);
        assert_eq!(session.abort_uploads("bucket", "run/").await.unwrap(), 0);
        assert_eq!(
            session.get_small("bucket", "run/kept").await.unwrap(),
            b"old"
        );
        session
            .delete_keys("bucket", &["run/kept".to_owned()])
            .await
            .unwrap();
        session.delete_bucket("bucket").await.unwrap();
    });
}

#[test]
fn uploads_to_one_blob_do_not_share_blocks() {
    run(async {
        let server = start(&FakeAzure::default()).await;
        let arena = Arena::new(PayloadKind::Random, 1);
        let put_op = in_parts(1000, 600);
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 1, 0, 1000));
        let mut sessions = [
            open(config(&server, key())).await,
            open(config(&server, key())).await,
        ];
        sessions[0].ensure_bucket("bucket").await.unwrap();
        for session in &mut sessions {
            for _ in 0..2 {
                let done = session.execute(&put, &mut probe()).await.unwrap();
                assert_eq!((done.bytes, done.items), (1000, 2));
            }
        }
        let lines = server.lines();
        let mut ids: Vec<_> = lines
            .iter()
            .filter_map(|l| l.split_once("blockid="))
            .collect();
        ids.sort_by_key(|(_, id)| *id);
        ids.dedup_by_key(|(_, id)| *id);
        assert_eq!(ids.len(), 8, "{lines:#?}");
    });
}

#[test]
fn only_append_blobs_can_grow() {
    run(async {
        let server = start(&FakeAzure::default()).await;
        let mut session = open(config(&server, key())).await;
        session.ensure_bucket("bucket").await.unwrap();
        session
            .put_small("bucket", "key", b"block blob")
            .await
            .unwrap();
        let arena = Arena::new(PayloadKind::Random, 1);
        let append_op = op(OpClass::Append, 10);
        let mut append = request(&append_op);
        append.content = Some(arena.content(0, 1, 0, 10));
        let error = session.execute(&append, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
        assert!(error.detail.contains("that an append created"), "{error}");
        // The first append to a blob takes three requests, later ones take one.
        append.key = "log";
        for requests in [3, 1, 1] {
            let mut probe = probe();
            session.execute(&append, &mut probe).await.unwrap();
            assert_eq!(probe.requests(), requests);
        }
    });
}

#[test]
fn batches_are_limited_and_requests_have_ids() {
    run(async {
        let server = start(&FakeAzure::default()).await;
        let mut session = open(config(&server, key())).await;
        session.ensure_bucket("bucket").await.unwrap();
        let many_op = Op {
            count: 257,
            ..op(OpClass::DeleteMany, 0)
        };
        let many = request(&many_op);
        let error = session.execute(&many, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected);
        assert!(error.detail.contains("256"), "{error}");
        let mut probe = probe();
        probe.want_ids_from(0);
        let get_op = op(OpClass::Get, 10);
        let get = request(&get_op);
        session.execute(&get, &mut probe).await.unwrap_err();
        assert_eq!(probe.ids().unwrap().request_id.as_str(), "id-1");
        for class in [OpClass::ListV1, OpClass::MultipartAbort, OpClass::Rename] {
            let error = session
                .execute(&request(&op(class, 0)), &mut probe)
                .await
                .unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
            assert!(error.detail.contains(": "), "{error}");
        }
    });
}

#[test]
fn a_thousand_random_operations_agree_with_the_model() {
    run(async {
        let server = start(&FakeAzure::default()).await;
        let driver = AzureDriver::new(config(&server, key())).unwrap();
        let test = Differential {
            bucket: "differential".to_owned(),
            seed: 4,
            operations: 1000,
            quirks: Quirks {
                min_part: 0,
                delete_absent: Expect::Fails(&[ErrorKind::NotFound]),
                append_kind: true,
                ..Quirks::default()
            },
            clock,
        };
        let verdict = test.run(&driver).await.unwrap();
        assert_eq!(verdict.different, 0, "{:#?}", verdict.differences);
        assert!(
            verdict.performed.values().all(|n| *n >= 20),
            "{:?}",
            verdict.performed
        );
    });
}
