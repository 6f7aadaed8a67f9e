//! Reads through Hadoop's own protocols against a cluster in memory: delivery, retries and refusals.
#![cfg(feature = "hdfs")]

use std::sync::atomic::Ordering;

use crate::support::{WORKER, probe, run};
use bucketload_core::driver::{Completion, Driver, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{ByteRange, Op, OpClass, Request};
use bucketload_core::payload::{Arena, Content, PayloadKind};
use bucketload_core::record::Probe;
use bucketload_drivers::hadoop::HadoopOverrides;
use bucketload_drivers::hdfs::{HdfsConfig, HdfsDriver, HdfsSession};
use bucketload_testkit::hdfs::FakeHdfs;

fn driver(fake: &FakeHdfs) -> HdfsDriver {
    let overrides = HadoopOverrides {
        endpoint_url: Some(fake.url.clone()),
        ..HadoopOverrides::default()
    };
    let env = |name: &str| (name == "HADOOP_USER_NAME").then(|| "ann".to_owned());
    let config = HdfsConfig::discover(&overrides, &env).unwrap();
    assert_eq!(config.library_reads, None);
    HdfsDriver::new(config).unwrap()
}

async fn open(driver: &HdfsDriver) -> Result<HdfsSession, OpError> {
    driver.open(WORKER, &mut probe()).await
}

fn op(class: OpClass, content: &Content<'_>) -> Op {
    Op {
        size: content.size(),
        ..Op::new(class)
    }
}

/// A read of a part of `content`.
fn op_of(content: &Content<'_>, offset: u64, len: u64) -> Op {
    Op {
        range: Some(ByteRange { offset, len }),
        ..op(OpClass::RangeGet, content)
    }
}

fn request<'a>(op: &'a Op, key: &'a str, content: Content<'a>) -> Request<'a> {
    let mut request = Request::new(op, "b", key);
    request.content = Some(content);
    request.verify = true;
    request
}

fn bytes(content: &Content<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    while (out.len() as u64) < content.size() {
        let left = content.size() as usize - out.len();
        out.extend_from_slice(content.segment(out.len() as u64, left).as_bytes());
    }
    out
}

/// A cluster with the files `/b/SIZE` in blocks of 100,000 bytes, or less.
fn planted<'a>(arena: &'a Arena, sizes: &[u64]) -> (FakeHdfs, Vec<(String, Content<'a>)>) {
    let fake = FakeHdfs::start();
    let files = sizes.iter().map(|&size| {
        let content = arena.content(0, size, 0, size);
        fake.add_file(&format!("/b/{size}"), &bytes(&content), 100_000);
        (size.to_string(), content)
    });
    let files = files.collect();
    (fake, files)
}

async fn get(
    session: &mut HdfsSession,
    key: &str,
    content: Content<'_>,
) -> (Result<Completion, OpError>, Probe) {
    let mut probe = probe();
    let op = op(OpClass::Get, &content);
    let request = request(&op, key, content);
    let result = session.execute(&request, &mut probe).await;
    (result, probe)
}

#[test]
fn files_and_ranges_are_read_and_verified() {
    let arena = Arena::new(PayloadKind::Random, 1);
    let (fake, files) = planted(
        &arena,
        &[0, 1, 511, 512, 4096, 99_999, 100_000, 100_001, 750_000],
    );
    run(async {
        let mut session = open(&driver(&fake)).await.unwrap();
        for (key, content) in &files {
            let (done, read) = get(&mut session, key, *content).await;
            assert_eq!(done.unwrap().bytes, content.size());
            let blocks = content.size().div_ceil(100_000);
            assert_eq!(
                u64::from(read.requests()),
                1 + blocks,
                "a call, and a read per block"
            );
            assert!(read.started_ns() < read.first_byte_ns());
            assert!(read.first_byte_ns() <= read.done_ns());
            let op = op(OpClass::Head, content);
            let head = request(&op, key, *content);
            let mut probe = probe();
            let head = session.execute(&head, &mut probe).await.unwrap();
            assert_eq!((head.object_size, probe.requests()), (content.size(), 1));
        }
        let (key, content) = files.last().unwrap();
        for (offset, len) in [
            (0, 1),
            (100, 4096),
            (99_000, 2_000),
            (1, 749_999),
            (749_999, 50),
        ] {
            let op = op_of(content, offset, len);
            let request = request(&op, key, *content);
            let done = session.execute(&request, &mut probe()).await;
            assert_eq!(done.unwrap().bytes, len.min(750_000 - offset));
        }
        let op = op_of(content, 750_000, 1);
        let past = request(&op, key, *content);
        let error = session.execute(&past, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected);
    });
    assert_eq!(
        fake.node(0).connections.load(Ordering::Relaxed),
        1,
        "the connection is kept"
    );
    assert_eq!(fake.node(1).connections.load(Ordering::Relaxed), 0);
    let calls = fake.state.calls.lock().unwrap();
    assert!(
        calls.iter().all(|call| call.starts_with("ann ")),
        "{calls:?}"
    );
}

#[test]
fn wrong_files_and_refusals_are_errors() {
    let arena = Arena::new(PayloadKind::Random, 1);
    let (fake, files) = planted(&arena, &[4096]);
    let (key, content) = &files[0];
    run(async {
        let mut session = open(&driver(&fake)).await.unwrap();
        let kind = |result: Result<Completion, OpError>| result.unwrap_err().kind;
        let (absent, _) = get(&mut session, "none", *content).await;
        assert_eq!(kind(absent), ErrorKind::NotFound);
        let op = op(OpClass::Head, content);
        let head = request(&op, "none", *content);
        let absent = session.execute(&head, &mut probe()).await;
        assert_eq!(kind(absent), ErrorKind::NotFound);
        let (refused, _) = get(&mut session, "a//b", *content).await;
        assert_eq!(kind(refused), ErrorKind::Rejected);
        // The file has other content, is shorter than what was written, or is empty.
        fake.add_file("/b/4096", &[7; 4096], 100_000);
        let (wrong, _) = get(&mut session, key, *content).await;
        assert_eq!(kind(wrong), ErrorKind::Corrupt);
        for size in [0, 4000] {
            fake.add_file("/b/4096", &bytes(content)[..size], 100_000);
            let (short, _) = get(&mut session, key, *content).await;
            let error = short.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Corrupt);
            assert_eq!(error.detail.contains("just closed"), size == 0, "{error}");
        }
        fake.add_file("/b/4096", &bytes(content), 100_000);
        for (class, kind) in [
            ("org.apache.hadoop.ipc.StandbyException", ErrorKind::Server),
            (
                "org.apache.hadoop.security.AccessControlException",
                ErrorKind::Auth,
            ),
            ("java.io.FileNotFoundException", ErrorKind::NotFound),
        ] {
            *fake.state.exception.lock().unwrap() = class;
            let error = get(&mut session, key, *content).await.0.unwrap_err();
            assert_eq!(error.kind, kind);
            assert!(error.detail.ends_with(": m"), "{error}");
        }
        *fake.state.exception.lock().unwrap() = "";
        get(&mut session, key, *content).await.0.unwrap();
    });
}

#[test]
fn another_data_node_continues_a_read() {
    let arena = Arena::new(PayloadKind::Random, 1);
    let (fake, files) = planted(&arena, &[90_000]);
    let (key, content) = &files[0];
    run(async {
        let mut session = open(&driver(&fake)).await.unwrap();
        // Wrong checksums in the middle: earlier bytes are not read again.
        fake.node(0).corrupt_from.store(50_000, Ordering::Relaxed);
        let (done, probe) = get(&mut session, key, *content).await;
        assert_eq!((done.unwrap().bytes, probe.requests()), (90_000, 3));
        fake.node(0).corrupt_from.store(0, Ordering::Relaxed);
        fake.node(0).refuses.store(true, Ordering::Relaxed);
        let (done, probe) = get(&mut session, key, *content).await;
        assert_eq!((done.unwrap().bytes, probe.requests()), (90_000, 3));
        // No node has the right bytes.
        fake.node(0).refuses.store(false, Ordering::Relaxed);
        for node in 0..2 {
            fake.node(node).corrupt_from.store(1, Ordering::Relaxed);
        }
        let error = get(&mut session, key, *content).await.0.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(error.detail.starts_with("data node 127.0.0.1:"), "{error}");
        fake.node(1).corrupt_from.store(0, Ordering::Relaxed);
        fake.lose_first_node();
        let (done, probe) = get(&mut session, key, *content).await;
        assert_eq!((done.unwrap().bytes, probe.requests()), (90_000, 2));
    });
}

#[test]
fn connections_that_data_nodes_close_are_replaced() {
    let arena = Arena::new(PayloadKind::Random, 1);
    let (fake, files) = planted(&arena, &[4096]);
    let (key, content) = &files[0];
    fake.node(0).closes.store(true, Ordering::Relaxed);
    run(async {
        let mut session = open(&driver(&fake)).await.unwrap();
        for _ in 0..20 {
            let (done, probe) = get(&mut session, key, *content).await;
            assert_eq!(done.unwrap().bytes, 4096);
            // The close may cross a request, which is then repeated and counted.
            assert!((2..=3).contains(&probe.requests()));
        }
    });
    assert_eq!(fake.node(0).connections.load(Ordering::Relaxed), 20);
    assert_eq!(fake.node(1).reads.load(Ordering::Relaxed), 0);
}

#[test]
fn an_abandoned_read_does_not_affect_later_ones() {
    let arena = Arena::new(PayloadKind::Random, 1);
    let (fake, files) = planted(&arena, &[750_000, 4096]);
    run(async {
        let mut session = open(&driver(&fake)).await.unwrap();
        for polls in 0..12 {
            let (key, content) = &files[0];
            let op = op(OpClass::Get, content);
            let (request, mut probe) = (request(&op, key, *content), probe());
            {
                let mut read = std::pin::pin!(session.execute(&request, &mut probe));
                for _ in 0..polls {
                    let once = std::future::poll_fn(|cx| {
                        std::task::Poll::Ready(read.as_mut().poll(cx).is_ready())
                    });
                    if once.await {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
            let (key, content) = &files[1];
            get(&mut session, key, *content).await.0.unwrap();
        }
    });
}

#[test]
fn files_that_are_being_written_are_left_to_the_library() {
    let arena = Arena::new(PayloadKind::Random, 1);
    let (fake, files) = planted(&arena, &[4096]);
    let (key, content) = &files[0];
    fake.state
        .files
        .lock()
        .unwrap()
        .get_mut("/b/4096")
        .unwrap()
        .under_construction = true;
    run(async {
        let mut session = open(&driver(&fake)).await.unwrap();
        let before = fake.state.calls.lock().unwrap().len();
        // The result depends on the library; this only checks that the library is used.
        let _ = get(&mut session, key, *content).await;
        assert!(fake.state.calls.lock().unwrap().len() > before + 1);
    });
}

#[test]
fn an_encrypting_cluster_is_refused_at_once() {
    let fake = FakeHdfs::start();
    fake.state.encrypts.store(true, Ordering::Relaxed);
    let error = run(open(&driver(&fake))).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(
        error.detail.contains("dfs.encrypt.data.transfer"),
        "{error}"
    );
}

#[test]
fn the_facts_name_the_implementation_of_reads() {
    let fake = FakeHdfs::start();
    let shown = |driver: &HdfsDriver| {
        let facts = driver.facts();
        let reads = facts
            .settings
            .into_iter()
            .find(|(name, _)| name == "get, range-get, head");
        (facts.engine, reads.unwrap().1)
    };
    let own = driver(&fake);
    let (engine, reads) = shown(&own);
    assert!(engine.contains("native") && reads.contains("by the driver itself"));
    let mut config = own.config().clone();
    config.library_reads = Some("it was asked for".to_owned());
    let (engine, reads) = shown(&HdfsDriver::new(config).unwrap());
    assert_eq!(
        (&*engine, &*reads),
        ("hdfs-native 0.14", "by the library: it was asked for")
    );
}
