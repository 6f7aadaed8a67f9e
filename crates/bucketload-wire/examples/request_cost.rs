//! CPU time of a client thread per request to a responder on another thread. Compares this crate's
//! connection with a bare epoll loop that sends one constant request to the same responder, in
//! alternating order, and TLS with plain.
//!
//! ```text
//! cargo run --release -p bucketload-wire --example request_cost [connections]
//! ```
//!
//! Prints the median ratio over the repetitions with its range. On a shared machine, only ratios
//! taken within one repetition are meaningful.

mod support;

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::rc::Rc;

use bucketload_wire::tls::{ClientTls, server_name};
use bucketload_wire::{Conn, Error, Sock, Step, http};
use support::{cpu_seconds, pin, runtime, summary};

const REPETITIONS: usize = 9;
const REQUESTS: u64 = 60_000;
const GET: &[u8] = b"GET /bucket/key HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    ETag: \"0123456789abcdef0123456789abcdef\"\r\nx-amz-request-id: 0123456789ABCDEF\r\n\
    Accept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\nContent-Length: 4096\r\n\r\n";
const BODY: usize = 4096;

/// Answers every request with the same 4 KiB.
async fn respond(mut conn: Conn) -> Result<(), Error> {
    let body = [7; BODY];
    loop {
        let request = conn.recv_with(|bytes| {
            let parsed = http::parse_request(bytes, |request| request.len).map_err(Error::from)?;
            Ok::<_, Error>(parsed.map_or(Step::More(0), |len| Step::Done(len, ())))
        });
        request.await?;
        conn.send(HEAD, &body).await?;
    }
}

async fn requests(
    addr: SocketAddr,
    tls: Option<ClientTls>,
    left: Rc<Cell<u64>>,
) -> Result<(), Error> {
    let sock = Sock::connect(addr, None).await?;
    let mut conn = match tls {
        None => Conn::plain(sock),
        Some(tls) => {
            let name = server_name("localhost").map_err(io::Error::other)?;
            Conn::connect_tls(sock, &tls, &name).await?
        }
    };
    while left.get() > 0 {
        left.set(left.get() - 1);
        conn.send(GET, b"").await?;
        let missing = conn
            .recv_with(|bytes| {
                let Some(head) = http::parse_response(bytes, false)? else {
                    return Ok(Step::More(0));
                };
                let length = head.body.length().unwrap_or(0);
                let here = length.min((bytes.len() - head.len) as u64);
                Ok::<_, Error>(Step::Done(head.len + here as usize, length - here))
            })
            .await?;
        conn.discard(missing).await?;
    }
    Ok(())
}

/// CPU seconds of `REQUESTS` requests through [`Conn`].
fn ours(addr: SocketAddr, tls: Option<&ClientTls>, connections: usize) -> f64 {
    let (runtime, local) = runtime();
    let before = cpu_seconds();
    local.block_on(&runtime, async {
        let left = Rc::new(Cell::new(REQUESTS));
        let workers: Vec<_> = (0..connections)
            .map(|_| tokio::task::spawn_local(requests(addr, tls.cloned(), Rc::clone(&left))))
            .collect();
        for worker in workers {
            worker
                .await
                .expect("no panic")
                .expect("the responder answers");
        }
    });
    cpu_seconds() - before
}

/// CPU seconds of `REQUESTS` requests through a bare epoll loop.
fn floor(addr: SocketAddr, connections: usize) -> io::Result<f64> {
    let before = cpu_seconds();
    // SAFETY: a plain system call; the descriptor is checked and closed below.
    let epoll = unsafe { libc::epoll_create1(0) };
    if epoll < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut streams = Vec::new();
    for i in 0..connections {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            u64: i as u64,
        };
        // SAFETY: both descriptors are open and the event outlives the call.
        unsafe {
            libc::epoll_ctl(
                epoll,
                libc::EPOLL_CTL_ADD,
                stream.as_raw_fd(),
                &raw mut event,
            );
        }
        streams.push((stream, 0));
    }
    let answer = HEAD.len() + BODY;
    let (mut left, mut open) = (REQUESTS, 0);
    for (stream, _) in &mut streams {
        stream.write_all(GET)?;
        (left, open) = (left - 1, open + 1);
    }
    let mut buffer = vec![0; 64 * 1024];
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 1024];
    while open > 0 {
        // SAFETY: `events` has room for the 1024 events that the call may write.
        let n = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), 1024, -1) };
        for event in &events[..n.max(0) as usize] {
            let (stream, have) = &mut streams[event.u64 as usize];
            *have += stream.read(&mut buffer)?;
            if *have == answer {
                (*have, open) = (0, open - 1);
                if left > 0 {
                    stream.write_all(GET)?;
                    (left, open) = (left - 1, open + 1);
                }
            }
        }
    }
    // SAFETY: the descriptor was opened above and is not used afterwards.
    unsafe { libc::close(epoll) };
    Ok(cpu_seconds() - before)
}

fn main() -> io::Result<()> {
    let connections = match std::env::args().nth(1) {
        None => 64,
        Some(text) => text
            .parse()
            .map_err(|_| io::Error::other(format!("{text:?} is not a number of connections")))?,
    };
    let [plain, sealed] = support::serve(respond)?;
    let tls = support::client_tls().map_err(io::Error::other)?;
    pin(0);
    ours(plain, None, connections);
    let (mut ratios, mut tls_ratios) = (Vec::new(), Vec::new());
    for repetition in 0..REPETITIONS {
        let (mine, bare) = if repetition % 2 == 0 {
            let bare = floor(plain, connections)?;
            (ours(plain, None, connections), bare)
        } else {
            let mine = ours(plain, None, connections);
            (mine, floor(plain, connections)?)
        };
        let sealed = ours(sealed, Some(&tls), connections);
        let per_request = |seconds: f64| seconds / REQUESTS as f64 * 1e6;
        println!(
            "ours {:6.2} us  epoll {:6.2} us  TLS {:6.2} us",
            per_request(mine),
            per_request(bare),
            per_request(sealed),
        );
        ratios.push(mine / bare);
        tls_ratios.push(sealed / mine);
    }
    println!(
        "4 KiB GET, c = {connections}: {} of a bare epoll loop; TLS {} of plain",
        summary(&mut ratios),
        summary(&mut tls_ratios)
    );
    Ok(())
}
