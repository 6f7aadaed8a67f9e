//! The reference model: one bucket as a sorted map, with the rules of S3 written as directly as
//! possible, regardless of cost.

use std::collections::BTreeMap;

use bucketload_store::{
    Checksum, Commit, CompletedPart, Condition, ETag, Headers, Store, StoreError, Tags,
};
use md5::{Digest, Md5};
use proptest::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) content: Vec<u8>,
    pub(crate) etag: ETag,
    pub(crate) headers: Headers,
    pub(crate) checksums: Vec<Checksum>,
    pub(crate) tags: Tags,
    pub(crate) parts: Vec<u64>,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) objects: BTreeMap<String, Version>,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Put {
        key: usize,
        len: usize,
        fill: u8,
        headers: u8,
        condition: u8,
    },
    Get {
        key: usize,
    },
    Delete {
        key: usize,
        condition: u8,
    },
    Copy {
        from: usize,
        to: usize,
        condition: u8,
    },
    Multipart {
        key: usize,
        parts: Vec<(u32, usize)>,
        shuffle: bool,
        condition: u8,
    },
    PartCopy {
        from: usize,
        to: usize,
        start: u64,
        len: u64,
    },
    Tag {
        key: usize,
        tags: u8,
    },
    List {
        prefix: String,
        delimiter: String,
        start_after: String,
        max_keys: usize,
    },
}

/// Keys that interact: parents and children, neighbours of `/` in byte order, and names that are
/// special or too long for a file system.
pub(crate) fn key_pool() -> Vec<String> {
    let mut keys: Vec<String> = [
        "a",
        "a/",
        "a//",
        "a/b",
        "a/b/c",
        "a/b/c/d",
        "a-b",
        "a.b",
        "a0",
        "a//b",
        "/",
        "/a",
        "//",
        ".",
        "..",
        "./a",
        "../a",
        "a/.",
        "a/..",
        "a/../b",
        "%",
        "%/x",
        "%self",
        "a/%self",
        "%2E",
        "a%b",
        ".bucketload",
        "b",
        "b/x",
        "b/y",
        "b/z/1",
        "b/z/2",
        "ü",
        "ü/日本",
        "\u{0}",
        "x\u{1F600}y",
        "\n",
        "a b+c&d",
        "z--1",
        "z--2",
        "z-1",
        "z-2/q",
    ]
    .map(str::to_owned)
    .to_vec();
    for len in [252, 253, 254, 255, 256, 300, 1024] {
        keys.push("l".repeat(len));
    }
    keys.push(format!("{}/x", "l".repeat(300)));
    keys.push(format!("{}!", "l".repeat(253)));
    keys.push(format!("{}%%", "l".repeat(253)));
    keys.push("日".repeat(341));
    keys.push("a/".repeat(512));
    keys
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let key = 0..key_pool().len();
    let low = 0..14_usize;
    let key = prop_oneof![3 => low, 2 => key];
    let condition = prop_oneof![6 => Just(0_u8), 1 => 1..5_u8];
    prop_oneof![
        6 => (key.clone(), 0..40_usize, any::<u8>(), 0..4_u8, condition.clone()).prop_map(
            |(key, len, fill, headers, condition)| Op::Put { key, len, fill, headers, condition }
        ),
        3 => key.clone().prop_map(|key| Op::Get { key }),
        4 => (key.clone(), condition.clone())
            .prop_map(|(key, condition)| Op::Delete { key, condition }),
        1 => (key.clone(), key.clone(), condition.clone())
            .prop_map(|(from, to, condition)| Op::Copy { from, to, condition }),
        1 => (
            key.clone(),
            prop::collection::vec((1..6_u32, 0..12_usize), 1..5),
            prop::bool::weighted(0.1),
            condition
        )
            .prop_map(|(key, parts, shuffle, condition)| Op::Multipart {
                key, parts, shuffle, condition
            }),
        1 => (key.clone(), key.clone(), 0..30_u64, 0..30_u64)
            .prop_map(|(from, to, start, len)| Op::PartCopy { from, to, start, len }),
        1 => (key.clone(), 0..3_u8).prop_map(|(key, tags)| Op::Tag { key, tags }),
        4 => (text(), delimiter(), text(), 0..8_usize).prop_map(
            |(prefix, delimiter, start_after, max_keys)| Op::List {
                prefix, delimiter, start_after, max_keys
            }
        ),
    ]
}

/// A prefix or marker: empty, a key of the pool, or the beginning of one.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(String::new()),
        3 => (0..key_pool().len(), 0..1024_usize).prop_map(|(key, len)| {
            let key = &key_pool()[key];
            let mut len = len.min(key.len());
            while !key.is_char_boundary(len) {
                len -= 1;
            }
            key[..len].to_owned()
        }),
        3 => (0..14_usize, 1..4_usize)
            .prop_map(|(key, len)| key_pool()[key].chars().take(len).collect()),
    ]
}

fn delimiter() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("/".to_owned()),
        2 => Just(String::new()),
        1 => prop::sample::select(vec!["-", "--", "b/", "l", "//", "."]).prop_map(str::to_owned),
    ]
}

pub(crate) fn headers(choice: u8) -> Headers {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    match choice {
        0 => Headers::default(),
        1 => Headers {
            content_type: Some("text/plain".to_owned()),
            ..Headers::default()
        },
        2 => Headers {
            content_type: None,
            system: vec![pair("cache-control", "no-store")],
            user: vec![pair("colour", "grün"), pair("empty", "")],
        },
        // More than most file systems allow in an attribute.
        _ => Headers {
            user: vec![pair("long", &"v".repeat(70_000))],
            ..Headers::default()
        },
    }
}

pub(crate) fn tags(choice: u8) -> Tags {
    (0..choice)
        .map(|i| (format!("tag{i}"), "value ü".to_owned()))
        .collect()
}

pub(crate) fn md5(content: &[u8]) -> ETag {
    ETag::from_md5(Md5::digest(content).into())
}

pub(crate) fn code<T>(result: bucketload_store::Result<T>) -> Result<T, &'static str> {
    result.map_err(|error| error.code())
}

impl Model {
    fn check(&self, key: &str, condition: &Condition) -> Result<(), &'static str> {
        let current = self.objects.get(key).map(|version| version.etag);
        match (condition, current) {
            (Condition::None, _) => Ok(()),
            (Condition::Absent, None) => Ok(()),
            (Condition::Absent, Some(_)) => Err("PreconditionFailed"),
            (Condition::Present, Some(_)) => Ok(()),
            (Condition::Present | Condition::Match(_), None) => Err("NoSuchKey"),
            (Condition::Match(tags), Some(tag)) if tags.contains(&tag) => Ok(()),
            (Condition::Match(_), Some(_)) => Err("PreconditionFailed"),
        }
    }

    /// Condition number `choice`, given the current version of the key.
    pub(crate) fn condition(&self, key: &str, choice: u8) -> Condition {
        let current = self.objects.get(key).map(|version| version.etag);
        match choice {
            0 => Condition::None,
            1 => Condition::Absent,
            2 => Condition::Present,
            3 => Condition::Match(vec![current.unwrap_or(md5(b"?")), md5(b"!")]),
            _ => Condition::Match(vec![md5(b"?")]),
        }
    }

    pub(crate) fn write(
        &mut self,
        key: &str,
        version: Version,
        condition: &Condition,
    ) -> Result<ETag, &'static str> {
        self.check(key, condition)?;
        let etag = version.etag;
        self.objects.insert(key.to_owned(), version);
        Ok(etag)
    }

    pub(crate) fn delete(
        &mut self,
        key: &str,
        condition: &Condition,
    ) -> Result<bool, &'static str> {
        self.check(key, condition)?;
        Ok(self.objects.remove(key).is_some())
    }

    /// Keys, common prefixes and the next marker of one page.
    pub(crate) fn list(
        &self,
        prefix: &str,
        delimiter: &str,
        start_after: &str,
        max_keys: usize,
    ) -> (Vec<String>, Vec<String>, Option<String>) {
        let mut names: Vec<(String, bool)> = Vec::new();
        for key in self.objects.keys().filter(|key| key.starts_with(prefix)) {
            let rest = &key[prefix.len()..];
            let name = match rest.find(delimiter) {
                Some(at) if !delimiter.is_empty() => {
                    (key[..prefix.len() + at + delimiter.len()].to_owned(), true)
                }
                _ => (key.clone(), false),
            };
            if name.0.as_str() > start_after && names.last() != Some(&name) {
                names.push(name);
            }
        }
        let next = (names.len() > max_keys && max_keys > 0).then(|| names[max_keys - 1].0.clone());
        names.truncate(max_keys);
        let pick = |common| {
            names
                .iter()
                .filter(|n| n.1 == common)
                .map(|n| n.0.clone())
                .collect::<Vec<_>>()
        };
        (pick(false), pick(true), next)
    }

    /// Compares the whole content of a store with the model.
    pub(crate) fn compare(&self, store: &dyn Store) {
        let expected: Vec<_> = self.objects.keys().cloned().collect();
        assert_eq!(super::keys(store), expected);
        for (key, version) in &self.objects {
            self.compare_one(store, key, version);
        }
    }

    pub(crate) fn compare_one(&self, store: &dyn Store, key: &str, version: &Version) {
        let object = store.open("bucket", key).unwrap();
        let info = object.info();
        assert_eq!(super::content(&object), version.content, "{key:?}");
        assert_eq!(info.size, version.content.len() as u64);
        assert_eq!(info.etag, version.etag, "{key:?}");
        assert_eq!(info.headers, version.headers);
        assert_eq!(info.checksums, version.checksums);
        assert_eq!(info.tags, version.tags);
        assert_eq!(info.parts, version.parts.iter().copied().collect());
        assert_eq!(&store.head("bucket", key).unwrap(), info);
        assert_eq!(store.tags("bucket", key).unwrap(), version.tags);
    }
}

/// Uploads parts (a later part replaces an earlier one with the same number) and completes the upload
/// with all remaining parts. Returns the outcome of the completion.
pub(crate) fn multipart(
    store: &dyn Store,
    key: &str,
    parts: &[(u32, Vec<u8>)],
    reverse: bool,
    condition: &Condition,
) -> Result<ETag, &'static str> {
    let options = bucketload_store::MultipartOptions {
        headers: headers(1),
        tags: tags(1),
        checksum: None,
    };
    let id = store.create_multipart("bucket", key, options).unwrap();
    let mut named: BTreeMap<u32, ETag> = BTreeMap::new();
    for (number, content) in parts {
        let mut upload = store
            .upload_part("bucket", key, &id, *number, &Default::default())
            .unwrap();
        upload.write(content).unwrap();
        named.insert(*number, upload.commit(Vec::new()).unwrap().etag);
    }
    let mut named: Vec<_> = named
        .into_iter()
        .map(|(number, etag)| CompletedPart {
            number,
            etag: Some(etag),
            checksums: Vec::new(),
        })
        .collect();
    if reverse {
        named.reverse();
    }
    let result = store.complete_multipart("bucket", key, &id, &named, Vec::new(), condition);
    match result {
        Ok(written) => {
            let again = store.abort_multipart("bucket", key, &id);
            assert!(matches!(again, Err(StoreError::NoSuchUpload)));
            Ok(written.etag)
        }
        Err(error) => {
            // The upload survives the error.
            let listed = store.list_parts("bucket", key, &id, 0, 1000).unwrap();
            assert_eq!(listed.parts.len(), named.len());
            store.abort_multipart("bucket", key, &id).unwrap();
            Err(error.code())
        }
    }
}

/// The version that such an upload creates.
pub(crate) fn assembled(parts: &[(u32, Vec<u8>)]) -> Version {
    let latest: BTreeMap<u32, &Vec<u8>> = parts.iter().map(|(n, c)| (*n, c)).collect();
    let tags_of_parts: Vec<ETag> = latest.values().map(|content| md5(content)).collect();
    Version {
        content: latest
            .values()
            .flat_map(|content| content.iter().copied())
            .collect(),
        etag: ETag::of_parts(&tags_of_parts),
        headers: headers(1),
        checksums: Vec::new(),
        tags: tags(1),
        parts: latest
            .values()
            .map(|content| content.len() as u64)
            .collect(),
    }
}

/// A commit with headers and tags number `choice`.
pub(crate) fn commit(choice: u8, condition: Condition) -> Commit {
    Commit {
        headers: headers(choice),
        tags: tags(choice),
        condition,
        checksums: Vec::new(),
    }
}
