//! A POSIX store in a directory that other programs use and abuse.

use std::os::unix::fs::symlink;

use bucketload_store::{
    Commit, Condition, EtagMode, Headers, ListRequest, MetadataStorage, PosixOptions, PosixStore,
    PutOptions, Store, StoreError,
};

fn store(directory: &tempfile::TempDir) -> PosixStore {
    let store = crate::common::posix(directory, EtagMode::Md5, MetadataStorage::Auto);
    store.create_bucket("bucket").unwrap();
    store
}

#[test]
fn ordinary_keys_are_ordinary_files() {
    let directory = crate::common::directory();
    let store = store(&directory);
    let root = directory.path().join("bucket");
    crate::common::put(&store, "dir/file.txt", b"content");
    assert_eq!(
        std::fs::read(root.join("dir/file.txt")).unwrap(),
        b"content"
    );
    // Ordinary files are objects too, with a tag marked as not being an MD5.
    std::fs::create_dir(root.join("other")).unwrap();
    std::fs::write(root.join("other/file"), "foreign").unwrap();
    let object = store.open("bucket", "other/file").unwrap();
    assert_eq!(crate::common::content(&object), b"foreign");
    assert_eq!(object.info().etag.md5(), None);
    assert_eq!(crate::common::keys(&store), ["dir/file.txt", "other/file"]);
    // A directory with a valid bucket name is a bucket.
    std::fs::create_dir(directory.path().join("made-by-hand")).unwrap();
    let names: Vec<_> = store
        .list_buckets()
        .unwrap()
        .into_iter()
        .map(|b| b.name)
        .collect();
    assert_eq!(names, ["bucket", "made-by-hand"]);
}

#[test]
fn a_file_that_another_program_changes_gets_a_new_tag() {
    let directory = crate::common::directory();
    let store = store(&directory);
    let headers = Headers {
        content_type: Some("text/plain".to_owned()),
        ..Headers::default()
    };
    let commit = Commit {
        headers: headers.clone(),
        ..Commit::default()
    };
    let before = crate::common::put_as(&store, "k", b"old", commit).unwrap();
    std::fs::write(directory.path().join("bucket/k"), "changed").unwrap();
    let info = store.head("bucket", "k").unwrap();
    assert_ne!(info.etag, before.etag);
    assert_eq!((info.size, info.headers), (7, headers));
    let commit = Commit {
        condition: Condition::Match(vec![before.etag]),
        ..Commit::default()
    };
    assert_eq!(
        crate::common::put_as(&store, "k", b"new", commit)
            .unwrap_err()
            .code(),
        "PreconditionFailed"
    );
}

#[test]
fn no_key_escapes_the_bucket() {
    let outside = crate::common::directory();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let directory = crate::common::directory();
    let store = store(&directory);
    let bucket = directory.path().join("bucket");
    for key in [
        "../escaped",
        "../../escaped",
        "a/../../../escaped",
        "/etc/escaped",
        "..",
        ".",
    ] {
        crate::common::put(&store, key, b"x");
        assert_eq!(crate::common::get(&store, key).unwrap(), b"x");
    }
    assert!(!directory.path().join("escaped").exists());
    // Symbolic links created by others are not followed, neither for reading nor for writing.
    symlink(outside.path(), bucket.join("link")).unwrap();
    symlink(outside.path().join("secret"), bucket.join("secret")).unwrap();
    symlink(outside.path(), directory.path().join("linked-bucket")).unwrap();
    assert_eq!(crate::common::get(&store, "link/secret"), None);
    assert_eq!(crate::common::get(&store, "secret"), None);
    for key in ["link/new", "link/deeper/new"] {
        let refused = crate::common::put_as(&store, key, b"x", Commit::default()).unwrap_err();
        assert_eq!(refused.http_status(), 400, "{refused}");
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
    }
    assert!(
        !store
            .delete("bucket", "link/secret", &Condition::None)
            .unwrap()
    );
    assert!(!store.delete("bucket", "secret", &Condition::None).unwrap());
    assert!(matches!(
        store.open("linked-bucket", "secret"),
        Err(StoreError::NoSuchBucket)
    ));
    let request = ListRequest {
        delimiter: "/",
        max_keys: 100,
        ..ListRequest::default()
    };
    let page = store.list("bucket", &request).unwrap();
    assert!(!page.common_prefixes.contains(&"link/".to_owned()));
    assert!(page.objects.iter().all(|object| object.key != "secret"));
    // Writing an object replaces a link instead of following it.
    crate::common::put(&store, "secret", b"mine");
    assert_eq!(
        std::fs::read(outside.path().join("secret")).unwrap(),
        b"secret"
    );
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn entries_that_are_not_objects_are_not_listed_opened_or_deleted() {
    let directory = crate::common::directory();
    let store = store(&directory);
    let bucket = directory.path().join("bucket");
    std::fs::write(bucket.join("50%.txt"), "no key has this name").unwrap();
    std::fs::create_dir_all(bucket.join("empty/deep")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bucket.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert_eq!(crate::common::get(&store, "fifo"), None);
    assert_eq!(crate::common::get(&store, "empty"), None);
    assert!(!store.delete("bucket", "fifo", &Condition::None).unwrap());
    let request = ListRequest {
        delimiter: "/",
        max_keys: 100,
        ..ListRequest::default()
    };
    assert_eq!(store.list("bucket", &request).unwrap(), Default::default());
    assert!(matches!(
        store.delete_bucket("bucket"),
        Err(StoreError::BucketNotEmpty)
    ));
    assert!(bucket.join("50%.txt").exists());
}

#[test]
fn the_metadata_storage_is_fixed_when_the_directory_is_created() {
    let directory = crate::common::directory();
    drop(crate::common::posix(
        &directory,
        EtagMode::Md5,
        MetadataStorage::Sidecar,
    ));
    let open = |metadata| {
        PosixStore::open(PosixOptions {
            metadata,
            ..PosixOptions::new(directory.path())
        })
    };
    assert!(matches!(
        open(MetadataStorage::Xattr),
        Err(StoreError::InvalidArgument(_))
    ));
    assert!(open(MetadataStorage::Auto).is_ok());
    std::fs::write(
        directory.path().join(".bucketload/format"),
        "{\"layout\":99}",
    )
    .unwrap();
    assert!(matches!(
        open(MetadataStorage::Auto),
        Err(StoreError::Corrupt(_))
    ));
}

#[test]
fn an_unusable_directory_is_refused() {
    let directory = crate::common::directory();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(PosixStore::open(PosixOptions::new(file)).is_err());
}

#[test]
fn durable_writes_give_the_same_objects() {
    for durability in [
        bucketload_store::Durability::File,
        bucketload_store::Durability::FileAndDirectory,
    ] {
        let directory = crate::common::directory();
        let store = PosixStore::open(PosixOptions {
            durability,
            metadata: MetadataStorage::Sidecar,
            ..PosixOptions::new(directory.path())
        })
        .unwrap();
        store.create_bucket("bucket").unwrap();
        for key in ["a", "a/b", "c/d/e"] {
            crate::common::put(&store, key, key.as_bytes());
            assert_eq!(crate::common::get(&store, key).unwrap(), key.as_bytes());
        }
        for key in ["a", "a/b", "c/d/e"] {
            assert!(store.delete("bucket", key, &Condition::None).unwrap());
        }
        store.delete_bucket("bucket").unwrap();
    }
}

#[test]
fn a_bucket_that_another_store_recreated_is_used() {
    let directory = crate::common::directory();
    let ours = store(&directory);
    let theirs = crate::common::posix(&directory, EtagMode::Md5, MetadataStorage::Auto);
    let none = Condition::None;
    // Both have just used the bucket and a directory in it.
    for key in ["top", "dir/below"] {
        crate::common::put(&ours, key, b"first");
        assert!(theirs.delete("bucket", key, &none).unwrap());
    }
    theirs.delete_bucket("bucket").unwrap();
    let gone = ours.delete("bucket", "top", &none).unwrap_err();
    assert!(matches!(gone, StoreError::NoSuchBucket), "{gone}");
    theirs.create_bucket("bucket").unwrap();
    crate::common::put(&theirs, "top", b"second");
    crate::common::put(&theirs, "dir/below", b"second");
    assert!(ours.delete("bucket", "top", &none).unwrap());
    assert!(ours.delete("bucket", "dir/below", &none).unwrap());
    assert!(!ours.delete("bucket", "dir/below", &none).unwrap());
    theirs.delete_bucket("bucket").unwrap();
    theirs.create_bucket("bucket").unwrap();
    crate::common::put(&ours, "dir/below", b"third");
    assert_eq!(crate::common::keys(&theirs), ["dir/below"]);
    theirs.delete("bucket", "dir/below", &none).unwrap();
    theirs.delete_bucket("bucket").unwrap();
    // A write to the deleted bucket fails rather than being lost silently.
    let begun = ours.put("bucket", "top", &PutOptions::sized(0));
    let refused = begun.and_then(|upload| upload.commit(Commit::default()));
    assert!(
        matches!(refused, Err(StoreError::NoSuchBucket)),
        "{refused:?}"
    );
}

#[test]
fn spare_files_serve_the_next_writes_and_vanish_with_the_store() {
    let directory = crate::common::directory();
    let store = store(&directory);
    fn files(directory: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(directory).unwrap();
        entries
            .map(|entry| match entry.unwrap().path() {
                path if path.is_dir() => files(&path),
                path => usize::from(!path.ends_with("lock")),
            })
            .sum()
    }
    let unfinished = || files(&directory.path().join(".bucketload/tmp"));
    // If creating files is slow, most opportunities are skipped.
    let prepared = (0..10_000).any(|_| {
        store.prepare();
        unfinished() == 2
    });
    assert!(prepared, "{}", unfinished());
    // The first two writes use the spare files; an abandoned upload removes its file.
    crate::common::put(&store, "a", b"first");
    assert_eq!(unfinished(), 1);
    drop(
        store
            .put("bucket", "b", &PutOptions::sized(6))
            .expect("an upload"),
    );
    assert_eq!(unfinished(), 0);
    crate::common::put(&store, "b", b"second");
    for (key, content) in [("a", &b"first"[..]), ("b", b"second")] {
        let object = store.open("bucket", key).unwrap();
        assert_eq!(crate::common::content(&object), content);
    }
    (0..1000).for_each(|_| store.prepare());
    assert!(unfinished() <= 64, "{}", unfinished());
    drop(store);
    assert_eq!(unfinished(), 0);
}
