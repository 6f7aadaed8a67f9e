//! The Swift driver against a small server that follows the API's documents.

use bucketload_core::driver::{Admin, Driver, Session, WorkerId};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::payload::{Arena, Content, PayloadKind};
use bucketload_drivers::conformance::{Differential, Quirks, Suite};
use bucketload_drivers::swift::{
    Domain, Endpoint, Identity, Keystone, LargeObject, Named, Secret, SignInError, SwiftAuth,
    SwiftConfig, SwiftDriver,
};
use bucketload_testkit::swift::FakeSwift;

use crate::support::{clock, probe, run};

fn endpoint(server: &FakeSwift, path: &str) -> Endpoint {
    Endpoint::parse(&format!("http://{}{path}", server.address), "test").unwrap()
}

fn v1(server: &FakeSwift, key: &str) -> SwiftConfig {
    let auth = SwiftAuth::V1 {
        url: endpoint(server, "/auth/v1.0"),
        user: "test:tester".into(),
        key: Secret::new(key),
    };
    SwiftConfig::new(auth, None)
}

fn v3(server: &FakeSwift) -> SwiftConfig {
    let named = |name: &str| Named::Name {
        name: name.into(),
        domain: Domain::Id("default".into()),
    };
    SwiftConfig::new(
        SwiftAuth::Keystone(Box::new(Keystone {
            url: endpoint(server, "/v3"),
            identity: Identity::Password {
                user: named("alice"),
                password: Secret::new("secret"),
            },
            scope: Some(named("bench")),
            region: Some("one".into()),
            interface: "public".into(),
        })),
        None,
    )
}

async fn session(driver: &SwiftDriver) -> <SwiftDriver as Driver>::Session {
    driver
        .open(WorkerId::default(), &mut probe())
        .await
        .unwrap()
}

fn op(class: OpClass, content: Option<Content<'_>>) -> Op {
    Op {
        size: content.map_or(Op::UNKNOWN_SIZE, |content| content.size()),
        ..Op::new(class)
    }
}

fn request<'a>(op: &'a Op, key: &'a str, content: Option<Content<'a>>) -> Request<'a> {
    let mut request = Request::new(op, "c", key);
    request.content = content;
    request.verify = content.is_some();
    request
}

#[test]
fn the_suite_passes_with_either_kind_of_large_object_and_sign_in() {
    let server = FakeSwift::start();
    for (number, mut config) in [v1(&server, "testing"), v3(&server)]
        .into_iter()
        .enumerate()
    {
        config.large_object = LargeObject::ALL[number];
        config.etag = number == 0;
        let driver = SwiftDriver::sign_in(config).unwrap();
        let suite = Suite {
            bucket: format!("suite-{number}"),
            quirks: Quirks::of("swift").unwrap(),
            clock,
        };
        let results = run(suite.run(&driver)).unwrap();
        let failures: Vec<_> = results.iter().filter(|r| r.failure.is_some()).collect();
        assert!(failures.is_empty(), "{failures:#?}");
        assert_eq!(server.names(&format!("suite-{number}_segments")), None);
        let test = Differential {
            bucket: "differential".to_owned(),
            seed: 4,
            operations: 1000,
            quirks: Quirks::of("swift").unwrap(),
            clock,
        };
        let verdict = run(test.run(&driver)).unwrap();
        assert_eq!(verdict.different, 0, "{:#?}", verdict.differences);
        assert_eq!(server.names("differential_segments"), None);
    }
}

#[test]
fn a_refused_token_fails_the_operation_and_is_then_renewed() {
    let server = FakeSwift::start();
    let driver = SwiftDriver::sign_in(v1(&server, "testing")).unwrap();
    assert_eq!(server.sign_ins(), 1);
    run(async {
        let mut session = session(&driver).await;
        session.ensure_bucket("c").await.unwrap();
        server.revoke();
        let probe = &mut probe();
        let head_op = op(OpClass::Head, None);
        let head = request(&head_op, "absent", None);
        let error = session.execute(&head, probe).await.unwrap_err();
        assert_eq!((error.kind, error.status), (ErrorKind::Auth, 401));
        assert_eq!(probe.requests(), 1, "nothing is repeated silently");
        // Operations keep failing until the other thread has signed in.
        for _ in 0..100_000 {
            let error = session.execute(&head, probe).await.unwrap_err();
            if error.kind == ErrorKind::NotFound {
                break;
            }
            assert_eq!(error.kind, ErrorKind::Auth, "{error}");
            std::thread::yield_now();
        }
        let error = session.execute(&head, probe).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
        assert_eq!(server.sign_ins(), 2, "signing in once is enough");
    });
}

#[test]
fn wrong_credentials_are_reported_but_not_shown() {
    let server = FakeSwift::start();
    let error = SwiftDriver::sign_in(v1(&server, "hush-hush")).unwrap_err();
    let SignInError::Refused(refused) = &error else {
        panic!("{error}");
    };
    assert_eq!(refused.kind, ErrorKind::Auth);
    let text = format!("{error} {error:?}");
    assert!(
        text.contains("/auth/v1.0") && text.contains("password is wrong"),
        "{text}"
    );
    assert!(!text.contains("hush"), "{text}");
    server.lock();
    assert!(SwiftDriver::sign_in(v3(&server)).is_err());
    let mut elsewhere = v1(&server, "testing");
    if let SwiftAuth::V1 { url, .. } = &mut elsewhere.auth {
        url.base_path = "/nowhere".to_owned();
    }
    let error = SwiftDriver::sign_in(elsewhere).unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
}

#[test]
fn segments_are_deleted_with_their_objects_only() {
    let server = FakeSwift::start();
    let arena = Arena::new(PayloadKind::Random, 5);
    for kind in LargeObject::ALL {
        let mut config = v1(&server, "testing");
        config.large_object = *kind;
        let driver = SwiftDriver::sign_in(config).unwrap();
        run(async {
            let mut session = session(&driver).await;
            assert!(session.ensure_bucket("c").await.unwrap());
            let probe = &mut probe();
            for (key, version) in [("a", 0), ("a", 1), ("b", 0), ("x/c", 0)] {
                let content = arena.content(0, 1, version, 25_000);
                let put_op = Op {
                    count: 10_000,
                    ..op(OpClass::MultipartPut, Some(content))
                };
                let put = request(&put_op, key, Some(content));
                let done = session.execute(&put, probe).await.unwrap();
                assert_eq!((done.bytes, done.items), (25_000, 3));
                let get_op = op(OpClass::Get, Some(content));
                let get = request(&get_op, key, Some(content));
                session.execute(&get, probe).await.unwrap();
            }
            let segments = || server.names("c_segments").unwrap();
            assert_eq!(segments().len(), 12);
            // Segments of other tools are left alone.
            let foreign = "a/slo/1700000000.0/25000/10000/00000000";
            session
                .put_small("c_segments", foreign, b"theirs")
                .await
                .unwrap();
            // The segments of the overwritten upload are deleted; others stay.
            assert_eq!(session.abort_uploads("c", "a").await.unwrap(), 1);
            assert_eq!(segments().len(), 10);
            let get_op = op(OpClass::Get, Some(arena.content(0, 1, 1, 25_000)));
            let get = request(&get_op, "a", Some(arena.content(0, 1, 1, 25_000)));
            session.execute(&get, probe).await.unwrap();
            // Deleting a manifest leaves its segments to the clean-up, which only covers its prefix.
            let delete_op = op(OpClass::Delete, None);
            let delete = request(&delete_op, "x/c", None);
            session.execute(&delete, probe).await.unwrap();
            assert_eq!(session.abort_uploads("c", "b").await.unwrap(), 0);
            assert_eq!(session.abort_uploads("c", "x/").await.unwrap(), 1);
            session
                .delete_keys("c", &["a".into(), "b".into()])
                .await
                .unwrap();
            assert_eq!(segments(), [foreign]);
            session.delete_bucket("c").await.unwrap();
            assert_eq!(
                segments(),
                [foreign],
                "a container with foreign objects stays"
            );
            session
                .delete_keys("c_segments", &[foreign.into()])
                .await
                .unwrap();
            assert_eq!(session.abort_uploads("c", "").await.unwrap(), 0);
            assert_eq!(server.names("c_segments"), None);
        });
    }
}

#[test]
fn a_foreign_segments_container_is_kept() {
    let server = FakeSwift::start();
    let driver = SwiftDriver::sign_in(v1(&server, "testing")).unwrap();
    let arena = Arena::new(PayloadKind::Random, 5);
    run(async {
        let mut session = session(&driver).await;
        session.ensure_bucket("c").await.unwrap();
        session.ensure_bucket("c_segments").await.unwrap();
        let content = arena.content(0, 1, 0, 5000);
        let put_op = op(OpClass::MultipartPut, Some(content));
        let put = request(&put_op, "a", Some(content));
        session.execute(&put, &mut probe()).await.unwrap();
        session.delete_keys("c", &["a".into()]).await.unwrap();
        session.abort_uploads("c", "").await.unwrap();
        session.delete_bucket("c").await.unwrap();
        assert_eq!(server.names("c_segments"), Some(Vec::new()));
    });
}
