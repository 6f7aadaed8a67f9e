//! Threads that write, read, list and delete concurrently see only whole versions.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::model::md5;
use bucketload_store::{Commit, Condition, EtagMode, Headers, MetadataStorage, Object, Store};

/// Writes a version that is identifiable by every byte and by its metadata.
fn write(store: &dyn Store, key: &str, version: u8) {
    let content = vec![version; 1000 + 100 * usize::from(version)];
    let headers = Headers {
        content_type: Some(version.to_string()),
        // Every seventh version has metadata that do not fit into an attribute.
        user: vec![(
            "v".to_owned(),
            "x".repeat(if version.is_multiple_of(7) { 70_000 } else { 1 }),
        )],
        ..Headers::default()
    };
    crate::common::put_as(
        store,
        key,
        &content,
        Commit {
            headers,
            ..Commit::default()
        },
    )
    .unwrap();
}

fn check(object: &Object) {
    let content = crate::common::content(object);
    let version = content[0];
    assert_eq!(content, vec![version; 1000 + 100 * usize::from(version)]);
    assert_eq!(
        object.info().headers.content_type.as_deref(),
        Some(&*version.to_string())
    );
    assert_eq!(object.info().etag, md5(&content));
}

#[test]
fn readers_see_one_whole_version_while_writers_overwrite() {
    for subject in crate::common::subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        write(store, "k", 1);
        let reading = AtomicUsize::new(2);
        std::thread::scope(|scope| {
            for writer in 0..2_u8 {
                let reading = &reading;
                scope.spawn(move || {
                    let mut round = 0_u8;
                    while reading.load(Ordering::Relaxed) > 0 {
                        write(store, "k", 1 + (writer + 2 * (round % 100)) % 200);
                        round = round.wrapping_add(1);
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let object = store.open("bucket", "k").unwrap();
                        let head = store.head("bucket", "k").unwrap();
                        assert!(head.size >= 1000);
                        check(&object);
                    }
                    reading.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        check(&store.open("bucket", "k").unwrap());
    }
}

#[test]
fn an_open_object_outlives_its_key() {
    for subject in crate::common::subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        write(store, "k", 3);
        let overwritten = store.open("bucket", "k").unwrap();
        write(store, "k", 4);
        let deleted = store.open("bucket", "k").unwrap();
        store.delete("bucket", "k", &Condition::None).unwrap();
        check(&overwritten);
        check(&deleted);
        assert_eq!(
            (
                crate::common::content(&overwritten)[0],
                crate::common::content(&deleted)[0]
            ),
            (3, 4)
        );
    }
}

#[test]
fn a_key_and_keys_below_it_come_and_go_concurrently() {
    for subject in crate::common::subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        let start = Barrier::new(3);
        std::thread::scope(|scope| {
            for key in ["a", "a/b", "a/b/c"] {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    for version in 1..150 {
                        write(store, key, version);
                        check(&store.open("bucket", key).unwrap());
                        assert!(
                            crate::common::keys(store)
                                .iter()
                                .any(|listed| listed == key)
                        );
                        assert!(store.delete("bucket", key, &Condition::None).unwrap());
                        assert_eq!(crate::common::get(store, key), None);
                    }
                });
            }
        });
        assert!(crate::common::keys(store).is_empty());
        store.delete_bucket("bucket").unwrap();
    }
}

#[test]
fn one_of_many_creators_wins() {
    for subject in crate::common::subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        for round in 0..50 {
            let key = format!("dir{}/k{round}", round % 2);
            let winners = AtomicUsize::new(0);
            let start = Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        start.wait();
                        let commit = Commit {
                            condition: Condition::Absent,
                            ..Commit::default()
                        };
                        match crate::common::put_as(store, &key, b"x", commit) {
                            Ok(_) => {
                                winners.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => assert_eq!(error.code(), "PreconditionFailed"),
                        }
                    });
                }
            });
            assert_eq!(winners.into_inner(), 1, "{}", subject.name);
        }
    }
}

#[test]
fn compare_and_swap_loses_no_update() {
    for subject in crate::common::subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        crate::common::put(store, "counter", b"0");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut successes = 0;
                    while successes < 30 {
                        let object = store.open("bucket", "counter").unwrap();
                        let text = String::from_utf8(crate::common::content(&object)).unwrap();
                        let next = text.parse::<u32>().unwrap() + 1;
                        let condition = Condition::Match(vec![object.info().etag]);
                        let commit = Commit {
                            condition,
                            ..Commit::default()
                        };
                        match crate::common::put_as(
                            store,
                            "counter",
                            next.to_string().as_bytes(),
                            commit,
                        ) {
                            Ok(_) => successes += 1,
                            Err(error) => assert_eq!(error.code(), "PreconditionFailed"),
                        }
                    }
                });
            }
        });
        assert_eq!(
            crate::common::get(store, "counter").unwrap(),
            b"90",
            "{}",
            subject.name
        );
    }
}

#[test]
fn two_sessions_of_one_directory_share_its_objects() {
    let directory = crate::common::directory();
    let stores =
        [(); 2].map(|()| crate::common::posix(&directory, EtagMode::Opaque, MetadataStorage::Auto));
    stores[0].create_bucket("bucket").unwrap();
    std::thread::scope(|scope| {
        for (store, mine) in stores.iter().zip(0..) {
            scope.spawn(move || {
                for i in 0..100 {
                    // Each session locks only its own threads; the kernel separates the sessions.
                    crate::common::put(store, "a", b"shared");
                    let key = format!("a/{mine}/{i}");
                    crate::common::put(store, &key, b"own");
                    assert_eq!(crate::common::get(store, &key).unwrap(), b"own");
                    if i % 2 == 0 {
                        assert!(store.delete("bucket", &key, &Condition::None).unwrap());
                    }
                }
            });
        }
    });
    assert_eq!(crate::common::keys(&stores[0]).len(), 101);
    assert_eq!(
        crate::common::keys(&stores[0]),
        crate::common::keys(&stores[1])
    );
}

#[test]
fn two_sessions_make_room_below_the_same_object() {
    let directory = crate::common::directory();
    let stores =
        [(); 2].map(|()| crate::common::posix(&directory, EtagMode::Opaque, MetadataStorage::Auto));
    stores[0].create_bucket("bucket").unwrap();
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for (store, mine) in stores.iter().zip(0..) {
            let start = &start;
            scope.spawn(move || {
                for i in 0..200 {
                    let key = format!("k{i}");
                    crate::common::put(store, &key, b"above");
                    start.wait();
                    let below = format!("{key}/{mine}");
                    crate::common::put(store, &below, b"below");
                    assert_eq!(crate::common::get(store, &below).unwrap(), b"below");
                    assert_eq!(crate::common::get(store, &key).unwrap(), b"above");
                }
            });
        }
    });
    assert_eq!(crate::common::keys(&stores[0]).len(), 600);
}
