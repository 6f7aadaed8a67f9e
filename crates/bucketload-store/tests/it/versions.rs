//! Versions in the memory store: accounting, and writers and readers at the same time.

use bucketload_store::{
    Condition, ListVersionsRequest, MemoryOptions, MemoryStore, Store, Usage, VersionId, Versioning,
};

fn versioned() -> MemoryStore {
    let store = MemoryStore::new(MemoryOptions::default());
    store.create_bucket("bucket").unwrap();
    store.set_versioning("bucket", Versioning::Enabled).unwrap();
    store
}

fn ids(store: &MemoryStore) -> Vec<(String, VersionId, bool)> {
    let mut request = ListVersionsRequest::default();
    request.keys.max_keys = 1_000_000;
    let page = store.list_versions("bucket", &request).unwrap();
    let all = page.versions.into_iter();
    all.map(|entry| (entry.entry.key, entry.version, entry.marker))
        .collect()
}

#[test]
fn every_version_and_marker_is_charged_until_it_is_removed() {
    let store = versioned();
    for content in [&[7; 1000][..], &[8; 500]] {
        crate::common::put(&store, "k", content);
    }
    store.delete("bucket", "k", &Condition::None).unwrap();
    store
        .set_document("bucket", "policy", Some(vec![1; 100]))
        .unwrap();
    let usage = store.usage().unwrap();
    let overhead = bucketload_store::memory::OBJECT_OVERHEAD + 1;
    assert_eq!(
        (usage.objects, usage.charged_bytes),
        (2, 1500 + 3 * overhead + 100)
    );
    assert!(store.delete_bucket("bucket").is_err());
    for (key, id, _) in ids(&store) {
        store
            .remove("bucket", &key, Some(id), &Condition::None, &|_| Ok(()))
            .unwrap();
    }
    store.set_document("bucket", "policy", None).unwrap();
    assert_eq!(store.usage().unwrap(), Usage::default());
    store.delete_bucket("bucket").unwrap();
}

#[test]
fn versions_off_cannot_come_back_and_a_guard_keeps_a_version() {
    let store = versioned();
    assert!(store.set_versioning("bucket", Versioning::Off).is_err());
    let id = crate::common::put(&store, "k", b"v").version.unwrap();
    let refuse = |_: &bucketload_store::ObjectInfo| Err(bucketload_store::StoreError::Locked);
    let removed = store.remove("bucket", "k", Some(id), &Condition::None, &refuse);
    assert_eq!(removed.unwrap_err().code(), "AccessDenied");
    let hidden = store.remove("bucket", "k", None, &Condition::None, &refuse);
    assert!(hidden.unwrap().marker, "a marker removes no version");
    assert!(store.open_version("bucket", "k", id).is_ok());
}

#[test]
fn no_version_is_lost_among_writers() {
    let store = versioned();
    let (writers, writes) = (4, 200);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let store = &store;
            scope.spawn(move || {
                for write in 0..writes {
                    crate::common::put(store, "k", &[writer; 16]);
                    if write % 10 == 0 {
                        store.delete("bucket", "k", &Condition::None).unwrap();
                    }
                }
            });
        }
    });
    let all = ids(&store);
    let markers = all.iter().filter(|(.., marker)| *marker).count();
    assert_eq!(markers, usize::from(writers) * writes / 10);
    assert_eq!(all.len(), usize::from(writers) * writes + markers);
    // The newest first, and what a read finds is the newest.
    assert!(all.windows(2).all(|pair| pair[0].1 > pair[1].1));
    let newest = store.head("bucket", "k").ok();
    let newest = newest.and_then(|info| info.headers.version());
    assert_eq!(newest, (!all[0].2).then_some(all[0].1));
}
