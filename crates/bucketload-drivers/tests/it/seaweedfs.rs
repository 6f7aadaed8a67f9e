//! The SeaweedFS driver against a fake of its documented HTTP interfaces: the shared suite on the filer,
//! and operations with file IDs.

use crate::support::{WORKER, clock, op, probe, request, run, suite_passes};
use bucketload_core::driver::{Admin, Driver, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{ByteRange, Op, OpClass};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::conformance::{Differential, Quirks};
use bucketload_drivers::seaweedfs::{
    Mode, SeaweedConfig, SeaweedDriver, SeaweedOverrides, SeaweedSession,
};
use bucketload_testkit::seaweedfs::FakeSeaweed;

fn driver(fake: &FakeSeaweed, mode: Mode, objects: Option<u64>) -> SeaweedDriver {
    let addr = match mode {
        Mode::Filer => fake.filer,
        Mode::Master => fake.master,
    };
    let overrides = SeaweedOverrides {
        endpoint_url: Some(format!("http://{addr}")),
        mode: Some(mode),
        objects,
        ..SeaweedOverrides::default()
    };
    SeaweedDriver::new(SeaweedConfig::new(&overrides, &|_| None).unwrap()).unwrap()
}

async fn open(driver: &SeaweedDriver) -> SeaweedSession {
    driver.open(WORKER, &mut probe()).await.unwrap()
}

#[test]
fn the_suite_passes_on_a_filer() {
    let driver = driver(&FakeSeaweed::start(), Mode::Filer, None);
    run(suite_passes(
        &driver,
        Quirks::of("seaweedfs").unwrap(),
        "filer",
    ));
}

/// Lists all keys below `prefix`, page by page.
async fn keys(session: &mut SeaweedSession, prefix: &str) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = session
            .list_keys("bucket", prefix, after.as_deref())
            .await
            .unwrap();
        all.extend(page.keys);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

#[test]
fn a_walk_visits_all_folders_and_resumes() {
    run(async {
        let driver = driver(&FakeSeaweed::start(), Mode::Filer, None);
        let mut session = open(&driver).await;
        session.ensure_bucket("bucket").await.unwrap();
        let mut wanted = Vec::new();
        for i in 0..1234 {
            let key = format!("p/{}/{:02}/x{i}", i % 3, i % 50);
            session.put_small("bucket", &key, b"x").await.unwrap();
            wanted.push(key);
        }
        session.put_small("bucket", "q", b"x").await.unwrap();
        wanted.sort();
        assert_eq!(keys(&mut session, "p").await, wanted);
        assert_eq!(keys(&mut session, "p/").await, wanted);
        let two: Vec<_> = wanted.iter().filter(|k| k.starts_with("p/1/2")).collect();
        assert_eq!(
            keys(&mut session, "p/1/2").await.iter().collect::<Vec<_>>(),
            two
        );
        assert!(keys(&mut session, "r/s").await.is_empty());
    });
}

#[test]
fn deleting_a_runs_objects_removes_only_its_folders() {
    run(async {
        let driver = driver(&FakeSeaweed::start(), Mode::Filer, None);
        let mut session = open(&driver).await;
        session.ensure_bucket("bucket").await.unwrap();
        let own = [
            "bench/bucketload-1/w/a".to_owned(),
            "bench/bucketload-1/m".to_owned(),
        ];
        for key in own
            .iter()
            .chain(&["foreign/x".to_owned(), "bench/bucketload-2/y".to_owned()])
        {
            session.put_small("bucket", key, b"x").await.unwrap();
        }
        session.delete_keys("bucket", &own).await.unwrap();
        session
            .delete_keys("bucket", &["foreign/x".to_owned()])
            .await
            .unwrap();
        let list_op = op(OpClass::List, 0);
        let mut list = request(&list_op);
        list.delimiter = "/";
        // Left are another run's folder in `bench/`, and the folder of the foreign object.
        for (prefix, folders) in [("bench/", 1), ("", 2), ("foreign/", 0)] {
            list.key = prefix;
            let listed = session.execute(&list, &mut probe()).await.unwrap();
            assert_eq!(listed.items, folders, "{prefix}");
        }
        let error = session.delete_bucket("bucket").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert_eq!(keys(&mut session, "").await, ["bench/bucketload-2/y"]);
    });
}

#[test]
fn a_truncated_file_is_detected() {
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let driver = driver(&FakeSeaweed::start(), Mode::Filer, None);
        let mut session = open(&driver).await;
        session.ensure_bucket("bucket").await.unwrap();
        let put_op = op(OpClass::Put, 100);
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 1, 0, 100));
        put.key = "short";
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(error.detail.contains("stored 99 of 100 bytes"), "{error}");
    });
}

#[test]
fn file_ids_are_assigned_once_and_kept() {
    let fake = FakeSeaweed::start();
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let driver = driver(&fake, Mode::Master, None);
        let mut session = open(&driver).await;
        assert!(session.ensure_bucket("bucket").await.unwrap());
        assert!(!session.ensure_bucket("bucket").await.unwrap());
        let put_op = op(OpClass::Put, 70_000);
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 1, 0, 70_000));
        let mut seen = probe();
        session.execute(&put, &mut seen).await.unwrap();
        assert_eq!(seen.requests(), 2, "assign and put");
        let mut seen = probe();
        session.execute(&put, &mut seen).await.unwrap();
        assert_eq!(seen.requests(), 1, "the file ID is known");
        assert_eq!(fake.files(), 1);

        // Another session knows the object and its volume without asking the master.
        let mut other = open(&driver).await;
        let asked = fake.requests().len();
        let get_op = op(OpClass::Get, 70_000);
        let mut get = request(&get_op);
        get.content = put.content;
        get.verify = true;
        assert_eq!(
            other.execute(&get, &mut probe()).await.unwrap().bytes,
            70_000
        );
        let part = Op {
            class: OpClass::RangeGet,
            range: Some(ByteRange {
                offset: 5,
                len: 100,
            }),
            ..get_op
        };
        get.op = &part;
        assert_eq!(other.execute(&get, &mut probe()).await.unwrap().bytes, 100);
        let head = other
            .execute(&request(&op(OpClass::Head, 0)), &mut probe())
            .await;
        assert_eq!(head.unwrap().object_size, 70_000);
        assert!(
            fake.requests()[asked..]
                .iter()
                .all(|line| !line.contains("/dir/"))
        );

        other
            .execute(&request(&op(OpClass::Delete, 0)), &mut probe())
            .await
            .unwrap();
        assert_eq!(fake.files(), 0);
        for class in [OpClass::Get, OpClass::Head, OpClass::Delete] {
            let error = session
                .execute(&request(&op(class, 0)), &mut probe())
                .await
                .unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotFound, "{class}");
        }
        session.delete_bucket("bucket").await.unwrap();
        let error = session.head_bucket("bucket").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
    });
}

#[test]
fn objects_on_a_master_can_be_cleaned_up_by_prefix() {
    let fake = FakeSeaweed::start();
    run(async {
        let driver = driver(&fake, Mode::Master, None);
        let mut session = open(&driver).await;
        for i in 0..30 {
            for folder in ["a/run-1/w", "a/run-2/w"] {
                let key = format!("{folder}/{i}");
                session
                    .put_small("bucket", &key, key.as_bytes())
                    .await
                    .unwrap();
            }
        }
        session
            .put_small("bucket", "a/run-1/marker", b"mine")
            .await
            .unwrap();
        assert_eq!(
            session.get_small("bucket", "a/run-1/marker").await.unwrap(),
            b"mine"
        );
        let found = keys(&mut session, "a/run-1/").await;
        let mut sorted = found.clone();
        sorted.sort();
        let mut wanted: Vec<_> = (0..30).map(|i| format!("a/run-1/w/{i}")).collect();
        wanted.push("a/run-1/marker".to_owned());
        wanted.sort();
        assert_eq!(sorted, wanted);
        session.delete_keys("bucket", &found).await.unwrap();
        assert_eq!(fake.files(), 30);
        assert_eq!(
            session.get_small("bucket", "a/run-2/w/7").await.unwrap(),
            b"a/run-2/w/7"
        );
        let error = session.delete_bucket("bucket").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
    });
}

#[test]
fn a_full_table_is_reported() {
    let fake = FakeSeaweed::start();
    let arena = Arena::new(PayloadKind::Zeros, 1);
    run(async {
        let driver = driver(&fake, Mode::Master, Some(2));
        let mut session = open(&driver).await;
        let put_op = op(OpClass::Put, 10);
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 1, 0, 10));
        let mut results = Vec::<Result<_, OpError>>::new();
        for key in ["1", "2", "1", "3"] {
            put.key = key;
            results.push(session.execute(&put, &mut probe()).await);
        }
        let error = results.pop().unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected);
        assert!(error.detail.contains("--seaweedfs-objects"), "{error}");
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(fake.files(), 2, "nothing was written that is not known");
    });
}

#[test]
fn the_steady_state_needs_one_request() {
    let fake = FakeSeaweed::start();
    let arena = Arena::new(PayloadKind::Zeros, 1);
    run(async {
        for (mode, each) in [(Mode::Filer, 1), (Mode::Master, 1)] {
            let driver = driver(&fake, mode, None);
            let mut session = open(&driver).await;
            session.ensure_bucket("bucket").await.unwrap();
            for class in [OpClass::Put, OpClass::Get, OpClass::Head, OpClass::Put] {
                let op = op(class, 4096);
                let mut request = request(&op);
                request.content = Some(arena.content(0, 1, 0, 4096));
                session.execute(&request, &mut probe()).await.unwrap();
                let mut seen = probe();
                session.execute(&request, &mut seen).await.unwrap();
                assert_eq!(seen.requests(), each, "{mode} {class}");
            }
        }
    });
}

#[test]
fn random_operations_agree_with_the_model() {
    let driver = driver(&FakeSeaweed::start(), Mode::Filer, None);
    let test = Differential {
        bucket: "differential".to_owned(),
        quirks: Quirks::of("seaweedfs").unwrap(),
        clock,
        seed: 6,
        operations: 1000,
    };
    let verdict = run(test.run(&driver)).unwrap();
    assert!(verdict.differences.is_empty(), "{verdict:#?}");
}

#[test]
fn placement_is_read_from_filer_and_master() {
    let fake = FakeSeaweed::start();
    run(async {
        let mut filer = open(&driver(&fake, Mode::Filer, None)).await;
        let mut master = open(&driver(&fake, Mode::Master, None)).await;
        filer.ensure_bucket("bucket").await.unwrap();
        let mut servers = std::collections::BTreeSet::new();
        for key in ["a", "ab", "abc", "abcd"] {
            filer.put_small("bucket", key, b"x").await.unwrap();
            let volumes = filer.volumes_of("bucket", key).await.unwrap();
            assert_eq!(volumes.len(), 1);
            let found = master.servers_of(volumes[0]).await.unwrap();
            assert_eq!(found.len(), 1);
            servers.extend(found);
        }
        assert_eq!(servers.len(), 3, "four volumes on three servers");
        let error = filer.volumes_of("bucket", "absent").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        let error = master.servers_of(99).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
    });
}
