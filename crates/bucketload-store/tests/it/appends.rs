//! Appends, in every store: what readers see, what stays, who wins.

use std::sync::Barrier;

use bucketload_store::memory::OBJECT_OVERHEAD;
use bucketload_store::{
    Checksum, ChecksumAlgorithm, ChecksumKind, Commit, Condition, EtagMode, Headers,
    MetadataStorage, NullOptions, NullStore, PutOptions, Result, Store, Versioning, Written,
};

use crate::common::{content, directory, get, memory, posix, put, put_as, subjects};

fn append(
    store: &dyn Store,
    offset: u64,
    more: &[u8],
    checksums: Vec<Checksum>,
) -> Result<Written> {
    let options = PutOptions::sized(more.len() as u64);
    let (base, mut upload) = store.append("bucket", "k", offset, &options)?;
    assert_eq!(base.size, offset);
    upload.write(more)?;
    assert_eq!(upload.written(), more.len() as u64);
    upload.commit(Commit {
        checksums,
        ..Commit::default()
    })
}

fn refused(outcome: Result<Written>) -> &'static str {
    outcome.unwrap_err().code()
}

#[test]
fn the_object_grows_and_keeps_what_it_has() {
    for subject in subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        assert_eq!(refused(append(store, 0, b"x", Vec::new())), "NoSuchKey");
        let commit = Commit {
            headers: Headers {
                user: vec![("m".into(), "1".into())],
                ..Headers::default()
            },
            tags: vec![("t".into(), "1".into())],
            ..Commit::default()
        };
        let first = put_as(store, "k", b"one", commit).unwrap();
        let before = store.open("bucket", "k").unwrap();
        let sum = Checksum {
            algorithm: ChecksumAlgorithm::Crc32,
            kind: ChecksumKind::FullObject,
            value: "AAAAAA==".into(),
        };
        let second = append(store, 3, b"-two", vec![sum.clone()]).unwrap();
        assert_eq!(second.size, 7, "{}", subject.name);
        let info = store.head("bucket", "k").unwrap();
        assert_eq!((info.size, info.etag), (7, second.etag));
        assert_ne!(first.etag, second.etag);
        assert_eq!(info.parts.runs(), [(1, 3), (1, 4)]);
        assert_eq!((info.headers.user.len(), info.tags.len()), (1, 1));
        assert_eq!(info.checksums, [sum]);
        assert!(info.modified >= before.info().modified);
        for wrong in [0, 3, 8] {
            let outcome = append(store, wrong, b"x", Vec::new());
            assert_eq!(refused(outcome), "InvalidWriteOffset");
        }
        let third = append(store, 7, b"-three", Vec::new()).unwrap();
        assert_eq!(get(store, "k").unwrap(), b"one-two-three");
        // Who opened the object before sees what it was.
        assert_eq!(content(&before), b"one");
        assert_ne!(second.etag, third.etag);
        assert!(store.head("bucket", "k").unwrap().checksums.is_empty());
        // A copy has one part again.
        let object = store.open("bucket", "k").unwrap();
        store
            .copy(&object, "bucket", "copy", Commit::default())
            .unwrap();
        assert_eq!(store.head("bucket", "copy").unwrap().parts.count(), 0);
        assert_eq!(get(store, "copy").unwrap(), b"one-two-three");
        put(store, "k", b"");
        append(store, 0, b"again", Vec::new()).unwrap();
        let info = store.head("bucket", "k").unwrap();
        assert_eq!(info.parts.runs(), [(1, 5)]);
        assert_eq!(get(store, "k").unwrap(), b"again");
    }
}

#[test]
fn an_object_that_changed_meanwhile_is_not_extended() {
    for subject in subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        let change: [&dyn Fn(); 3] = [
            &|| {
                put(store, "k", b"two");
            },
            &|| {
                append(store, 3, b"-two", Vec::new()).unwrap();
            },
            &|| {
                store.delete("bucket", "k", &Condition::None).unwrap();
            },
        ];
        for (change, left) in change.iter().zip([Some("two"), Some("one-two"), None]) {
            put(store, "k", b"one");
            let options = PutOptions::sized(1);
            let (_, mut upload) = store.append("bucket", "k", 3, &options).unwrap();
            upload.write(b"x").unwrap();
            change();
            assert_eq!(
                refused(upload.commit(Commit::default())),
                "InvalidWriteOffset"
            );
            assert_eq!(get(store, "k").as_deref(), left.map(str::as_bytes));
        }
        put(store, "k", b"one");
        // Metadata that change meanwhile stay changed, and an abandoned append leaves nothing.
        let (_, mut upload) = store
            .append("bucket", "k", 3, &PutOptions::sized(1))
            .unwrap();
        upload.write(b"x").unwrap();
        store
            .set_tags("bucket", "k", vec![("t".into(), "1".into())])
            .unwrap();
        upload.commit(Commit::default()).unwrap();
        assert_eq!(store.tags("bucket", "k").unwrap().len(), 1);
        let (_, mut upload) = store
            .append("bucket", "k", 4, &PutOptions::default())
            .unwrap();
        upload.write(&[1; 100_000]).unwrap();
        drop(upload);
        assert_eq!(get(store, "k").unwrap(), b"onex");
    }
}

/// Four threads append to one object; each byte that was acknowledged is in it, in the order of the offsets.
#[test]
fn writers_at_the_same_time_lose_nothing() {
    for subject in subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        put(store, "k", b"");
        let start = Barrier::new(4);
        let mut written: Vec<(u64, u8)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u8)
                .map(|thread| {
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        let mut mine = Vec::new();
                        while mine.len() < 50 {
                            let offset = store.head("bucket", "k").unwrap().size;
                            match append(store, offset, &[thread], Vec::new()) {
                                Ok(written) => {
                                    assert_eq!(written.size, offset + 1);
                                    mine.push((offset, thread));
                                }
                                Err(error) => assert_eq!(error.code(), "InvalidWriteOffset"),
                            }
                        }
                        mine
                    })
                })
                .collect();
            let all = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap());
            all.collect()
        });
        written.sort_unstable();
        let bytes: Vec<u8> = written.iter().map(|(_, byte)| *byte).collect();
        let offsets: Vec<u64> = written.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(offsets, (0..200).collect::<Vec<_>>(), "{}", subject.name);
        assert_eq!(get(store, "k").unwrap(), bytes);
        assert_eq!(store.head("bucket", "k").unwrap().parts.count(), 200);
    }
}

#[test]
fn opaque_tags_distinguish_each_length() {
    let directory = directory();
    let store = posix(&directory, EtagMode::Opaque, MetadataStorage::Auto);
    store.create_bucket("bucket").unwrap();
    let mut tags = vec![put(&store, "k", b"one").etag];
    for offset in 3..6 {
        tags.push(append(&store, offset, b"x", Vec::new()).unwrap().etag);
        assert_eq!(
            store.head("bucket", "k").unwrap().etag,
            *tags.last().unwrap()
        );
    }
    tags.sort_unstable_by_key(|tag| tag.to_raw());
    tags.dedup();
    assert_eq!(tags.len(), 4);
    assert_eq!(get(&store, "k").unwrap(), b"onexxx");
}

#[test]
fn appended_bytes_are_charged_with_their_buffers() {
    let store = memory();
    let charged = || store.usage().unwrap().charged_bytes;
    store.create_bucket("bucket").unwrap();
    put(&store, "k", b"one");
    append(&store, 3, b"x", Vec::new()).unwrap();
    append(&store, 4, b"y", Vec::new()).unwrap();
    assert_eq!(
        charged(),
        1 + OBJECT_OVERHEAD + 3 + 2 * (1 + OBJECT_OVERHEAD)
    );
    assert_eq!(store.usage().unwrap().objects, 1);
    let (_, upload) = store
        .append("bucket", "k", 5, &PutOptions::sized(1 << 20))
        .unwrap();
    drop(upload);
    store.delete("bucket", "k", &Condition::None).unwrap();
    assert_eq!(charged(), 0);
}

#[test]
fn buckets_with_versions_have_no_appends_and_nothing_takes_all() {
    let store = memory();
    store.create_bucket("bucket").unwrap();
    put(&store, "k", b"one");
    store.set_versioning("bucket", Versioning::Enabled).unwrap();
    assert_eq!(
        refused(append(&store, 3, b"x", Vec::new())),
        "NotImplemented"
    );
    let null = NullStore::new(&NullOptions::default());
    assert_eq!(append(&null, 40, b"xy", Vec::new()).unwrap().size, 42);
}
