//! The floor of every remote row: the same bytes over a bare TCP connection on loopback, without storing them.
//!
//! Each process is a pair of threads with its own connection. A request consists of 9 bytes (direction and length) and
//! the bytes to write; an answer is one byte, or the bytes to read.
//!
//! Both sides poll before they sleep if there are cores for that, as the gateway and its clients do: waking a thread costs more
//! than a small request, so a floor that sleeps would be slower than what it bounds.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use bucketload_results::hpc::StepRecord;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::thread::sched_yield;

/// Bytes sent or received at a time.
const BLOCK: usize = 256 << 10;
const REQUEST: usize = 9;
/// How long a side polls before it sleeps: the gateway's default.
const POLL: Duration = Duration::from_micros(50);

const WRITE: u8 = 0;
const READ: u8 = 1;
const STAT: u8 = 2;

/// Moves `objects` objects of `size` bytes in each direction, and then as many requests without a body, over
/// `processes` connections.
///
/// # Errors
/// When a socket fails.
pub(crate) fn measure(size: u64, objects: u64, processes: u32) -> io::Result<Vec<StepRecord>> {
    [("write", WRITE), ("read", READ), ("stat", STAT)]
        .into_iter()
        .map(|(name, direction)| step(name, direction, size, objects, processes))
        .collect()
}

fn step(
    name: &str,
    direction: u8,
    size: u64,
    objects: u64,
    processes: u32,
) -> io::Result<StepRecord> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut pairs = Vec::new();
    for _ in 0..processes {
        let client = TcpStream::connect(address)?;
        let (server, _) = listener.accept()?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        pairs.push((client, server));
    }
    let share = |i: u32| {
        objects / u64::from(processes) + u64::from(u64::from(i) < objects % u64::from(processes))
    };
    let barrier = Barrier::new(processes as usize);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let poll = if 2 * processes as usize <= cores {
        POLL
    } else {
        Duration::ZERO
    };
    let moved = if direction == STAT { 0 } else { size };
    let all: io::Result<Vec<ClientTimes>> = std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for (i, (client, server)) in (0..).zip(pairs) {
            scope.spawn(move || serve(server, poll));
            let barrier = &barrier;
            clients.push(scope.spawn(move || {
                barrier.wait();
                request(client, direction, moved, share(i), poll)
            }));
        }
        let courses = clients.into_iter().map(|client| {
            client
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread of the floor panicked")))
        });
        courses.collect()
    });
    let all = all?;
    // The threads take the times, because this thread may be scheduled late.
    let started = all.iter().map(|client| client.started).min();
    let ended = all.iter().map(|client| client.ended).max();
    let seconds = started
        .zip(ended)
        .map_or(0.0, |(from, to)| (to - from).as_secs_f64());
    let mut times: Vec<u64> = all.into_iter().flat_map(|client| client.times).collect();
    times.sort_unstable();
    let at = |q: f64| {
        let rank = (q * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    };
    Ok(StepRecord {
        step: name.to_owned(),
        ok: objects,
        failed: 0,
        bytes: objects * moved,
        seconds,
        p50_ns: at(0.5),
        p99_ns: at(0.99),
    })
}

/// When a client ran, and how long its requests took.
struct ClientTimes {
    started: Instant,
    ended: Instant,
    /// Duration of each request, in nanoseconds.
    times: Vec<u64>,
}

/// Sends `count` requests, one after another.
fn request(
    mut socket: TcpStream,
    direction: u8,
    size: u64,
    count: u64,
    poll: Duration,
) -> io::Result<ClientTimes> {
    let mut block = vec![7; BLOCK];
    let mut times = Vec::with_capacity(count as usize);
    let mut request = [0; REQUEST];
    request[0] = direction;
    request[1..].copy_from_slice(&size.to_le_bytes());
    let first = Instant::now();
    for _ in 0..count {
        let started = Instant::now();
        if direction == WRITE && size <= BLOCK as u64 - REQUEST as u64 {
            // A small body is sent together with its request, as other clients do.
            block[..REQUEST].copy_from_slice(&request);
            socket.write_all(&block[..REQUEST + size as usize])?;
        } else {
            socket.write_all(&request)?;
            if direction == WRITE {
                each_block(size, |n| socket.write_all(&block[..n]))?;
            }
        }
        match direction {
            READ => each_block(size, |n| receive(&socket, &mut block[..n], poll))?,
            _ => receive(&socket, &mut block[..1], poll)?,
        }
        times.push(started.elapsed().as_nanos() as u64);
    }
    Ok(ClientTimes {
        started: first,
        ended: Instant::now(),
        times,
    })
}

/// Answers requests until the client closes the connection.
fn serve(mut socket: TcpStream, poll: Duration) {
    let mut block = vec![7; BLOCK];
    let mut request = [0; REQUEST];
    while receive(&socket, &mut request, poll).is_ok() {
        let mut length = [0; 8];
        length.copy_from_slice(&request[1..]);
        let size = u64::from_le_bytes(length);
        let done = match request[0] {
            READ => each_block(size, |n| socket.write_all(&block[..n])),
            WRITE => each_block(size, |n| receive(&socket, &mut block[..n], poll))
                .and_then(|()| socket.write_all(&[1])),
            _ => socket.write_all(&[1]),
        };
        if done.is_err() {
            return;
        }
    }
}

/// Fills `buffer`. Polls for as long as `poll`, then sleeps until bytes arrive.
fn receive(socket: &TcpStream, buffer: &mut [u8], poll: Duration) -> io::Result<()> {
    let started = Instant::now();
    let mut filled = 0;
    while filled < buffer.len() {
        let flags = if started.elapsed() < poll {
            RecvFlags::DONTWAIT
        } else {
            RecvFlags::empty()
        };
        match rustix::net::recv(socket, &mut buffer[filled..], flags) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => filled += count,
            Err(Errno::AGAIN) => sched_yield(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn each_block(size: u64, mut step: impl FnMut(usize) -> io::Result<()>) -> io::Result<()> {
    let mut left = size;
    while left > 0 {
        let n = left.min(BLOCK as u64);
        step(n as usize)?;
        left -= n;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::measure;

    #[test]
    fn every_object_crosses_the_socket_in_either_direction() {
        for (size, processes) in [(1000, 1), (300_000, 2), (0, 3)] {
            let steps = measure(size, 7, processes).unwrap();
            let moved: Vec<_> = steps.iter().map(|s| (&*s.step, s.ok, s.bytes)).collect();
            assert_eq!(
                moved,
                [
                    ("write", 7, 7 * size),
                    ("read", 7, 7 * size),
                    ("stat", 7, 0)
                ]
            );
            assert!(
                steps
                    .iter()
                    .all(|s| s.seconds > 0.0 && s.p50_ns > 0 && s.p99_ns >= s.p50_ns)
            );
        }
    }
}
