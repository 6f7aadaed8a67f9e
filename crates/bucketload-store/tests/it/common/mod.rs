//! Shared by the tests of the stores: the stores under test and a reference model.

pub(crate) mod model;

use bucketload_store::{
    Commit, EtagMode, ListRequest, Listing, MemoryOptions, MemoryStore, MetadataStorage, Object,
    PosixOptions, PosixStore, PutOptions, Store, Written,
};
use tempfile::TempDir;

/// A store under test, with the directory that must outlive it.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) store: Box<dyn Store>,
    pub(crate) directory: Option<TempDir>,
}

pub(crate) fn posix(directory: &TempDir, etag: EtagMode, metadata: MetadataStorage) -> PosixStore {
    PosixStore::open(PosixOptions {
        etag,
        metadata,
        min_part_bytes: 5,
        ..PosixOptions::new(directory.path())
    })
    .unwrap()
}

pub(crate) fn memory() -> MemoryStore {
    MemoryStore::new(MemoryOptions {
        min_part_bytes: 5,
        ..MemoryOptions::default()
    })
}

/// A directory for many small files, in memory if possible.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// The stores that keep objects, with MD5 tags and a minimum part size of 5 bytes.
pub(crate) fn subjects() -> Vec<Subject> {
    let mut all = vec![Subject {
        name: "memory",
        store: Box::new(memory()),
        directory: None,
    }];
    for (name, metadata) in [
        ("posix, attributes", MetadataStorage::Auto),
        ("posix, sidecars", MetadataStorage::Sidecar),
    ] {
        let directory = directory();
        let store = Box::new(posix(&directory, EtagMode::Md5, metadata));
        all.push(Subject {
            name,
            store,
            directory: Some(directory),
        });
    }
    all
}

pub(crate) fn put(store: &dyn Store, key: &str, content: &[u8]) -> Written {
    put_as(store, key, content, Commit::default()).unwrap()
}

pub(crate) fn put_as(
    store: &dyn Store,
    key: &str,
    content: &[u8],
    commit: Commit,
) -> bucketload_store::Result<Written> {
    let mut upload = store.put("bucket", key, &PutOptions::sized(content.len() as u64))?;
    upload.write(content)?;
    upload.commit(commit)
}

pub(crate) fn content(object: &Object) -> Vec<u8> {
    let mut content = vec![0; usize::try_from(object.info().size).unwrap() + 1];
    let len = object.read_at(0, &mut content).unwrap();
    content.truncate(len);
    content
}

pub(crate) fn get(store: &dyn Store, key: &str) -> Option<Vec<u8>> {
    match store.open("bucket", key) {
        Ok(object) => Some(content(&object)),
        Err(error) => {
            assert_eq!(error.code(), "NoSuchKey", "{error}");
            None
        }
    }
}

/// All pages of a listing.
pub(crate) fn pages(
    store: &dyn Store,
    prefix: &str,
    delimiter: &str,
    max_keys: usize,
) -> Vec<Listing> {
    let mut pages: Vec<Listing> = Vec::new();
    loop {
        let start_after = pages
            .last()
            .and_then(|page| page.next.clone())
            .unwrap_or_default();
        let request = ListRequest {
            prefix,
            delimiter,
            start_after: &start_after,
            max_keys,
        };
        let page = store.list("bucket", &request).unwrap();
        let last = page.next.is_none();
        pages.push(page);
        if last {
            return pages;
        }
    }
}

pub(crate) fn keys(store: &dyn Store) -> Vec<String> {
    pages(store, "", "", 1000)
        .into_iter()
        .flat_map(|page| page.objects)
        .map(|entry| entry.key)
        .collect()
}
