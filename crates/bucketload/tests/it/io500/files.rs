//! Readers of a run directory: the sections of result files, and the operation log.
#![allow(unreachable_pub, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bucketload_results::oplog::{Column, read};

/// The sections of a result file.
pub fn sections(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, value)) = line.split_once(" = ") {
            let values = all.entry(section.clone()).or_default();
            values.insert(key.trim().to_owned(), value.to_owned());
        }
    }
    all
}

/// The operation log of a phase.
#[derive(Default)]
pub struct Logged {
    pub first_ns: i64,
    pub last_ns: i64,
    pub bytes: u64,
    pub requests: u64,
    pub keys: BTreeSet<String>,
    /// Class and worker of each request.
    pub classes: BTreeMap<String, u64>,
}

impl Logged {
    pub fn seconds(&self) -> f64 {
        (self.last_ns - self.first_ns) as f64 / 1e9
    }
}

pub fn log(dir: &Path) -> BTreeMap<String, Logged> {
    let mut phases: BTreeMap<String, Logged> = BTreeMap::new();
    let columns = [
        "phase", "class", "key", "bytes", "due_ns", "done_ns", "outcome",
    ];
    let rows = read(dir, &columns, |rows| {
        let text = |at: usize, row: usize| match &rows.columns[at] {
            Column::Texts(texts) => texts[row].clone().unwrap_or_default(),
            Column::Ints(_) => panic!("column {at} has no texts"),
        };
        let int = |at: usize, row: usize| match &rows.columns[at] {
            Column::Ints(ints) => ints[row].unwrap_or(0),
            Column::Texts(_) => panic!("column {at} has no numbers"),
        };
        for row in 0..rows.len {
            let phase = phases.entry(text(0, row)).or_default();
            assert_eq!(text(6, row), "ok", "{} {}", text(0, row), text(2, row));
            let (due, done) = (int(4, row), int(5, row));
            if phase.requests == 0 {
                (phase.first_ns, phase.last_ns) = (due, done);
            }
            phase.first_ns = phase.first_ns.min(due);
            phase.last_ns = phase.last_ns.max(done);
            phase.bytes += int(3, row) as u64;
            phase.requests += 1;
            phase.keys.insert(text(2, row));
            *phase.classes.entry(text(1, row)).or_default() += 1;
        }
    });
    assert!(rows.unwrap() > 0);
    phases
}
