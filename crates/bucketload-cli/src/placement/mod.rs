//! `bucketload placement`: finds the data nodes on which a store keeps the objects of a run.
//!
//! ```text
//! operation log ── keys ── Locate (ceph, swift, …: read from the running store) ── KEY,NODE lines
//! ```
//!
//! The code that queries a kind of store is next to its driver. This module handles the flags and writes the file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use bucketload_core::op::OpClass;
use bucketload_results::oplog;
use bucketload_results::rundir::{Manifest, RunDir};
use bucketload_target::{CephStore, Locate, OpenError, RingStore};

use crate::cli::placement::{PlacementArgs, PlacementKeys, PlacementStore};
use crate::drivers::registry;
use crate::exit::{Exit, Failure, OrFail};

/// Most keys to look up: as many as `report --placement` reads.
const MOST_KEYS: usize = 2_000_000;
/// Keys per query to a store.
const BATCH: usize = 1000;

/// Looks up the keys of a run and writes the nodes that hold them.
pub(crate) fn execute(args: &PlacementArgs) -> Result<Exit, Failure> {
    let locators = &registry().locators;
    match &args.store {
        PlacementStore::Ceph(flags) => write(&flags.keys, |_, bucket| {
            let store = CephStore {
                conf: flags.ceph_conf.clone(),
                pool: flags.pool.clone(),
                marker: flags.marker.clone(),
                all_copies: flags.all_copies,
            };
            (locators.ceph)(&store, bucket)
        }),
        PlacementStore::Seaweedfs(flags) => write(&flags.keys, |run, _| {
            (locators.seaweedfs)(flags.filer.as_deref(), flags.master.as_deref(), &run.driver)
        }),
        PlacementStore::Swift(flags) => write(&flags.keys, |run, _| {
            let store = RingStore {
                ring: flags.ring.clone(),
                conf: flags.swift_conf.clone(),
                account: flags.account.clone(),
            };
            (locators.swift)(&store, &run.driver)
        }),
        PlacementStore::Hdfs(flags) => write(&flags.keys, |run, _| {
            (locators.hdfs)(&flags.endpoint_url, &run.target)
        }),
    }
}

/// Writes the placement of the keys that `args` selects. `open` gets the run's manifest and the bucket.
fn write(
    args: &PlacementKeys,
    open: impl FnOnce(&Manifest, &str) -> Result<Box<dyn Locate>, OpenError>,
) -> Result<Exit, Failure> {
    let dir = &args.directory;
    let unreadable = |e: bucketload_results::ResultsError| Failure::usage(e.to_string());
    let run = RunDir::open(dir).map_err(unreadable)?;
    let bucket = match &args.bucket {
        Some(bucket) => bucket.clone(),
        None => bucket_of(&run.manifest().target).ok_or_else(|| {
            Failure::usage(format!(
                "{}: the run's target, {}, has no data nodes; if it does, name the bucket with --bucket",
                dir.display(),
                run.manifest().target
            ))
        })?,
    };
    let keys = keys_of(args)?;
    let mut store = open(run.manifest(), &bucket)?;
    let failed = |e: io::Error| {
        let out = args.out.as_ref();
        let name = out.map_or("standard output".to_owned(), |p| p.display().to_string());
        Failure::aborted(format!("{name}: {e}"))
    };
    let mut out: Box<dyn Write> = match &args.out {
        Some(path) => Box::new(File::create(path).map_err(failed)?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::new(&mut out);
    writeln!(out, "key,node").map_err(failed)?;
    let (mut copies, mut lost) = (0u64, 0u64);
    for keys in keys.chunks(BATCH) {
        let mut lines = String::new();
        let mut seen = vec![false; keys.len()];
        store.locate(&bucket, keys, &mut |i, node| {
            seen[i] = true;
            copies += 1;
            push_line(&mut lines, &keys[i], node);
        })?;
        lost += seen.iter().filter(|seen| !**seen).count() as u64;
        out.write_all(lines.as_bytes()).map_err(failed)?;
    }
    out.flush().map_err(failed)?;
    eprintln!(
        "placement: {copies} copies of {} objects",
        keys.len() as u64 - lost
    );
    if lost > 0 {
        eprintln!(
            "placement: {lost} objects were not found; perhaps the run deleted them (use --keep)"
        );
    }
    Ok(Exit::Ok)
}

/// The bucket in a run's target, which reads `scheme://bucket/prefix at URL`.
fn bucket_of(target: &str) -> Option<String> {
    let bucket = target.split_once("://")?.1.split(['/', ' ']).next()?;
    (!bucket.is_empty()).then(|| bucket.to_owned())
}

/// Whether operations of the class `name` have the key of an object.
fn has_object(name: &str) -> bool {
    OpClass::from_name(name).is_some_and(|class| {
        let many = class.lists() || class == OpClass::DeleteMany;
        !many && !class.on_bucket()
    })
}

/// The keys of the run's operation log, each once, in order.
fn keys_of(args: &PlacementKeys) -> Result<Vec<String>, Failure> {
    let mut keys = BTreeSet::new();
    let mut odd = false;
    let columns = ["class", "key", "outcome"];
    let rows = oplog::read(&args.directory, &columns, |rows| {
        for i in 0..rows.len {
            let text = |column: usize| rows.columns[column].text(i).unwrap_or_default();
            let key = text(1);
            if text(2) != "ok" || !has_object(text(0)) || keys.contains(key) {
                continue;
            }
            odd |= key.contains(['\n', '\r']);
            if keys.len() <= MOST_KEYS {
                keys.insert(key.to_owned());
            }
        }
    })
    .or_usage()?;
    let dir = args.directory.display();
    if rows == 0 {
        return Err(Failure::usage(format!(
            "{dir}: there is no operation log; repeat the run with --op-log"
        )));
    }
    if keys.len() > MOST_KEYS {
        return Err(Failure::usage(format!(
            "{dir}: the run used more than {MOST_KEYS} keys, which is more than a placement may list"
        )));
    }
    if odd {
        return Err(Failure::usage(format!(
            "{dir}: a key contains a line break, which a placement file cannot represent"
        )));
    }
    Ok(keys.into_iter().collect())
}

/// Appends the line `key,node`, quoted as RFC 4180 requires.
fn push_line(lines: &mut String, key: &str, node: &str) {
    for (cell, end) in [(key, ','), (node, '\n')] {
        if cell.contains([',', '"']) {
            lines.push('"');
            lines.push_str(&cell.replace('"', "\"\""));
            lines.push('"');
        } else {
            lines.push_str(cell);
        }
        lines.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::{bucket_of, has_object, push_line};

    #[test]
    fn lines_are_quoted_as_report_reads_them() {
        let mut lines = String::new();
        push_line(&mut lines, "a/b", "osd.1");
        push_line(&mut lines, "a,\"b\"", "osd.2");
        assert_eq!(lines, "a/b,osd.1\n\"a,\"\"b\"\"\",osd.2\n");
    }

    #[test]
    fn the_target_names_the_bucket() {
        let of = |text: &str| bucket_of(text);
        assert_eq!(of("s3://b/p/q at http://h").as_deref(), Some("b"));
        assert_eq!(of("swift://c/").as_deref(), Some("c"));
        assert_eq!(of("the null target"), None);
    }

    #[test]
    fn operations_on_lists_and_buckets_have_no_object() {
        assert!(has_object("get") && has_object("multipart-put"));
        assert!(!has_object("list") && !has_object("make-bucket") && !has_object("?"));
    }
}
