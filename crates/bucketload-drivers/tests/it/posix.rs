//! The file system driver: the suite with every engine and with the options that change its path, refusals,
//! detection of wrong files, and clean-up.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{WORKER, clock, probe, run, suite_passes};
use bucketload_core::driver::{Admin, Driver, Session};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{ByteRange, Op, OpClass, Request};
use bucketload_core::payload::{Arena, Content, PayloadKind};
use bucketload_drivers::conformance::{Differential, Quirks};
use bucketload_local::posix::{
    Cache, Fsync, Io, Layout, PosixConfig, PosixDriver, PosixSession, Write,
};

/// A directory on a file system that supports O_DIRECT, unlike possibly the system's temporary directory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Whether the tests' directory supports O_DIRECT; a memory file system may not.
fn takes_o_direct() -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let dir = directory();
    let mut options = std::fs::OpenOptions::new();
    options
        .write(true)
        .create(true)
        .custom_flags(libc::O_DIRECT);
    options.open(dir.path().join("probe")).is_ok()
}

const fn op(class: OpClass, size: u64) -> Op {
    let mut op = Op::new(class);
    op.size = size;
    op
}

const fn request<'a>(op: &'a Op, key: &'a str) -> Request<'a> {
    Request::new(op, "bucket", key)
}

/// A read of a part of the object of `op`.
const fn part_of(op: Op, offset: u64, len: u64) -> Op {
    Op {
        class: OpClass::RangeGet,
        range: Some(ByteRange { offset, len }),
        ..op
    }
}

fn engines() -> Vec<Io> {
    let ring = |io: &Io| {
        let mut config = PosixConfig::new("/");
        config.io = Some(*io);
        PosixDriver::new(config).is_ok()
    };
    Io::ALL.iter().copied().filter(ring).collect()
}

fn driver(root: &Path, io: Io, change: impl FnOnce(&mut PosixConfig)) -> PosixDriver {
    let mut config = PosixConfig::new(root);
    config.io = Some(io);
    change(&mut config);
    PosixDriver::new(config).unwrap()
}

async fn open(driver: &PosixDriver) -> PosixSession {
    driver.open(WORKER, &mut probe()).await.unwrap()
}

fn passes(change: impl Fn(&mut PosixConfig) + Copy) {
    for io in engines() {
        let dir = directory();
        let driver = driver(dir.path(), io, change);
        let quirks = Quirks::of("posix").unwrap();
        run(suite_passes(&driver, quirks, io.name()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{io}");
    }
}

/// Ranges in any order produce the same file as one write, reads of a file that stays open see them, and a
/// wrong byte is detected.
#[test]
fn ranges_make_a_file_and_sync_closes_it() {
    const SIZE: u64 = 3 * 47_008;
    for io in engines() {
        let dir = directory();
        let driver = driver(dir.path(), io, |_| {});
        run(async {
            let mut session = open(&driver).await;
            session.ensure_bucket("bucket").await.unwrap();
            let arena = Arena::new(PayloadKind::Random, 3);
            let content = arena.content(0, 5, 0, SIZE);
            let part = |class, place: u64| Op {
                key: 5,
                count: 1,
                range: Some(ByteRange {
                    offset: place * 47_008,
                    len: 47_008,
                }),
                ..op(class, SIZE)
            };
            fn with<'a>(op: &'a Op, content: Content<'a>) -> Request<'a> {
                let mut request = request(op, "a/file");
                request.content = Some(content);
                request.verify = op.class == OpClass::RangeGet;
                request
            }
            for place in [2, 0, 1] {
                let op = part(OpClass::RangePut, place);
                let put = with(&op, content);
                let done = session.execute(&put, &mut probe()).await.unwrap();
                assert_eq!(done.bytes, 47_008, "{io}");
            }
            let sync_op = op(OpClass::Sync, 0);
            let sync = request(&sync_op, "a/file");
            session.execute(&sync, &mut probe()).await.unwrap();
            let path = dir.path().join("bucket/a/file");
            let mut wanted = vec![0; SIZE as usize];
            content.fill(0, &mut wanted);
            assert!(std::fs::read(&path).unwrap() == wanted, "{io}");
            for place in [1, 2] {
                let op = part(OpClass::RangeGet, place);
                let get = with(&op, content);
                let done = session.execute(&get, &mut probe()).await.unwrap();
                assert_eq!(done.bytes, 47_008, "{io}");
            }
            wanted[50_000] ^= 1;
            std::fs::write(&path, &wanted).unwrap();
            let op = part(OpClass::RangeGet, 1);
            let get = with(&op, content);
            let wrong = session.execute(&get, &mut probe()).await.unwrap_err();
            assert_eq!(wrong.kind, ErrorKind::Corrupt, "{io}");
            assert!(wrong.detail.contains("50000"), "{}", wrong.detail);
        });
    }
}

#[test]
fn the_suite_passes_with_every_engine() {
    passes(|_| {});
}

#[test]
fn the_suite_passes_with_o_direct_and_cold_pages() {
    passes(|config| {
        config.direct = takes_o_direct();
        config.cache = Cache::Drop;
    });
}

#[test]
fn the_suite_passes_with_renames_syncs_and_small_blocks() {
    passes(|config| {
        config.write = Write::Rename;
        config.fsync = Fsync::Close;
        config.block = 64 << 10;
        config.threads = 1;
    });
}

#[test]
fn a_thousand_random_operations_agree_with_the_model() {
    for (seed, io) in (4..).zip(engines()) {
        for write in [Write::InPlace, Write::Rename] {
            let dir = directory();
            let driver = driver(dir.path(), io, |c| c.write = write);
            let test = Differential {
                bucket: "differential".to_owned(),
                seed,
                operations: 1000,
                quirks: Quirks::of("posix").unwrap(),
                clock,
            };
            let verdict = run(test.run(&driver)).unwrap();
            assert_eq!(verdict.different, 0, "{io}: {:#?}", verdict.differences);
            let least = verdict.performed.values().min();
            assert!(least.is_some_and(|n| *n >= 20), "{:?}", verdict.performed);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn every_refused_key_leaves_nothing_behind() {
    let dir = directory();
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let driver = driver(dir.path(), Io::Threads, |_| {});
        let mut session = open(&driver).await;
        session.ensure_bucket("bucket").await.unwrap();
        for key in ["", "/a", "a/", "a//b", "../a", "a/../../b", "./a", "a\0b"] {
            for class in [OpClass::Put, OpClass::Get, OpClass::Delete, OpClass::Touch] {
                let op = op(class, 3);
                let mut request = request(&op, key);
                request.content = Some(arena.content(0, 0, 0, 3));
                let error = session.execute(&request, &mut probe()).await.unwrap_err();
                assert_eq!(error.kind, ErrorKind::Rejected, "{class} {key:?}: {error}");
            }
        }
        let op = op(OpClass::Put, 3);
        let mut put = request(&op, "k");
        put.content = Some(arena.content(0, 0, 0, 3));
        put.bucket = "../bucket";
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected);
        // A put does not create a bucket.
        put.bucket = "other";
        put.key = "a/b/c";
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(
            std::fs::read_dir(dir.path().join("bucket"))
                .unwrap()
                .count(),
            0
        );
    });
}

#[test]
fn unusable_roots_are_explained() {
    let dir = directory();
    let file = dir.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    run(async {
        for (root, kind) in [
            (dir.path().join("absent"), ErrorKind::NotFound),
            (file, ErrorKind::Conflict),
        ] {
            let driver = driver(&root, Io::Sync, |_| {});
            let error = driver.open(WORKER, &mut probe()).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.detail.contains(root.to_str().unwrap()), "{error}");
        }
    });
    assert!(PosixDriver::new(PosixConfig::new("relative")).is_err());
}

/// Skipped for root, who has every permission.
#[test]
fn denied_permission_is_an_auth_error() {
    let dir = directory();
    let locked = dir.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(locked.join("probe"), b"").is_ok() {
        return;
    }
    run(async {
        let driver = driver(&locked, Io::Sync, |_| {});
        let error = open(&driver).await.ensure_bucket("b").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth, "{error}");
    });
}

#[test]
fn symbolic_links_are_not_followed_out_of_the_root() {
    // The link's target is a device that is always full.
    let dir = directory();
    std::fs::create_dir(dir.path().join("bucket")).unwrap();
    let link = dir.path().join("bucket/full");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let driver = driver(dir.path(), Io::Sync, |_| {});
        let mut session = open(&driver).await;
        let put_op = op(OpClass::Put, 5000);
        let mut put = request(&put_op, "full");
        put.content = Some(arena.content(0, 0, 0, 5000));
        // The driver never follows symbolic links.
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
        let get_op = op(OpClass::Get, 5000);
        let get = request(&get_op, "full");
        let error = session.execute(&get, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    });
}

#[test]
fn a_failed_write_removes_its_own_file() {
    let dir = directory();
    std::fs::create_dir_all(dir.path().join("bucket/taken")).unwrap();
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        for io in engines() {
            let driver = driver(dir.path(), io, |c| c.write = Write::Rename);
            let mut session = open(&driver).await;
            let put_op = op(OpClass::Put, 3_000_000);
            let mut put = request(&put_op, "taken");
            put.content = Some(arena.content(0, 0, 0, 3_000_000));
            let error = session.execute(&put, &mut probe()).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Conflict, "{io}: {error}");
            let names: Vec<_> = std::fs::read_dir(dir.path().join("bucket"))
                .unwrap()
                .collect();
            assert_eq!(names.len(), 1, "{io}: {names:?}");
        }
    });
}

#[test]
fn clean_up_removes_only_the_drivers_own_files() {
    let dir = directory();
    let bucket = dir.path().join("bucket");
    for path in ["run/data/deep/er", "run/empty/empty", "foreign/empty"] {
        std::fs::create_dir_all(bucket.join(path)).unwrap();
    }
    for path in [
        "run/data/.bucketload-posix-tmp-1-2",
        "run/data/deep/.bucketload-posix-shared-0-0",
        "run/data/kept",
        "foreign/.bucketload-posix-tmp-1-2",
    ] {
        std::fs::write(bucket.join(path), b"x").unwrap();
    }
    run(async {
        let driver = driver(dir.path(), Io::Threads, |_| {});
        let mut session = open(&driver).await;
        assert_eq!(session.abort_uploads("bucket", "run/").await.unwrap(), 2);
        assert_eq!(
            session.abort_uploads("bucket", "no/such/").await.unwrap(),
            0
        );
        assert!(bucket.join("run/data/kept").exists());
        assert!(!bucket.join("run/data/deep").exists() && !bucket.join("run/empty").exists());
        assert!(bucket.join("foreign/empty").exists());
        assert!(bucket.join("foreign/.bucketload-posix-tmp-1-2").exists());
        // A bucket with an object in it stays as it is.
        let error = session.delete_bucket("bucket").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(bucket.join("foreign/empty").exists());
        // Deleting the last object removes its directory, and the parents that become empty.
        session
            .delete_keys("bucket", &["run/data/kept".to_owned()])
            .await
            .unwrap();
        assert!(!bucket.join("run").exists());
        session.delete_bucket("bucket").await.unwrap();
        assert!(!bucket.exists());
    });
}

#[test]
fn wrong_lengths_are_detected() {
    let dir = directory();
    std::fs::create_dir(dir.path().join("bucket")).unwrap();
    let path = dir.path().join("bucket/k");
    run(async {
        for io in engines() {
            for direct in [false, takes_o_direct()] {
                let driver = driver(dir.path(), io, |c| c.direct = direct);
                let mut session = open(&driver).await;
                for size in [0u64, 1, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 3_000_000] {
                    for (there, fits) in [
                        (size, true),
                        (size + 1, false),
                        (size.saturating_sub(1), size == 0),
                    ] {
                        std::fs::write(&path, vec![1; there as usize]).unwrap();
                        let get_op = op(OpClass::Get, size);
                        let get = request(&get_op, "k");
                        let got = session.execute(&get, &mut probe()).await;
                        let what = format!("{io} direct {direct}: {there} for {size}: {got:?}");
                        match got {
                            Ok(done) => assert!(fits && done.bytes == size, "{what}"),
                            Err(error) => {
                                assert!(!fits && error.kind == ErrorKind::Corrupt, "{what}");
                            }
                        }
                    }
                }
            }
        }
    });
}

/// Many sessions on one thread, several answers at a time, abandoned operations, and every byte verified.
#[test]
fn sessions_share_an_engine() {
    let dir = directory();
    let arena = Arena::new(PayloadKind::Random, 1);
    let (size, count) = (300_000u64, 24u64);
    for io in engines() {
        for (direct, write) in [(takes_o_direct(), Write::InPlace), (false, Write::Rename)] {
            let driver = driver(dir.path(), io, |c| {
                c.direct = direct;
                c.write = write;
                c.block = 64 << 10;
                c.threads = 4;
            });
            run(async {
                let mut sessions = Vec::new();
                for _ in 0..count {
                    sessions.push(open(&driver).await);
                }
                sessions[0].ensure_bucket("bucket").await.unwrap();
                let work = sessions.into_iter().enumerate().map(|(i, mut session)| {
                    let arena = &arena;
                    async move {
                        let key = format!("{}/k{i}", i % 5);
                        for round in 0..4 {
                            let content = arena.content(0, i as u64, round, size);
                            let put_op = op(OpClass::Put, size);
                            let mut put = request(&put_op, &key);
                            put.content = Some(content);
                            session.execute(&put, &mut probe()).await.unwrap();
                            let get_op = op(OpClass::Get, size);
                            let mut get = request(&get_op, &key);
                            get.content = Some(content);
                            get.verify = true;
                            if i % 3 == 0 {
                                // Abandoned after its first step was handed over.
                                let mut given_up = probe();
                                let mut once = std::pin::pin!(session.execute(&get, &mut given_up));
                                let _ = std::future::poll_fn(|cx| {
                                    std::task::Poll::Ready(once.as_mut().poll(cx).is_ready())
                                })
                                .await;
                            }
                            let done = session.execute(&get, &mut probe()).await.unwrap();
                            assert_eq!(done.bytes, size);
                            let part = part_of(get_op, 70_001, 130_001);
                            get.op = &part;
                            let done = session.execute(&get, &mut probe()).await.unwrap();
                            assert_eq!(done.bytes, 130_001);
                        }
                    }
                });
                join_all(work.collect()).await;
            });
        }
    }
}

/// Polls all futures in turn until every one has ended.
async fn join_all<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut futures: Vec<_> = futures.into_iter().map(|f| Some(Box::pin(f))).collect();
    std::future::poll_fn(|cx| {
        for slot in &mut futures {
            if let Some(future) = slot
                && future.as_mut().poll(cx).is_ready()
            {
                *slot = None;
            }
        }
        match futures.iter().all(Option::is_none) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}

#[test]
fn objects_share_one_file() {
    let arena = Arena::new(PayloadKind::Random, 1);
    let size = 12_289;
    for io in engines() {
        for direct in [false, takes_o_direct()] {
            let dir = directory();
            let driver = driver(dir.path(), io, |c| {
                c.layout = Layout::Shared;
                c.slot = 16 << 10;
                c.direct = direct;
            });
            run(async {
                let mut session = open(&driver).await;
                session.ensure_bucket("bucket").await.unwrap();
                let (a, b) = (arena.content(0, 1, 0, size), arena.content(0, 2, 0, size));
                let numbered = |class, key| Op {
                    key,
                    ..op(class, size)
                };
                for (index, content) in [(1, a), (2, b)] {
                    let name = format!("run/data/{index:06}");
                    let put_op = numbered(OpClass::Put, index);
                    let mut put = request(&put_op, &name);
                    put.content = Some(content);
                    session.execute(&put, &mut probe()).await.unwrap();
                    let get_op = numbered(OpClass::Get, index);
                    let mut get = request(&get_op, &name);
                    get.content = Some(content);
                    get.verify = true;
                    session.execute(&get, &mut probe()).await.unwrap();
                    let part = part_of(get_op, 5000, 4096);
                    get.op = &part;
                    session.execute(&get, &mut probe()).await.unwrap();
                }
                let wrong_op = numbered(OpClass::Get, 1);
                let mut wrong = request(&wrong_op, "run/data/000001");
                wrong.content = Some(b);
                wrong.verify = true;
                let error = session.execute(&wrong, &mut probe()).await.unwrap_err();
                assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                use ErrorKind::{NotFound, Rejected, Unsupported};
                for (class, key, size, kind) in [
                    (OpClass::Get, "run/data/1", Op::UNKNOWN_SIZE, Rejected),
                    (OpClass::Get, "run/data/1", 16_385, Rejected),
                    (OpClass::Get, "elsewhere/1", 5, NotFound),
                    (OpClass::Head, "run/data/1", 5, Unsupported),
                ] {
                    let op = op(class, size);
                    let refused = session.execute(&request(&op, key), &mut probe()).await;
                    let error = refused.unwrap_err();
                    assert_eq!(error.kind, kind, "{error}");
                }
                let files = std::fs::read_dir(dir.path().join("bucket/run/data")).unwrap();
                let files: Vec<_> = files
                    .map(|file| file.unwrap().metadata().unwrap().len())
                    .collect();
                let end = 2 * (16 << 10) + if direct { 16 << 10 } else { size };
                assert_eq!(files, [end], "{io} {direct}");
                // The shared file is not an object, and clean-up removes it.
                let keys = session.list_keys("bucket", "", None).await.unwrap().keys;
                assert_eq!(keys, Vec::<String>::new());
                assert_eq!(
                    session.abort_uploads("bucket", "run/data/").await.unwrap(),
                    1
                );
                session.delete_bucket("bucket").await.unwrap();
            });
        }
    }
}

#[test]
fn probes_record_the_times_of_calls() {
    let dir = directory();
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        for io in engines() {
            let driver = driver(dir.path(), io, |_| {});
            let mut session = open(&driver).await;
            session.ensure_bucket("bucket").await.unwrap();
            let put_op = op(OpClass::Put, 3_000_000);
            let mut put = request(&put_op, "k");
            put.content = Some(arena.content(0, 0, 0, 3_000_000));
            let (get, head) = (op(OpClass::Get, 3_000_000), op(OpClass::Head, 0));
            for request in [put, request(&get, "k"), request(&head, "k")] {
                let mut probe = probe();
                let before = probe.now();
                session.execute(&request, &mut probe).await.unwrap();
                let marks = [
                    before,
                    probe.started_ns(),
                    probe.first_byte_ns(),
                    probe.done_ns(),
                    probe.now(),
                ];
                assert!(marks.is_sorted(), "{io} {}: {marks:?}", request.op.class);
                assert_eq!(probe.requests(), 1);
            }
            let in_parts = Op {
                class: OpClass::MultipartPut,
                count: 1_000_000,
                ..put_op
            };
            let parts = Request {
                op: &in_parts,
                ..put
            };
            let mut probe = probe();
            let done = session.execute(&parts, &mut probe).await.unwrap();
            assert_eq!((done.items, probe.requests()), (3, 5));
        }
    });
}
