//! Writes the fitted workload in the language of workload files.

use std::fmt::Write as _;

use super::Model;
use super::observe::{Kind, Observed};
use crate::prepare::Summary;

/// Part size of uploads whose parts were not recorded, bytes.
const DEFAULT_PART_BYTES: u64 = 8 << 20;
/// Maximum number of prepared objects to delete; further deletes meet absent objects.
const MAX_DELETED: u64 = 100_000;

/// The mix by entry name, and the text of the workload. `notes` gets what the workload does not reproduce.
pub(super) fn workload(
    name: &str,
    summary: &Summary,
    seen: &Observed,
    model: &Model,
    notes: &mut Vec<String>,
) -> (Vec<(String, f64)>, String) {
    let mut out = WorkloadBuilder::default();
    for (&kind, &n) in &seen.kinds {
        out.kind(kind, n, seen, model, notes);
    }
    let total: u64 = out.entries.iter().map(|entry| entry.1).sum();
    let share = |n: u64| n as f64 / total.max(1) as f64;
    let mix = out
        .entries
        .iter()
        .map(|(name, n, _)| (name.clone(), share(*n)))
        .collect();
    out.read_set(model);
    out.other_sets(seen, model);
    if seen.read_back > 0 {
        let reads: u64 = [Kind::Get, Kind::RangeGet, Kind::Head]
            .iter()
            .filter_map(|kind| seen.kinds.get(kind))
            .sum();
        notes.push(format!(
            "{:.1} % of the reads were of objects that the trace had written; the workload reads only \
             objects that are prepared before the run",
            100.0 * seen.read_back as f64 / reads.max(1) as f64
        ));
    }
    let seconds = (summary.span_ns as f64 / 1e9).ceil().max(1.0);
    let mut text = format!(
        "# Fitted to {} requests over {seconds} s. It contains no names from the trace.\n\
         name = \"{name}\"\n\
         description = \"Open loop, fitted to a trace\"\n",
        summary.requests
    );
    text += &out.sets;
    let _ = write!(
        text,
        "\n[phases.run]\nduration = \"{seconds}s\"\narrival = \"{}\"\n\n[phases.run.mix]\n",
        model.arrivals.law
    );
    for (entry, weight, fields) in &out.entries {
        let _ = writeln!(text, "{entry} = {{ weight = {weight}, {fields} }}");
    }
    (mix, text)
}

#[derive(Default)]
struct WorkloadBuilder {
    /// Name, weight and fields of each entry of the mix.
    entries: Vec<(String, u64, String)>,
    sets: String,
    reads: bool,
    writes: bool,
    overwrites: bool,
    deletes: u64,
}

impl WorkloadBuilder {
    fn entry(&mut self, name: &str, weight: u64, fields: String) {
        self.entries.push((name.to_owned(), weight, fields));
    }

    fn kind(
        &mut self,
        kind: Kind,
        n: u64,
        seen: &Observed,
        model: &Model,
        notes: &mut Vec<String>,
    ) {
        let keys = model
            .reads
            .as_ref()
            .map_or("uniform", |fit| fit.law.as_str());
        let read = format!("keyset = \"read\", keys = \"{keys}\"");
        match kind {
            Kind::Get | Kind::Head => {
                self.reads = true;
                self.entry(if kind == Kind::Get { "get" } else { "head" }, n, read);
            }
            Kind::RangeGet => {
                self.reads = true;
                let law = model
                    .range_lengths
                    .as_ref()
                    .map_or("4KiB", |fit| fit.law.as_str());
                let align = if seen.aligned * 10 >= n * 9 {
                    "4KiB"
                } else {
                    "1"
                };
                let range = format!("{read}, range = \"{law}\", range-align = \"{align}\"");
                self.entry("range-get", n, range);
            }
            Kind::Put => {
                // `fresh` also counts multipart uploads, so it is divided in proportion.
                let uploads = seen.kinds.get(&Kind::Multipart).copied().unwrap_or(0);
                let all = (n + uploads).max(1);
                let fresh = (u128::from(seen.fresh) * u128::from(n) / u128::from(all)) as u64;
                if fresh > 0 {
                    self.writes = true;
                    self.entry(
                        "put",
                        fresh,
                        "keyset = \"write\", keys = \"fresh\"".to_owned(),
                    );
                }
                if n > fresh {
                    self.overwrites = true;
                    let law = model
                        .overwrites
                        .as_ref()
                        .map_or("uniform", |fit| fit.law.as_str());
                    let fields = format!("op = \"put\", keyset = \"overwrite\", keys = \"{law}\"");
                    self.entry("overwrite", n - fresh, fields);
                }
            }
            Kind::Multipart => {
                self.writes = true;
                let part = if seen.part >= 5 << 20 {
                    seen.part
                } else {
                    DEFAULT_PART_BYTES
                };
                let fields = "keyset = \"write\", keys = \"fresh\", part-size = ";
                self.entry("multipart-put", n, format!("{fields}{part}"));
            }
            Kind::Delete => {
                self.deletes += n;
                self.entry(
                    "delete",
                    n,
                    "keyset = \"delete\", keys = \"uniform\"".to_owned(),
                );
            }
            Kind::DeleteMany => {
                self.deletes += n + seen.bulk_keys;
                let batch = (seen.bulk_keys / n.max(1) + 1).min(1000);
                let fields = "keyset = \"delete\", keys = \"uniform\", batch = ";
                self.entry("delete-many", n, format!("{fields}{batch}"));
            }
            Kind::List => {
                self.reads = true;
                self.entry("list", n, "keyset = \"read\"".to_owned());
                notes.push("listings use the prefix of the read objects".to_owned());
            }
            Kind::Copy => {
                self.reads = true;
                self.entry("copy", n, read);
            }
        }
        if matches!(kind, Kind::Delete | Kind::DeleteMany) {
            let note = "deletes select their objects at random, so some meet absent ones";
            if !notes.iter().any(|other| other == note) {
                notes.push(note.to_owned());
            }
        }
    }

    fn set(&mut self, name: &str, count: u64, size: &str, more: &str) {
        let _ = write!(self.sets, "\n[keysets.{name}]\n");
        if count > 0 {
            let _ = writeln!(self.sets, "count = {count}");
        }
        let _ = writeln!(self.sets, "size = \"{size}\"{more}");
    }

    fn read_set(&mut self, model: &Model) {
        if !self.reads {
            return;
        }
        let count = model.reads.as_ref().map_or(1000, |fit| fit.objects);
        let sizes = model.read_sizes.as_ref().or(model.write_sizes.as_ref());
        let size = sizes.map_or("4KiB", |fit| fit.law.as_str());
        // Sizes are assigned by rank, so that the sizes of reads follow the law in spite of the skew.
        self.set("read", count, size, "\nassign = \"low-discrepancy\"");
    }

    fn other_sets(&mut self, seen: &Observed, model: &Model) {
        let size = model
            .write_sizes
            .as_ref()
            .map_or("4KiB", |fit| fit.law.as_str())
            .to_owned();
        if self.writes {
            self.set("write", 0, &size, "");
        }
        if self.overwrites {
            let count = model.overwrites.as_ref().map_or(1, |fit| fit.objects);
            self.set("overwrite", count, &size, "");
        }
        if self.deletes > 0 {
            let size = if seen.write_sizes.total() > 0 {
                size.as_str()
            } else {
                "4KiB"
            };
            self.set("delete", self.deletes.min(MAX_DELETED), size, "");
        }
    }
}
