//! Appends against a scripted responder: which requests they send, and what they do not believe.

use std::cell::Cell;

use crate::support::{Answer, Received, Responder, op, open, probe, request, run};
use bucketload_core::driver::{Completion, Driver, Session, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::OpClass;
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::s3::{AppendMode, S3Driver, S3Session};

async fn session(server: &Responder) -> S3Session {
    let mut config = server.config();
    config.append = AppendMode::WriteOffset;
    open(config).await
}

/// Appends `size` bytes; also returns the number of requests.
async fn append(session: &mut S3Session, size: u64) -> (Result<Completion, OpError>, u32) {
    let arena = Arena::new(PayloadKind::Random, 1);
    let append_op = op(OpClass::Append, size);
    let mut append = request(&append_op);
    append.content = Some(arena.content(0, 1, 0, size));
    let mut probe = probe();
    let done = session.execute(&append, &mut probe).await;
    (done, probe.requests())
}

fn offset(request: &Received) -> Option<u64> {
    request
        .header("x-amz-write-offset-bytes")
        .map(|v| v.parse().unwrap())
}

/// A store with one object of `size` bytes, which it changes by `moves` before the second PUT.
async fn store(size: Option<u64>, moves: u64) -> Responder {
    let size = Cell::new(size);
    let puts = Cell::new(0);
    Responder::start(move |r| match (r.method.as_str(), size.get()) {
        ("HEAD", None) => Answer::status(404, ""),
        ("HEAD", Some(size)) => {
            Answer::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"))
        }
        // The responder asks twice: before the body and after it.
        ("PUT", _) if r.body.is_empty() => Answer::ok(""),
        ("PUT", known) => {
            puts.set(puts.get() + 1);
            let mut known = known.unwrap_or(0);
            if puts.get() == 2 {
                known += moves;
                size.set(Some(known));
            }
            if offset(r) != Some(known) {
                return Answer::error(400, "InvalidWriteOffset");
            }
            let now = known + r.body.len() as u64;
            size.set(Some(now));
            let field = format!("x-amz-object-size: {now}\r\n");
            Answer::with_fields(200, &field, "")
        }
        _ => Answer::error(405, "MethodNotAllowed"),
    })
    .await
}

fn offsets(server: &Responder) -> Vec<Option<u64>> {
    server.received.borrow().iter().map(offset).collect()
}

#[test]
fn the_end_is_asked_for_once() {
    run(async {
        for (first, at) in [(None, 0), (Some(7), 7)] {
            let server = store(first, 0).await;
            let mut session = session(&server).await;
            for (size, requests) in [(10, 2), (5, 1), (1, 1)] {
                let (done, sent) = append(&mut session, size).await;
                assert_eq!((done.unwrap().bytes, sent), (size, requests));
            }
            assert_eq!(
                offsets(&server),
                [None, Some(at), Some(at + 10), Some(at + 15)]
            );
        }
    });
}

#[test]
fn all_sessions_of_a_driver_know_the_end() {
    run(async {
        let server = store(None, 0).await;
        let mut config = server.config();
        config.append = AppendMode::WriteOffset;
        let driver = S3Driver::new(config).unwrap();
        let mut sessions = Vec::new();
        for worker in 0..3 {
            let worker = WorkerId {
                worker,
                ..WorkerId::default()
            };
            sessions.push(driver.open(worker, &mut probe()).await.unwrap());
        }
        for (session, requests) in sessions.iter_mut().zip([2, 1, 1]) {
            let (done, sent) = append(session, 10).await;
            assert_eq!((done.unwrap().bytes, sent), (10, requests));
        }
        let ends = [None, Some(0), Some(10), Some(20)];
        assert_eq!(offsets(&server), ends);
    });
}

#[test]
fn an_end_that_another_writer_moved_is_asked_for_again() {
    run(async {
        let server = store(None, 100).await;
        let mut session = session(&server).await;
        for requests in [2, 3, 1] {
            let (done, sent) = append(&mut session, 10).await;
            assert_eq!((done.unwrap().bytes, sent), (10, requests));
        }
        let ends = [None, Some(0), Some(10), None, Some(110), Some(120)];
        assert_eq!(offsets(&server), ends);
    });
}

#[test]
fn another_writer_who_is_always_first_is_a_conflict() {
    run(async {
        let server = Responder::start(|r| match r.method.as_str() {
            "HEAD" => Answer::status(404, ""),
            _ => Answer::error(400, "InvalidWriteOffset"),
        })
        .await;
        let mut session = session(&server).await;
        let (done, sent) = append(&mut session, 10).await;
        assert_eq!((done.unwrap_err().kind, sent), (ErrorKind::Conflict, 4));
    });
}

#[test]
fn a_store_that_ignores_the_offset_is_found_out() {
    run(async {
        for field in ["", "x-amz-object-size: 10\r\n"] {
            let server = Responder::start(move |r| match r.method.as_str() {
                "HEAD" => Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"),
                _ => Answer::with_fields(200, field, ""),
            })
            .await;
            let mut session = session(&server).await;
            let error = append(&mut session, 10).await.0.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
            assert!(error.detail.contains("--append none"), "{error}");
        }
    });
}

#[test]
fn nothing_is_appended_to_an_object_but_it_exists() {
    run(async {
        for status in [200, 412] {
            let server = Responder::start(move |_| Answer::status(status, "")).await;
            let mut session = session(&server).await;
            let (done, sent) = append(&mut session, 0).await;
            assert_eq!((done.unwrap().bytes, sent), (0, 1));
            assert_eq!(server.last().header("if-none-match"), Some("*"));
        }
    });
}

#[test]
fn without_the_setting_there_are_no_appends() {
    run(async {
        let server = store(None, 0).await;
        let mut session = server.session().await;
        let (done, sent) = append(&mut session, 10).await;
        assert_eq!((done.unwrap_err().kind, sent), (ErrorKind::Unsupported, 0));
        assert!(server.lines().is_empty());
    });
}
