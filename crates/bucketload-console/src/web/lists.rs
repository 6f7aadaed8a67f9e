//! Rows of ended workloads: their figures, search and order.

use std::cmp::Ordering;

use bucketload_results::units;
use serde::{Deserialize, Serialize};

use super::pages::JobRow;

/// Columns of the history: name in the address, and heading.
const COLUMNS: [(&str, &str); 8] = [
    ("workload", "Workload"),
    ("state", "State"),
    ("verdict", "Verdict"),
    ("ops", "Operations/s"),
    ("p99", "p99"),
    ("target", "Target"),
    ("ended", "Ended"),
    ("duration", "Duration"),
];

/// A heading of the table.
#[derive(Debug, Serialize)]
pub(super) struct Heading {
    label: &'static str,
    /// The address of the table in this order; empty if it cannot be sorted.
    href: String,
    /// `ascending`, `descending` or empty.
    sorted: &'static str,
}

/// What of the history is shown, and in which order.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct HistoryQuery {
    /// Words that a row must contain.
    #[serde(default)]
    pub(super) q: String,
    /// Column of the order; the time of the end if empty.
    #[serde(default)]
    sort: String,
    /// `up` or `down`; the usual direction of the column if empty.
    #[serde(default)]
    order: String,
}

impl HistoryQuery {
    fn column(&self) -> &'static str {
        let known = COLUMNS.iter().find(|(name, _)| *name == self.sort);
        known.map_or("ended", |(name, _)| name)
    }

    fn is_down(&self) -> bool {
        match self.order.as_str() {
            "up" => false,
            "down" => true,
            _ => falls(self.column()),
        }
    }

    /// The headings, each a link to its order.
    pub(super) fn headings(&self) -> Vec<Heading> {
        let heading = |&(name, label): &(&'static str, &'static str)| {
            let now = name == self.column();
            let down = if now { !self.is_down() } else { falls(name) };
            let order = if down { "down" } else { "up" };
            let words = super::files::encoded(&self.q);
            Heading {
                label,
                href: format!("/history?sort={name}&order={order}&q={words}"),
                sorted: match (now, self.is_down()) {
                    (false, _) => "",
                    (true, true) => "descending",
                    (true, false) => "ascending",
                },
            }
        };
        COLUMNS.iter().map(heading).collect()
    }

    /// The rows that are shown, in order.
    pub(super) fn apply(&self, mut rows: Vec<JobRow>) -> Vec<JobRow> {
        let words: Vec<String> = self.q.split_whitespace().map(str::to_lowercase).collect();
        rows.retain(|row| {
            let text = row.searched().to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        });
        let (column, down) = (self.column(), self.is_down());
        rows.sort_by(|a, b| {
            let order = by(column, a, b);
            if down { order.reverse() } else { order }
        });
        rows
    }
}

/// The headings of a table that cannot be sorted.
pub(super) fn plain_headings() -> Vec<Heading> {
    let heading = |&(_, label): &(&str, &'static str)| Heading {
        label,
        href: String::new(),
        sorted: "",
    };
    COLUMNS.iter().map(heading).collect()
}

/// Whether a column usually starts with its largest value.
fn falls(column: &str) -> bool {
    matches!(column, "ops" | "ended" | "duration")
}

fn by(column: &str, a: &JobRow, b: &JobRow) -> Ordering {
    let text = |pick: fn(&JobRow) -> String| pick(a).cmp(&pick(b));
    // Rows without a figure count as 0.
    let ops = |row: &JobRow| row.info.figures.as_ref().and_then(|f| f.ops_per_s);
    let p99 = |row: &JobRow| row.info.figures.as_ref().and_then(|f| f.p99_ns);
    match column {
        "workload" => text(|row| row.info.name.clone()),
        "state" => text(|row| row.info.state.clone()),
        "verdict" => text(|row| row.info.verdict.clone().unwrap_or_default()),
        "target" => text(|row| row.target.clone()),
        "ops" => {
            let top = |row| ops(row).map_or(0.0, |(_, top)| top);
            top(a).total_cmp(&top(b))
        }
        "p99" => p99(a).map(|(_, top)| top).cmp(&p99(b).map(|(_, top)| top)),
        "duration" => a.length_ms.cmp(&b.length_ms),
        _ => a.info.ended_ms.cmp(&b.info.ended_ms),
    }
}

/// One value, or the ends of a range.
pub(super) fn range<T: PartialEq + Copy>(
    ends: Option<(T, T)>,
    show: impl Fn(T) -> String,
) -> String {
    match ends {
        None => "–".to_owned(),
        Some((low, high)) => match (show(low), show(high)) {
            (low, high) if low == high => low,
            (low, high) => format!("{low} to {high}"),
        },
    }
}

/// Operations per second for readers.
pub(super) fn ops(ends: Option<(f64, f64)>) -> String {
    range(ends, units::rate)
}

/// A percentile for readers.
pub(super) fn p99(ends: Option<(u64, u64)>) -> String {
    range(ends, |ns| units::ns(ns as f64))
}
