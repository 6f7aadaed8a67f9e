//! Every call through a gateway returns the same values and errors as the store itself.
#![allow(missing_docs)]

use std::io::{self, Read};
use std::time::Duration;

use crate::common::{Gateway, over_files, over_memory, over_own_files, over_unseen_files, pattern};
use bucketload_gateway::{ByteRange, Client, Error, Reply};
use bucketload_store::{
    Commit, CompletedPart, Condition, Headers, ListRequest, ListUploadsRequest, MultipartOptions,
    ReadConditions, StoreError,
};

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    match result {
        Err(Error::Store(error)) => error.code(),
        other => panic!("{other:?}"),
    }
}

fn read(
    client: &Client,
    bucket: &str,
    key: &str,
    range: Option<ByteRange>,
) -> Result<Vec<u8>, Error> {
    let mut download = client.get(bucket, key, range, ReadConditions::default())?;
    let mut bytes = Vec::new();
    download.read_to_end(&mut bytes).unwrap();
    assert_eq!(
        (download.left(), download.length()),
        (0, bytes.len() as u64)
    );
    Ok(bytes)
}

fn both(test: impl Fn(&Gateway)) {
    test(&over_memory());
    test(&over_files());
    test(&over_unseen_files());
    test(&over_own_files());
}

#[test]
fn buckets() {
    both(|Gateway { client, store, .. }| {
        assert_eq!(client.list_buckets().unwrap(), []);
        client.create_bucket("first").unwrap();
        client.create_bucket("second").unwrap();
        assert_eq!(
            code(client.create_bucket("first")),
            "BucketAlreadyOwnedByYou"
        );
        assert_eq!(
            client.list_buckets().unwrap(),
            store.list_buckets().unwrap()
        );
        assert_eq!(
            client.head_bucket("first").unwrap(),
            store.head_bucket("first").unwrap()
        );
        assert_eq!(code(client.head_bucket("third")), "NoSuchBucket");
        let invalid = client.create_bucket("A").unwrap_err().to_string();
        assert_eq!(invalid, store.create_bucket("A").unwrap_err().to_string());
        client.put("first", "k", b"x", Commit::default()).unwrap();
        assert_eq!(code(client.delete_bucket("first")), "BucketNotEmpty");
        client.delete_bucket("second").unwrap();
        assert_eq!(code(client.delete_bucket("second")), "NoSuchBucket");
    });
}

#[test]
fn objects_of_all_sizes_and_ranges() {
    both(|Gateway { client, store, .. }| {
        client.create_bucket("bucket").unwrap();
        for size in [0, 1, 3901, 16 << 10, (64 << 10) + 1, 300_000, 3 << 20] {
            let bytes = pattern(size);
            let key = format!("dir/{size}");
            let written = match size % 2 {
                0 => client
                    .put("bucket", &key, &bytes, Commit::default())
                    .unwrap(),
                _ => {
                    let mut source = &bytes[..];
                    client
                        .put_from(
                            "bucket",
                            &key,
                            size as u64,
                            &mut source,
                            None,
                            Commit::default(),
                        )
                        .unwrap()
                }
            };
            let info = store.head("bucket", &key).unwrap();
            assert_eq!((written.etag, written.size), (info.etag, info.size));
            assert_eq!(client.head("bucket", &key).unwrap(), info);
            assert_eq!(read(client, "bucket", &key, None).unwrap(), bytes);
            let range = |start, length| Some(ByteRange { start, length });
            assert_eq!(
                code(read(client, "bucket", &key, range(size as u64, None))),
                "InvalidRange"
            );
            assert_eq!(
                code(read(client, "bucket", &key, range(0, Some(0)))),
                "InvalidArgument"
            );
            if size > 3 {
                let from = size / 3;
                assert_eq!(
                    read(client, "bucket", &key, range(from as u64, None)).unwrap(),
                    bytes[from..]
                );
                let some = read(client, "bucket", &key, range(1, Some(2))).unwrap();
                assert_eq!(some, bytes[1..3]);
                let cut = read(client, "bucket", &key, range(from as u64, Some(u64::MAX))).unwrap();
                assert_eq!(cut, bytes[from..]);
            }
            assert!(client.delete("bucket", &key, Condition::None).unwrap());
            assert!(!client.delete("bucket", &key, Condition::None).unwrap());
            assert_eq!(code(read(client, "bucket", &key, None)), "NoSuchKey");
            assert_eq!(code(client.head("bucket", &key)), "NoSuchKey");
        }
        let big = pattern(300_000);
        assert_eq!(
            code(client.put("nowhere", "k", &big, Commit::default())),
            "NoSuchBucket"
        );
        let long = "k".repeat(1025);
        assert_eq!(
            code(client.put("bucket", &long, b"", Commit::default())),
            "KeyTooLongError"
        );
        assert_eq!(
            code(client.delete("nowhere", "k", Condition::None)),
            "NoSuchBucket"
        );
    });
}

#[test]
fn metadata_and_conditions() {
    both(|Gateway { client, .. }| {
        client.create_bucket("bucket").unwrap();
        let headers = Headers {
            content_type: Some("text/plain".into()),
            system: vec![("cache-control".into(), "no-cache".into())],
            user: vec![("owner".into(), "ä ö".into())],
        };
        let commit = || Commit {
            headers: headers.clone(),
            tags: vec![("a".into(), "b".into())],
            ..Commit::default()
        };
        let etag = client.put("bucket", "k", b"abc", commit()).unwrap().etag;
        let info = client.head("bucket", "k").unwrap();
        assert_eq!(
            (&info.headers, &info.tags[..]),
            (&headers, &[("a".to_owned(), "b".to_owned())][..])
        );
        let get = |conditions| client.get("bucket", "k", None, conditions).map(drop);
        let tags = |tag| Some(vec![tag]);
        let other = bucketload_store::ETag::from_md5([1; 16]);
        let conditions = |if_match, if_none_match| ReadConditions {
            if_match,
            if_none_match,
            ..ReadConditions::default()
        };
        assert!(get(conditions(tags(etag), None)).is_ok());
        assert_eq!(
            code(get(conditions(tags(other), None))),
            "PreconditionFailed"
        );
        assert!(matches!(
            get(conditions(None, tags(etag))),
            Err(Error::NotModified)
        ));
        let later = ReadConditions {
            if_modified_since: Some(info.modified + Duration::from_secs(5)),
            ..ReadConditions::default()
        };
        assert!(matches!(
            client.head_if("bucket", "k", later),
            Err(Error::NotModified)
        ));
        let absent = Commit {
            condition: Condition::Absent,
            ..Commit::default()
        };
        assert_eq!(
            code(client.put("bucket", "k", b"new", absent)),
            "PreconditionFailed"
        );
        assert_eq!(
            code(client.delete("bucket", "k", Condition::Match(vec![other]))),
            "PreconditionFailed"
        );
        let copy = |source, commit| {
            client.copy(
                "bucket",
                source,
                ReadConditions::default(),
                "bucket",
                "copy",
                commit,
            )
        };
        copy("k", None).unwrap();
        assert_eq!(client.head("bucket", "copy").unwrap().headers, headers);
        assert_eq!(read(client, "bucket", "k", None).unwrap(), b"abc");
        copy("k", Some(Commit::default())).unwrap();
        assert_eq!(
            client.head("bucket", "copy").unwrap().headers,
            Headers::default()
        );
        assert_eq!(code(copy("missing", None)), "NoSuchKey");
        let digest = [0; 16];
        let wrong = client.put_from(
            "bucket",
            "k",
            3,
            &mut &b"abc"[..],
            Some(digest),
            Commit::default(),
        );
        assert_eq!(code(wrong), "BadDigest");
        assert_eq!(client.head("bucket", "k").unwrap().etag, etag);
    });
}

#[test]
fn listings_are_those_of_the_store() {
    both(|Gateway { client, store, .. }| {
        client.create_bucket("bucket").unwrap();
        let mut pipeline = client.pipeline();
        for i in 0..1200 {
            pipeline
                .put(
                    "bucket",
                    &format!("d{}/k{i:04}", i % 7),
                    b"x",
                    Commit::default(),
                )
                .unwrap();
        }
        let replies = pipeline.finish().unwrap();
        assert!(
            replies
                .iter()
                .all(|reply| matches!(reply, Ok(Reply::Written(_))))
        );
        assert_eq!(replies.len(), 1200);
        for (prefix, delimiter, start_after, max_keys) in [
            ("", "", "", 1000),
            ("d3/", "", "d3/k0500", 20),
            ("", "/", "", 5),
            ("d", "/", "d2/", 1000),
            ("", "", "", 0),
        ] {
            let request = ListRequest {
                prefix,
                delimiter,
                start_after,
                max_keys,
            };
            assert_eq!(
                client.list("bucket", &request).unwrap(),
                store.list("bucket", &request).unwrap()
            );
        }
        let page = client
            .list(
                "bucket",
                &ListRequest {
                    max_keys: usize::MAX,
                    ..ListRequest::default()
                },
            )
            .unwrap();
        assert_eq!((page.objects.len(), page.next.is_some()), (1000, true));
        assert_eq!(
            code(client.list("nowhere", &ListRequest::default())),
            "NoSuchBucket"
        );
    });
}

#[test]
fn multipart() {
    both(|Gateway { client, store, .. }| {
        client.create_bucket("bucket").unwrap();
        let options = MultipartOptions {
            headers: Headers {
                content_type: Some("x/y".into()),
                ..Headers::default()
            },
            ..MultipartOptions::default()
        };
        let id = client.create_multipart("bucket", "big", options).unwrap();
        let (first, last) = (pattern(5 << 20), pattern(1000));
        let one = client.upload_part("bucket", "big", &id, 1, &first).unwrap();
        client
            .put("bucket", "source", &last, Commit::default())
            .unwrap();
        let range = Some(ByteRange {
            start: 10,
            length: Some(500),
        });
        client
            .copy_part("bucket", "source", range, "bucket", "big", &id, 3)
            .unwrap();
        client
            .upload_part_from(
                "bucket",
                "big",
                &id,
                2,
                first.len() as u64,
                &mut &first[..],
                None,
            )
            .unwrap();
        let parts = client.list_parts("bucket", "big", &id, 0, 2).unwrap();
        assert_eq!(parts, store.list_parts("bucket", "big", &id, 0, 2).unwrap());
        assert_eq!((parts.parts.len(), parts.next), (2, Some(2)));
        let request = ListUploadsRequest {
            max_uploads: 10,
            ..ListUploadsRequest::default()
        };
        assert_eq!(
            client.list_uploads("bucket", &request).unwrap(),
            store.list_uploads("bucket", &request).unwrap()
        );
        let named = |number, etag| CompletedPart {
            number,
            etag,
            ..CompletedPart::default()
        };
        let wrong = [named(2, Some(one.etag)), named(1, None)];
        let complete = |parts: &[CompletedPart]| {
            client.complete_multipart("bucket", "big", &id, parts, Condition::None)
        };
        assert_eq!(code(complete(&wrong)), "InvalidPartOrder");
        assert_eq!(code(complete(&[named(9, None)])), "InvalidPart");
        let written =
            complete(&[named(1, Some(one.etag)), named(2, None), named(3, None)]).unwrap();
        let info = client.head("bucket", "big").unwrap();
        assert_eq!((info.etag, info.parts.count()), (written.etag, 3));
        assert_eq!(info, store.head("bucket", "big").unwrap());
        let whole = read(client, "bucket", "big", None).unwrap();
        assert_eq!(whole, [&first[..], &first, &last[10..510]].concat());
        assert_eq!(
            code(client.abort_multipart("bucket", "big", &id)),
            "NoSuchUpload"
        );
        let id = client
            .create_multipart("bucket", "big", MultipartOptions::default())
            .unwrap();
        client.abort_multipart("bucket", "big", &id).unwrap();
        assert_eq!(
            code(client.list_parts("bucket", "big", &id, 0, 9)),
            "NoSuchUpload"
        );
    });
}

/// Returns `good` bytes, then fails.
struct Failing {
    good: usize,
}

impl Read for Failing {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.good.min(out.len());
        self.good -= count;
        match count {
            0 => Err(io::Error::other("enough")),
            _ => Ok(count),
        }
    }
}

#[test]
fn a_body_that_fails_or_ends_early_leaves_nothing() {
    both(|Gateway { client, server, .. }| {
        client.create_bucket("bucket").unwrap();
        client
            .put("bucket", "k", b"old", Commit::default())
            .unwrap();
        for (size, good) in [(1000, 10), (5 << 20, 3 << 20), (1000, 0)] {
            let put = client.put_from(
                "bucket",
                "k",
                size,
                &mut Failing { good },
                None,
                Commit::default(),
            );
            assert!(matches!(put, Err(Error::Body(_))), "{put:?}");
            let short = client.put_from(
                "bucket",
                "k",
                size,
                &mut &b"abc"[..],
                None,
                Commit::default(),
            );
            assert!(matches!(short, Err(Error::Body(_))), "{short:?}");
            assert_eq!(read(client, "bucket", "k", None).unwrap(), b"old");
        }
        // A call whose body failed before anything was sent keeps its connection.
        assert!(server.connections() <= 2, "{}", server.connections());
    });
}

#[test]
fn an_abandoned_download_does_not_disturb_the_next_call() {
    both(|Gateway { client, .. }| {
        client.create_bucket("bucket").unwrap();
        let bytes = pattern(4 << 20);
        client
            .put("bucket", "k", &bytes, Commit::default())
            .unwrap();
        for taken in [0, 1, 100_000] {
            let mut download = client
                .get("bucket", "k", None, ReadConditions::default())
                .unwrap();
            let mut some = vec![0; taken];
            download.read_exact(&mut some).unwrap();
            assert_eq!(some, bytes[..taken]);
            drop(download);
            assert_eq!(client.head("bucket", "k").unwrap().size, bytes.len() as u64);
        }
    });
}

#[test]
fn a_pipeline_keeps_order_and_continues_after_errors() {
    both(|Gateway { client, server, .. }| {
        client.create_bucket("bucket").unwrap();
        let large = pattern(1 << 20);
        let mut pipeline = client.pipeline();
        for i in 0..300 {
            let key = format!("k{i}");
            pipeline.head("bucket", &key).unwrap();
            pipeline
                .put("bucket", &key, &large[..i * 10], Commit::default())
                .unwrap();
            pipeline.head("bucket", &key).unwrap();
            pipeline.delete("bucket", &key).unwrap();
        }
        pipeline
            .put("bucket", "large", &large, Commit::default())
            .unwrap();
        pipeline.head("nowhere", "k").unwrap();
        let replies = pipeline.finish().unwrap();
        assert_eq!(replies.len(), 1202);
        for (i, four) in replies[..1200].chunks(4).enumerate() {
            let [missing, written, info, deleted] = four else {
                unreachable!()
            };
            assert!(
                matches!(missing, Err(Error::Store(StoreError::NoSuchKey))),
                "{missing:?}"
            );
            assert!(
                matches!(written, Ok(Reply::Written(w)) if w.size == i as u64 * 10),
                "{written:?}"
            );
            assert!(
                matches!(info, Ok(Reply::Info(info)) if info.size == i as u64 * 10),
                "{info:?}"
            );
            assert!(matches!(deleted, Ok(Reply::Deleted(true))), "{deleted:?}");
        }
        assert!(matches!(&replies[1200], Ok(Reply::Written(w)) if w.size == 1 << 20));
        assert!(matches!(
            &replies[1201],
            Err(Error::Store(StoreError::NoSuchBucket))
        ));
        drop(client.pipeline());
        assert_eq!(server.connections(), 1);
    });
}

#[test]
fn threads_share_a_client() {
    both(|Gateway { client, server, .. }| {
        client.create_bucket("bucket").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    for i in 0..20 {
                        let key = format!("{thread}/{i}");
                        let bytes = pattern(i * 10_000 + thread);
                        client
                            .put("bucket", &key, &bytes, Commit::default())
                            .unwrap();
                        assert_eq!(read(client, "bucket", &key, None).unwrap(), bytes);
                    }
                });
            }
        });
        assert!(server.connections() <= 8);
    });
}

#[test]
fn a_pipeline_reads_small_objects_and_reports_large_ones() {
    both(|Gateway { client, .. }| {
        client.create_bucket("bucket").unwrap();
        let large = pattern(200_000);
        let etag = client
            .put("bucket", "large", &large, Commit::default())
            .unwrap()
            .etag;
        let range = |start, length| {
            Some(ByteRange {
                start,
                length: Some(length),
            })
        };
        let always = ReadConditions::default;
        let unless = ReadConditions {
            if_none_match: Some(vec![etag]),
            ..always()
        };
        let mut pipeline = client.pipeline();
        for i in 0..200 {
            pipeline
                .get("bucket", "large", range(i, 65_536 * (i % 2)), always())
                .unwrap();
        }
        pipeline.get("bucket", "large", None, always()).unwrap();
        pipeline
            .get("bucket", "large", range(9, 65_537), always())
            .unwrap();
        pipeline.get("bucket", "large", None, unless).unwrap();
        pipeline.get("bucket", "missing", None, always()).unwrap();
        pipeline
            .get("bucket", "large", range(200_000, 1), always())
            .unwrap();
        pipeline
            .put("bucket", "empty", b"", Commit::default())
            .unwrap();
        pipeline.get("bucket", "empty", None, always()).unwrap();
        let mut replies = pipeline.finish().unwrap().into_iter();
        for i in 0..200_usize {
            match replies.next().unwrap() {
                // An empty range is not allowed.
                Err(Error::Store(StoreError::InvalidArgument(_))) if i % 2 == 0 => {}
                Ok(Reply::Object(info, bytes)) if i % 2 == 1 => {
                    assert_eq!(info.size, 200_000);
                    assert!(bytes == large[i..i + 65_536]);
                }
                other => panic!("{i}: {other:?}"),
            }
        }
        let rest: Vec<_> = replies.collect();
        assert!(
            matches!(
                &rest[..],
                [
                    Ok(Reply::TooLarge),
                    Ok(Reply::TooLarge),
                    Err(Error::NotModified),
                    Err(Error::Store(StoreError::NoSuchKey)),
                    Err(Error::Store(StoreError::InvalidRange { size: 200_000 })),
                    Ok(Reply::Written(_)),
                    Ok(Reply::Object(_, nothing)),
                ] if nothing.is_empty()
            ),
            "{rest:?}"
        );
        // The connection is still usable.
        assert_eq!(client.head("bucket", "large").unwrap().size, 200_000);
    });
}
