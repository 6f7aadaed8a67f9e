//! The byte limit of the memory store: bytes are charged and released exactly.

use bucketload_store::memory::OBJECT_OVERHEAD;
use bucketload_store::{
    Commit, CompletedPart, Condition, MemoryOptions, MemoryStore, MultipartOptions, PutOptions,
    Store, Usage,
};
use proptest::prelude::*;

fn limited(limit_bytes: u64) -> MemoryStore {
    let store = MemoryStore::new(MemoryOptions {
        limit_bytes,
        min_part_bytes: 1,
        ..Default::default()
    });
    store.create_bucket("bucket").unwrap();
    store
}

fn charged(store: &MemoryStore) -> u64 {
    store.usage().unwrap().charged_bytes
}

#[test]
fn an_object_is_charged_for_content_key_and_overhead() {
    let store = limited(u64::MAX);
    crate::common::put(&store, "key", &[7; 1000]);
    assert_eq!(charged(&store), 1000 + 3 + OBJECT_OVERHEAD);
    crate::common::put(&store, "key", &[7; 10]);
    assert_eq!(charged(&store), 10 + 3 + OBJECT_OVERHEAD);
    // A copy shares the bytes.
    let object = store.open("bucket", "key").unwrap();
    store
        .copy(&object, "bucket", "copy", Commit::default())
        .unwrap();
    assert_eq!(charged(&store), 10 + 3 + 4 + 2 * OBJECT_OVERHEAD);
    for key in ["key", "copy"] {
        store.delete("bucket", key, &Condition::None).unwrap();
    }
    // The reader still holds the first version.
    assert_eq!(charged(&store), 10 + 3 + OBJECT_OVERHEAD);
    drop(object);
    assert_eq!(store.usage().unwrap(), Usage::default());
}

#[test]
fn the_limit_refuses_only_what_does_not_fit() {
    let limit = 10_000 + 2 * (OBJECT_OVERHEAD + 1);
    let store = limited(limit);
    crate::common::put(&store, "a", &[0; 6_000]);
    // Refused up front if the size is announced, otherwise midway.
    let announced = store.put("bucket", "b", &PutOptions::sized(6_000));
    assert_eq!(announced.err().unwrap().code(), "InsufficientStorage");
    let mut growing = store.put("bucket", "b", &PutOptions::default()).unwrap();
    let refused = (0..6)
        .find_map(|_| growing.write(&[0; 1_000]).err())
        .unwrap();
    assert_eq!(
        (refused.code(), refused.http_status()),
        ("InsufficientStorage", 507)
    );
    drop(growing);
    assert_eq!(crate::common::get(&store, "a").unwrap().len(), 6_000);
    crate::common::put(&store, "b", &[0; 4_000]);
    assert_eq!(charged(&store), limit);
    assert!(store.put("bucket", "c", &PutOptions::sized(1)).is_err());
    assert!(
        store
            .create_multipart("bucket", "c", MultipartOptions::default())
            .is_err()
    );
    store.delete("bucket", "a", &Condition::None).unwrap();
    crate::common::put(&store, "a", &[0; 6_000]);
}

#[test]
fn aborted_and_failed_uploads_release_everything() {
    let store = limited(u64::MAX);
    let mut upload = store.put("bucket", "k", &PutOptions::default()).unwrap();
    upload.write(&[1; 3_000_000]).unwrap();
    assert_eq!(charged(&store), 3_000_000);
    drop(upload);
    assert_eq!(charged(&store), 0);

    let options = PutOptions {
        size: Some(3),
        content_md5: Some([0; 16]),
    };
    let mut upload = store.put("bucket", "k", &options).unwrap();
    upload.write(b"abc").unwrap();
    assert_eq!(
        upload.commit(Commit::default()).unwrap_err().code(),
        "BadDigest"
    );

    let condition = Condition::Present;
    let commit = Commit {
        condition,
        ..Commit::default()
    };
    assert!(crate::common::put_as(&store, "k", b"abc", commit).is_err());

    let id = store
        .create_multipart("bucket", "k", MultipartOptions::default())
        .unwrap();
    for content in [[1; 500].as_slice(), &[2; 700]] {
        let mut part = store
            .upload_part("bucket", "k", &id, 1, &PutOptions::default())
            .unwrap();
        part.write(content).unwrap();
        part.commit(Vec::new()).unwrap();
    }
    assert_eq!(charged(&store), 700 + 1 + 2 * OBJECT_OVERHEAD);
    let open = store
        .upload_part("bucket", "k", &id, 2, &PutOptions::sized(100))
        .unwrap();
    store.abort_multipart("bucket", "k", &id).unwrap();
    let mut open = open;
    open.write(&[3; 100]).unwrap();
    assert_eq!(open.commit(Vec::new()).unwrap_err().code(), "NoSuchUpload");
    assert_eq!(store.usage().unwrap(), Usage::default());

    store
        .create_multipart("bucket", "k", MultipartOptions::default())
        .unwrap();
    store.delete_bucket("bucket").unwrap();
    assert_eq!(store.usage().unwrap(), Usage::default());
}

#[test]
fn a_write_to_a_concurrently_deleted_bucket_fails() {
    for subject in crate::common::subjects() {
        let store = &*subject.store;
        store.create_bucket("bucket").unwrap();
        for key in ["k", "dir/k"] {
            let upload = store.put("bucket", key, &PutOptions::sized(0)).unwrap();
            store.delete_bucket("bucket").unwrap();
            let error = upload.commit(Commit::default()).unwrap_err();
            assert_eq!(error.code(), "NoSuchBucket", "{}", subject.name);
            store.create_bucket("bucket").unwrap();
        }
        assert!(crate::common::keys(store).is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Content with sizes around the buffer boundaries, written in pieces of various sizes, read back
    /// in ranges, and charged to the byte.
    #[test]
    fn pieces_of_any_size_give_the_same_object(
        size in prop_oneof![0..5000_usize, (1_usize << 20) - 2..(1 << 20) + 3, (2_usize << 20) - 1..(2 << 20) + 2],
        piece in prop_oneof![1000..70_000_usize, Just(1 << 20), Just(3 << 20)],
        announced: bool,
        offset in 0..3_000_000_u64,
    ) {
        let content: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        let store = limited(u64::MAX);
        let options = PutOptions { size: announced.then_some(size as u64), content_md5: None };
        let mut upload = store.put("bucket", "k", &options).unwrap();
        for data in content.chunks(piece) {
            upload.write(data).unwrap();
        }
        prop_assert_eq!(upload.written(), size as u64);
        upload.commit(Commit::default()).unwrap();
        prop_assert_eq!(charged(&store), size as u64 + 1 + OBJECT_OVERHEAD);
        let object = store.open("bucket", "k").unwrap();
        prop_assert!(crate::common::content(&object) == content);
        let rest = content.get(offset as usize..).unwrap_or_default();
        match object.chunk(offset) {
            Some(chunk) => prop_assert!(!chunk.is_empty() && rest.starts_with(&chunk)),
            None => prop_assert!(rest.is_empty()),
        }
        // A part copied from a range across buffers shares the bytes.
        if size > 2 {
            let id = store.create_multipart("bucket", "part", MultipartOptions::default()).unwrap();
            let range = 1..size as u64 - 1;
            store.copy_part(&object, range, "bucket", "part", &id, 1).unwrap();
            let named = [CompletedPart { number: 1, ..CompletedPart::default() }];
            store
                .complete_multipart("bucket", "part", &id, &named, Vec::new(), &Condition::None)
                .unwrap();
            prop_assert!(crate::common::get(&store, "part").unwrap() == content[1..size - 1]);
            prop_assert_eq!(charged(&store), size as u64 + 5 + 2 * OBJECT_OVERHEAD);
        }
    }
}
