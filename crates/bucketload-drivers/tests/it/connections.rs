//! Connections of an S3 session: that close or stay silent at every possible moment, and where they go.

use std::cell::Cell;
use std::pin::pin;
use std::task::Poll;

use crate::object::{THREE, fails, reads};
use crate::support::{Answer, Responder, probe, request, run};
use bucketload_core::driver::{Driver, Session, WorkerId};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::Request;
use bucketload_drivers::s3::{Credentials, S3Driver};

#[test]
fn a_connection_closed_while_idle_is_replaced_before_the_timed_start() {
    run(async {
        // The response keeps the connection alive, but the server closes it anyway.
        let server = Responder::start(|_| Answer::ok("abc").closing()).await;
        let mut session = server.session().await;
        for n in 1..=3 {
            let mut probe = probe();
            session.execute(&request(&THREE), &mut probe).await.unwrap();
            assert_eq!(server.connections.get(), n);
            assert_eq!(probe.connects().0, u32::from(n > 1));
            assert_eq!(probe.requests(), 1);
            // Let the close arrive.
            let begun = std::time::Instant::now();
            while server.received.borrow().len() < n {
                assert!(
                    begun.elapsed().as_secs() < 60,
                    "request {n} does not arrive"
                );
                tokio::task::yield_now().await;
            }
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
    });
}

#[test]
fn a_request_that_crosses_a_close_is_not_repeated() {
    run(async {
        let count = Cell::new(0);
        let server = Responder::start(move |r| {
            if r.body.is_empty() && r.target.ends_with("gone") {
                count.set(count.get() + 1);
                return Answer::raw("").closing();
            }
            Answer::ok("abc")
        })
        .await;
        let mut session = server.session().await;
        reads(&mut session).await;
        let gone = Request::new(&THREE, "bucket", "gone");
        let error = fails(&mut session, &gone).await;
        assert_eq!(error.kind, ErrorKind::Reset);
        assert!(error.detail.contains("kept-alive"), "{error}");
        assert_eq!(server.lines(), ["GET /bucket/key", "GET /bucket/gone"]);
        reads(&mut session).await;
        assert_eq!(server.connections.get(), 2);
    });
}

#[test]
fn connection_close_is_obeyed() {
    run(async {
        let server = Responder::start(|_| {
            Answer::with_fields(200, "Connection: close\r\n", "abc").closing()
        })
        .await;
        let mut session = server.session().await;
        for n in 1..=3 {
            reads(&mut session).await;
            assert_eq!(server.connections.get(), n);
        }
    });
}

#[test]
fn an_abandoned_operation_leaves_the_session_usable() {
    run(async {
        let server = Responder::start(|r| {
            let mut answer = Answer::ok("abc");
            answer.silent = r.target.ends_with("silent");
            answer
        })
        .await;
        let mut session = server.session().await;
        let silent = Request::new(&THREE, "bucket", "silent");
        let mut first = probe();
        {
            let mut waiting = pin!(session.execute(&silent, &mut first));
            let begun = std::time::Instant::now();
            while server.received.borrow().is_empty() {
                assert!(
                    begun.elapsed().as_secs() < 60,
                    "the request does not arrive"
                );
                let polled =
                    std::future::poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
                assert!(polled.is_pending());
                tokio::task::yield_now().await;
            }
        }
        assert!(first.started_ns() > 0 && first.done_ns() == 0);
        let mut second = probe();
        session
            .execute(&request(&THREE), &mut second)
            .await
            .unwrap();
        assert_eq!(second.connects().0, 1);
        assert_eq!(server.connections.get(), 2);
    });
}

#[test]
fn a_closed_port_is_named() {
    run(async {
        let server = Responder::start(|_| Answer::ok("").closing()).await;
        let mut config = server.config();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        config.endpoints[0].port = port;
        let driver = S3Driver::new(config).unwrap();
        let worker = WorkerId::default();
        let opened = driver.open(worker, &mut probe()).await;
        let error = opened.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(
            error.detail.contains(&format!("127.0.0.1:{port}")),
            "{error}"
        );
    });
}

#[test]
fn workers_take_turns_over_endpoints_and_source_addresses() {
    run(async {
        let one = Responder::start(|_| Answer::ok("abc")).await;
        let two = Responder::start(|_| Answer::ok("abc")).await;
        let mut config = one.config();
        config.endpoints.extend(two.config().endpoints);
        config.source_addresses = vec!["127.0.0.2".parse().unwrap()];
        config.credentials = Some(Credentials::new("id", "key"));
        let driver = S3Driver::new(config).unwrap();
        for worker in 0..5 {
            let id = WorkerId { thread: 0, worker };
            let opened = driver.open(id, &mut probe()).await;
            let mut session = opened.unwrap();
            assert_eq!(session.endpoint_index(), worker as usize % 2);
            reads(&mut session).await;
        }
        assert_eq!((one.lines().len(), two.lines().len()), (3, 2));
    });
}
