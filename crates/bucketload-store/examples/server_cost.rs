//! CPU time per request of the server's thread on the null store, compared with a responder that only
//! parses the head and sends the same bytes. Both use the same client and alternate.
//!
//! ```text
//! cargo run --release -p bucketload-store --example server_cost [connections]
//! ```
//!
//! On a shared machine, only ratios within one repetition are meaningful.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bucketload_server::{KeyPair, Server, ServerConfig};
use bucketload_store::{EtagMode, NullOptions, NullStore};
use bucketload_wire::listen::Port;
use bucketload_wire::{Conn, Error, Sock, Step, http};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

#[path = "../tests/it/server/signer.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod signer;

const REPETITIONS: usize = 9;
const REQUESTS: u64 = 60_000;
const SIZE: usize = 4096;
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: bucketload\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    ETag: \"0123456789abcdef0123456789abcdef\"\r\nx-amz-request-id: 0123456789ABCDEF\r\n\
    Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nAccept-Ranges: bytes\r\n\
    Content-Type: binary/octet-stream\r\nContent-Length: 4096\r\n\r\n";
const DONE: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: bucketload\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    ETag: \"0123456789abcdef0123456789abcdef\"\r\nx-amz-request-id: 0123456789ABCDEF\r\n\
    Content-Length: 0\r\n\r\n";

fn cpu(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn runtime() -> (Runtime, LocalSet) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    (runtime.expect("a runtime"), LocalSet::new())
}

/// The minimum work of a server: reads head and body, and sends constant bytes.
async fn respond(mut conn: Conn) -> Result<(), Error> {
    let body = [0; SIZE];
    loop {
        let request = conn.recv_with(|bytes| {
            let parsed = http::parse_request(bytes, |request| {
                let body = request.body.length().unwrap_or(0) as usize;
                (request.len + body, request.method == "GET")
            });
            Ok::<_, Error>(match parsed.map_err(Error::from)? {
                Some((len, get)) if bytes.len() >= len => Step::Done(len, get),
                _ => Step::More(0),
            })
        });
        match request.await? {
            true => conn.send(HEAD, &body).await?,
            false => conn.send(DONE, b"").await?,
        }
    }
}

fn floor() -> SocketAddr {
    let port = Port::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let address = port.addr();
    std::thread::spawn(move || {
        let (runtime, local) = runtime();
        local.block_on(&runtime, async move {
            let listener = port.listen().expect("a listener");
            while let Ok((sock, _)) = listener.accept().await {
                tokio::task::spawn_local(respond(Conn::plain(sock)));
            }
        });
    });
    address
}

async fn requests(address: SocketAddr, bytes: Rc<[u8]>, left: Rc<Cell<u64>>) -> Result<(), Error> {
    let mut conn = Conn::plain(Sock::connect(address, None).await?);
    while left.get() > 0 {
        left.set(left.get() - 1);
        conn.send(&bytes, b"").await?;
        conn.recv_with(|bytes| {
            let Some(head) = http::parse_response(bytes, false)? else {
                return Ok(Step::More(0));
            };
            assert_eq!(head.status, 200, "{}", String::from_utf8_lossy(bytes));
            let len = head.len + head.body.length().unwrap_or(0) as usize;
            Ok::<_, Error>(if bytes.len() >= len {
                Step::Done(len, ())
            } else {
                Step::More(0)
            })
        })
        .await?;
    }
    Ok(())
}

/// CPU seconds per request, excluding the calling thread.
fn measure(address: SocketAddr, bytes: &[u8], connections: usize) -> f64 {
    let (runtime, local) = runtime();
    let left = Rc::new(Cell::new(REQUESTS));
    local.block_on(&runtime, async {
        let before = cpu(ClockId::ProcessCPUTime) - cpu(ClockId::ThreadCPUTime);
        let bytes: Rc<[u8]> = bytes.into();
        let all: Vec<_> = (0..connections)
            .map(|_| {
                tokio::task::spawn_local(requests(address, Rc::clone(&bytes), Rc::clone(&left)))
            })
            .collect();
        for one in all {
            one.await.expect("no panic").expect("no error");
        }
        let after = cpu(ClockId::ProcessCPUTime) - cpu(ClockId::ThreadCPUTime);
        (after - before) / REQUESTS as f64
    })
}

/// A signed request for `path`.
fn signed(method: &str, body: usize) -> Vec<u8> {
    let signer = signer::Signer::new("key", "secret");
    let path = "/bucket/some/key-0000001234";
    let headers = [
        ("host", "127.0.0.1:9000"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        ("x-amz-date", &signer.date),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (names, signature) = signer.signature(method, path, &[], &headers, "UNSIGNED-PAYLOAD");
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!(
        "Authorization: AWS4-HMAC-SHA256 Credential=key/{}, SignedHeaders={names}, Signature={signature}\r\nContent-Length: {body}\r\n\r\n",
        signer.scope()
    );
    let mut bytes = text.into_bytes();
    bytes.resize(bytes.len() + body, 0);
    bytes
}

fn main() {
    let connections = std::env::args()
        .nth(1)
        .map_or(64, |n| n.parse().expect("a number"));
    let keys = KeyPair {
        access_key: "key".into(),
        secret_key: "secret".into(),
    };
    let options = NullOptions {
        object_bytes: SIZE as u64,
        etag: EtagMode::Opaque,
    };
    let store = Arc::new(NullStore::new(&options));
    let server = Server::start(ServerConfig::new(keys), store).expect("a server");
    let floor = floor();
    for (name, bytes) in [("GET", signed("GET", 0)), ("PUT", signed("PUT", SIZE))] {
        measure(server.address(), &bytes, connections);
        let mut rows: Vec<(f64, f64)> = (0..REPETITIONS)
            .map(|n| {
                let ours = || measure(server.address(), &bytes, connections);
                let least = || measure(floor, &bytes, connections);
                if n % 2 == 0 {
                    let a = ours();
                    (a, least())
                } else {
                    let b = least();
                    (ours(), b)
                }
            })
            .collect();
        rows.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let (ours, least) = rows[REPETITIONS / 2];
        println!(
            "{name} 4 KiB, {connections} connections: server {:.2} us, floor {:.2} us, ratio {:.2} ({:.2}-{:.2})",
            ours * 1e6,
            least * 1e6,
            ours / least,
            rows[0].0 / rows[0].1,
            rows[REPETITIONS - 1].0 / rows[REPETITIONS - 1].1
        );
    }
}
