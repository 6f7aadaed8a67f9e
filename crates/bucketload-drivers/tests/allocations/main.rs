//! Steady-state operations allocate nothing, and an idle session is small.
//!
//! The responder runs on another thread; allocations are counted on the client's thread only. This is a separate test
//! program because it replaces the global allocator.

mod gcs;
mod hdfs;
mod libs3;
#[path = "../support/mod.rs"]
mod support;

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_core::driver::{Admin, Driver, Session, WorkerId};
use bucketload_core::op::{ByteRange, KeySource, Op, OpClass, Request, VersionId};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::azblob::{Auth, AzureConfig, AzureDriver, ContentChecksum};
use bucketload_drivers::s3::{
    AppendMode, ChecksumAlgorithm, Credentials, CustomerKey, Encryption, Endpoint, Keeping,
    PayloadMode, S3Config, S3Session,
};
use bucketload_drivers::swift::{LargeObject, SwiftAuth, SwiftConfig, SwiftDriver};
use bucketload_local::posix::{
    Io, Layout as FileLayout, PosixConfig, PosixDriver, Write as Writing,
};
use bucketload_testkit::alloc::{Counting, calls};
use support::{Answer, op, open, probe, request, run};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Answers requests on another thread: `answer` returns the response to method and target.
fn serve(answer: fn(&str, &str) -> Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::spawn(move || talk(stream, answer));
        }
    });
    addr
}

fn talk(mut stream: TcpStream, answer: fn(&str, &str) -> Vec<u8>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut held = Vec::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let end = loop {
            if let Some(at) = held.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            held.extend_from_slice(&buffer[..n]);
        };
        let head = String::from_utf8(held[..end].to_vec()).ok()?;
        let mut words = head.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let length = head
            .lines()
            .find_map(|l| l.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |l| l.parse().unwrap());
        while held.len() < end + length {
            let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            held.extend_from_slice(&buffer[..n]);
        }
        let bytes = answer(method, target);
        held.drain(..end + length);
        stream.write_all(&bytes).ok()?;
    }
}

const LARGE: usize = 2_000_000;

fn answer(method: &str, target: &str) -> Vec<u8> {
    let document = |text: &str| Answer::ok(text).bytes;
    match (method, target) {
        ("GET", t) if t.contains("prefix=") => {
            let keys: String = (0..50)
                .map(|i| format!("<Contents><Key>k&amp;{i}</Key></Contents>"))
                .collect();
            let (more, token) = match t.contains("continuation-token") || t.contains("marker=") {
                false => (
                    "true",
                    "<NextContinuationToken>a&amp;b</NextContinuationToken>\
                     <NextKeyMarker>k</NextKeyMarker>",
                ),
                true => ("false", ""),
            };
            let text = format!("<L><IsTruncated>{more}</IsTruncated>{token}{keys}</L>");
            document(&text)
        }
        ("GET", t) if t.ends_with("/large") => Answer::ok(vec![0; LARGE]).bytes,
        ("GET", t)
            if t.contains("retention=") || t.contains("legal-hold=") || t.contains("acl=") =>
        {
            document("<L><Status>ON</Status></L>")
        }
        ("GET", t) if t.contains("attributes=") => document(
            "<A><ObjectSize>7</ObjectSize><ObjectParts><Part><PartNumber>1</PartNumber></Part></ObjectParts></A>",
        ),
        ("GET", t) if t.contains("partNumber=") => Answer::status(206, [0; 4096]).bytes,
        ("GET", t) if t.ends_with("/range") => Answer::status(206, [0; 100]).bytes,
        ("GET", _) => Answer::ok([0; 4096]).bytes,
        ("HEAD", _) => b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n".to_vec(),
        ("DELETE", _) => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        ("POST", t) if t.contains("uploads") => document(
            "<InitiateMultipartUploadResult><UploadId>u/1</UploadId></InitiateMultipartUploadResult>",
        ),
        ("POST", t) if t.contains("delete") => document("<DeleteResult></DeleteResult>"),
        ("POST", _) => {
            let text = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>";
            Answer::with_fields(200, "x-amz-version-id: v2\r\n", text).bytes
        }
        ("PUT", t) if t.contains("copy") => {
            document("<CopyObjectResult><ETag>e</ETag></CopyObjectResult>")
        }
        ("PUT", t) if t.ends_with("/append") => {
            // HEAD says 4096, and each append adds as much.
            static SIZE: AtomicU64 = AtomicU64::new(4096);
            let size = SIZE.fetch_add(4096, Ordering::Relaxed) + 4096;
            let field = format!("x-amz-object-size: {size}\r\n");
            Answer::with_fields(200, &field, "").bytes
        }
        _ => {
            let fields = "ETag: \"0123456789abcdef0123456789abcdef\"\r\nx-amz-version-id: v2\r\n";
            Answer::with_fields(200, fields, "").bytes
        }
    }
}

fn config(addr: SocketAddr) -> S3Config {
    let endpoint = Endpoint::parse(&format!("http://{addr}"), "t").unwrap();
    S3Config::new(
        vec![endpoint],
        "us-east-1",
        Some(Credentials::new("AKID", "secret")),
    )
}

/// Allocations of ten repetitions of `request`, after two for warm-up.
async fn allocations<S: Session>(session: &mut S, request: &Request<'_>) -> u64 {
    let mut before = 0;
    for round in 0..12 {
        if round == 2 {
            before = calls();
        }
        let mut probe = probe();
        session.execute(request, &mut probe).await.unwrap();
    }
    calls() - before
}

struct Numbered;

impl KeySource for Numbered {
    fn render(&self, i: u64, out: &mut String) {
        out.clear();
        out.push_str("some/key/");
        out.push(char::from(b'0' + (i % 10) as u8));
    }
}

/// An operation on 4 KiB, with the parameters of lists, ranges and deletions of many.
fn of_many(class: OpClass) -> Op {
    Op {
        count: 50,
        range: class.reads_range().then_some(ByteRange {
            offset: 0,
            len: if class.by_part() { 4096 } else { 100 },
        }),
        ..op(class, 4096)
    }
}

#[test]
fn steady_state_operations_allocate_nothing() {
    let addr = serve(answer);
    let arena = Arena::new(PayloadKind::Zeros, 1);
    run(async {
        let mut config = config(addr);
        config.append = AppendMode::WriteOffset;
        let mut session = open(config).await;
        for class in OpClass::ALL {
            let mut op = of_many(class);
            if matches!(class, OpClass::MultipartPut | OpClass::MultipartCopy) {
                op.count = 1000;
            }
            let mut request = request(&op);
            request.content = Some(arena.content(0, 1, 0, 4096));
            request.keys = Some(&Numbered);
            request.source = "source";
            match class {
                OpClass::RangeGet => request.key = "range",
                OpClass::Copy | OpClass::MultipartCopy => request.key = "copy",
                OpClass::MultipartPut => {}
                OpClass::Append => request.key = "append",
                // Not in the API.
                OpClass::Touch
                | OpClass::Rename
                | OpClass::RangePut
                | OpClass::Sync
                | OpClass::LocalWrite => continue,
                // The responder does not serve the documents of tags and buckets.
                OpClass::GetTagging | OpClass::ListBuckets => continue,
                _ => {}
            }
            let version = Cell::new(VersionId::new(b"v1").unwrap());
            if class.by_version() || class == OpClass::PutIfMatch {
                request.version = Some(&version);
            }
            assert_eq!(allocations(&mut session, &request).await, 0, "{class}");
            if class.writes_body() && !matches!(class, OpClass::Append | OpClass::PutIfMatch) {
                // The version that is written is noted.
                request.version = Some(&version);
                assert_eq!(
                    allocations(&mut session, &request).await,
                    0,
                    "{class} noted"
                );
                assert_eq!(version.get().as_str(), "v2", "{class}");
            }
            request.verify = true;
            if class.reads_body() {
                assert_eq!(
                    allocations(&mut session, &request).await,
                    0,
                    "{class} verified"
                );
            }
        }
        let large_op = op(OpClass::Get, LARGE as u64);
        let mut large = request(&large_op);
        large.key = "large";
        assert_eq!(allocations(&mut session, &large).await, 0, "large");
        large.content = Some(arena.content(0, 1, 0, LARGE as u64));
        large.verify = true;
        assert_eq!(allocations(&mut session, &large).await, 0, "large verified");
    });
}

#[test]
fn objects_with_a_class_and_a_customers_key_allocate_nothing() {
    let addr = serve(answer);
    let arena = Arena::new(PayloadKind::Zeros, 1);
    let mut config = config(addr);
    config.keeping = Keeping {
        storage_class: Some("COLD".to_owned()),
        encryption: Some(Encryption::Customer(CustomerKey::new(&[7; 32]))),
    };
    run(async {
        let mut session = open(config).await;
        for class in [
            OpClass::Put,
            OpClass::Get,
            OpClass::Head,
            OpClass::Copy,
            OpClass::MultipartPut,
        ] {
            let op = op(class, 4096);
            let mut request = request(&op);
            request.content = Some(arena.content(0, 1, 0, 4096));
            request.source = "source";
            if class == OpClass::Copy {
                request.key = "copy";
            }
            assert_eq!(allocations(&mut session, &request).await, 0, "{class}");
        }
    });
}

/// Checks that steady-state operations on objects allocate nothing, and that sessions and futures are small.
async fn check_objects<D: Driver>(driver: &D) {
    let arena = Arena::new(PayloadKind::Random, 1);
    let mut session = driver
        .open(WorkerId::default(), &mut probe())
        .await
        .unwrap();
    assert!(size_of_val(&session) <= 512);
    for class in driver.capabilities().classes {
        if class.on_bucket() {
            continue;
        }
        let op = of_many(class);
        let mut request = request(&op);
        request.content = Some(arena.content(0, 1, 0, 4096));
        request.keys = Some(&Numbered);
        request.source = "source";
        if class == OpClass::RangeGet {
            request.key = "range";
        }
        assert_eq!(allocations(&mut session, &request).await, 0, "{class}");
    }
    let op = op(OpClass::Put, 4096);
    let request = request(&op);
    let mut probe = probe();
    let future = session.execute(&request, &mut probe);
    let size = size_of_val(&future);
    assert!(size <= 1700, "{size}");
}

/// As [`answer`], for Azure Blob Storage.
fn azure_answer(method: &str, target: &str) -> Vec<u8> {
    match (method, target) {
        ("GET", t) if t.contains("comp=list") => {
            let blobs = "<Blob><Name>k&amp;</Name></Blob>".repeat(50);
            let marker = if t.contains("marker=") { "" } else { "a&amp;b" };
            let text = format!("<E><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></E>");
            Answer::ok(text).bytes
        }
        ("GET", t) if t.contains("comp=tags") => {
            Answer::ok("<Tags><TagSet><Tag><Key>k</Key></Tag></TagSet></Tags>").bytes
        }
        ("POST", _) => {
            let parts = "--b\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n".repeat(50);
            Answer::status(202, parts).bytes
        }
        ("PUT", t) if t.contains("comp=tags") => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        ("PUT", _) => Answer::with_fields(201, "x-ms-copy-status: success\r\n", "").bytes,
        (_, t) => answer(method, t.split('?').next().unwrap()),
    }
}

#[test]
fn azure_operations_allocate_nothing() {
    let addr = serve(azure_answer);
    run(async {
        for (auth, checksum) in [
            (Auth::SharedKey("c2VjcmV0".into()), None),
            (
                Auth::SharedKey("c2VjcmV0".into()),
                Some(ContentChecksum::Md5),
            ),
            (Auth::Sas("sig=x".into()), Some(ContentChecksum::Crc64)),
        ] {
            let endpoint = Endpoint::parse(&format!("http://{addr}/acc"), "t").unwrap();
            let mut config = AzureConfig::new(vec![endpoint], "acc", auth);
            config.checksum = checksum;
            let driver = AzureDriver::new(config).unwrap();
            check_objects(&driver).await;
        }
    });
}

/// As [`answer`], for Swift.
fn swift_answer(method: &str, target: &str) -> Vec<u8> {
    match (method, target) {
        ("GET", t) if t.contains("format=json") => {
            let names =
                r#"{"name":"k&","bytes":1},"#.repeat(if t.contains("marker=") { 9 } else { 49 });
            Answer::ok(format!(r#"[{names}{{"subdir":"l/"}}]"#)).bytes
        }
        ("POST", _) => {
            Answer::ok(r#" {"Response Status":"200 OK","Response Body":"","Errors":[]}"#).bytes
        }
        (_, t) => answer(method, t.split('?').next().unwrap()),
    }
}

#[test]
fn swift_operations_allocate_nothing() {
    let addr = serve(swift_answer);
    run(async {
        for (kind, etag) in [(LargeObject::Slo, false), (LargeObject::Dlo, true)] {
            let endpoint = Endpoint::parse(&format!("http://{addr}/v1/AUTH_x"), "t").unwrap();
            let auth = SwiftAuth::Token("token".into());
            let mut config = SwiftConfig::new(auth, Some(endpoint));
            config.large_object = kind;
            config.etag = etag;
            let driver = SwiftDriver::sign_in(config).unwrap();
            check_objects(&driver).await;
        }
    });
}

#[test]
fn every_payload_mode_allocates_nothing() {
    let addr = serve(answer);
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        for mode in PayloadMode::ALL {
            for algorithm in ChecksumAlgorithm::ALL {
                let mut config = config(addr);
                config.payload = *mode;
                config.checksum = Some(*algorithm);
                let mut session = open(config).await;
                let put_op = op(OpClass::Put, 200_000);
                let mut put = request(&put_op);
                put.content = Some(arena.content(0, 1, 0, 200_000));
                assert_eq!(
                    allocations(&mut session, &put).await,
                    0,
                    "{mode} {algorithm}"
                );
            }
        }
    });
}

#[test]
fn a_small_request_costs_one_send_and_one_receive() {
    const REQUESTS: u64 = 500;
    let addr = serve(answer);
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let mut session = open(config(addr)).await;
        for class in [OpClass::Get, OpClass::Put, OpClass::Head, OpClass::Delete] {
            let op = op(class, 4096);
            let mut request = request(&op);
            request.content = Some(arena.content(0, 1, 0, 4096));
            let before = session.calls().unwrap();
            for _ in 0..REQUESTS {
                session.execute(&request, &mut probe()).await.unwrap();
            }
            let after = session.calls().unwrap();
            assert_eq!(after.send - before.send, REQUESTS, "{class}");
            assert_eq!(after.setsockopt, before.setsockopt, "{class}");
            let received = after.recv - before.recv;
            // A response may arrive in two pieces when the machine is busy.
            assert!(received <= REQUESTS + REQUESTS / 20, "{class}: {received}");
        }
    });
}

#[test]
fn an_idle_session_is_small() {
    assert!(size_of::<S3Session>() <= 512, "{}", size_of::<S3Session>());
    run(async {
        let mut session = open(config(serve(answer))).await;
        let op = op(OpClass::Get, Op::UNKNOWN_SIZE);
        let request = request(&op);
        let mut probe = probe();
        let future = session.execute(&request, &mut probe);
        let size = size_of_val(&future);
        assert!(size <= 1700, "{size}");
    });
}

/// Writes the files below `dir` to the disk and drops them from the page cache.
fn evict(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            evict(&entry.path());
            continue;
        }
        let file = std::fs::File::open(entry.path()).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
}

/// The POSIX driver with every I/O engine. Operations that remove their object are counted together with the put that
/// writes it again.
#[test]
fn operations_on_files_allocate_nothing() {
    let arena = Arena::new(PayloadKind::Random, 1);
    for io in Io::ALL {
        for (layout, write, block) in [
            (FileLayout::Files, Writing::InPlace, 1 << 20),
            (FileLayout::Files, Writing::Rename, 64 << 10),
            (FileLayout::Shared, Writing::InPlace, 64 << 10),
        ] {
            let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let mut config = PosixConfig::new(dir.path());
            (config.io, config.layout) = (Some(*io), layout);
            (config.write, config.block) = (write, block);
            let Ok(driver) = PosixDriver::new(config) else {
                // No io_uring here.
                continue;
            };
            run(async {
                let mut session = driver
                    .open(WorkerId::default(), &mut probe())
                    .await
                    .unwrap();
                session.ensure_bucket("bucket").await.unwrap();
                let put_op = op(OpClass::Put, 200_000);
                let mut put = request(&put_op);
                put.key = "some/key/0";
                put.content = Some(arena.content(0, 1, 0, 200_000));
                session.execute(&put, &mut probe()).await.unwrap();
                // After a warm-up, a read that waits for the disk does not allocate either.
                let get_op = op(OpClass::Get, 200_000);
                let mut get = request(&get_op);
                get.key = put.key;
                assert_eq!(allocations(&mut session, &get).await, 0, "read {io}");
                evict(dir.path());
                let before = calls();
                session.execute(&get, &mut probe()).await.unwrap();
                assert_eq!(calls() - before, 0, "awaited read {io} {layout}");
                for class in driver.capabilities().classes {
                    let mut its_op = Op {
                        class,
                        count: 3,
                        ..put_op
                    };
                    if matches!(class, OpClass::RangeGet | OpClass::RangePut) {
                        its_op.range = Some(ByteRange {
                            offset: 10,
                            len: 100_000,
                        });
                    }
                    let mut op = Request { op: &its_op, ..put };
                    op.source = "some/key/0";
                    op.keys = Some(&Numbered);
                    let what = format!("{class} {io} {layout} {write}");
                    // Write the object again before each operation that removes it.
                    let mut again = matches!(class, OpClass::Delete | OpClass::Rename);
                    match class {
                        OpClass::MakeBucket | OpClass::DeleteBucket => continue,
                        OpClass::Copy => op.key = "some/copy",
                        // It closes a file, which must then be opened again.
                        OpClass::Sync => continue,
                        OpClass::List | OpClass::ListV1 => op.key = "some/",
                        OpClass::Append => op.key = "some/log",
                        OpClass::Rename => op.key = "some/renamed",
                        OpClass::DeleteMany => again = true,
                        _ => {}
                    }
                    if class == OpClass::RangePut {
                        op.key = "some/ranges";
                    }
                    for verify in [false, true] {
                        op.verify = verify;
                        let mut before = 0;
                        for round in 0..12 {
                            if round == 2 {
                                before = calls();
                            }
                            if again {
                                session.execute(&put, &mut probe()).await.unwrap();
                            }
                            session.execute(&op, &mut probe()).await.unwrap();
                        }
                        assert_eq!(calls() - before, 0, "{what}");
                    }
                    session.execute(&put, &mut probe()).await.unwrap();
                }
            });
        }
    }
}
