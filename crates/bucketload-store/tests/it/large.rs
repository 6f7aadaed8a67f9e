//! Directories with many entries: listings are correct with or without an index, and cheap with one.

use bucketload_store::{
    Condition, EtagMode, ListRequest, PosixOptions, PosixStore, Store, StoreError,
};

const MANY: usize = 6_000;

fn open(root: &std::path::Path, index_entries: usize) -> PosixStore {
    PosixStore::open(PosixOptions {
        etag: EtagMode::Opaque,
        index_entries,
        ..PosixOptions::new(root)
    })
    .unwrap()
}

/// Keys of many kinds in one directory: files, subdirectories, an object with the name of a directory,
/// names that need escapes, and names too long for a file.
fn key(i: usize) -> String {
    match i % 50 {
        0 => format!("dir-{i:05}/x"),
        1 => format!("dir-{:05}", i - 1),
        2 => format!("100%-{i:05}"),
        3 => format!("long-{i:05}-{}", "n".repeat(260)),
        n => format!("key-{n:02}-{i:05}"),
    }
}

/// Compares the listings of a POSIX store with those of a memory store, which the model test compares
/// with the reference.
fn compare(posix: &dyn Store, memory: &dyn Store) {
    for (prefix, delimiter, max_keys) in [
        ("", "", 1000),
        ("", "/", 700),
        ("", "-", 2),
        ("key-1", "-", 3),
        ("key-17-0", "", 10),
        ("key-17", "7", 7),
        ("dir-", "/", 11),
        ("dir-00", "", 50),
        ("long-0", "", 100),
        ("1", "%", 1000),
        ("nothing", "", 10),
    ] {
        let names = |store| {
            crate::common::pages(store, prefix, delimiter, max_keys)
                .into_iter()
                .map(|page| {
                    let keys: Vec<_> = page.objects.into_iter().map(|o| o.key).collect();
                    (keys, page.common_prefixes, page.next)
                })
                .collect::<Vec<_>>()
        };
        assert!(
            names(posix) == names(memory),
            "{prefix:?} {delimiter:?} {max_keys}"
        );
    }
}

#[test]
fn large_directories_list_like_small_ones_whoever_changes_them() {
    for (index_entries, many) in [(0, MANY), (1_000_000, MANY), (1_000_000, 150)] {
        let directory = crate::common::directory();
        let store = open(directory.path(), index_entries);
        let other = open(directory.path(), 0);
        let memory = crate::common::memory();
        let all: [&dyn Store; 2] = [&store, &memory];
        all.iter()
            .for_each(|store| store.create_bucket("bucket").unwrap());
        for i in 0..many {
            for store in all {
                crate::common::put(store, &key(i), b"x");
            }
        }
        compare(&store, &memory);
        // Few and many changes, by this store and by another session.
        for step in [997, 3] {
            for i in (0..many).step_by(step) {
                let writer: &dyn Store = if i % 2 == 0 { &store } else { &other };
                for store in [writer, &memory] {
                    store.delete("bucket", &key(i), &Condition::None).unwrap();
                    crate::common::put(store, &format!("new-{i}"), b"x");
                    // A directory replaces a file.
                    crate::common::put(store, &format!("{}/below", key(i + 1)), b"x");
                }
            }
            compare(&store, &memory);
        }
        for key in crate::common::keys(&memory) {
            assert!(
                store.delete("bucket", &key, &Condition::None).unwrap(),
                "{key:?}"
            );
        }
        assert!(crate::common::keys(&store).is_empty());
        store.delete_bucket("bucket").unwrap();
    }
}

/// Lists a directory until it has an index, and returns the number of its keys.
fn listed(store: &dyn Store, prefix: &str) -> usize {
    for _ in 0..3 {
        crate::common::pages(store, prefix, "", 10);
    }
    let pages = crate::common::pages(store, prefix, "", 1000);
    pages.iter().map(|page| page.objects.len()).sum()
}

#[test]
fn a_directory_that_others_remove_and_make_again_is_listed_as_it_is() {
    let directory = crate::common::directory();
    let (store, other) = (open(directory.path(), 1_000_000), open(directory.path(), 0));
    store.create_bucket("bucket").unwrap();
    for round in 0..3 {
        let keys: Vec<String> = (0..100).map(|i| format!("d/{round}-{i}")).collect();
        for key in &keys {
            crate::common::put(&other, key, b"");
        }
        assert_eq!(listed(&store, "d/"), keys.len(), "round {round}");
        for key in &keys {
            other.delete("bucket", key, &Condition::None).unwrap();
        }
        assert!(!directory.path().join("bucket/d").exists());
        crate::common::put(&other, "d/one", b"");
        assert_eq!(listed(&store, "d/"), 1, "round {round}");
        other.delete("bucket", "d/one", &Condition::None).unwrap();
        assert_eq!(listed(&store, "d/"), 0, "round {round}");
    }
    other.delete_bucket("bucket").unwrap();
    let request = ListRequest {
        max_keys: 10,
        ..ListRequest::default()
    };
    assert!(matches!(
        store.list("bucket", &request),
        Err(StoreError::NoSuchBucket)
    ));
}

#[test]
fn removals_cost_the_same_in_a_directory_of_any_size() {
    /// Deletes each key and lists its prefix, as IOR and mdtest do; CPU seconds for a key.
    fn removal(keys: usize) -> f64 {
        let directory = crate::common::directory();
        let store = open(directory.path(), 1_000_000);
        store.create_bucket("bucket").unwrap();
        let rounds = (4096 / keys).max(1);
        let mut spent = 0.0;
        for _ in 0..rounds {
            for i in 0..keys {
                crate::common::put(&store, &format!("key-{i:07}"), b"");
            }
            spent += cpu_seconds(|| {
                for i in 0..keys {
                    let key = format!("key-{i:07}");
                    store.delete("bucket", &key, &Condition::None).unwrap();
                    let request = ListRequest {
                        prefix: &key,
                        max_keys: 1000,
                        ..ListRequest::default()
                    };
                    let page = store.list("bucket", &request).unwrap();
                    assert!(page.objects.is_empty());
                }
            });
        }
        spent / (rounds * keys) as f64
    }
    // Reading the directory each time would cost 100 times as much for 4,000 keys as for 30. The margin is for
    // code that is not optimized and for machines that others use.
    let few = removal(30);
    for keys in [64, 500, 4000] {
        let many = removal(keys);
        assert!(many < 4.0 * few, "{keys}: {many} s, 30: {few} s");
    }
}

/// CPU time of this thread, which a busy machine distorts less than wall time.
fn cpu_seconds(work: impl FnOnce()) -> f64 {
    let now = || {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
    };
    let before = now();
    work();
    now() - before
}

#[test]
fn a_page_of_a_large_directory_costs_as_much_as_in_a_small_one() {
    let cost = |objects: usize| {
        let directory = crate::common::directory();
        let store = open(directory.path(), 1_000_000);
        store.create_bucket("bucket").unwrap();
        for i in 0..objects {
            crate::common::put(&store, &format!("key-{i:07}"), b"");
        }
        let request = ListRequest {
            prefix: "key-00005",
            max_keys: 1000,
            ..ListRequest::default()
        };
        let list = || assert_eq!(store.list("bucket", &request).unwrap().objects.len(), 100);
        // The first listing builds the index.
        list();
        let mut costs: Vec<f64> = (0..15).map(|_| cpu_seconds(list)).collect();
        costs.sort_by(f64::total_cmp);
        costs[costs.len() / 2]
    };
    let (small, large) = (cost(1_000), cost(20_000));
    assert!(
        large < 2.0 * small,
        "100 keys: {small} s among 1,000, {large} s among 20,000"
    );
}
