//! Random sequences of operations have the same results on every store as on the reference model.

use crate::common::model::{
    Model, Op, Version, assembled, code, commit, headers, key_pool, md5, multipart, op, tags,
};
use bucketload_store::{
    Condition, EtagMode, ListRequest, MetadataStorage, MultipartOptions, Store,
};
use proptest::prelude::*;

fn filled(len: usize, fill: u8) -> Vec<u8> {
    (0..len).map(|i| fill.wrapping_add(i as u8)).collect()
}

fn plain(content: Vec<u8>, choice: u8) -> Version {
    Version {
        etag: md5(&content),
        content,
        headers: headers(choice),
        checksums: Vec::new(),
        tags: tags(choice),
        parts: Vec::new(),
    }
}

fn apply(store: &dyn Store, model: &mut Model, keys: &[String], op: &Op) {
    match op {
        Op::Put {
            key,
            len,
            fill,
            headers,
            condition,
        } => {
            let key = &keys[*key];
            let condition = model.condition(key, *condition);
            let content = filled(*len, *fill);
            let got = code(crate::common::put_as(
                store,
                key,
                &content,
                commit(*headers, condition.clone()),
            ));
            let expected = model.write(key, plain(content, *headers), &condition);
            assert_eq!(got.map(|written| written.etag), expected, "put {key:?}");
        }
        Op::Get { key } => {
            let key = &keys[*key];
            match model.objects.get(key) {
                Some(version) => model.compare_one(store, key, version),
                None => assert_eq!(crate::common::get(store, key), None, "{key:?}"),
            }
        }
        Op::Delete { key, condition } => {
            let key = &keys[*key];
            let condition = model.condition(key, *condition);
            let got = code(store.delete("bucket", key, &condition));
            assert_eq!(got, model.delete(key, &condition), "delete {key:?}");
        }
        Op::Copy {
            from,
            to,
            condition,
        } => {
            let (from, to) = (&keys[*from], &keys[*to]);
            let Some(source) = model.objects.get(from) else {
                assert_eq!(code(store.open("bucket", from)).map(drop), Err("NoSuchKey"));
                return;
            };
            let version = plain(source.content.clone(), 2);
            let condition = model.condition(to, *condition);
            let object = store.open("bucket", from).unwrap();
            let got = code(store.copy(&object, "bucket", to, commit(2, condition.clone())));
            let expected = model.write(to, version, &condition);
            assert_eq!(
                got.map(|written| written.etag),
                expected,
                "copy {from:?} to {to:?}"
            );
        }
        Op::Multipart {
            key,
            parts,
            shuffle,
            condition,
        } => {
            let key = &keys[*key];
            let condition = model.condition(key, *condition);
            let parts: Vec<_> = parts
                .iter()
                .map(|&(number, len)| (number, filled(len, number as u8)))
                .collect();
            let got = multipart(store, key, &parts, *shuffle, &condition);
            let version = assembled(&parts);
            let expected = if *shuffle && version.parts.len() > 1 {
                Err("InvalidPartOrder")
            } else if version.parts.iter().rev().skip(1).any(|size| *size < 5) {
                Err("EntityTooSmall")
            } else {
                model.write(key, version, &condition)
            };
            assert_eq!(got, expected, "multipart {key:?}");
        }
        Op::PartCopy {
            from,
            to,
            start,
            len,
        } => {
            let (from, to) = (&keys[*from], &keys[*to]);
            let Some(source) = model
                .objects
                .get(from)
                .map(|version| version.content.clone())
            else {
                return;
            };
            let object = store.open("bucket", from).unwrap();
            let id = store
                .create_multipart("bucket", to, MultipartOptions::default())
                .unwrap();
            let range = *start..start + len;
            let got = code(store.copy_part(&object, range, "bucket", to, &id, 7));
            if *len == 0 || start + len > source.len() as u64 {
                assert_eq!(got.map(drop), Err("InvalidRange"));
                store.abort_multipart("bucket", to, &id).unwrap();
                return;
            }
            let part = source[*start as usize..(start + len) as usize].to_vec();
            assert_eq!(got.map(|written| written.etag), Ok(md5(&part)));
            let named = [bucketload_store::CompletedPart {
                number: 7,
                ..Default::default()
            }];
            let written = store
                .complete_multipart("bucket", to, &id, &named, Vec::new(), &Condition::None)
                .unwrap();
            let mut version = assembled(&[(7, part)]);
            (version.headers, version.tags) = (headers(0), tags(0));
            assert_eq!(model.write(to, version, &Condition::None), Ok(written.etag));
        }
        Op::Tag { key, tags: choice } => {
            let key = &keys[*key];
            let got = code(store.set_tags("bucket", key, tags(*choice)));
            match model.objects.get_mut(key) {
                Some(version) => {
                    version.tags = tags(*choice);
                    assert_eq!(got, Ok(()));
                }
                None => assert_eq!(got, Err("NoSuchKey")),
            }
        }
        Op::List {
            prefix,
            delimiter,
            start_after,
            max_keys,
        } => {
            let request = ListRequest {
                prefix,
                delimiter,
                start_after,
                max_keys: *max_keys,
            };
            let page = store.list("bucket", &request).unwrap();
            let keys: Vec<_> = page.objects.iter().map(|entry| entry.key.clone()).collect();
            let expected = model.list(prefix, delimiter, start_after, *max_keys);
            assert_eq!((keys, page.common_prefixes, page.next), expected, "{op:?}");
            for entry in page.objects {
                let version = &model.objects[&entry.key];
                assert_eq!(
                    (entry.size, entry.etag),
                    (version.content.len() as u64, version.etag)
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(48),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_store_behaves_like_the_model(ops in prop::collection::vec(op(), 1..80)) {
        let keys = key_pool();
        for subject in crate::common::subjects() {
            let store = &*subject.store;
            store.create_bucket("bucket").unwrap();
            let mut model = Model::default();
            for op in &ops {
                apply(store, &mut model, &keys, op);
            }
            model.compare(store);
            for (delimiter, max_keys) in [("/", 3), ("", 1), ("-", 2)] {
                let mut start_after = String::new();
                for page in crate::common::pages(store, "", delimiter, max_keys) {
                    let keys: Vec<_> = page.objects.into_iter().map(|entry| entry.key).collect();
                    let expected = model.list("", delimiter, &start_after, max_keys);
                    prop_assert_eq!((keys, page.common_prefixes, page.next.clone()), expected);
                    start_after = page.next.unwrap_or_default();
                }
            }
            let not_empty = !model.objects.is_empty();
            let deleted = code(store.delete_bucket("bucket"));
            prop_assert_eq!(deleted, if not_empty { Err("BucketNotEmpty") } else { Ok(()) });
            for key in model.objects.keys() {
                prop_assert!(store.delete("bucket", key, &Condition::None).unwrap());
            }
            if not_empty {
                store.delete_bucket("bucket").unwrap();
            }
            prop_assert_eq!(code(store.open("bucket", "a")).map(drop), Err("NoSuchBucket"));
            if let Some(directory) = subject.directory {
                drop(subject.store);
                assert_no_litter(directory.path());
            } else {
                prop_assert_eq!(store.usage().unwrap(), Default::default());
            }
        }
    }
}

/// Asserts that only the empty hidden area remains after everything was deleted and the store closed.
fn assert_no_litter(root: &std::path::Path) {
    fn files(directory: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path(), found);
            } else {
                found.push(entry.path());
            }
        }
    }
    let top: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(top, [".bucketload"]);
    let mut found = Vec::new();
    files(root, &mut found);
    found.sort();
    assert_eq!(
        found,
        [
            root.join(".bucketload/format"),
            root.join(".bucketload/lock")
        ]
    );
}

#[test]
fn a_reopened_posix_store_remembers_everything() {
    for metadata in [MetadataStorage::Auto, MetadataStorage::Sidecar] {
        let directory = tempfile::tempdir().unwrap();
        let mut model = Model::default();
        let store = crate::common::posix(&directory, EtagMode::Md5, metadata);
        store.create_bucket("bucket").unwrap();
        for (i, key) in key_pool().iter().enumerate() {
            let content = filled(i, 7);
            let choice = (i % 4) as u8;
            crate::common::put_as(&store, key, &content, commit(choice, Condition::None)).unwrap();
            model
                .write(key, plain(content, choice), &Condition::None)
                .unwrap();
        }
        let parts = [(1, filled(9, 1)), (4, filled(3, 2))];
        let id = store
            .create_multipart("bucket", "kept", MultipartOptions::default())
            .unwrap();
        multipart(&store, "b/y", &parts, false, &Condition::None).unwrap();
        model
            .write("b/y", assembled(&parts), &Condition::None)
            .unwrap();
        drop(store);
        let store = crate::common::posix(&directory, EtagMode::Opaque, MetadataStorage::Auto);
        model.compare(&store);
        let uploads = store.list_uploads(
            "bucket",
            &bucketload_store::ListUploadsRequest {
                max_uploads: 10,
                ..Default::default()
            },
        );
        assert_eq!(uploads.unwrap().uploads[0].upload_id, id);
    }
}
