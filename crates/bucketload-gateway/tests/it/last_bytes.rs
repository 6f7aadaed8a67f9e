//! Bodies whose last bytes come late: a reader that has part of a piece must still wake for the rest.
#![allow(missing_docs)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bucketload_gateway::{Client, Options};
use bucketload_store::{Commit, ReadConditions};

/// Longer than any machine needs for a few hundred KiB, and far below the stall timeout.
const LONG: Duration = Duration::from_secs(20);

/// A proxy between client and gateway that passes on only the allowed number of answer bytes.
struct Gate {
    allowed: Mutex<u64>,
    changed: Condvar,
    passed: AtomicU64,
}

impl Gate {
    fn allow(&self, bytes: u64) {
        *self.allowed.lock().unwrap() = bytes;
        self.changed.notify_all();
    }

    /// Waits until more than `passed` bytes may pass, and returns how many.
    fn wait(&self, passed: u64) -> u64 {
        let allowed = self.allowed.lock().unwrap();
        let more = self.changed.wait_while(allowed, |a| *a <= passed).unwrap();
        *more
    }

    fn answers(&self, mut from: &TcpStream, mut to: &TcpStream, full: &Sender<()>) {
        let mut buffer = vec![0; 64 << 10];
        let mut passed = 0;
        loop {
            let count = from.read(&mut buffer).unwrap_or(0);
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                let room = usize::try_from(self.wait(passed) - passed).unwrap_or(usize::MAX);
                let (now, later) = rest.split_at(room.min(rest.len()));
                rest = later;
                passed += now.len() as u64;
                // Counted before sending, so a receiver of the bytes finds them counted.
                self.passed.store(passed, Ordering::Release);
                if to.write_all(now).is_err() {
                    return;
                }
                if *self.allowed.lock().unwrap() == passed {
                    let _ = full.send(());
                }
            }
            if count == 0 {
                let _ = to.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}

/// A gate before `gateway`, its address, and a channel that signals when all allowed bytes have passed.
fn gate(gateway: SocketAddr) -> (Arc<Gate>, SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind(crate::common::LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    let (full, is_full) = channel();
    let gate = Arc::new(Gate {
        allowed: Mutex::new(u64::MAX),
        changed: Condvar::new(),
        passed: AtomicU64::new(0),
    });
    let shared = Arc::clone(&gate);
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(gateway).unwrap();
        let (mut asking, mut asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut asking, &mut asked);
            let _ = asked.shutdown(Shutdown::Write);
        });
        shared.answers(&server, &client, &full);
    });
    (gate, address, is_full)
}

/// Whether the thread with this id sleeps.
fn sleeps(thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.starts_with('S')
}

#[test]
fn the_last_bytes_wake_the_reader() {
    const SIZE: u64 = 256 << 10;
    let gateway = crate::common::over_unseen_files();
    gateway.client.create_bucket("bucket").unwrap();
    let body = vec![7; SIZE as usize];
    gateway
        .client
        .put("bucket", "key", &body, Commit::default())
        .unwrap();
    let served = gateway.server.address().resolve().unwrap()[0];
    let (gate, address, is_full) = gate(served);
    let mut options = Options::new(address.to_string().parse().unwrap());
    options.stall_timeout = LONG;
    // Sleeps at once.
    options.busy_poll = Duration::ZERO;
    let client = Client::connect(options).unwrap();
    let get = || {
        client
            .get("bucket", "key", None, ReadConditions::default())
            .unwrap()
    };
    // Measures the length of an answer before its body.
    let before = gate.passed.load(Ordering::Acquire);
    let mut whole = Vec::new();
    get().read_to_end(&mut whole).unwrap();
    assert_eq!(whole, body);
    let passed = gate.passed.load(Ordering::Acquire);
    let head = passed - before - SIZE;

    gate.allow(passed + head);
    let mut download = get();
    is_full.recv().unwrap();
    gate.allow(passed + head + SIZE - (56 << 10));
    is_full.recv().unwrap();
    let thread = rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs();
    let begun = Instant::now();
    std::thread::spawn(move || {
        while !sleeps(thread) && begun.elapsed() < LONG / 2 {
            std::thread::yield_now();
        }
        gate.allow(u64::MAX);
    });
    let (mut at, mut bytes) = (0, vec![0; SIZE as usize]);
    while at < bytes.len() {
        at += download.receive(&mut bytes[at..]).unwrap();
    }
    let took = begun.elapsed();
    assert_eq!(bytes, body);
    assert!(
        took < LONG,
        "the last bytes did not wake the reader: {took:?}"
    );
}
