//! Get, put, head and delete against a scripted responder: times, lengths, verification, refusals.

use std::cell::Cell;

use crate::support::{Answer, Responder, op, open, probe, request, run};
use bucketload_core::driver::Session;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{ByteRange, Op, OpClass, Request};
use bucketload_core::payload::{Arena, Content, PayloadKind};
use bucketload_drivers::s3::{PayloadMode, S3Session};
use proptest::prelude::*;

const LARGE: u64 = 3_000_000;

fn arena() -> Arena {
    Arena::new(PayloadKind::Random, 42)
}

fn bytes_of(content: Content<'_>) -> Vec<u8> {
    let mut out = vec![0; content.size() as usize];
    content.fill(0, &mut out);
    out
}

/// The error of a request that fails.
pub(crate) async fn fails(session: &mut S3Session, request: &Request<'_>) -> OpError {
    session.execute(request, &mut probe()).await.unwrap_err()
}

/// Reads three bytes.
pub(crate) async fn reads(session: &mut S3Session) {
    let done = session.execute(&request(&THREE), &mut probe()).await;
    assert_eq!(done.unwrap().bytes, 3);
}

/// A read of three bytes.
pub(crate) const THREE: Op = Op {
    size: 3,
    ..Op::new(OpClass::Get)
};

#[test]
fn a_small_get_is_read_in_one_piece() {
    run(async {
        let server = Responder::start(|_| Answer::ok([7; 100])).await;
        let mut session = server.session().await;
        let mut probe = probe();
        let done = session
            .execute(&request(&op(OpClass::Get, 100)), &mut probe)
            .await;
        assert_eq!(done.unwrap().bytes, 100);
        assert!(probe.started_ns() < probe.first_byte_ns());
        assert_eq!(
            probe.first_byte_ns(),
            probe.done_ns(),
            "one reading of the clock for both"
        );
        assert_eq!((probe.requests(), probe.connects().0), (1, 0));
        let got = server.last();
        assert_eq!(got.line(), "GET /bucket/key");
        assert_eq!(got.header("host"), Some(server.addr.to_string().as_str()));
        assert_eq!(got.header("x-amz-content-sha256"), Some("UNSIGNED-PAYLOAD"));
        let signed = got.header("authorization").unwrap();
        assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=AKID/"));
    });
}

#[test]
fn a_large_get_is_counted_or_verified() {
    run(async {
        let arena = arena();
        let body = bytes_of(arena.content(0, 1, 0, LARGE));
        let server = Responder::start(move |_| Answer::ok(&body)).await;
        let mut session = server.session().await;
        for verify in [false, true] {
            let op = op(OpClass::Get, LARGE);
            let mut request = request(&op);
            request.verify = verify;
            request.content = Some(arena.content(0, 1, 0, LARGE));
            let mut probe = probe();
            let done = session.execute(&request, &mut probe).await.unwrap();
            assert_eq!(done.bytes, LARGE);
            assert!(probe.started_ns() < probe.first_byte_ns());
            assert!(probe.first_byte_ns() < probe.done_ns());
        }
        assert_eq!(server.connections.get(), 1);
    });
}

#[test]
fn wrong_bytes_are_found_and_the_connection_is_kept() {
    for (size, at) in [(500, 17), (LARGE, 2_500_001), (LARGE, 0)] {
        run(async move {
            let arena = arena();
            let mut body = bytes_of(arena.content(0, 1, 0, size));
            body[at] ^= 0x10;
            let server = Responder::start(move |_| Answer::ok(&body)).await;
            let mut session = server.session().await;
            for _ in 0..2 {
                let op = op(OpClass::Get, size);
                let mut request = request(&op);
                request.content = Some(arena.content(0, 1, 0, size));
                request.verify = true;
                let error = fails(&mut session, &request).await;
                assert_eq!(error.kind, ErrorKind::Corrupt);
                assert!(error.detail.contains(&format!("offset {at} ")), "{error}");
            }
            assert_eq!(server.connections.get(), 1);
        });
    }
}

#[test]
fn a_wrong_length_is_corruption_even_unverified() {
    run(async {
        let server = Responder::start(|_| Answer::ok([0; 100])).await;
        let mut session = server.session().await;
        let unknown = Op::UNKNOWN_SIZE;
        for (size, ok) in [(100, true), (101, false), (99, false), (unknown, true)] {
            let done = session
                .execute(&request(&op(OpClass::Get, size)), &mut probe())
                .await;
            match done {
                Ok(done) => assert!(ok && done.bytes == 100),
                Err(e) => assert!(!ok && e.kind == ErrorKind::Corrupt, "{e}"),
            }
        }
        let arena = arena();
        let mut longer = Request::plain(OpClass::Get, "bucket", "key");
        longer.content = Some(arena.content(0, 0, 0, 200));
        longer.verify = true;
        assert_eq!(fails(&mut session, &longer).await.kind, ErrorKind::Corrupt);
        assert_eq!(server.connections.get(), 1);
    });
}

#[test]
fn a_truncated_response_is_a_reset() {
    for body in [10, 200_000] {
        run(async move {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
            let answer = [head.as_bytes(), &vec![0; body]].concat();
            let server = Responder::start(move |_| Answer::raw(answer.clone()).closing()).await;
            let mut session = server.session().await;
            for connection in 1..=2 {
                let error = fails(&mut session, &request(&op(OpClass::Get, LARGE))).await;
                assert_eq!(error.kind, ErrorKind::Reset, "{error}");
                assert_eq!(server.connections.get(), connection);
            }
        });
    }
}

#[test]
fn ranges_are_requested_and_checked() {
    run(async {
        let arena = arena();
        let content = arena.content(0, 1, 0, 5000);
        let whole = bytes_of(content);
        let mode = std::rc::Rc::new(Cell::new(0));
        let script = std::rc::Rc::clone(&mode);
        let server = Responder::start(move |_| match script.get() {
            0 => Answer::with_fields(
                206,
                "Content-Range: bytes 100-299/5000\r\n",
                &whole[100..300],
            ),
            1 => Answer::ok(&whole),
            2 => Answer::with_fields(206, "Content-Range: bytes 0-199/5000\r\n", &whole[..200]),
            _ => Answer::status(206, &whole[100..250]),
        })
        .await;
        let mut session = server.session().await;
        let ranged_op = Op {
            range: Some(ByteRange {
                offset: 100,
                len: 200,
            }),
            ..op(OpClass::RangeGet, 5000)
        };
        let mut ranged = request(&ranged_op);
        ranged.content = Some(content);
        ranged.verify = true;
        let done = session.execute(&ranged, &mut probe()).await.unwrap();
        assert_eq!(done.bytes, 200);
        assert_eq!(server.last().header("range"), Some("bytes=100-299"));
        mode.set(1);
        ranged.verify = false;
        let error = fails(&mut session, &ranged).await;
        assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
        mode.set(2);
        let error = fails(&mut session, &ranged).await;
        assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
        mode.set(3);
        let error = fails(&mut session, &ranged).await;
        assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
        // The tail of an object is shorter than the range.
        mode.set(3);
        let shorter = Op {
            size: 250,
            ..ranged_op
        };
        ranged.op = &shorter;
        ranged.content = Some(arena.content(0, 1, 0, 250));
        let done = session.execute(&ranged, &mut probe()).await.unwrap();
        assert_eq!(done.bytes, 150);
    });
}

#[test]
fn other_body_framings_are_understood() {
    run(async {
        let arena = arena();
        let body = bytes_of(arena.content(0, 1, 0, 100_000));
        let server = Responder::start(move |r| {
            if r.target.ends_with("chunked") {
                let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
                for chunk in body.chunks(30_000) {
                    bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
                Answer::raw(bytes)
            } else {
                Answer::raw([b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &body].concat()).closing()
            }
        })
        .await;
        let mut session = server.session().await;
        for (key, connections) in [
            ("chunked", 1),
            ("chunked", 1),
            ("until-close", 1),
            ("chunked", 2),
        ] {
            let op = op(OpClass::Get, 100_000);
            let mut request = request(&op);
            request.key = key;
            request.content = Some(arena.content(0, 1, 0, 100_000));
            request.verify = true;
            let mut probe = probe();
            let done = session.execute(&request, &mut probe).await.unwrap();
            assert_eq!(done.bytes, 100_000);
            assert!(probe.done_ns() > probe.first_byte_ns());
            assert_eq!(server.connections.get(), connections);
        }
    });
}

#[test]
fn interim_answers_are_skipped() {
    run(async {
        let server = Responder::start(|_| {
            let mut bytes = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
            bytes.extend_from_slice(&Answer::ok("abc").bytes);
            Answer::raw(bytes)
        })
        .await;
        let mut session = server.session().await;
        reads(&mut session).await;
    });
}

#[test]
fn puts_send_exactly_the_content() {
    for (mode, size) in [
        (PayloadMode::Unsigned, 0),
        (PayloadMode::Unsigned, 4096),
        (PayloadMode::Unsigned, LARGE),
        (PayloadMode::Signed, 4096),
    ] {
        run(async move {
            let arena = arena();
            let content = arena.content(0, 1, 3, size);
            let server = Responder::start(|_| Answer::ok("")).await;
            let mut config = server.config();
            config.payload = mode;
            let mut session = open(config).await;
            let put_op = op(OpClass::Put, size);
            let mut put = request(&put_op);
            put.content = Some(content);
            let done = session.execute(&put, &mut probe()).await.unwrap();
            assert_eq!(done.bytes, size);
            let got = server.last();
            assert_eq!(got.line(), "PUT /bucket/key");
            assert!(got.body == bytes_of(content));
            let hash = got.header("x-amz-content-sha256").unwrap();
            assert_eq!(hash == "UNSIGNED-PAYLOAD", mode == PayloadMode::Unsigned);
        });
    }
}

#[test]
fn a_put_refused_before_its_end_is_explained() {
    run(async {
        let server = Responder::start(|_| Answer::error(503, "SlowDown").early()).await;
        let mut session = server.session().await;
        let arena = arena();
        for connection in 1..=2 {
            let put_op = op(OpClass::Put, 64 << 20);
            let mut put = request(&put_op);
            put.content = Some(arena.content(0, 1, 0, 64 << 20));
            let error = fails(&mut session, &put).await;
            assert_eq!(
                (error.kind, error.status),
                (ErrorKind::Throttled, 503),
                "{error}"
            );
            assert_eq!(server.connections.get(), connection);
        }
    });
}

#[test]
fn head_returns_the_size_and_delete_succeeds() {
    run(async {
        let server = Responder::start(|r| match r.method.as_str() {
            "HEAD" => Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"),
            _ => Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"),
        })
        .await;
        let mut session = server.session().await;
        let mut head = Request::plain(OpClass::Head, "bucket", "key");
        head.key = "a b/\u{e4}+%";
        let done = session.execute(&head, &mut probe()).await.unwrap();
        assert_eq!((done.object_size, done.bytes), (12_345, 0));
        assert_eq!(server.last().line(), "HEAD /bucket/a%20b/%C3%A4%2B%25");
        session
            .execute(&request(&op(OpClass::Delete, 0)), &mut probe())
            .await
            .unwrap();
        assert_eq!(server.last().line(), "DELETE /bucket/key");
        assert_eq!(server.connections.get(), 1);
    });
}

#[test]
fn refusals_keep_the_connection_and_say_why() {
    run(async {
        let server = Responder::start(|r| match r.target.rsplit('/').next().unwrap() {
            "missing" => Answer::error(404, "NoSuchKey"),
            "slow" => Answer::error(503, "SlowDown"),
            "full" => Answer::status(507, ""),
            "denied" => Answer::error(403, "SignatureDoesNotMatch"),
            "moved" => Answer::with_fields(301, "x-amz-bucket-region: eu-west-1\r\n", ""),
            "huge" => Answer::status(500, vec![b'x'; 1 << 20]),
            _ => Answer::ok("abc"),
        })
        .await;
        let mut session = server.session().await;
        for (key, kind, text) in [
            ("missing", ErrorKind::NotFound, "NoSuchKey: because"),
            ("slow", ErrorKind::Throttled, "SlowDown"),
            ("full", ErrorKind::Full, "507"),
            ("denied", ErrorKind::Auth, "SignatureDoesNotMatch"),
            ("moved", ErrorKind::Rejected, "expects region `eu-west-1`"),
        ] {
            let get = Request::new(&THREE, "bucket", key);
            let mut probe = probe();
            let error = session.execute(&get, &mut probe).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.detail.contains(text), "{error}");
            assert!(probe.done_ns() > 0);
        }
        assert_eq!(server.connections.get(), 1);
        let huge = Request::new(&THREE, "bucket", "huge");
        assert_eq!(fails(&mut session, &huge).await.kind, ErrorKind::Server);
        reads(&mut session).await;
        assert_eq!(
            server.connections.get(),
            2,
            "a huge error document is not read"
        );
    });
}

#[test]
fn a_response_that_is_not_http_is_a_protocol_error() {
    run(async {
        let server = Responder::start(|_| Answer::raw("SSH-2.0-OpenSSH\r\n\r\n").closing()).await;
        let mut session = server.session().await;
        let error = fails(&mut session, &request(&THREE)).await;
        assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
    });
}

#[test]
fn anonymous_requests_carry_no_signature() {
    run(async {
        let server = Responder::start(|_| Answer::ok("abc")).await;
        let mut config = server.config();
        config.credentials = None;
        let mut session = open(config).await;
        reads(&mut session).await;
        let got = server.last();
        assert_eq!(got.header("authorization"), None);
        assert!(
            got.headers
                .iter()
                .all(|(name, _)| !name.starts_with("x-amz"))
        );
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_split_of_a_response_gives_the_same_result(
        size in 0usize..3000, cuts in prop::collection::vec(1usize..200, 0..12),
    ) {
        run(async move {
            let arena = arena();
            let content = arena.content(0, 1, 0, size as u64);
            let answer = Answer::with_fields(200, "ETag: \"x\"\r\n", bytes_of(content)).bytes;
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addr = listener.local_addr().unwrap();
            tokio::task::spawn_local(async move {
                use tokio::io::{AsyncReadExt, AsyncWriteExt};
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer).await.unwrap();
                let mut rest = answer.as_slice();
                for cut in cuts {
                    let (now, later) = rest.split_at(cut.min(rest.len()));
                    stream.write_all(now).await.unwrap();
                    rest = later;
                    tokio::task::yield_now().await;
                }
                stream.write_all(rest).await.unwrap();
                let _ = stream.read(&mut buffer).await;
            });
            let endpoint = bucketload_drivers::s3::Endpoint::parse(&format!("http://{addr}"), "t").unwrap();
            let config = bucketload_drivers::s3::S3Config::new(vec![endpoint], "us-east-1", None);
            let mut session = open(config).await;
            let get_op = op(OpClass::Get, size as u64);
            let mut get = request(&get_op);
            get.content = Some(content);
            get.verify = true;
            let mut probe = probe();
            let done = session.execute(&get, &mut probe).await.unwrap();
            assert_eq!(done.bytes, size as u64);
            assert!(probe.first_byte_ns() <= probe.done_ns());
        });
    }
}
