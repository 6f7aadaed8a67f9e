//! The request path allocates nothing in steady state, and an idle connection owns almost no
//! memory. This is a separate binary because it replaces the global allocator.

mod common;

use bucketload_testkit::alloc::{Counting, calls, live};
use bucketload_wire::{Conn, Error, Step, http};
use common::{body, pair, run};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LARGE: u64 = 3 << 20;
const PUT: &[u8] = b"PUT /b/k HTTP/1.1\r\nHost: h\r\nContent-Length: 4096\r\n\r\n";
const GET: &[u8] = b"GET /b/k HTTP/1.1\r\nHost: h\r\n\r\n";
const GET_LARGE: &[u8] = b"GET /b/large HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nETag: \"0\"\r\nContent-Length: 0\r\n\r\n";
const OK_SMALL: &[u8] = b"HTTP/1.1 200 OK\r\nETag: \"0\"\r\nContent-Length: 4096\r\n\r\n";
const OK_LARGE: &[u8] = b"HTTP/1.1 200 OK\r\nETag: \"0\"\r\nContent-Length: 3145728\r\n\r\n";

/// Serves until the client closes the connection.
async fn serve(mut conn: Conn) {
    let arena = body(512 * 1024);
    loop {
        let request = conn
            .recv_with(|bytes| -> Result<_, Error> {
                let parsed = http::parse_request(bytes, |request| {
                    let large = request.target == "/b/large";
                    (request.len, request.body, large)
                })?;
                Ok(match parsed {
                    None => Step::More(0),
                    Some((len, body, large)) => Step::Done(len, (body, large)),
                })
            })
            .await;
        let Ok((incoming, large)) = request else {
            return;
        };
        if let Some(length @ 1..) = incoming.length() {
            conn.discard(length).await.unwrap();
            conn.send(OK, b"").await.unwrap();
        } else if large {
            let piece = |at: u64| &arena[at as usize % 4096..][..256 * 1024 + 1];
            conn.send_body(OK_LARGE, LARGE, piece).await.unwrap();
        } else {
            conn.send(OK_SMALL, &arena[..4096]).await.unwrap();
        }
    }
}

/// Makes one request and receives the whole answer; `verify` passes the body to a closure.
async fn exchange(conn: &mut Conn, head: &[u8], body: &[u8], verify: bool) {
    conn.send(head, body).await.unwrap();
    let (answer, seen) = conn
        .recv_with(|bytes| -> Result<_, Error> {
            let Some(answer) = http::parse_response(bytes, false)? else {
                return Ok(Step::More(0));
            };
            let mut etags = 0;
            http::response_fields(bytes, |name, _| etags += usize::from(name == "ETag"));
            assert_eq!(etags, 1);
            let length = answer.body.length().unwrap();
            let seen = length.min((bytes.len() - answer.len) as u64);
            Ok(Step::Done(answer.len + seen as usize, (answer, seen)))
        })
        .await
        .unwrap();
    let left = answer.body.length().unwrap() - seen;
    if verify {
        let mut sum = 0;
        let sink = |_, bytes: &[u8]| {
            sum += bytes.len() as u64;
            Ok::<_, Error>(())
        };
        conn.recv_body(left, sink).await.unwrap();
        assert_eq!(sum, left);
    } else {
        conn.discard(left).await.unwrap();
    }
}

async fn round(conn: &mut Conn, small: &[u8]) {
    exchange(conn, GET, b"", false).await;
    exchange(conn, PUT, small, false).await;
    exchange(conn, GET_LARGE, b"", false).await;
    exchange(conn, GET_LARGE, b"", true).await;
}

#[test]
fn a_request_allocates_nothing_in_steady_state() {
    run(async {
        let (mut client, server) = pair().await;
        let server = tokio::task::spawn_local(serve(server));
        let small = body(4096);
        for _ in 0..10 {
            round(&mut client, &small).await;
        }
        let before = calls();
        for _ in 0..200 {
            round(&mut client, &small).await;
        }
        assert_eq!(calls() - before, 0);
        drop(client);
        server.await.unwrap();
    });
}

#[test]
fn an_idle_connection_owns_little_memory() {
    const PAIRS: i64 = 100;
    run(async {
        // Allocates the thread's shared buffers.
        let (mut first, mut peer) = pair().await;
        first.send(b"x", &body(100)).await.unwrap();
        peer.discard(101).await.unwrap();
        let mut pairs = Vec::with_capacity(PAIRS as usize);
        let before = live();
        for _ in 0..PAIRS {
            let (mut client, mut server) = pair().await;
            client.send(GET, b"").await.unwrap();
            server.discard(GET.len() as u64).await.unwrap();
            server.send(OK_SMALL, b"").await.unwrap();
            let head = |bytes: &[u8]| Ok::<_, Error>(Step::Done(bytes.len(), ()));
            client.recv_with(head).await.unwrap();
            pairs.push((client, server));
        }
        // Memory that the runtime allocated; the connections themselves are in `pairs`.
        let heap = (live() - before) / (2 * PAIRS);
        let whole = heap + size_of::<Conn>() as i64;
        assert!(
            whole <= 1024,
            "{whole} bytes per connection ({heap} on the heap)"
        );
    });
}
