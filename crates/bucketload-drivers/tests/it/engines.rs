//! The library engines against the embedded server: the shared suite, retries, failures and TLS.
#![cfg(feature = "http-engines")]

use std::sync::Arc;

use crate::support::{op, probe, request, run};
use bucketload_core::driver::{Admin, Driver, Session, WorkerId};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::conformance::{Quirks, Suite};
use bucketload_drivers::engines::{Engine, EngineDriver};
use bucketload_drivers::s3::{Credentials, Endpoint, S3Config, S3Driver, TlsConfig};
use bucketload_server::{KeyPair, Server, ServerConfig, ServerHandle};
use bucketload_store::{MemoryOptions, MemoryStore};
use bucketload_wire::tls::{Identity, Pem, ServerOptions};

const WORKER: WorkerId = WorkerId {
    thread: 0,
    worker: 0,
};

fn server(change: impl FnOnce(&mut ServerConfig)) -> ServerHandle {
    let mut config = ServerConfig::new(KeyPair {
        access_key: "AKID".into(),
        secret_key: "sEcret/key".into(),
    });
    change(&mut config);
    let store = MemoryStore::new(MemoryOptions::default());
    Server::start(config, Arc::new(store)).unwrap()
}

fn config(server: &ServerHandle) -> S3Config {
    let endpoint = Endpoint::parse(&server.endpoint_url(), "test").unwrap();
    let credentials = Credentials::new("AKID", "sEcret/key");
    S3Config::new(vec![endpoint], "us-east-1", Some(credentials))
}

fn clock() -> u64 {
    use std::cell::Cell;
    thread_local!(static TICKS: Cell<u64> = const { Cell::new(0) });
    TICKS.set(TICKS.get() + 1);
    TICKS.get()
}

fn driver<E: Engine>(engine: E, config: S3Config) -> EngineDriver<E> {
    EngineDriver::new(S3Driver::new(config).unwrap(), engine)
}

fn passes(name: &str, driver: &impl Driver) {
    let suite = Suite {
        bucket: "suite".to_owned(),
        quirks: Quirks::of("bucketload").unwrap().with_engine(name),
        clock,
    };
    let results = run(suite.run(driver)).unwrap();
    let failed: Vec<_> = results.iter().filter(|r| r.failure.is_some()).collect();
    assert!(failed.is_empty(), "{name}: {failed:#?}");
}

/// An engine retries as often as configured, and each request is counted.
fn retries_show<E: Engine>(make: impl Fn(&S3Config, u32) -> E) {
    // The first of every three answers is a refusal.
    let server = server(|c| c.faults.push("status=503,op=get,every=3".parse().unwrap()));
    let content_of = Arena::new(PayloadKind::Random, 1);
    run(async {
        for retries in [0, 2] {
            let config = config(&server);
            let driver = driver(make(&config, retries), config);
            let mut session = driver.open(WORKER, &mut probe()).await.unwrap();
            session.ensure_bucket("bucket").await.unwrap();
            let content = content_of.content(0, 1, 0, 4096);
            let put_op = op(OpClass::Put, 4096);
            let mut put = request(&put_op);
            put.content = Some(content);
            session.execute(&put, &mut probe()).await.unwrap();
            let get_op = op(OpClass::Get, 4096);
            let mut get = request(&get_op);
            get.content = Some(content);
            get.verify = true;
            let (mut failed, mut requests) = (0, 0);
            for _ in 0..6 {
                let mut probe = probe();
                if let Err(error) = session.execute(&get, &mut probe).await {
                    assert!(error.kind.is_retryable(), "{error}");
                    assert_eq!((error.status, probe.requests()), (503, 1));
                    failed += 1;
                }
                requests += probe.requests();
            }
            match retries {
                0 => assert_eq!((failed, requests), (2, 6)),
                _ => assert!(failed == 0 && requests > 6, "{failed} {requests}"),
            }
        }
    });
}

/// Corruption and failures below the protocol are detected, with the right kind.
fn failures_are_named<E: Engine>(make: impl Fn(&S3Config, u32) -> E) {
    let server = server(|c| c.faults.push("corrupt,op=get".parse().unwrap()));
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let session = async |config: S3Config| {
            let driver = driver(make(&config, 0), config);
            driver.open(WORKER, &mut probe()).await.unwrap()
        };
        let mut good = session(config(&server)).await;
        good.ensure_bucket("bucket").await.unwrap();
        for size in [4096, 3_000_000] {
            let put_op = op(OpClass::Put, size);
            let mut put = request(&put_op);
            put.content = Some(arena.content(0, size, 0, size));
            good.execute(&put, &mut probe()).await.unwrap();
            let get_op = op(OpClass::Get, size);
            let mut get = request(&get_op);
            get.content = put.content;
            get.verify = true;
            let error = good.execute(&get, &mut probe()).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
        }
        let head_op = op(OpClass::Get, 1);
        let head = request(&head_op);
        let mut wrong = config(&server);
        wrong.credentials = Some(Credentials::new("AKID", "oTher/key"));
        let error = session(wrong).await.execute(&head, &mut probe()).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth, "{error}");
        assert!(error.detail.contains("SignatureDoesNotMatch"), "{error}");
        // A port without a listener.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut absent = config(&server);
        absent.endpoints[0].port = port.local_addr().unwrap().port();
        absent.endpoints[0].authority = port.local_addr().unwrap().to_string();
        drop(port);
        let error = session(absent).await.execute(&head, &mut probe()).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect, "{error}");
    });
}

/// A server's certificate is checked against the CA bundle of the target's settings.
fn tls_is_checked<E: Engine>(make: impl Fn(&S3Config, u32) -> E) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let key = KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let own = CertificateParams::new(names).unwrap();
    let own = own.signed_by(&key, &ca).unwrap();
    std::fs::write(path("ca.pem"), ca.pem()).unwrap();
    std::fs::write(path("server.pem"), own.pem()).unwrap();
    std::fs::write(path("server.key"), key.serialize_pem()).unwrap();
    let identity = Identity {
        certificates: Pem::File(path("server.pem")),
        key: Pem::File(path("server.key")),
    };
    let server = server(|c| {
        c.tls = Some(ServerOptions {
            identity,
            client_ca: None,
        });
    });
    run(async {
        let head_op = op(OpClass::Get, 1);
        let head = request(&head_op);
        for (bundle, kind) in [
            (Some(path("ca.pem")), ErrorKind::NotFound),
            (None, ErrorKind::Tls),
        ] {
            let mut config = config(&server);
            config.tls = TlsConfig {
                ca_bundle: bundle,
                ..TlsConfig::default()
            };
            let driver = driver(make(&config, 0), config);
            let mut session = driver.open(WORKER, &mut probe()).await.unwrap();
            let error = session.execute(&head, &mut probe()).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
        }
    });
}

macro_rules! engine {
    ($feature:literal, $module:ident :: $engine:ident, $name:literal) => {
        #[cfg(feature = $feature)]
        mod $module {
            use bucketload_drivers::engines::$module::$engine;
            use bucketload_drivers::s3::S3Config;

            fn make(config: &S3Config, retries: u32) -> $engine {
                $engine::new(config, retries).unwrap()
            }

            #[test]
            fn the_suite_passes() {
                let server = super::server(|_| {});
                let config = super::config(&server);
                super::passes($name, &super::driver(make(&config, 0), config));
            }

            #[test]
            fn retries_show() {
                super::retries_show(make);
            }

            #[test]
            fn failures_are_named() {
                super::failures_are_named(make);
            }

            #[test]
            fn tls_is_checked() {
                super::tls_is_checked(make);
            }
        }
    };
}

engine!("engine-aws-sdk", aws_sdk::AwsSdkEngine, "aws-sdk");
engine!(
    "engine-object-store",
    object_store::ObjectStoreEngine,
    "object-store"
);
engine!("engine-opendal", opendal::OpendalEngine, "opendal");
