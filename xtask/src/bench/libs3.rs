//! The libs3 library in the process compared with plain files: the same data and directory, in turn.
//!
//! The measure is the processor time of a C program (`crates/libs3-bucketload/tests/c/bench.c`), which runs all sides
//! of a row once per repetition, in alternating order. Large objects are compared by the ratio of throughputs, small
//! ones by the time that the library adds. Both sides only make file system calls, so their processor time is their
//! run time. A third side shows the cost that no library can avoid: data copied through a buffer that is not the
//! application's, into a file that a rename makes visible as a whole.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::candidate::{CLIENT_CORE, pinned};
use super::{finish, median, option};
use crate::conformance::libs3::{compile, library};
use crate::files::TempDir;
use crate::program::done;
use crate::sh::{Result, need_programs};

/// Objects of at least this size, in bytes, are compared by throughput.
const LARGE: u64 = 1 << 20;
/// Smallest ratio of throughputs for large objects, library over files.
const SPEED_GOAL: f64 = 0.95;
/// Operations on objects up to this size, in bytes, count as small.
const SMALL: u64 = 4096;
/// Longest time that the library may add to a small operation, in µs.
const ADDED_GOAL_US: f64 = 3.0;

/// Rows of the table: the C program's word for the operation, and its name in the table.
const ROWS: [(&str, &str); 7] = [
    ("write", "write, new"),
    ("overwrite", "write, replacing"),
    ("read", "read"),
    ("produce", "write what is made on the way"),
    ("consume", "read and use on the way"),
    ("stat", "stat"),
    ("delete", "delete"),
];

/// Costs of one operation in one repetition, in ns.
struct Costs {
    files: f64,
    library: f64,
    /// The part that no library can avoid; `None` for operations without such a side.
    bare: Option<f64>,
}

/// Measures and compares with the goals. `--repetitions N` (default 7); `--write` puts the table into
/// `docs/performance.md`. The directory is a tmpfs.
pub(super) fn main(args: &[String]) -> Result {
    need_programs(&[("gcc", "gcc")])?;
    let repetitions = option(args, "--repetitions", 7)?;
    let work = TempDir::new("bench-libs3")?;
    let folder = library(work.path(), 4)?;
    let program = work.path().join("bench");
    compile(&["bench.c"], "-O2", &folder, &program)?;
    let opaque = measure(&program, &folder, "opaque", repetitions)?;
    let md5 = measure(&program, &folder, "md5", repetitions)?;
    let mut table = String::from(
        "| operation | size | goal | measured: median (range, n) | unavoidable | files | library | with MD5 tags |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut missed = Vec::new();
    for (word, name) in ROWS {
        for ((_, size), costs) in opaque.range((word, 0)..=(word, u64::MAX)) {
            let library = |costs: &Costs| Some(costs.library);
            let of = |which: fn(&Costs) -> Option<f64>, costs| Row::of(word, *size, costs, which);
            let Some(row) = of(library, costs) else {
                continue;
            };
            let bare = of(|costs| costs.bare, costs);
            let tagged = md5.get(&(word, *size)).and_then(|costs| of(library, costs));
            let middle = |which: fn(&Costs) -> f64| {
                time(median(&costs.iter().map(which).collect::<Vec<_>>()))
            };
            let figure =
                |row: Option<Row>| row.map_or_else(String::new, |row| row.figure(row.middle));
            if row.misses() {
                missed.push(format!(
                    "{name}, {}: {}",
                    bytes(*size),
                    row.figure(row.middle)
                ));
            }
            let _ = writeln!(
                table,
                "| {name} | {} | {} | {} ({} to {}, n={}) | {} | {} | {} | {} |",
                bytes(*size),
                row.goal(),
                row.figure(row.middle),
                row.figure(row.least),
                row.figure(row.most),
                costs.len(),
                figure(bare),
                middle(|costs| costs.files),
                middle(|costs| costs.library),
                figure(tagged),
            );
        }
    }
    finish("libs3", args, &table, &missed)
}

/// Formats a size for readers.
fn bytes(size: u64) -> String {
    match size {
        0 => "0".to_owned(),
        1..1024 => format!("{size} B"),
        1024..1_048_576 => format!("{} KiB", size >> 10),
        _ => format!("{} MiB", size >> 20),
    }
}

/// Formats a time for readers.
fn time(ns: f64) -> String {
    match ns {
        1e6.. => format!("{:.2} ms", ns / 1e6),
        1e5.. => format!("{:.0} µs", ns / 1e3),
        _ => format!("{:.2} µs", ns / 1e3),
    }
}

/// A comparison with files: a ratio of throughputs, or the added time in µs.
struct Row {
    by_speed: bool,
    has_goal: bool,
    middle: f64,
    least: f64,
    most: f64,
}

impl Row {
    /// Compares one side with files; `None` if the operation has no such side.
    fn of(
        word: &str,
        size: u64,
        costs: &[Costs],
        side: impl Fn(&Costs) -> Option<f64>,
    ) -> Option<Self> {
        let by_speed = size >= LARGE && !["stat", "delete"].contains(&word);
        let mut values: Vec<f64> = costs
            .iter()
            .filter_map(|costs| {
                let side = side(costs)?;
                Some(match by_speed {
                    true => costs.files / side,
                    false => (side - costs.files) / 1e3,
                })
            })
            .collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self {
            by_speed,
            has_goal: by_speed || size <= SMALL,
            middle: median(&values),
            least,
            most,
        })
    }

    fn figure(&self, value: f64) -> String {
        match self.by_speed {
            true => format!("{value:.2}x"),
            false => format!("{value:+.2} µs"),
        }
    }

    fn goal(&self) -> String {
        match (self.has_goal, self.by_speed) {
            (false, _) => String::new(),
            (true, true) => format!("≥ {SPEED_GOAL}x"),
            (true, false) => format!("≤ +{ADDED_GOAL_US} µs"),
        }
    }

    fn misses(&self) -> bool {
        self.has_goal
            && match self.by_speed {
                true => self.middle < SPEED_GOAL,
                false => self.middle > ADDED_GOAL_US,
            }
    }
}

/// Runs the C program in a new directory on tmpfs.
fn measure(
    program: &Path,
    folder: &Path,
    etag: &str,
    repetitions: u32,
) -> Result<BTreeMap<(&'static str, u64), Vec<Costs>>> {
    let directory = TempDir::in_memory("bench-libs3")?;
    let mut command = pinned(&program.to_string_lossy(), CLIENT_CORE);
    command
        .arg(directory.path())
        .arg(repetitions.to_string())
        .env("LD_LIBRARY_PATH", folder)
        .env("BUCKETLOAD_S3_ETAG", etag);
    let outcome = done(&mut command)?;
    let mut all: BTreeMap<(&'static str, u64), Vec<Costs>> = BTreeMap::new();
    for line in outcome.stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let parsed = match &words[..] {
            [word, size, files, library, bare] => ROWS
                .iter()
                .find(|(known, _)| known == word)
                .and_then(|(known, _)| {
                    let costs = Costs {
                        files: files.parse().ok()?,
                        library: library.parse().ok()?,
                        bare: bare.parse().ok(),
                    };
                    Some(((*known, size.parse().ok()?), costs))
                }),
            _ => None,
        };
        let (row, costs) = parsed.ok_or_else(|| format!("unexpected line {line:?}"))?;
        all.entry(row).or_default().push(costs);
    }
    Ok(all)
}
