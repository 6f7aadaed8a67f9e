//! The WebHDFS driver against a cluster in memory: the shared suite, both kinds of redirect, and a cluster
//! that misbehaves.

use bucketload_core::driver::{Admin, Driver, Session, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::payload::{Arena, Content, PayloadKind};
use bucketload_core::record::Probe;
use bucketload_drivers::conformance::{Quirks, Suite};
use bucketload_drivers::webhdfs::{WebHdfsConfig, WebHdfsDriver, WebHdfsSession};
use bucketload_testkit::webhdfs::{Fake, Manners};

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn clock() -> u64 {
    use std::cell::Cell;
    thread_local!(static TICKS: Cell<u64> = const { Cell::new(0) });
    TICKS.set(TICKS.get() + 1);
    TICKS.get()
}

fn probe() -> Probe {
    Probe::new(clock)
}

fn driver(urls: &str) -> WebHdfsDriver {
    let mut config = WebHdfsConfig::new(urls).unwrap();
    config.files.user = Some("tester".to_owned());
    WebHdfsDriver::new(config).unwrap()
}

async fn open(driver: &WebHdfsDriver) -> Result<WebHdfsSession, OpError> {
    let worker = WorkerId {
        thread: 0,
        worker: 0,
    };
    driver.open(worker, &mut probe()).await
}

fn op(class: OpClass, content: Option<Content<'_>>) -> Op {
    Op {
        size: content.map_or(Op::UNKNOWN_SIZE, |content| content.size()),
        ..Op::new(class)
    }
}

fn request<'a>(op: &'a Op, key: &'a str, content: Option<Content<'a>>) -> Request<'a> {
    let mut request = Request::new(op, "b", key);
    request.content = content;
    request.verify = content.is_some();
    request
}

fn suite(manners: Manners) {
    let fake = Fake::start(manners);
    let driver = driver(&format!("{}/webhdfs/v1/base", fake.url));
    let suite = Suite {
        bucket: "suite".to_owned(),
        quirks: Quirks::of("hdfs").unwrap(),
        clock,
    };
    let results = run(suite.run(&driver)).unwrap();
    let failures: Vec<_> = results.iter().filter(|r| r.failure.is_some()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let tree = fake.state.tree.lock().unwrap();
    let left: Vec<_> = tree.keys().collect();
    assert_eq!(left, ["/", "/base"], "something is left");
}

#[test]
fn the_suite_passes() {
    suite(Manners::default());
}

#[test]
fn the_suite_passes_with_redirects_of_http() {
    suite(Manners {
        redirect: true,
        ..Manners::default()
    });
}

#[test]
fn an_operation_of_two_steps_is_timed_as_one() {
    let fake = Fake::start(Manners::default());
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let mut session = open(&driver(&fake.url)).await.unwrap();
        session.ensure_bucket("b").await.unwrap();
        for size in [0, 100, 3_000_000] {
            let content = arena.content(0, 1, 0, size);
            for class in [OpClass::Put, OpClass::Get] {
                let mut probe = probe();
                let done = session
                    .execute(
                        &request(&op(class, Some(content)), "d/k", Some(content)),
                        &mut probe,
                    )
                    .await
                    .unwrap();
                assert_eq!(done.bytes, size);
                assert_eq!(probe.requests(), 2);
                // The connection to the data node is no preparation: it was made in between.
                assert_eq!(probe.connects().0, 0);
                assert!(probe.started_ns() < probe.first_byte_ns());
                assert!(probe.first_byte_ns() < probe.done_ns());
            }
        }
    });
    let seen = fake.state.seen.lock().unwrap();
    assert!(
        seen.iter().all(|line| line.contains("user.name=tester")),
        "{seen:?}"
    );
}

#[test]
fn a_file_that_is_served_empty_is_named() {
    let fake = Fake::start(Manners {
        empty_above: Some(0),
        ..Manners::default()
    });
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let mut session = open(&driver(&fake.url)).await.unwrap();
        let content = arena.content(0, 1, 0, 5000);
        let put_op = op(OpClass::Put, Some(content));
        let put = request(&put_op, "k", Some(content));
        session.execute(&put, &mut probe()).await.unwrap();
        let get_op = op(OpClass::Get, Some(content));
        let get = request(&get_op, "k", Some(content));
        let error = session.execute(&get, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(error.detail.contains("just closed"), "{error}");
    });
}

#[test]
fn refusals_have_meanings() {
    let fake = Fake::start(Manners::default());
    let arena = Arena::new(PayloadKind::Random, 1);
    let content = arena.content(0, 1, 0, 10);
    run(async {
        let mut session = open(&driver(&fake.url)).await.unwrap();
        session.ensure_bucket("b").await.unwrap();
        fake.state.manners.lock().unwrap().safe_mode = true;
        let put_op = op(OpClass::Put, Some(content));
        let put = request(&put_op, "k", Some(content));
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Server);
        assert!(error.detail.contains("safe mode"), "{error}");
        fake.state.manners.lock().unwrap().safe_mode = false;
        let copy_op = op(OpClass::Copy, None);
        let copy = request(&copy_op, "k", None);
        let error = session.execute(&copy, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.detail.contains("HDFS cannot copy"), "{error}");
        // A data node that is not there.
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", closed.local_addr().unwrap());
        drop(closed);
        fake.state.manners.lock().unwrap().send_to = Some(address);
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(error.detail.contains("data node 127.0.0.1"), "{error}");
        // A redirect to nowhere.
        fake.state.manners.lock().unwrap().send_to = Some("http://a b".to_owned());
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
        // And the session is still usable.
        fake.state.manners.lock().unwrap().send_to = None;
        session.execute(&put, &mut probe()).await.unwrap();
    });
}

#[test]
fn a_name_node_that_is_down_is_no_connection() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let error = run(open(&driver(&url))).map(drop).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    assert!(
        error.detail.contains("cannot connect to 127.0.0.1"),
        "{error}"
    );
}

#[test]
fn of_several_name_nodes_the_active_one_is_used() {
    let manners = |standby| Manners {
        standby,
        ..Manners::default()
    };
    let (first, second) = (Fake::start(manners(true)), Fake::start(manners(false)));
    let arena = Arena::new(PayloadKind::Random, 1);
    let put_op = op(OpClass::Put, Some(arena.content(0, 1, 0, 10)));
    let put = request(&put_op, "k", Some(arena.content(0, 1, 0, 10)));
    run(async {
        let driver = driver(&format!("{},{}", first.url, second.url));
        let mut session = open(&driver).await.unwrap();
        session.execute(&put, &mut probe()).await.unwrap();
        assert_eq!(session.route().endpoint, 1);
        // They change places: one operation fails, the next one goes to the other.
        first.state.manners.lock().unwrap().standby = false;
        second.state.manners.lock().unwrap().standby = true;
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Server);
        session.execute(&put, &mut probe()).await.unwrap();
        assert_eq!(session.route().endpoint, 0);
        // Nobody is active: said at once.
        first.state.manners.lock().unwrap().standby = true;
        let error = open(&driver).await.map(drop).unwrap_err();
        assert!(error.detail.contains("StandbyException"), "{error}");
    });
}

#[test]
fn placements_name_each_data_node_once() {
    let fake = Fake::start(Manners::default());
    run(async {
        let mut session = open(&driver(&fake.url)).await.unwrap();
        session.put_small("b", "k", b"x").await.unwrap();
        let placement = session.placement("b", "k").await.unwrap();
        assert_eq!(placement.nodes, ["127.0.0.1:1", "127.0.0.1:2"]);
        assert_eq!(placement.blocks, 2);
        let error = session.placement("b", "none").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
    });
}
