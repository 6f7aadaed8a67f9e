//! Reference clients that do as little as possible: the lower bound that the benchmark compares our client with.
//! `epoll` sends one constant, unsigned request over N connections and skips the answers; `send` writes large PUT
//! bodies from memory. Each prints its CPU time as JSON.
//!
//! The bodies of `send` come from as many incompressible bytes as ours ([`ARENA`]). A single slice that stays in the
//! second-level cache would cost a quarter less, but stores cannot be measured with content that repeats within a
//! compressor's window.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// A failure as text for the operator.
type Result<T = ()> = std::result::Result<T, String>;

fn main() -> Result {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
    let seconds = |text: &str| number(text).map(Duration::from_secs);
    match args[..] {
        ["epoll", verb, address, connections, time] => {
            let request = constant_request(verb, address);
            let connections = number(connections)? as usize;
            epoll(address, &request, connections, seconds(time)?)
        }
        ["send", address, bytes, time] => send(address, number(bytes)?, seconds(time)?),
        _ => Err("epoll get|put ADDRESS CONNECTIONS SECONDS, or send ADDRESS BYTES SECONDS".into()),
    }
    .map_err(|e| format!("floor: {e}"))
}

fn constant_request(verb: &str, address: &str) -> Vec<u8> {
    if verb == "put" {
        let mut request =
            format!("PUT /bench/k HTTP/1.1\r\nHost: {address}\r\nContent-Length: 4096\r\n\r\n")
                .into_bytes();
        request.extend((0..4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8));
        request
    } else {
        format!("GET /bench/k HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes()
    }
}

fn cpu_ns() -> u64 {
    // SAFETY: an all-zero timespec is valid and the pointer is to a live local.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn report(count: u64, bytes: u64, cpu_ns: u64, wall: Duration) {
    println!(
        "{{\"ops\":{count},\"bytes\":{bytes},\"cpu_ns\":{cpu_ns},\"wall_ns\":{}}}",
        wall.as_nanos()
    );
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the answer still missing; `None` while its head is incomplete.
    left: Option<usize>,
    head: Vec<u8>,
}

fn epoll(address: &str, request: &[u8], connections: usize, duration: Duration) -> Result {
    let text = |e: std::io::Error| e.to_string();
    // SAFETY: plain system call without pointers.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    let mut all = Vec::new();
    for index in 0..connections {
        let stream = TcpStream::connect(address).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        stream.set_nonblocking(true).map_err(text)?;
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            u64: index as u64,
        };
        // SAFETY: the descriptor is open and `event` outlives the call.
        unsafe {
            libc::epoll_ctl(
                epoll,
                libc::EPOLL_CTL_ADD,
                stream.as_raw_fd(),
                &raw mut event,
            )
        };
        all.push(Connection {
            stream,
            left: None,
            head: Vec::new(),
        });
    }
    let (start, cpu) = (Instant::now(), cpu_ns());
    for connection in &mut all {
        connection.stream.write_all(request).map_err(text)?;
    }
    let mut buffer = vec![0u8; 64 * 1024];
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 256];
    let mut done = 0u64;
    while start.elapsed() < duration {
        // SAFETY: the pointer and length describe `events`.
        let ready =
            unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), events.len() as i32, 100) };
        for event in &events[..ready.max(0) as usize] {
            let connection = &mut all[event.u64 as usize];
            let count = match connection.stream.read(&mut buffer) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(count) => count,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(e) => return Err(e.to_string()),
            };
            if take(connection, &buffer[..count])? {
                done += 1;
                connection.stream.write_all(request).map_err(text)?;
            }
        }
    }
    report(done, 0, cpu_ns() - cpu, start.elapsed());
    Ok(())
}

/// Consumes received bytes; returns true when the answer is complete.
fn take(connection: &mut Connection, bytes: &[u8]) -> Result<bool> {
    let left = match connection.left {
        Some(left) => left,
        None => {
            let whole: &[u8] = if connection.head.is_empty() {
                bytes
            } else {
                connection.head.extend_from_slice(bytes);
                &connection.head
            };
            let Some(end) = whole.windows(4).position(|w| w == b"\r\n\r\n") else {
                if connection.head.is_empty() {
                    connection.head.extend_from_slice(bytes);
                }
                return Ok(false);
            };
            let length = content_length(&whole[..end])?;
            let rest = whole.len() - end - 4;
            connection.head.clear();
            connection.left = Some(length.saturating_sub(rest));
            return Ok(finish(connection));
        }
    };
    connection.left = Some(left.saturating_sub(bytes.len()));
    Ok(finish(connection))
}

fn finish(connection: &mut Connection) -> bool {
    let done = connection.left == Some(0);
    if done {
        connection.left = None;
    }
    done
}

fn content_length(head: &[u8]) -> Result<usize> {
    if !head.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(&head[..head.len().min(200)]).into_owned());
    }
    for line in head.split(|&b| b == b'\n') {
        let colon = line.iter().position(|&b| b == b':');
        if let Some(at) = colon.filter(|&at| line[..at].eq_ignore_ascii_case(b"content-length")) {
            let text = String::from_utf8_lossy(&line[at + 1..]);
            return text
                .trim()
                .parse()
                .map_err(|e| format!("content-length: {e}"));
        }
    }
    Ok(0)
}

/// Bytes after which a body repeats, like `bucketload_core::payload::Arena::PERIOD`.
const ARENA: usize = 4 << 20;
/// Bytes per write.
const SLICE: usize = 256 * 1024;

/// Bytes without any pattern: xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8, 2003).
fn incompressible(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x.to_le_bytes()
    };
    (0..len / 8).flat_map(|_| next()).collect()
}

fn send(address: &str, bytes: u64, duration: Duration) -> Result {
    let text = |e: std::io::Error| e.to_string();
    let mut stream = TcpStream::connect(address).map_err(text)?;
    stream.set_nodelay(true).map_err(text)?;
    let arena = incompressible(ARENA);
    let head =
        format!("PUT /bench/k HTTP/1.1\r\nHost: {address}\r\nContent-Length: {bytes}\r\n\r\n");
    let mut answer = vec![0u8; 64 * 1024];
    let (start, cpu) = (Instant::now(), cpu_ns());
    let mut done = 0u64;
    while start.elapsed() < duration {
        stream.write_all(head.as_bytes()).map_err(text)?;
        let mut left = bytes as usize;
        for slice in arena.chunks(SLICE).cycle() {
            let part = left.min(slice.len());
            stream.write_all(&slice[..part]).map_err(text)?;
            left -= part;
            if left == 0 {
                break;
            }
        }
        let count = stream.read(&mut answer).map_err(text)?;
        content_length(&answer[..count])?;
        done += 1;
    }
    report(done, done * bytes, cpu_ns() - cpu, start.elapsed());
    Ok(())
}
