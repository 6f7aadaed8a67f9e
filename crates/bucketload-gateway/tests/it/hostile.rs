//! Wrong, slow, dead and malicious clients, and such gateways.
#![allow(missing_docs)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use crate::common::{eventually, memory, over_files, over_memory, tcp};
use bucketload_gateway::{
    AccessToken, Address, Client, Error, MAX_REQUEST_HEAD_BYTES, Options, Server, ServerOptions,
    StartError,
};
use bucketload_store::{Commit, Condition, PosixOptions, PosixStore};
use proptest::prelude::*;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics of the gateway's threads, which would not fail the test.
fn watch_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current()
                .name()
                .is_some_and(|name| name.starts_with("gateway"))
            {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            usual(info);
        }));
    });
}

fn dial(address: &Address) -> TcpStream {
    let Address::Tcp(address) = address else {
        panic!("{address}")
    };
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

const HELLO: &[u8; 16] = b"BKTLGWAY\x05\0\0\0\0\0\0\0";

/// Connects and performs the handshake.
fn greeted(address: &Address) -> TcpStream {
    let mut stream = dial(address);
    stream.write_all(HELLO).unwrap();
    let mut answer = [0; 16];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, HELLO);
    stream
}

fn frame(kind: u8, head: &[u8], body: u64) -> Vec<u8> {
    let mut bytes = (head.len() as u32).to_le_bytes().to_vec();
    bytes.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(body.to_le_bytes());
    bytes.extend(head);
    bytes
}

/// Reads until the server closes.
fn rest(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The connection may end with a reset.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    [&[text.len() as u8][..], text.as_bytes()].concat()
}

#[test]
fn malformed_greetings_get_no_answer() {
    let gateway = over_memory();
    for wrong in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 16], &[0xff; 100]] {
        let mut stream = dial(gateway.server.address());
        stream.write_all(wrong).unwrap();
        assert_eq!(rest(&stream), b"");
    }
    let mut other_version = *HELLO;
    other_version[8] = 1;
    let mut stream = dial(gateway.server.address());
    stream.write_all(&other_version).unwrap();
    // The server sends its own version and refuses.
    assert_eq!(rest(&stream), b"BKTLGWAY\x05\0\x02\0\0\0\0\0");
    assert!(gateway.client.list_buckets().is_ok());
}

#[test]
fn malformed_requests_are_refused_with_a_reason() {
    let gateway = over_memory();
    let mut reserved = frame(1, &[], 0);
    reserved[7] = 1;
    let mut too_long = frame(1, &[], 0);
    too_long[..4].copy_from_slice(&(MAX_REQUEST_HEAD_BYTES + 1).to_le_bytes());
    for (wrong, reason) in [
        (frame(0, &[], 0), "unknown kind"),
        (frame(99, &[], 0), "unknown kind"),
        (frame(2, &[200], 0), "ends within a value"),
        (frame(2, &[1, 0xff], 0), "not UTF-8"),
        (frame(1, &[0], 0), "more than its values"),
        (frame(1, &[], 7), "an unexpected body"),
        (reserved, "not zero"),
        (too_long, "longer than allowed"),
    ] {
        let mut stream = greeted(gateway.server.address());
        stream.write_all(&wrong).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = rest(&stream);
        assert_eq!(answer[4], 3, "{answer:?}");
        let said = String::from_utf8_lossy(&answer[20..]);
        assert!(said.contains(reason), "{said} instead of {reason}");
    }
    assert!(gateway.client.list_buckets().is_ok());
}

#[test]
fn nonexistent_cores_are_ignored() {
    let gateway = over_memory();
    let more: Vec<_> = (0..300)
        .map(|_| greeted(gateway.server.address()))
        .collect();
    for core in [1023_u16, 1024, 1025, u16::MAX] {
        let mut asked = frame(1, &[], 0);
        asked[5..7].copy_from_slice(&core.to_le_bytes());
        let mut stream = greeted(gateway.server.address());
        stream.write_all(&asked).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(&stream)[4], 0, "core {core}");
    }
    drop(more);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Sends frames of every kind with bytes changed, cut and added. The server answers or closes, never panics, and
    /// serves the next client.
    #[test]
    fn mutated_frames_do_no_harm(
        kinds in proptest::collection::vec(0_u8..24, 1..6),
        flips in proptest::collection::vec((0_usize..400, any::<u8>()), 0..8),
        cut in 0_usize..400,
        tail in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        watch_for_panics();
        let gateway = {
            static SHARED: std::sync::OnceLock<crate::common::Gateway> = std::sync::OnceLock::new();
            SHARED.get_or_init(over_memory)
        };
        let mut bytes = Vec::new();
        for kind in kinds {
            let (bucket, key) = (text("bucket"), text("key"));
            let head = match kind {
                1 | 21 => Vec::new(),
                2..=4 => bucket,
                5 => [bucket, text(""), text("/"), text(""), vec![100]].concat(),
                6 => [bucket, key, vec![0, 0]].concat(),
                7 | 18 | 22 => [bucket, key, vec![1, 3, 1, 9, 0]].concat(),
                8 | 9 => [bucket, key, vec![0]].concat(),
                10 => [bucket.clone(), key, vec![0], bucket, text("copy"), vec![1, 0]].concat(),
                11 => [bucket, key, vec![0, 0, 0, 0, 0]].concat(),
                12 => [bucket, key, text("id"), vec![1, 0]].concat(),
                19 => [bucket, key, vec![5]].concat(),
                20 => vec![0],
                _ => [bucket, key, text("id"), vec![1, 1, 0, 0]].concat(),
            };
            let body: &[u8] = if matches!(kind, 6 | 12) { b"content" } else { b"" };
            bytes.extend(frame(kind, &head, body.len() as u64));
            bytes.extend(body);
        }
        for (at, value) in flips {
            let length = bytes.len();
            bytes[at % length] = value;
        }
        bytes.truncate(bytes.len().saturating_sub(cut % 40));
        bytes.extend(tail);
        let mut stream = greeted(gateway.server.address());
        // The server may have closed the connection already.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        rest(&stream);
        prop_assert_eq!(PANICS.load(Ordering::SeqCst), 0);
        prop_assert!(gateway.client.list_buckets().is_ok());
    }
}

#[test]
fn a_gateway_off_loopback_demands_a_token() {
    let open = ServerOptions::new("0.0.0.0:0".parse().unwrap());
    let refused = Server::start(open.clone(), memory()).unwrap_err();
    assert!(matches!(refused, StartError::NoToken(_)), "{refused}");
    assert!(refused.to_string().contains("--token-file"), "{refused}");
    let token = AccessToken::parse("", "a-token-of-the-tests").unwrap();
    let closed = ServerOptions {
        token: Some(token.clone()),
        ..open
    };
    let server = Server::start(closed, memory()).unwrap();
    let port = server
        .address()
        .to_string()
        .rsplit_once(':')
        .unwrap()
        .1
        .to_owned();
    let options = |token| Options {
        token,
        ..Options::new(format!("127.0.0.1:{port}").parse().unwrap())
    };
    let refusal = |token| Client::connect(options(token)).unwrap_err().to_string();
    assert!(refusal(None).contains("demands a token"));
    let wrong = AccessToken::parse("", "a-token-of-the-Tests").unwrap();
    assert!(refusal(Some(wrong)).contains("token is wrong"));
    let client = Client::connect(options(Some(token))).unwrap();
    client.create_bucket("bucket").unwrap();
    // Sends a request instead of a proof.
    let mut stream = dial(&format!("127.0.0.1:{port}").parse().unwrap());
    stream.write_all(HELLO).unwrap();
    stream.write_all(&frame(1, &[], 0)).unwrap();
    stream.write_all(&[0; 64]).unwrap();
    let answer = rest(&stream);
    assert_eq!((answer.len(), answer[10], answer[48]), (49, 1, 3));
}

#[test]
fn slow_clients_do_not_keep_others_waiting() {
    let gateway = over_files();
    let store = Arc::clone(&gateway.store);
    let server = Server::start(ServerOptions::new(tcp()), store).unwrap();
    let client = Client::connect(Options::new(server.address().clone())).unwrap();
    client.create_bucket("bucket").unwrap();
    let half_greeting = dial(server.address());
    (&half_greeting).write_all(&HELLO[..7]).unwrap();
    let half_header = greeted(server.address());
    (&half_header).write_all(&frame(1, &[], 0)[..9]).unwrap();
    let half_body = greeted(server.address());
    let head = [text("bucket"), text("half"), vec![0, 0]].concat();
    (&half_body).write_all(&frame(6, &head, 1 << 20)).unwrap();
    (&half_body).write_all(&[7; 1000]).unwrap();
    // A client that requests much and reads nothing.
    client
        .put("bucket", "large", &vec![1; 16 << 20], Commit::default())
        .unwrap();
    let deaf = greeted(server.address());
    let head = [text("bucket"), text("large"), vec![0, 0]].concat();
    (&deaf).write_all(&frame(7, &head, 0)).unwrap();
    for i in 0..100 {
        let key = format!("k{i}");
        client
            .put("bucket", &key, b"content", Commit::default())
            .unwrap();
        assert_eq!(client.head("bucket", &key).unwrap().size, 7);
        assert!(client.delete("bucket", &key, Condition::None).unwrap());
    }
    // An incomplete object does not exist, and its temporary file is removed with the client.
    assert!(client.head("bucket", "half").is_err());
    drop((half_greeting, half_header, half_body, deaf));
    eventually("dead clients are forgotten", || server.connections() == 1);
}

#[test]
fn connections_are_limited() {
    let options = ServerOptions {
        connections: 2,
        ..ServerOptions::new(tcp())
    };
    let server = Server::start(options, memory()).unwrap();
    let (first, _second) = (greeted(server.address()), greeted(server.address()));
    let refused = Client::connect(Options::new(server.address().clone())).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("maximum number of connections"),
        "{refused}"
    );
    drop(first);
    eventually("a connection becomes free", || server.connections() == 1);
    Client::connect(Options::new(server.address().clone())).unwrap();
}

/// More connections than fit, all silent: accepting goes on, and the oldest of them make room.
#[test]
fn silent_connections_do_not_keep_others_out() {
    let server = Server::start(ServerOptions::new(tcp()), memory()).unwrap();
    let early = Client::connect(Options::new(server.address().clone())).unwrap();
    early.create_bucket("bucket").unwrap();
    let began = Instant::now();
    let silent: Vec<_> = (0..1500).map(|_| dial(server.address())).collect();
    let late = Client::connect(Options::new(server.address().clone())).unwrap();
    late.put("bucket", "k", b"content", Commit::default())
        .unwrap();
    // The handshake's time limit would free places only after 10 s.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(server.connections() <= 1024, "{}", server.connections());
    // A client that has said who it is stays.
    assert_eq!(early.head("bucket", "k").unwrap().size, 7);
    assert_eq!(rest(&silent[0]), b"", "the oldest one was closed");
}

#[test]
fn stopping_in_the_middle_of_a_put_leaves_nothing() {
    let gateway = over_files();
    let server = Server::start(ServerOptions::new(tcp()), Arc::clone(&gateway.store)).unwrap();
    gateway.client.create_bucket("bucket").unwrap();
    gateway
        .client
        .put("bucket", "k", b"old", Commit::default())
        .unwrap();
    let stream = greeted(server.address());
    let head = [text("bucket"), text("k"), vec![0, 0]].concat();
    (&stream).write_all(&frame(6, &head, 1 << 20)).unwrap();
    (&stream).write_all(&[7; 100_000]).unwrap();
    server.stop(Duration::ZERO);
    rest(&stream);
    assert_eq!(gateway.client.head("bucket", "k").unwrap().size, 3);
}

#[test]
fn a_stopping_gateway_finishes_its_requests() {
    let server = Server::start(ServerOptions::new(tcp()), memory()).unwrap();
    let client = Client::connect(Options::new(server.address().clone())).unwrap();
    client.create_bucket("bucket").unwrap();
    let mut stream = greeted(server.address());
    let head = [text("bucket"), text("k"), vec![0, 0]].concat();
    let half = vec![7; 32 << 20];
    stream
        .write_all(&frame(6, &head, 2 * half.len() as u64))
        .unwrap();
    // More than the kernel buffers for both sides, so once it is sent, the server is working on it.
    stream.write_all(&half).unwrap();
    let stopping = std::thread::spawn(move || server.stop(Duration::from_secs(60)));
    // The idle connection is closed, so the server is stopping.
    eventually("idle connections end", || client.list_buckets().is_err());
    stream.write_all(&half).unwrap();
    let answer = rest(&stream);
    assert_eq!((answer[4], answer.len() > 20), (0, true), "{answer:?}");
    stopping.join().unwrap();
}

#[test]
fn a_client_survives_a_gateway_restart() {
    let first = Server::start(ServerOptions::new(tcp()), memory()).unwrap();
    let address = first.address().clone();
    let client = Client::connect(Options::new(address.clone())).unwrap();
    client.create_bucket("bucket").unwrap();
    first.stop(Duration::from_secs(1));
    assert!(matches!(
        client.list_buckets(),
        Err(Error::Connect(_) | Error::Lost(_))
    ));
    let second = Server::start(ServerOptions::new(address), memory()).unwrap();
    // The second call has a new connection at the latest.
    let _ = client.list_buckets();
    assert_eq!(client.list_buckets().unwrap(), []);
    drop(second);
}

#[test]
fn a_silent_gateway_costs_no_more_than_the_limit() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: Address = silent.local_addr().unwrap().to_string().parse().unwrap();
    let client = Client::new(Options::new(address)).limited(Some(Duration::from_millis(50)));
    let started = Instant::now();
    assert!(matches!(client.list_buckets(), Err(Error::TimedOut)));
    assert!(started.elapsed() >= Duration::from_millis(50));
    // A gateway that performs the handshake and falls silent.
    let thread = std::thread::spawn(move || {
        let mut all = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = silent.accept().unwrap();
            let mut hello = [0; 16];
            if stream.read_exact(&mut hello).is_ok() {
                let _ = stream.write_all(HELLO);
            }
            all.push(stream);
        }
        all
    });
    assert!(matches!(client.head("bucket", "k"), Err(Error::TimedOut)));
    drop(thread.join().unwrap());
}

#[test]
fn a_client_survives_nonsense_from_the_gateway() {
    let nonsense = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: Address = nonsense.local_addr().unwrap().to_string().parse().unwrap();
    let replies: Vec<Vec<u8>> = vec![
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        [&HELLO[..], &frame(9, &[], 0)].concat(),
        [&HELLO[..], &frame(0, &[5], 0)].concat(),
        [&HELLO[..], &frame(1, &[99], 0)].concat(),
        [&HELLO[..], &[0xff; 64]].concat(),
        HELLO.to_vec(),
    ];
    let count = replies.len();
    let thread = std::thread::spawn(move || {
        for reply in replies {
            let (mut stream, _) = nonsense.accept().unwrap();
            let _ = stream.write_all(&reply);
            let _ = stream.shutdown(Shutdown::Write);
            rest(&stream);
        }
    });
    for _ in 0..count {
        let client = Client::new(Options::new(address.clone()));
        let error = client.list_buckets().unwrap_err();
        assert!(
            matches!(
                error,
                Error::Protocol(_) | Error::Refused(_) | Error::Lost(_) | Error::Connect(_)
            ),
            "{error:?}"
        );
        drop(client);
    }
    thread.join().unwrap();
}

#[test]
fn a_unix_socket_is_private_and_replaced_by_the_next_gateway() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let start = || Server::start(ServerOptions::new(Address::Unix(path.clone())), memory());
    let server = start().unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    assert!(matches!(start(), Err(StartError::Occupied(..))));
    server.stop(Duration::ZERO);
    assert!(!path.exists());
    // The socket file that a killed gateway leaves.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(start().unwrap());
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(start(), Err(StartError::Occupied(..))));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn processes_see_each_others_objects() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Arc::new(PosixStore::open(PosixOptions::new(directory.path())).unwrap());
    let (one, other) = (open(), open());
    let server = Server::start(ServerOptions::new(tcp()), one).unwrap();
    let client = Client::connect(Options::new(server.address().clone())).unwrap();
    client.create_bucket("bucket").unwrap();
    client
        .put("bucket", "a/b", b"content", Commit::default())
        .unwrap();
    let info = bucketload_store::Store::head(&*other, "bucket", "a/b").unwrap();
    assert_eq!(client.head("bucket", "a/b").unwrap(), info);
}
