//! The WebHDFS driver against a cluster in memory: the shared suite, both kinds of redirect, and a cluster
//! that misbehaves.

use crate::support::{WORKER, probe, run, suite_passes};
use bucketload_core::driver::{Admin, Driver, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::payload::{Arena, Content, PayloadKind};
use bucketload_drivers::conformance::Quirks;
use bucketload_drivers::webhdfs::{WebHdfsConfig, WebHdfsDriver, WebHdfsSession};
use bucketload_testkit::webhdfs::{Behaviour, FakeWebHdfs};

fn driver(urls: &str) -> WebHdfsDriver {
    let mut config = WebHdfsConfig::new(urls).unwrap();
    config.files.user = Some("tester".to_owned());
    WebHdfsDriver::new(config).unwrap()
}

async fn open(driver: &WebHdfsDriver) -> Result<WebHdfsSession, OpError> {
    driver.open(WORKER, &mut probe()).await
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

fn suite(behaviour: Behaviour) {
    let fake = FakeWebHdfs::start(behaviour);
    let driver = driver(&format!("{}/webhdfs/v1/base", fake.url));
    run(suite_passes(
        &driver,
        Quirks::of("hdfs").unwrap(),
        "webhdfs",
    ));
    let tree = fake.state.tree.lock().unwrap();
    let left: Vec<_> = tree.keys().collect();
    assert_eq!(left, ["/", "/base"], "something is left");
}

#[test]
fn the_suite_passes() {
    suite(Behaviour::default());
}

#[test]
fn the_suite_passes_with_redirects_of_http() {
    suite(Behaviour {
        redirect: true,
        ..Behaviour::default()
    });
}

#[test]
fn an_operation_of_two_steps_is_timed_as_one() {
    let fake = FakeWebHdfs::start(Behaviour::default());
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
                // The connection to the data node is part of the operation, not a separate connect.
                assert_eq!(probe.connects().0, 0);
                assert!(probe.started_ns() < probe.first_byte_ns());
                assert!(probe.first_byte_ns() < probe.done_ns());
            }
        }
    });
    let requests = fake.state.requests.lock().unwrap();
    assert!(
        requests
            .iter()
            .all(|line| line.contains("user.name=tester")),
        "{requests:?}"
    );
}

#[test]
fn a_file_served_empty_gets_an_explanation() {
    let fake = FakeWebHdfs::start(Behaviour {
        empty_above: Some(0),
        ..Behaviour::default()
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
fn refusals_map_to_error_kinds() {
    let fake = FakeWebHdfs::start(Behaviour::default());
    let arena = Arena::new(PayloadKind::Random, 1);
    let content = arena.content(0, 1, 0, 10);
    run(async {
        let mut session = open(&driver(&fake.url)).await.unwrap();
        session.ensure_bucket("b").await.unwrap();
        fake.state.behaviour.lock().unwrap().safe_mode = true;
        let put_op = op(OpClass::Put, Some(content));
        let put = request(&put_op, "k", Some(content));
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Server);
        assert!(error.detail.contains("safe mode"), "{error}");
        fake.state.behaviour.lock().unwrap().safe_mode = false;
        let copy_op = op(OpClass::Copy, None);
        let copy = request(&copy_op, "k", None);
        let error = session.execute(&copy, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.detail.contains("HDFS cannot copy"), "{error}");
        // An unreachable data node.
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", closed.local_addr().unwrap());
        drop(closed);
        fake.state.behaviour.lock().unwrap().send_to = Some(address);
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(error.detail.contains("data node 127.0.0.1"), "{error}");
        // An invalid redirect.
        fake.state.behaviour.lock().unwrap().send_to = Some("http://a b".to_owned());
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
        // The session is still usable.
        fake.state.behaviour.lock().unwrap().send_to = None;
        session.execute(&put, &mut probe()).await.unwrap();
    });
}

#[test]
fn an_unreachable_name_node_is_a_connect_error() {
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
fn the_active_name_node_is_used() {
    let behaviour = |standby| Behaviour {
        standby,
        ..Behaviour::default()
    };
    let (first, second) = (
        FakeWebHdfs::start(behaviour(true)),
        FakeWebHdfs::start(behaviour(false)),
    );
    let arena = Arena::new(PayloadKind::Random, 1);
    let put_op = op(OpClass::Put, Some(arena.content(0, 1, 0, 10)));
    let put = request(&put_op, "k", Some(arena.content(0, 1, 0, 10)));
    run(async {
        let driver = driver(&format!("{},{}", first.url, second.url));
        let mut session = open(&driver).await.unwrap();
        session.execute(&put, &mut probe()).await.unwrap();
        assert_eq!(session.route().endpoint, 1);
        // The name nodes swap roles: one operation fails, the next one goes to the other node.
        first.state.behaviour.lock().unwrap().standby = false;
        second.state.behaviour.lock().unwrap().standby = true;
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Server);
        session.execute(&put, &mut probe()).await.unwrap();
        assert_eq!(session.route().endpoint, 0);
        // No active name node: opening fails at once.
        first.state.behaviour.lock().unwrap().standby = true;
        let error = open(&driver).await.map(drop).unwrap_err();
        assert!(error.detail.contains("StandbyException"), "{error}");
    });
}

#[test]
fn placements_name_each_data_node_once() {
    let fake = FakeWebHdfs::start(Behaviour::default());
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
