//! How a run's reads were spread over the data nodes of the store. Joins the operation log on the key with a
//! placement that was obtained elsewhere (docs/spec/statistics.md section 8).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use bucketload_core::driver::PlacementOracle as _;
use bucketload_core::plan::PhaseKind;
use bucketload_core::stats::balance::{
    Attribution, NodeLoads, Null, PlacementTable, one_key_bound,
};

use crate::error::ResultsError;
use crate::oplog;
use crate::result::{NodeBalance, NodeResult};
use crate::rundir::RunDir;

/// Limit on the copies in a placement: about 200 MB.
const MAX_COPIES: u64 = 2_000_000;

/// Reads a placement: lines `key,node`, one per copy of an object, with an optional heading `key,node`.
/// Quotes as in RFC 4180.
///
/// # Errors
/// When the file cannot be read, has an invalid line, or has more than two million lines.
pub fn read_placement(path: &Path) -> Result<PlacementTable, ResultsError> {
    let mut table = PlacementTable::default();
    let mut copies = 0;
    pairs(path, |key, node| {
        copies += 1;
        if copies > MAX_COPIES {
            return Err("more than 2000000 lines; use a sample of the keys");
        }
        table.insert(key, node);
        Ok(())
    })?;
    Ok(table)
}

/// Counts the requests that each node of `table` served, from lines `key,node`, one per request, as the logs of
/// the store's nodes give them.
///
/// # Errors
/// As for [`read_placement`], without the limit.
pub fn read_served(path: &Path, table: &PlacementTable) -> Result<NodeLoads, ResultsError> {
    let nodes: HashMap<&str, u32> = table.names().iter().map(String::as_str).zip(0..).collect();
    let mut loads = NodeLoads::new(table.nodes());
    pairs(path, |_, node| {
        loads.add(&[nodes.get(node).copied().unwrap_or(u32::MAX)], 0);
        Ok(())
    })?;
    Ok(loads)
}

/// Calls `each` for every line of a file of pairs.
fn pairs(
    path: &Path,
    mut each: impl FnMut(&str, &str) -> Result<(), &'static str>,
) -> Result<(), ResultsError> {
    let mut read = || {
        let lines = BufReader::new(File::open(path)?).lines();
        for (line, number) in lines.zip(1u64..) {
            let line = line?;
            let bad = |what: &str| {
                let text = format!("line {number}: {what}");
                io::Error::new(io::ErrorKind::InvalidData, text)
            };
            if line.trim().is_empty() || (number == 1 && line.trim() == "key,node") {
                continue;
            }
            let cells = oplog::split(&line).unwrap_or_default();
            let [key, node] = cells.as_slice() else {
                return Err(bad("not `key,node`"));
            };
            if node.trim().is_empty() {
                return Err(bad("no node name"));
            }
            each(key, node.trim()).map_err(bad)?;
        }
        Ok(())
    };
    read().map_err(ResultsError::io(path, "read"))
}

/// How the reads (get, range-get, head) in the measuring phases of the run in `dir` spread over the nodes of
/// `table`, assuming that every copy of a key answers equally often. `served` adds the nodes' own counts, if
/// known.
///
/// # Errors
/// When the operation log is missing or cannot be read.
pub fn nodes(
    dir: &Path,
    table: &PlacementTable,
    served: Option<&NodeLoads>,
) -> Result<NodeBalance, ResultsError> {
    let phases = measured(dir)?;
    let all = vec![0; phases.len()];
    let mut counted = count(dir, table, &phases, &all)?;
    Ok(counted.swap_remove(0).balance(table, served))
}

/// Like [`nodes`], separately for each measuring phase: phases may differ in the popularity of keys.
///
/// # Errors
/// As for [`nodes`].
pub fn nodes_by_phase(
    dir: &Path,
    table: &PlacementTable,
) -> Result<Vec<(String, NodeBalance)>, ResultsError> {
    let phases = measured(dir)?;
    let each: Vec<usize> = (0..phases.len()).collect();
    let counted = count(dir, table, &phases, &each)?;
    let balances = counted
        .into_iter()
        .map(|counted| counted.balance(table, None));
    Ok(phases.into_iter().zip(balances).collect())
}

/// Names of the measuring phases of the run in `dir`.
fn measured(dir: &Path) -> Result<Vec<String>, ResultsError> {
    let run = RunDir::open(dir)?;
    let phases = run.manifest().plan.phases.iter();
    Ok(phases
        .filter(|phase| phase.kind == PhaseKind::Run)
        .map(|phase| phase.name.clone())
        .collect())
}

/// Reads, counted by node and by key.
struct ReadCounts {
    expected: NodeLoads,
    /// Bounded by the table: keys without copies are not counted.
    keys: HashMap<String, u64>,
    /// Reads and number of copies of the most-read key.
    hottest: (u64, usize),
}

/// Counts the reads of the operation log. Those of phase `phases[i]` go into the count with number `into[i]`;
/// the result has at least one count.
fn count(
    dir: &Path,
    table: &PlacementTable,
    phases: &[String],
    into: &[usize],
) -> Result<Vec<ReadCounts>, ResultsError> {
    let counts = into.iter().max().map_or(1, |last| last + 1);
    let mut counted: Vec<ReadCounts> = (0..counts)
        .map(|_| ReadCounts {
            expected: NodeLoads::new(table.nodes()),
            keys: HashMap::new(),
            hottest: (0, 0),
        })
        .collect();
    let mut copies = Vec::new();
    let columns = ["phase", "class", "key", "bytes", "outcome"];
    let rows = oplog::read(dir, &columns, |rows| {
        for i in 0..rows.len {
            let text = |column: usize| rows.columns[column].text(i).unwrap_or_default();
            let read = matches!(text(1), "get" | "range-get" | "head");
            if !read || text(4) != "ok" {
                continue;
            }
            let Some(phase) = phases.iter().position(|name| name == text(0)) else {
                continue;
            };
            table.copies("", text(2), &mut copies);
            let bytes = rows.columns[3].int(i).and_then(|n| u64::try_from(n).ok());
            counted[into[phase]].add(text(2), bytes.unwrap_or(0), &copies);
        }
    })?;
    match rows {
        0 => Err(ResultsError::NoOpLog(dir.to_owned())),
        _ => Ok(counted),
    }
}

impl ReadCounts {
    fn add(&mut self, key: &str, bytes: u64, copies: &[u32]) {
        self.expected.add(copies, bytes);
        if copies.is_empty() {
            return;
        }
        let count = match self.keys.get_mut(key) {
            Some(count) => count,
            None => self.keys.entry(key.to_owned()).or_default(),
        };
        *count += 1;
        if *count > self.hottest.0 {
            self.hottest = (*count, copies.len());
        }
    }

    fn balance(self, table: &PlacementTable, served: Option<&NodeLoads>) -> NodeBalance {
        let all: u64 = self.keys.values().sum();
        let objects = table.objects();
        let observed = served.map_or(&[][..], |loads| loads.requests.as_slice());
        let hottest_share = self.hottest.0 as f64 / all.max(1) as f64;
        let whole: Vec<u64> = observed.iter().map(|&q| q as u64).collect();
        let expected = &self.expected;
        NodeBalance {
            nodes: table
                .names()
                .iter()
                .enumerate()
                .map(|(i, name)| NodeResult {
                    name: name.clone(),
                    objects: objects[i],
                    expected: expected.requests[i],
                    observed: observed.get(i).copied(),
                    bytes: expected.bytes[i],
                })
                .collect(),
            unknown: expected.unknown + served.map_or(0, |loads| loads.unknown),
            attribution: Attribution::of(&objects, &expected.requests, observed),
            null: Null::even(&whole),
            hottest_share,
            one_key_bound: one_key_bound(table.nodes(), hottest_share, self.hottest.1),
        }
    }
}
