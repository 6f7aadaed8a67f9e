//! A process killed while writing leaves the old or the new version of every object, and only litter
//! that the next opening removes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::model::md5;
use bucketload_store::{
    Commit, CompletedPart, Condition, EtagMode, Headers, ListUploadsRequest, MetadataStorage,
    MultipartOptions, PosixOptions, PosixStore, PutOptions, Store,
};

const ROOT: &str = "BUCKETLOAD_TEST_CRASH_ROOT";
const SIDECAR: &str = "BUCKETLOAD_TEST_CRASH_SIDECAR";
/// Large enough that a kill often interrupts a write.
const BYTES: usize = 300_000;

/// Content whose every byte identifies the version.
fn content(version: u8) -> Vec<u8> {
    vec![version; BYTES + usize::from(version)]
}

/// Metadata that identify the version.
fn commit(version: u8) -> Commit {
    let headers = Headers {
        content_type: Some(format!("version/{version}")),
        // Every third version has metadata that do not fit into an attribute.
        user: vec![(
            "v".to_owned(),
            "x".repeat(if version.is_multiple_of(3) {
                70_000
            } else {
                10
            }),
        )],
        ..Headers::default()
    };
    Commit {
        headers,
        ..Commit::default()
    }
}

fn open(root: &Path, metadata: MetadataStorage) -> PosixStore {
    PosixStore::open(PosixOptions {
        metadata,
        min_part_bytes: 1,
        ..PosixOptions::new(root)
    })
    .unwrap()
}

/// Not a test: the process to be killed. Each round writes a key, keys below that key and a multipart
/// object, and prints a line at its end.
#[test]
#[ignore = "it writes until it is killed; run by the test below"]
fn writer() {
    let root = std::env::var(ROOT).expect("the directory to write into");
    let metadata = match std::env::var(SIDECAR) {
        Ok(_) => MetadataStorage::Sidecar,
        Err(_) => MetadataStorage::Auto,
    };
    let store = open(root.as_ref(), metadata);
    for round in 0_u32.. {
        let version = (round % 200) as u8;
        for key in ["k", "k/below", "k/below/deep"] {
            let mut upload = store.put("bucket", key, &PutOptions::default()).unwrap();
            for piece in content(version).chunks(50_000) {
                upload.write(piece).unwrap();
            }
            upload.commit(commit(version)).unwrap();
            if round % 2 == 1 {
                store.delete("bucket", key, &Condition::None).unwrap();
            }
        }
        let id = store
            .create_multipart("bucket", "m", MultipartOptions::default())
            .unwrap();
        let mut named = Vec::new();
        for number in 1..=2 {
            let mut part = store
                .upload_part("bucket", "m", &id, number, &PutOptions::default())
                .unwrap();
            part.write(&content(version)).unwrap();
            part.commit(Vec::new()).unwrap();
            named.push(CompletedPart {
                number,
                ..CompletedPart::default()
            });
        }
        store
            .complete_multipart("bucket", "m", &id, &named, Vec::new(), &Condition::None)
            .unwrap();
        println!("round");
    }
}

/// Runs the writer for `rounds` rounds, then kills it in the middle of the next round.
fn run_and_kill(root: &Path, metadata: MetadataStorage, rounds: usize) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "crash::writer", "--nocapture"])
        .env(ROOT, root)
        .stdout(Stdio::piped());
    if metadata == MetadataStorage::Sidecar {
        command.env(SIDECAR, "1");
    }
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen = lines
        .filter(|line| line.as_ref().unwrap() == "round")
        .take(rounds)
        .count();
    // SIGKILL: no destructor runs.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen, rounds, "the writer failed");
}

fn check(store: &PosixStore) {
    for key in ["k", "k/below", "k/below/deep"] {
        let Some(got) = crate::common::get(store, key) else {
            continue;
        };
        let version = got[0];
        assert!(got == content(version), "{key} is torn");
        let info = store.head("bucket", key).unwrap();
        assert_eq!(info.etag, md5(&got));
        assert_eq!(
            info.headers,
            commit(version).headers,
            "{key} has foreign metadata"
        );
    }
    if let Some(got) = crate::common::get(store, "m") {
        let part = content(got[0]);
        assert!(
            got == [part.clone(), part].concat(),
            "the multipart object is torn"
        );
        assert_eq!(store.head("bucket", "m").unwrap().parts.count(), 2);
    }
}

fn files_below(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_killed_writer_leaves_whole_objects_and_no_lasting_litter() {
    for metadata in [MetadataStorage::Auto, MetadataStorage::Sidecar] {
        let directory = crate::common::directory();
        open(directory.path(), metadata)
            .create_bucket("bucket")
            .unwrap();
        for kill in 0..12 {
            run_and_kill(directory.path(), metadata, 1 + kill % 3);
            let store = open(directory.path(), metadata);
            check(&store);
            let temporary = files_below(&directory.path().join(".bucketload/tmp"));
            assert!(
                temporary.len() == 1,
                "only the lock of the open session: {temporary:?}"
            );
        }
        let store = open(directory.path(), metadata);
        let request = ListUploadsRequest {
            max_uploads: 1000,
            ..ListUploadsRequest::default()
        };
        for upload in store.list_uploads("bucket", &request).unwrap().uploads {
            store
                .abort_multipart("bucket", &upload.key, &upload.upload_id)
                .unwrap();
        }
        for key in crate::common::keys(&store) {
            assert!(store.delete("bucket", &key, &Condition::None).unwrap());
        }
        store.delete_bucket("bucket").unwrap();
        drop(store);
        let mut left = files_below(directory.path());
        left.retain(|path| !path.ends_with("format") && !path.ends_with("lock"));
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_live_session_keeps_its_temporary_files() {
    let directory = crate::common::directory();
    let first = crate::common::posix(&directory, EtagMode::Md5, MetadataStorage::Auto);
    first.create_bucket("bucket").unwrap();
    let mut upload = first.put("bucket", "k", &PutOptions::default()).unwrap();
    upload.write(b"from the ").unwrap();
    let second = crate::common::posix(&directory, EtagMode::Md5, MetadataStorage::Auto);
    assert_eq!(crate::common::get(&second, "k"), None);
    upload.write(b"first").unwrap();
    upload.commit(Commit::default()).unwrap();
    assert_eq!(crate::common::get(&second, "k").unwrap(), b"from the first");
}
