//! CPU time per operation of every store, compared with the bare system calls for the same files.
//!
//! `cargo run --release -p bucketload-store --example store_costs [DIRECTORY] [OBJECTS]` measures the
//! file system of the directory (default `/dev/shm`).

use std::io::{Read, Write as _};
use std::path::Path;

use bucketload_store::{
    Commit, Condition, EtagMode, ListRequest, MemoryOptions, MemoryStore, NullOptions, NullStore,
    PosixOptions, PosixStore, PutOptions, Store,
};
use rustix::time::{ClockId, clock_gettime};

/// Runs `operation` for 0..`count` and prints the CPU time of this thread per call.
fn measure(what: &str, count: usize, mut operation: impl FnMut(usize)) {
    let now = || {
        let t = clock_gettime(ClockId::ThreadCPUTime);
        t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
    };
    let before = now();
    (0..count).for_each(&mut operation);
    println!("{what:<48} {:>12.0} ns", (now() - before) / count as f64);
}

fn key(i: usize) -> String {
    format!("key-{i:08}")
}

fn measure_store(name: &str, store: &dyn Store, objects: usize, size: usize) {
    let content = vec![7; size];
    let keys: Vec<_> = (0..objects).map(key).collect();
    let mut buffer = vec![0; size];
    let _ = store.create_bucket("bucket");
    let put = |i: usize| {
        let mut upload = store
            .put("bucket", &keys[i], &PutOptions::sized(size as u64))
            .expect("put");
        upload.write(&content).expect("write");
        upload.commit(Commit::default()).expect("commit");
    };
    measure(&format!("{name}: put {size} B"), objects, put);
    measure(&format!("{name}: overwrite {size} B"), objects / 10, |i| {
        put(i * 10)
    });
    measure(&format!("{name}: head"), objects, |i| {
        store.head("bucket", &keys[i]).expect("head");
    });
    measure(
        &format!("{name}: open and take the first chunk"),
        objects,
        |i| {
            let object = store.open("bucket", &keys[i]).expect("open");
            std::hint::black_box(object.chunk(0));
        },
    );
    measure(&format!("{name}: open and read {size} B"), objects, |i| {
        let object = store.open("bucket", &keys[i]).expect("open");
        object.read_at(0, &mut buffer).expect("read");
    });
    for prefix in ["key-0000", "key-000005"] {
        for what in ["first", "next"] {
            let request = ListRequest {
                prefix,
                max_keys: 100,
                ..ListRequest::default()
            };
            measure(
                &format!("{name}: {what} list of 100 below {prefix}"),
                1,
                |_| {
                    store.list("bucket", &request).expect("list");
                },
            );
        }
    }
    measure(&format!("{name}: delete"), objects, |i| {
        store
            .delete("bucket", &keys[i], &Condition::None)
            .expect("delete");
    });
}

fn measure_files(root: &Path, objects: usize, size: usize) -> std::io::Result<()> {
    let content = vec![7; size];
    let mut buffer = vec![0; size];
    std::fs::create_dir(root)?;
    let paths: Vec<_> = (0..objects).map(|i| root.join(key(i))).collect();
    measure(&format!("files: create, write {size} B"), objects, |i| {
        std::fs::File::create(&paths[i])
            .and_then(|mut f| f.write_all(&content))
            .expect("write");
    });
    measure("files: stat", objects, |i| {
        std::fs::metadata(&paths[i]).expect("stat");
    });
    measure(&format!("files: open and read {size} B"), objects, |i| {
        std::fs::File::open(&paths[i])
            .and_then(|mut f| f.read_exact(&mut buffer))
            .expect("read");
    });
    measure("files: unlink", objects, |i| {
        std::fs::remove_file(&paths[i]).expect("unlink")
    });
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().unwrap_or_else(|| "/dev/shm".to_owned());
    let objects = arguments.next().map_or(Ok(100_000), |n| n.parse())?;
    let directory = tempfile::tempdir_in(parent)?;
    for size in [0, 4096] {
        measure_files(
            &directory.path().join(format!("files{size}")),
            objects,
            size,
        )?;
        for (name, etag) in [("md5", EtagMode::Md5), ("opaque", EtagMode::Opaque)] {
            let store = NullStore::new(&NullOptions {
                object_bytes: size as u64,
                etag,
            });
            measure_store(&format!("null, {name}"), &store, objects, size);
            let store = MemoryStore::new(MemoryOptions {
                etag,
                ..MemoryOptions::default()
            });
            measure_store(&format!("memory, {name}"), &store, objects, size);
            let root = directory.path().join(format!("{name}{size}"));
            let store = PosixStore::open(PosixOptions {
                etag,
                ..PosixOptions::new(root)
            })?;
            measure_store(&format!("posix, {name}"), &store, objects, size);
        }
    }
    Ok(())
}
