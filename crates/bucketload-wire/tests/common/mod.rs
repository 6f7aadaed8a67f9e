//! What the connection tests share.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::future::Future;
use std::net::SocketAddr;

use bucketload_wire::listen::Port;
use bucketload_wire::{Conn, Error, Sock, Step};

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

/// A connected pair: client, server.
pub(crate) async fn pair() -> (Conn, Conn) {
    let port = Port::bind(loopback()).unwrap();
    let addr = port.addr();
    let listener = port.listen().unwrap();
    let client = Sock::connect(addr, None).await.unwrap();
    let (server, peer) = listener.accept().await.unwrap();
    assert_eq!(client.local_addr().unwrap(), peer);
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

/// Polls once; `None` when pending.
pub(crate) async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match future.as_mut().poll(cx) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// As [`pair`], with the client's bare socket.
pub(crate) async fn socks() -> (Sock, Conn) {
    let port = Port::bind(loopback()).unwrap();
    let addr = port.addr();
    let listener = port.listen().unwrap();
    let client = Sock::connect(addr, None).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (client, Conn::plain(server))
}
