//! The suite against the embedded server with every kind of request, and against servers that misbehave, which the suite
//! must notice.

use std::sync::Arc;

use crate::support::{clock, op, open, probe, request, run};
use bucketload_core::driver::{Admin, Session};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::conformance::{CheckResult, Differential, Expect, Quirks, Suite, Verdict};
use bucketload_drivers::s3::{
    Addressing, AppendMode, ChecksumAlgorithm, Credentials, CustomerKey, Encryption, Endpoint,
    Keeping, PayloadMode, S3Config, S3Driver, TlsConfig,
};
use bucketload_server::{Access, KeyPair, Server, ServerConfig, ServerHandle};
use bucketload_store::{MemoryOptions, MemoryStore};
use bucketload_wire::tls::{Identity, Pem, ServerOptions};

const DOMAIN: &str = "s3.test";

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
    let mut config = S3Config::new(vec![endpoint], "us-east-1", Some(credentials));
    config.append = AppendMode::WriteOffset;
    config
}

/// The checks that fail.
fn failures(config: S3Config, quirks: Quirks) -> Vec<CheckResult> {
    let driver = S3Driver::new(config).unwrap();
    let suite = Suite {
        bucket: "suite".to_owned(),
        quirks,
        clock,
    };
    let mut results = run(suite.run(&driver)).unwrap();
    results.retain(|result| result.failure.is_some());
    results
}

fn passes(config: S3Config) {
    let failures = failures(config, Quirks::of("bucketload").unwrap());
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn path_style_with_unsigned_payload() {
    passes(config(&server(|_| {})));
}

#[test]
fn virtual_host_style() {
    let server = server(|c| c.domain = Some(DOMAIN.to_owned()));
    let mut config = config(&server);
    config.addressing = Addressing::Virtual;
    config.endpoints[0].authority = format!("{DOMAIN}:{}", server.address().port());
    passes(config);
}

#[test]
fn another_region() {
    let server = server(|c| c.region = "eu-central-1".to_owned());
    let mut config = config(&server);
    config.region = "eu-central-1".to_owned();
    let failures = failures(config, Quirks::default());
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn anonymous_access() {
    let server = server(|c| c.access = Access::Anonymous);
    let mut config = config(&server);
    config.credentials = None;
    passes(config.clone());
    config.payload = PayloadMode::UnsignedTrailer;
    config.checksum = Some(ChecksumAlgorithm::Crc32);
    passes(config);
}

#[test]
fn objects_kept_in_a_class_and_encrypted() {
    let server = server(|_| {});
    let key = Encryption::Customer(CustomerKey::new(&[7; 32]));
    for encryption in [Encryption::Managed, key] {
        for payload in [PayloadMode::Unsigned, PayloadMode::StreamingTrailer] {
            let mut config = config(&server);
            config.payload = payload;
            config.checksum = Some(ChecksumAlgorithm::Crc64Nvme);
            config.keeping = Keeping {
                storage_class: Some("REDUCED_REDUNDANCY".to_owned()),
                encryption: Some(encryption.clone()),
            };
            passes(config);
        }
    }
}

/// The server refuses reads without the key, so the key was sent with the writes; and without a key it was not.
#[test]
fn a_customers_key_opens_only_what_it_closed() {
    let server = server(|_| {});
    let with = |key: Option<u8>| {
        let mut config = config(&server);
        let key = key.map(|byte| Encryption::Customer(CustomerKey::new(&[byte; 32])));
        config.keeping.encryption = key;
        config
    };
    let arena = Arena::new(PayloadKind::Random, 1);
    let size = (5 << 20) + 7;
    run(async {
        let mut owner = open(with(Some(7))).await;
        owner.ensure_bucket("bucket").await.unwrap();
        for (class, key) in [(OpClass::Put, "put"), (OpClass::MultipartPut, "parts")] {
            let put_op = Op {
                count: if class == OpClass::Put { 0 } else { 5 << 20 },
                ..op(class, size)
            };
            let mut put = request(&put_op);
            put.key = key;
            put.content = Some(arena.content(0, 0, 0, size));
            owner.execute(&put, &mut probe()).await.unwrap();
            for (class, copy) in [
                (OpClass::Copy, "copy"),
                (OpClass::MultipartCopy, "parts-copy"),
            ] {
                let copy_op = Op {
                    count: 5 << 20,
                    ..op(class, size)
                };
                let mut request = request(&copy_op);
                (request.key, request.source) = (copy, key);
                owner.execute(&request, &mut probe()).await.unwrap();
            }
        }
        for class in [OpClass::Get, OpClass::Head] {
            for key in ["put", "parts", "copy", "parts-copy"] {
                let read_op = op(class, size);
                let mut read = request(&read_op);
                read.key = key;
                owner.execute(&read, &mut probe()).await.unwrap();
                for other in [None, Some(8)] {
                    let mut stranger = open(with(other)).await;
                    let refused = stranger.execute(&read, &mut probe()).await.unwrap_err();
                    assert!(
                        matches!(refused.status, 400 | 403),
                        "{class} {key}: {refused}"
                    );
                }
            }
        }
    });
}

#[test]
fn every_payload_mode() {
    let server = server(|_| {});
    for (mode, algorithm) in PayloadMode::ALL.iter().zip(ChecksumAlgorithm::ALL) {
        let mut config = config(&server);
        config.payload = *mode;
        config.checksum = Some(*algorithm);
        passes(config);
    }
}

#[test]
fn every_checksum_in_every_mode_is_accepted_and_right() {
    let server = server(|_| {});
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        for mode in PayloadMode::ALL {
            for algorithm in ChecksumAlgorithm::ALL {
                let mut config = config(&server);
                config.payload = *mode;
                config.checksum = Some(*algorithm);
                let mut session = open(config).await;
                session.ensure_bucket("bucket").await.unwrap();
                for (class, size, part) in [
                    (OpClass::Put, 0, 0),
                    (OpClass::Put, 200_001, 0),
                    (OpClass::MultipartPut, (5 << 20) + 7, 5 << 20),
                ] {
                    let content = arena.content(0, size, 0, size);
                    let put_op = Op {
                        count: part,
                        ..op(class, size)
                    };
                    let mut put = request(&put_op);
                    put.content = Some(content);
                    let done = session.execute(&put, &mut probe()).await;
                    assert!(done.is_ok(), "{mode} {algorithm} {class} {size}: {done:?}");
                    let get_op = op(OpClass::Get, size);
                    let mut get = request(&get_op);
                    get.content = Some(content);
                    get.verify = true;
                    session.execute(&get, &mut probe()).await.unwrap();
                }
            }
        }
    });
}

struct Certificates {
    dir: tempfile::TempDir,
    options: ServerOptions,
}

/// A certificate authority, a certificate for 127.0.0.1 and one for a client, as files.
fn certificates() -> Certificates {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
    write("ca.pem", ca.pem());
    for (name, host) in [("server", "127.0.0.1"), ("client", "client.test")] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        write(&format!("{name}.pem"), certificate.pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
    let file = |name: &str| Pem::File(dir.path().join(name));
    let identity = Identity {
        certificates: file("server.pem"),
        key: file("server.key"),
    };
    let options = ServerOptions {
        identity,
        client_ca: Some(file("ca.pem")),
    };
    Certificates { dir, options }
}

#[test]
fn tls_with_own_ca_and_client_certificate() {
    let files = certificates();
    let server = server(|c| c.tls = Some(files.options.clone()));
    let path = |name: &str| files.dir.path().join(name);
    let mut config = config(&server);
    config.tls = TlsConfig {
        ca_bundle: Some(path("ca.pem")),
        client: Some((path("client.pem"), path("client.key"))),
        ..TlsConfig::default()
    };
    passes(config.clone());

    // It fails without a client certificate, without the CA, and for another name.
    let refused = |config: S3Config| {
        let driver = S3Driver::new(config).unwrap();
        run(async {
            let worker = bucketload_core::driver::WorkerId::default();
            match bucketload_core::driver::Driver::open(&driver, worker, &mut probe()).await {
                Err(error) => error,
                // In TLS 1.3, the refusal of a client certificate arrives after the handshake.
                Ok(mut session) => session.head_bucket("suite").await.unwrap_err(),
            }
        })
    };
    let mut other = config.clone();
    other.tls.client = None;
    assert_eq!(refused(other).kind, ErrorKind::Tls);
    let mut other = config.clone();
    other.tls.ca_bundle = Some(path("client.pem"));
    let error = refused(other);
    assert_eq!(error.kind, ErrorKind::Tls, "{error}");
    let mut other = config.clone();
    other.endpoints[0].host = "localhost".to_owned();
    let error = refused(other);
    assert_eq!(error.kind, ErrorKind::Tls, "{error}");
    let mut other = config.clone();
    other.tls.ca_bundle = Some(path("absent.pem"));
    let error = S3Driver::new(other).unwrap_err().to_string();
    assert!(error.contains("absent.pem"), "{error}");
}

#[test]
fn wrong_credentials_and_regions_are_explained() {
    let server = server(|c| c.region = "eu-west-3".to_owned());
    run(async {
        let mut wrong_region = open(config(&server)).await;
        let error = wrong_region.ensure_bucket("b").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth, "{error}");
        assert!(error.detail.contains("eu-west-3"), "{error}");
        for (id, key, code) in [
            ("AKID", "other", "SignatureDoesNotMatch"),
            ("OTHER", "sEcret/key", "InvalidAccessKeyId"),
        ] {
            let mut config = config(&server);
            config.region = "eu-west-3".to_owned();
            config.credentials = Some(Credentials::new(id, key));
            let error = open(config).await.ensure_bucket("b").await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Auth, "{error}");
            assert!(error.detail.contains(code), "{error}");
        }
    });
}

/// The names of the checks that fail when the server has `fault`.
fn broken_by(fault: &str) -> Vec<&'static str> {
    let server = server(|c| c.faults.push(fault.parse().unwrap()));
    let failures = failures(config(&server), Quirks::of("bucketload").unwrap());
    failures.into_iter().map(|result| result.name).collect()
}

#[test]
fn the_suite_notices_faults() {
    assert!(broken_by("corrupt,op=get").contains(&"content_round_trips"));
    assert!(broken_by("truncate,op=get").contains(&"content_round_trips"));
    assert_eq!(broken_by("status=503,op=copy"), ["copies_are_equal"]);
}

#[test]
fn a_missing_documented_refusal_is_a_failure() {
    let quirks = Quirks {
        tagging: Expect::Fails(&[ErrorKind::Unsupported]),
        ..Quirks::of("bucketload").unwrap()
    };
    let failed = failures(config(&server(|_| {})), quirks);
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].name, "tags_round_trip");
}

#[test]
fn verification_finds_every_injected_corruption() {
    let server = server(|c| c.faults.push("corrupt,op=get,every=10".parse().unwrap()));
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let mut session = open(config(&server)).await;
        session.ensure_bucket("bucket").await.unwrap();
        let content = arena.content(0, 1, 0, 4096);
        let put_op = op(OpClass::Put, 4096);
        let mut put = request(&put_op);
        put.content = Some(content);
        session.execute(&put, &mut probe()).await.unwrap();
        let get_op = op(OpClass::Get, 4096);
        let mut get = request(&get_op);
        get.content = Some(content);
        get.verify = true;
        let mut found = 0;
        for _ in 0..5000 {
            match session.execute(&get, &mut probe()).await {
                Ok(done) => assert_eq!(done.bytes, 4096),
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                    found += 1;
                }
            }
        }
        assert_eq!(found, 500);
    });
}

fn differential(config: S3Config, seed: u64) -> Verdict {
    let driver = S3Driver::new(config).unwrap();
    let test = Differential {
        bucket: "differential".to_owned(),
        seed,
        operations: 1000,
        quirks: Quirks::of("bucketload").unwrap(),
        clock,
    };
    run(test.run(&driver)).unwrap()
}

#[test]
fn a_thousand_random_operations_agree_with_the_model() {
    let server = server(|_| {});
    for seed in [4, 5] {
        let verdict = differential(config(&server), seed);
        assert_eq!(verdict.different, 0, "{:#?}", verdict.differences);
        let least = verdict.performed.values().min();
        assert!(least.is_some_and(|n| *n >= 20), "{:?}", verdict.performed);
    }
}

#[test]
fn the_differential_test_notices_what_is_wrong() {
    for fault in [
        "corrupt,op=get,every=40",
        "status=403,op=copy,every=10",
        "lost,op=put,every=10",
    ] {
        let server = server(|c| c.faults.push(fault.parse().unwrap()));
        let verdict = differential(config(&server), 4);
        assert!(verdict.different > 0, "{fault}");
        assert!(!verdict.differences.is_empty() && verdict.differences.len() <= 20);
    }
}
