//! Passing files instead of bytes over a Unix socket.
#![allow(missing_docs)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::common::{Gateway, eventually, over_own_files, pattern};
use bucketload_gateway::{Address, ByteRange, Client, Error, Options};
use bucketload_store::{Commit, Condition, ReadConditions, StoreError};

const HELLO: &[u8; 16] = b"BKTLGWAY\x05\0\0\0\0\0\0\0";
const PUT_FILE: u8 = 19;
const COMMIT_FILE: u8 = 20;
const DROP_FILE: u8 = 21;

fn greeted(gateway: &Gateway) -> UnixStream {
    let Address::Unix(path) = gateway.server.address() else {
        panic!("no Unix socket")
    };
    let mut stream = UnixStream::connect(path).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(HELLO).unwrap();
    let mut answer = [0; 16];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, HELLO);
    stream
}

fn send(mut stream: &UnixStream, kind: u8, head: &[u8]) {
    let mut bytes = (head.len() as u32).to_le_bytes().to_vec();
    bytes.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0; 8]);
    bytes.extend(head);
    stream.write_all(&bytes).unwrap();
}

/// Reads the outcome and head of an answer; the kernel closes a file sent with it.
fn answer(mut stream: &UnixStream) -> (u8, Vec<u8>) {
    let mut header = [0; 20];
    stream.read_exact(&mut header).unwrap();
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let mut head = vec![0; length as usize];
    stream.read_exact(&mut head).unwrap();
    (header[4], head)
}

/// Encodes `bucket`, `k` and a size below 128.
fn small(size: u8) -> Vec<u8> {
    [&[6][..], b"bucket", &[1], b"k", &[size]].concat()
}

/// Unfinished files below the root.
fn unfinished(root: &Path) -> usize {
    fn below(directory: &Path) -> usize {
        let entries = std::fs::read_dir(directory).unwrap();
        entries
            .map(|entry| match entry.unwrap().path() {
                path if path.is_dir() => below(&path),
                path => usize::from(!path.ends_with("lock")),
            })
            .sum()
    }
    below(&root.join(".bucketload/tmp"))
}

fn all(client: &Client, key: &str, range: Option<ByteRange>) -> Vec<u8> {
    let mut download = client
        .get("bucket", key, range, ReadConditions::default())
        .unwrap();
    let mut bytes = Vec::new();
    download.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn replacing_an_object_does_not_change_an_open_download() {
    let Gateway { client, .. } = &over_own_files();
    client.create_bucket("bucket").unwrap();
    let (old, new) = (pattern(3 << 20), vec![9; 2 << 20]);
    let put = |bytes: &[u8]| {
        let (size, mut body) = (bytes.len() as u64, bytes);
        client
            .put_from("bucket", "k", size, &mut body, None, Commit::default())
            .unwrap();
    };
    put(&old);
    let range = ByteRange {
        start: 1_000_000,
        length: Some(1_500_000),
    };
    assert!(all(client, "k", Some(range)) == old[1_000_000..2_500_000]);
    let mut before = client
        .get("bucket", "k", None, ReadConditions::default())
        .unwrap();
    put(&new);
    assert!(all(client, "k", None) == new);
    client.delete("bucket", "k", Condition::None).unwrap();
    let mut read = Vec::new();
    before.read_to_end(&mut read).unwrap();
    assert!(read == old);
}

#[test]
fn conditions_hold_for_files_too() {
    let Gateway { client, root, .. } = &over_own_files();
    client.create_bucket("bucket").unwrap();
    let put = |condition| {
        let commit = Commit {
            condition,
            ..Commit::default()
        };
        client.put_from(
            "bucket",
            "k",
            1 << 20,
            &mut &pattern(1 << 20)[..],
            None,
            commit,
        )
    };
    put(Condition::Absent).unwrap();
    for _ in 0..2 {
        assert!(matches!(
            put(Condition::Absent),
            Err(Error::Store(StoreError::PreconditionFailed))
        ));
    }
    // One file may be prepared for the next write.
    assert!(unfinished(root) <= 1);
    let missing = client.put_from(
        "nowhere",
        "k",
        1 << 20,
        &mut &pattern(1 << 20)[..],
        None,
        Commit::default(),
    );
    assert!(matches!(
        missing,
        Err(Error::Store(StoreError::NoSuchBucket))
    ));
}

#[test]
fn an_incomplete_file_does_not_become_an_object() {
    let gateway = over_own_files();
    gateway.client.create_bucket("bucket").unwrap();
    let stream = greeted(&gateway);
    for last in [COMMIT_FILE, DROP_FILE] {
        send(&stream, PUT_FILE, &small(100));
        assert_eq!(answer(&stream), (0, vec![1]));
        assert_eq!(unfinished(&gateway.root), 1);
        send(&stream, last, if last == COMMIT_FILE { &[0] } else { &[] });
        // The commit failed because nothing was written.
        assert_eq!(answer(&stream).0, u8::from(last == COMMIT_FILE));
        assert_eq!(unfinished(&gateway.root), 0);
    }
    assert!(gateway.client.head("bucket", "k").is_err());
}

#[test]
fn other_requests_are_refused_while_a_file_is_written() {
    let gateway = over_own_files();
    gateway.client.create_bucket("bucket").unwrap();
    for (open, next) in [
        (true, 1),
        (true, PUT_FILE),
        (false, COMMIT_FILE),
        (false, DROP_FILE),
    ] {
        let stream = greeted(&gateway);
        if open {
            send(&stream, PUT_FILE, &small(100));
            assert_eq!(answer(&stream), (0, vec![1]));
        }
        let head = match next {
            PUT_FILE => small(100),
            COMMIT_FILE => vec![0],
            _ => Vec::new(),
        };
        send(&stream, next, &head);
        let (outcome, reason) = answer(&stream);
        assert_eq!((outcome, &reason[..]), (3, &b"a request out of order"[..]));
        drop(stream);
        eventually("the file is removed with its connection", || {
            unfinished(&gateway.root) == 0
        });
    }
}

#[test]
fn a_file_is_removed_with_its_client_and_a_stopping_gateway_waits_for_it() {
    let gateway = over_own_files();
    gateway.client.create_bucket("bucket").unwrap();
    let stream = greeted(&gateway);
    send(&stream, PUT_FILE, &small(100));
    assert_eq!(answer(&stream), (0, vec![1]));
    drop(stream);
    eventually("the file is removed", || unfinished(&gateway.root) == 0);

    let stream = greeted(&gateway);
    send(&stream, PUT_FILE, &small(0));
    assert_eq!(answer(&stream), (0, vec![1]));
    let Gateway {
        server,
        store,
        client,
        ..
    } = gateway;
    let stopping = std::thread::spawn(move || server.stop(Duration::from_secs(60)));
    eventually("idle connections end", || client.list_buckets().is_err());
    send(&stream, COMMIT_FILE, &[0]);
    assert_eq!(answer(&stream).0, 0);
    stopping.join().unwrap();
    assert_eq!(store.head("bucket", "k").unwrap().size, 0);
}

#[test]
fn a_client_without_descriptors_gets_bytes() {
    // The limit applies to the process, so a separate process runs the client.
    if std::env::var_os("BUCKETLOAD_TEST_SOCKET").is_none() {
        let gateway = over_own_files();
        gateway.client.create_bucket("bucket").unwrap();
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "files::a_client_without_descriptors_gets_bytes"])
            .env(
                "BUCKETLOAD_TEST_SOCKET",
                gateway.server.address().to_string(),
            )
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stdout)
        );
        assert_eq!(gateway.store.head("bucket", "k").unwrap().size, 1 << 20);
        return;
    }
    let address = std::env::var("BUCKETLOAD_TEST_SOCKET").unwrap();
    let client = Client::connect(Options::new(address.parse().unwrap())).unwrap();
    let mut taken = Vec::new();
    let limit = rustix::process::Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    let bytes = pattern(1 << 20);
    client
        .put_from(
            "bucket",
            "k",
            1 << 20,
            &mut &bytes[..],
            None,
            Commit::default(),
        )
        .unwrap();
    assert!(all(&client, "k", None) == bytes);
    drop(taken);
    assert!(all(&client, "k", None) == bytes);
}
