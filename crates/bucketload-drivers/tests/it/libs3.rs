//! The driver of the libs3 interface against a test library that rustc compiles.
#![cfg(unix)]

use crate::support::{WORKER, clock, libs3_library as library, run};
use bucketload_core::driver::{Admin, Driver, Session};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{Op, OpClass, Request, Watch};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_core::record::Probe;
use bucketload_drivers::conformance::{Differential, Quirks, Suite};
use bucketload_local::libs3::{Libs3Config, Libs3Driver};

fn driver(flavour: Option<&'static str>) -> Libs3Driver {
    Libs3Driver::new(Libs3Config::new(library(flavour))).unwrap()
}

#[test]
fn the_suite_passes_and_random_operations_agree_with_a_model() {
    let driver = driver(None);
    let suite = Suite {
        bucket: "suite".to_owned(),
        quirks: Quirks::of("libs3").unwrap(),
        clock,
    };
    let survey = run(suite.survey(&driver)).unwrap();
    let failures: Vec<_> = survey
        .checks
        .iter()
        .filter(|check| check.failure.is_some())
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let differential = Differential {
        bucket: "differential".to_owned(),
        quirks: Quirks::of("libs3").unwrap(),
        clock,
        seed: 7,
        operations: 1000,
    };
    let verdict = run(differential.run(&driver)).unwrap();
    assert_eq!(verdict.different, 0, "{:#?}", verdict.differences);
}

#[test]
fn other_libraries_are_refused_with_a_reason() {
    let refused = |config| Libs3Driver::new(config).unwrap_err();
    let old = refused(Libs3Config::new(library(Some("version_2"))));
    assert!(
        old.contains("version 2") && old.contains("libs3.so.4"),
        "{old}"
    );
    let missing = refused(Libs3Config::new("/nowhere/libs3.so.4"));
    assert!(
        missing.contains("/nowhere/libs3.so.4: it cannot be loaded"),
        "{missing}"
    );
    let other = refused(Libs3Config::new("libc.so.6"));
    assert!(other.contains("it has no S3_initialize"), "{other}");
    let mut config = Libs3Config::new(library(None));
    config.host = Some("host:9000".to_owned());
    assert!(refused(config).contains("http://HOST:PORT"));
}

const fn request<'a>(class: OpClass, key: &'a str) -> Request<'a> {
    Request::plain(class, "bucket", key)
}

#[test]
fn libraries_that_hide_outcomes_or_truncate_objects_are_detected() {
    run(async {
        let mut probe = Probe::new(clock);
        let silent = driver(Some("silent"));
        let mut session = silent.open(WORKER, &mut probe).await.unwrap();
        let error = session
            .execute(&request(OpClass::Head, "k"), &mut probe)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
        let greedy = driver(Some("greedy"));
        let mut session = greedy.open(WORKER, &mut probe).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
        let arena = Arena::new(PayloadKind::Random, 1);
        let op = Op {
            size: 5000,
            ..Op::new(OpClass::Put)
        };
        let mut put = Request::new(&op, "bucket", "k");
        put.content = Some(arena.content(0, 0, 0, 5000));
        let error = session.execute(&put, &mut probe).await.unwrap_err();
        assert!(error.detail.contains("1000 of 5000"), "{error}");
    });
}

#[test]
fn errors_name_status_and_reason_and_strings_with_nul_are_refused() {
    run(async {
        let driver = driver(None);
        let mut probe = Probe::new(clock);
        let mut session = driver.open(WORKER, &mut probe).await.unwrap();
        let error = session
            .execute(&request(OpClass::Get, "absent"), &mut probe)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "not-found: ErrorNoSuchKey: as the test library says"
        );
        let nul = session
            .execute(&request(OpClass::Get, "a\0b"), &mut probe)
            .await
            .unwrap_err();
        assert_eq!(nul.kind, ErrorKind::Rejected);
    });
}

/// Records the name and size of each listed object, like IO500's find.
#[derive(Default)]
struct Seen(std::cell::RefCell<Vec<(String, u64)>>);

impl Watch for Seen {
    fn body(&self, _: &[u8]) {}
    fn listed(&self, key: &str) {
        self.0.borrow_mut().push((key.to_owned(), u64::MAX));
    }
    fn wants_details(&self) -> bool {
        true
    }
    fn details(&self, bytes: u64, _: i64) {
        self.0.borrow_mut().last_mut().unwrap().1 = bytes;
    }
    fn cut_short(&self) {}
}

#[test]
fn listings_report_sizes_on_request() {
    run(async {
        let driver = driver(None);
        let mut probe = Probe::new(clock);
        let mut session = driver.open(WORKER, &mut probe).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
        let arena = Arena::new(PayloadKind::Random, 1);
        for (key, size) in [("sizes/a", 3901), ("sizes/b", 7)] {
            let op = Op {
                size,
                ..Op::new(OpClass::Put)
            };
            let mut put = Request::new(&op, "bucket", key);
            put.content = Some(arena.content(0, 0, 0, size));
            session.execute(&put, &mut probe).await.unwrap();
        }
        let seen = Seen::default();
        let op = Op {
            count: 10,
            pages: 1,
            ..Op::new(OpClass::List)
        };
        let mut list = Request::new(&op, "bucket", "sizes/");
        list.watch = Some(&seen);
        session.execute(&list, &mut probe).await.unwrap();
        let wanted = [("sizes/a".to_owned(), 3901), ("sizes/b".to_owned(), 7)];
        assert_eq!(*seen.0.borrow(), wanted);
    });
}
