//! HTTP itself: keep-alive, pipelining, chunked bodies, broken and slow clients, limits.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use bucketload_server::{Operation, Server};

use super::client::{Auth, Client, config, memory, req, start, start_with};

#[test]
fn many_requests_share_a_connection() {
    let (server, mut c) = start();
    for n in 0..100 {
        c.put("/bucket/k", n.to_string());
        assert_eq!(c.get("/bucket/k").text(), n.to_string());
    }
    let head = c.send(&req("HEAD", "/")).is(200);
    assert_ne!(head.header("content-length"), Some("0"));
    c.get("/bucket/k").is(200);
    let stats = server.stats();
    assert_eq!((stats.connections, stats.open_connections), (1, 1));
    assert_eq!(
        (
            stats.requests_of(Operation::Get),
            stats.requests_of(Operation::Put)
        ),
        (101, 100)
    );
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    let (_server, mut c) = start();
    let mut bytes = Vec::new();
    for n in 0..50 {
        bytes.extend(
            req("PUT", &format!("/bucket/{n}"))
                .body(vec![n; 3000])
                .render(&c.signer),
        );
        bytes.extend(req("GET", &format!("/bucket/{n}")).render(&c.signer));
    }
    let mut writer = c.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    for n in 0..50 {
        c.receive(false).is(200);
        assert_eq!(c.receive(false).is(200).body, vec![n; 3000]);
    }
    sender.join().unwrap();
}

#[test]
fn any_fragmentation_is_understood() {
    let (_server, mut c) = start();
    let bytes = req("PUT", "/bucket/k").body("0123456789").render(&c.signer);
    for cut in (1..bytes.len()).step_by(37) {
        c.stream.write_all(&bytes[..cut]).unwrap();
        c.stream.write_all(&bytes[cut..]).unwrap();
        c.receive(false).is(200);
    }
    for byte in &bytes {
        c.stream.write_all(&[*byte]).unwrap();
    }
    c.receive(false).is(200);
}

#[test]
fn chunked_bodies() {
    let (_server, mut c) = start();
    let mut put = req("PUT", "/bucket/k").header("Transfer-Encoding", "chunked");
    put.length = false;
    let mut bytes = put.render(&c.signer);
    bytes.extend(b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n");
    c.raw(&bytes).is(200);
    assert_eq!(c.get("/bucket/k").text(), "hello world");
    let mut bytes = put.render(&c.signer);
    bytes.extend(b"5\r\nhelloXX");
    c.raw(&bytes).is_error(400, "InvalidRequest");
    assert_eq!(c.stream.shutdown(Shutdown::Write).is_ok(), c.ended());
}

#[test]
fn expect_continue() {
    let (_server, mut c) = start();
    let put = req("PUT", "/bucket/k")
        .header("Expect", "100-continue")
        .body("hello");
    let bytes = put.render(&c.signer);
    let (head, body) = bytes.split_at(bytes.len() - 5);
    assert_eq!(c.raw(head).status, 100);
    c.raw(body).is(200);
    // No `100 Continue` if the body has already arrived.
    c.raw(&bytes).is(200);
    // An empty body gets `100 Continue` too, whether the request succeeds or not.
    for (path, status) in [("/bucket/empty", 200), ("/absent/empty", 404)] {
        let put = req("PUT", path).header("Expect", "100-continue").body("");
        assert_eq!(c.raw(&put.render(&c.signer)).status, 100);
        c.raw(b"").is(status);
    }
    // A refusal replaces `100 Continue` and ends the connection.
    let mut stranger = c.signer.clone();
    stranger.secret = "wrong".into();
    let bytes = put.render(&stranger);
    let refused = c.raw(&bytes[..bytes.len() - 5]);
    assert_eq!(refused.header("connection"), Some("close"));
    refused.is_error(403, "SignatureDoesNotMatch");
}

#[test]
fn bodies_of_refused_requests_are_read() {
    let (_server, mut c) = start();
    for size in [10, 100_000, 5_000_000] {
        c.send(&req("PUT", "/absent/k").body(vec![0; size]))
            .is_error(404, "NoSuchBucket");
        c.send(&req("GET", "/bucket/absent").body(vec![0; size]))
            .is_error(404, "NoSuchKey");
        c.send(
            &req("PUT", "/bucket/k")
                .header("x-amz-checksum-crc32", "AAAAAA==")
                .body(vec![0; size]),
        )
        .is_error(400, "BadDigest");
    }
    assert_eq!(c.get("/bucket").is(200).elements("Key"), Vec::<&str>::new());
    let mut put = req("PUT", "/bucket/k");
    put.length = false;
    c.send(&put).is_error(411, "MissingContentLength");
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_sent() {
    let (server, _) = start();
    for length in [(5 << 30) + 1, (5_u64 << 40) + 1] {
        for target in ["/bucket/k", "/bucket/k?partNumber=1&uploadId=u"] {
            let mut c = Client::new(&server);
            let mut put = req("PUT", target).header("Content-Length", &length.to_string());
            put.length = false;
            let refused = c.send(&put);
            assert_eq!(refused.header("connection"), Some("close"));
            refused.is_error(400, "EntityTooLarge");
            c.stream.shutdown(Shutdown::Write).unwrap();
            assert!(c.ended());
        }
    }
}

#[test]
fn http_1_1_requires_a_host() {
    let (_server, mut c) = start();
    c.raw(b"GET /bucket HTTP/1.1\r\n\r\n")
        .is_error(400, "InvalidRequest");
    // The connection remains usable.
    c.get("/bucket").is(200);
    c.raw(b"GET /bucket HTTP/1.0\r\n\r\n")
        .is_error(403, "AccessDenied");
}

#[test]
fn malformed_requests_get_a_response_and_end_the_connection() {
    let (server, _) = start();
    for bytes in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
    ] {
        let mut c = Client::new(&server);
        let answer = c.raw(bytes);
        assert_eq!(answer.header("connection"), Some("close"));
        answer.is_error(400, "InvalidRequest");
        c.stream.shutdown(Shutdown::Write).unwrap();
        assert!(c.ended());
    }
    let mut c = Client::new(&server);
    let mut head = b"GET / HTTP/1.1\r\n".to_vec();
    head.resize(70_000, b'a');
    c.raw(&head).is_error(400, "RequestHeaderSectionTooLarge");
    let mut c = Client::new(&server);
    c.raw(format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(129)).as_bytes())
        .is_error(400, "InvalidRequest");
    let mut c = Client::new(&server);
    c.raw(b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n")
        .is_error(400, "InvalidURI");
    c.get("/bucket").is(200);
}

#[test]
fn half_closed_and_vanished_clients() {
    let (server, mut c) = start();
    let bytes = req("GET", "/").render(&c.signer);
    c.stream.write_all(&bytes).unwrap();
    c.stream.shutdown(Shutdown::Write).unwrap();
    c.receive(false).is(200);
    assert!(c.ended());
    // A truncated body leaves nothing behind.
    let mut c = Client::new(&server);
    let bytes = req("PUT", "/bucket/short")
        .body(vec![1; 100_000])
        .render(&c.signer);
    c.stream.write_all(&bytes[..50_000]).unwrap();
    c.stream.shutdown(Shutdown::Write).unwrap();
    assert!(c.ended());
    let mut c = Client::new(&server);
    c.get("/bucket/short").is_error(404, "NoSuchKey");
    // Connection: close is honoured.
    let close = c
        .send(&req("GET", "/").header("Connection", "close"))
        .is(200);
    assert_eq!(close.header("connection"), Some("close"));
    assert!(c.ended());
    let mut c = Client::new(&server);
    let old = req("GET", "/").render(&c.signer);
    let old = String::from_utf8(old)
        .unwrap()
        .replace("HTTP/1.1", "HTTP/1.0");
    c.raw(old.as_bytes()).is(200);
    assert!(c.ended());
}

#[test]
fn idle_connections_are_closed() {
    let mut short = config();
    short.idle_timeout = Duration::from_secs(1);
    let (server, mut idle) = start_with(short);
    let mut in_head = Client::new(&server);
    in_head.stream.write_all(b"GET / HT").unwrap();
    let mut in_body = Client::new(&server);
    let bytes = req("PUT", "/bucket/k")
        .body("0123456789")
        .render(&in_body.signer);
    in_body.stream.write_all(&bytes[..bytes.len() - 1]).unwrap();
    for c in [&mut idle, &mut in_head, &mut in_body] {
        // A clean close and a reset are both fine.
        c.ended();
    }
    let mut c = Client::new(&server);
    c.get("/bucket/k").is_error(404, "NoSuchKey");
}

#[test]
fn connections_above_the_limit_are_refused() {
    let mut limited = config();
    limited.max_connections = 2;
    let (server, mut first) = start_with(limited);
    let mut second = Client::new(&server);
    first.get("/").is(200);
    second.get("/").is(200);
    let mut third = Client::new(&server);
    let refused = third.get("/");
    assert_eq!(
        (refused.status, refused.header("connection")),
        (503, Some("close"))
    );
    assert_eq!(server.stats().refused_connections, 1);
    drop((second, third));
    // A slot becomes free as soon as the server notices the close.
    let answered = std::iter::repeat_with(|| Client::new(&server).get("/").status)
        .take(1000)
        .any(|s| s == 200);
    assert!(answered);
}

#[test]
fn threads_share_port_and_objects() {
    let mut four = config();
    four.threads = 4;
    let (server, mut c) = start_with(four);
    c.put("/bucket/k", "v");
    let clients: Vec<_> = (0..32)
        .map(|_| {
            let mut c = Client::new(&server);
            std::thread::spawn(move || c.get("/bucket/k").is(200).text().to_owned())
        })
        .collect();
    for client in clients {
        assert_eq!(client.join().unwrap(), "v");
    }
    assert_eq!(server.stats().requests_of(Operation::Get), 32);
    let address = server.address();
    let mut taken = config();
    taken.address = address;
    let error = Server::start(taken, memory()).unwrap_err().to_string();
    assert!(
        error.contains(&address.to_string()) && error.contains("port 0"),
        "{error}"
    );
    server.stop();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn statistics_page() {
    let mut with_page = config();
    with_page.stats_page = true;
    let (_server, mut c) = start_with(with_page);
    c.put("/bucket/k", "hello");
    let page = c
        .send(&req("GET", "/-/bucketload/stats").auth(Auth::Anonymous))
        .is(200);
    let stats: serde_json::Value = serde_json::from_slice(&page.body).unwrap();
    assert_eq!(stats["requests"], serde_json::json!([["put", 1]]));
    assert_eq!(
        (&stats["body_bytes_in"], &stats["objects"]),
        (&5.into(), &1.into())
    );
    assert!(stats["process_cpu_ns"].as_u64().unwrap() > 0);
    assert_eq!(page.text().lines().count(), 1);
    let (_server, mut c) = start();
    c.send(&req("GET", "/-/bucketload/stats").auth(Auth::Anonymous))
        .is_error(403, "AccessDenied");
}

#[test]
fn invalid_configurations_are_refused() {
    let refused = |change: &dyn Fn(&mut bucketload_server::ServerConfig)| {
        let mut config = config();
        change(&mut config);
        Server::start(config, memory()).unwrap_err().to_string()
    };
    assert!(refused(&|c| c.threads = 0).contains("threads"));
    assert!(refused(&|c| c.max_connections = 0).contains("max_connections"));
    assert!(refused(&|c| c.region = "a/b".into()).contains("region"));
    assert!(refused(&|c| c.keys.secret_key.clear()).contains("keys"));
}
