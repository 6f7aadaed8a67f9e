//! What operations mean where: the table beside a comparison of two APIs.
//!
//! The same workload is not the same work on every API. Whoever reads the price of a protocol needs to
//! see what is bought for it. The rows describe what the drivers of this program do, by their pages in
//! `docs/drivers`; drivers are known here by name only.

use serde::Serialize;

/// One thing that two APIs do in different ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// What it is about.
    pub topic: &'static str,
    /// What it means on side A.
    pub a: &'static str,
    /// What it means on side B.
    pub b: &'static str,
}

/// The rows of the table.
const TOPICS: [&str; 8] = [
    "write (put)",
    "overwrite",
    "write in parts",
    "append",
    "rename",
    "list",
    "delete of nothing",
    "delete of many",
];

const ATOMIC: &str = "atomic: readers meet the old object or the new one";
const NONE: &str = "not in the API";
const MISSED: &str = "not-found";
const REPLACED: &str = "the old file goes, then a new one is written: readers may meet neither";

/// What each driver does, in the order of [`TOPICS`].
const DRIVERS: [(&str, [&str; TOPICS.len()]); 9] = [
    (
        "s3",
        [
            "1 request; the object appears whole",
            ATOMIC,
            "begin, parts, complete; uploads are apart from each other, the last one wins",
            NONE,
            NONE,
            "keys by prefix, sorted, up to 1,000 a page",
            "success",
            "1 request for up to 1,000 keys",
        ],
    ),
    (
        "azblob",
        [
            "1 request; the blob appears whole",
            ATOMIC,
            "blocks, then their list; blocks belong to the blob, the first list wins",
            "1 request; only to blobs that an append made",
            NONE,
            "names by prefix, sorted, up to 5,000 a page; pages may come short",
            MISSED,
            "1 request for up to 256 blobs, each signed by itself",
        ],
    ),
    (
        "gcs",
        [
            "1 request; the object appears whole",
            ATOMIC,
            "begin, then parts of a resumable upload; or objects that are composed, which listings see",
            NONE,
            NONE,
            "names by prefix, sorted, up to 1,000 a page",
            MISSED,
            "1 request for each 100 keys",
        ],
    ),
    (
        "swift",
        [
            "1 request; the object appears whole, in listings perhaps later",
            "readers meet the old object or the new one; after a failure the old one may come back",
            "segments in a container of their own, then a manifest",
            NONE,
            NONE,
            "names by prefix, sorted, up to 10,000 a page; may lag behind the objects",
            MISSED,
            "1 request; its status is always 200",
        ],
    ),
    (
        "webhdfs",
        [
            "2 requests, name node and data node; the file is there before its bytes are",
            REPLACED,
            NONE,
            "2 requests; one writer at a time",
            "1 request to the name node; no bytes move",
            "directory by directory; empty directories stay",
            MISSED,
            NONE,
        ],
    ),
    (
        "hdfs",
        [
            "create, blocks, complete; the file is there before its bytes are",
            REPLACED,
            NONE,
            "native; one writer at a time",
            "1 call to the name node; no bytes move",
            "directory by directory; empty directories stay",
            MISSED,
            NONE,
        ],
    ),
    (
        "libs3",
        [
            "1 call of the library; the object appears whole where the store makes it so",
            "as the store behind the library does it",
            "begin, parts, complete; 1 call each",
            NONE,
            NONE,
            "keys by prefix, sorted, up to 1,000 a page, by marker",
            "success",
            NONE,
        ],
    ),
    (
        "seaweedfs",
        [
            "filer: 1 request; master: a file id, then the bytes to a volume server",
            "replaced",
            NONE,
            "filer: 1 request; master: not offered",
            "filer: 1 request; master: not offered",
            "filer: folder by folder; empty folders stay",
            "success",
            NONE,
        ],
    ),
    (
        "posix",
        [
            "open, write, close; fsync where it is asked for",
            "in place: readers may meet a part of the new file; or by rename, then atomic",
            "the parts are written into the file, one after the other",
            "1 write at the end of the file",
            "1 call; atomic, no bytes move",
            "directory by directory; empty directories stay",
            MISSED,
            "1 call for each file",
        ],
    ),
];

/// The rows in which the drivers `a` and `b` differ; none when they are the same or one of them is
/// not described.
#[must_use]
pub fn meanings(a: &str, b: &str) -> Vec<Meaning> {
    let of = |name: &str| DRIVERS.iter().find(|(driver, _)| *driver == name);
    let (Some((_, a)), Some((_, b))) = (of(a), of(b)) else {
        return Vec::new();
    };
    let rows = TOPICS.into_iter().zip(a.iter().zip(b));
    rows.filter(|(_, (a, b))| a != b)
        .map(|(topic, (a, b))| Meaning { topic, a, b })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{DRIVERS, meanings};

    /// The names that drivers give themselves in their facts; what does nothing has nothing to say here.
    fn drivers_of_the_program() -> BTreeSet<String> {
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../bucketload-drivers/src");
        let folders = std::fs::read_dir(sources).unwrap();
        let texts = folders.filter_map(|folder| {
            std::fs::read_to_string(folder.ok()?.path().join("driver.rs")).ok()
        });
        let name = |text: String| {
            let (_, rest) = text.split_once("driver: \"")?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        texts.filter_map(name).collect()
    }

    #[test]
    fn only_what_differs_is_shown() {
        assert!(meanings("s3", "s3").is_empty());
        assert!(meanings("s3", "unheard-of").is_empty());
        let rows = meanings("s3", "azblob");
        assert!(rows.iter().all(|row| row.a != row.b));
        let of = |topic: &str| rows.iter().find(|row| row.topic == topic);
        assert_eq!(of("delete of nothing").map(|row| row.b), Some("not-found"));
        assert_eq!(of("rename"), None, "neither can");
    }

    #[test]
    fn drivers_stand_once_and_say_something_of_every_topic() {
        let mut described = BTreeSet::new();
        for (name, words) in &DRIVERS {
            assert!(described.insert((*name).to_owned()), "{name} stands twice");
            assert!(words.iter().all(|text| !text.trim().is_empty()), "{name}");
        }
        assert_eq!(described, drivers_of_the_program());
    }
}
