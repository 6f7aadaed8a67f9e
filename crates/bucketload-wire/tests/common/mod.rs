//! Helpers of the connection tests.

// Each test binary uses only some of the helpers.
#![allow(dead_code)]

use std::future::Future;
use std::net::SocketAddr;

use bucketload_wire::listen::Port;
use bucketload_wire::{Conn, Error, SendEnd, Sock, Step};

/// Runs `f` on a current-thread runtime with a `LocalSet`.
pub(crate) fn run<T>(f: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, f)
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Two connected sockets: client, server.
pub(crate) async fn sockets() -> (Sock, Sock) {
    let port = Port::bind(loopback()).unwrap();
    let addr = port.addr();
    let listener = port.listen().unwrap();
    let client = Sock::connect(addr, None).await.unwrap();
    let (server, peer) = listener.accept().await.unwrap();
    assert_eq!(client.local_addr().unwrap(), peer);
    (client, server)
}

/// Two plain connections: client, server.
pub(crate) async fn pair() -> (Conn, Conn) {
    let (client, server) = sockets().await;
    (Conn::plain(client), Conn::plain(server))
}

/// The byte at `offset` of every test body.
pub(crate) fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

pub(crate) fn body(len: usize) -> Vec<u8> {
    (0..len as u64).map(byte).collect()
}

pub(crate) async fn line(conn: &mut Conn) -> Result<String, Error> {
    conn.recv_with(|bytes| {
        Ok(match bytes.iter().position(|&b| b == b'\n') {
            None => Step::More(0),
            Some(end) => Step::Done(end + 1, String::from_utf8_lossy(&bytes[..end]).into_owned()),
        })
    })
    .await
}

/// Polls once; `None` if pending.
pub(crate) async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match future.as_mut().poll(cx) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// Adds `n` pseudo-random sizes up to 3 MiB.
pub(crate) fn push_random(sizes: &mut Vec<usize>, n: usize, mut seed: u64) {
    for _ in 0..n {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sizes.push((seed >> 33) as usize % (3 << 20));
    }
}

/// Sends bodies of all `sizes` from `a` to `b`, in pieces of alternating `steps`, and a line after
/// each. Every body is received both ways. A receiver that takes one byte too many or too few, or
/// sleeps on the tail, fails.
pub(crate) async fn bodies_arrive(mut a: Conn, mut b: Conn, sizes: &[usize], steps: [usize; 2]) {
    let content = body(sizes.iter().copied().max().unwrap());
    let sent = sizes.to_vec();
    let sender = tokio::task::spawn_local(async move {
        for (i, &size) in sent.iter().enumerate() {
            for round in 0..2 {
                let head = format!("{i}.{round}\n");
                let step = steps[i % 2];
                let piece = |at: u64| {
                    let at = at as usize;
                    &content[at..size.min(at.saturating_add(step))]
                };
                a.send_body(head.as_bytes(), size as u64, piece)
                    .await
                    .unwrap();
                line(&mut a).await.unwrap();
            }
        }
        a
    });
    for (i, &size) in sizes.iter().enumerate() {
        assert_eq!(line(&mut b).await.unwrap(), format!("{i}.0"));
        b.discard(size as u64).await.unwrap();
        b.send(b"ok\n", b"").await.unwrap();
        assert_eq!(line(&mut b).await.unwrap(), format!("{i}.1"), "size {size}");
        let mut seen = 0;
        b.recv_body(size as u64, |at, bytes| {
            assert_eq!(at, seen);
            assert!(bytes.iter().zip(at..).all(|(&b, at)| b == byte(at)));
            seen += bytes.len() as u64;
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
        assert_eq!(seen, size as u64);
        b.send(b"ok\n", b"").await.unwrap();
    }
    assert!(!b.is_broken());
    assert!(!sender.await.unwrap().is_broken());
}

/// `b` answers the head of a large body of `a` without reading the body.
pub(crate) async fn an_early_answer_is_noticed(mut a: Conn, mut b: Conn) {
    let server = tokio::task::spawn_local(async move {
        line(&mut b).await.unwrap();
        b.send(b"no\n", b"").await.unwrap();
        b
    });
    let arena = body(1 << 20);
    let size = 1u64 << 30;
    let end = a.send_request(b"PUT\n", size, |_| arena.as_slice()).await;
    assert!(
        matches!(end, Ok(SendEnd::Answered { sent }) if sent > 0 && sent < size),
        "{end:?}"
    );
    assert_eq!(line(&mut a).await.unwrap(), "no");
    assert!(a.is_broken());
    drop(server.await.unwrap());
}
