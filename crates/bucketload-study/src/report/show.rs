//! Metrics: their values over the runs of a group, names and units.

use super::digest::{Figures, Run};
use super::estimate::Over;
use super::groups::Group;
use super::svg::Unit;
use super::table::Cell;
use crate::model::Metric;

/// What is looked at: a class (empty: all) in a phase (empty: the only one that measures).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look<'a> {
    /// Phase.
    pub phase: &'a str,
    /// Class.
    pub class: &'a str,
}

/// Values of `metric`, one per run that counts.
#[must_use]
pub fn values(group: &Group, metric: Metric, look: Look<'_>) -> Vec<f64> {
    each(group, look, |figures| figures.metric(metric))
}

/// A figure of each run that counts.
pub fn each(group: &Group, look: Look<'_>, figure: impl Fn(&Figures) -> Option<f64>) -> Vec<f64> {
    group
        .counted()
        .filter_map(|run| run.figures(look.phase, look.class))
        .filter_map(figure)
        .collect()
}

/// Values of runs, each with its block.
pub type Blocks = Vec<(u32, f64)>;

/// Values of `metric` with the block (repetition) of their run: what ratios are made of.
#[must_use]
pub fn blocks(group: &Group, metric: Metric, look: Look<'_>) -> Blocks {
    let value = |run: &Run| run.figures(look.phase, look.class)?.metric(metric);
    let counted = group.counted();
    counted
        .filter_map(|run| Some((run.repetition, value(run)?)))
        .collect()
}

/// `metric` over the runs: percentiles as medians, everything else as means.
#[must_use]
pub fn over(group: &Group, metric: Metric, look: Look<'_>) -> Option<Over> {
    let values = values(group, metric, look);
    match is_percentile(metric) {
        true => Over::median(&values),
        false => Over::mean(&values),
    }
}

/// Whether a cell's figure is the median of the runs' percentiles.
#[must_use]
pub const fn is_percentile(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::P50 | Metric::P95 | Metric::P99 | Metric::P999
    )
}

/// Whether smaller values are better.
#[must_use]
pub const fn is_cost(metric: Metric) -> bool {
    !matches!(
        metric,
        Metric::Throughput | Metric::Bandwidth | Metric::WallThroughput | Metric::WallBandwidth
    )
}

/// Its unit.
#[must_use]
pub const fn unit(metric: Metric) -> Unit {
    match metric {
        Metric::Throughput | Metric::WallThroughput => Unit::PerS,
        Metric::Bandwidth | Metric::WallBandwidth => Unit::BytesPerS,
        Metric::Errors => Unit::Share,
        Metric::ClientCpu => Unit::UsPerOp,
        _ => Unit::Ns,
    }
}

/// Its name for readers.
#[must_use]
pub const fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::Bandwidth => "bandwidth",
        Metric::Mean => "mean response time",
        Metric::P50 => "median response time",
        Metric::P95 => "p95 response time",
        Metric::P99 => "p99 response time",
        Metric::P999 => "p99.9 response time",
        Metric::FirstByte => "mean time to first byte",
        Metric::Errors => "share of failed operations",
        Metric::ClientCpu => "client CPU time per operation",
        Metric::WallThroughput => "throughput from first start to last end",
        Metric::WallBandwidth => "bandwidth from first start to last end",
    }
}

/// Its name with the unit, for axes.
#[must_use]
pub fn label(metric: Metric) -> String {
    match unit(metric) {
        Unit::PerS => format!("{} (operations/s)", name(metric)),
        Unit::UsPerOp => format!("{} (µs)", name(metric)),
        _ => name(metric).to_owned(),
    }
}

/// Its name in CSV, with the unit.
#[must_use]
pub const fn key(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "ops_per_s",
        Metric::Bandwidth => "bytes_per_s",
        Metric::Mean => "mean_ns",
        Metric::P50 => "p50_ns",
        Metric::P95 => "p95_ns",
        Metric::P99 => "p99_ns",
        Metric::P999 => "p999_ns",
        Metric::FirstByte => "first_byte_ns",
        Metric::Errors => "error_share",
        Metric::ClientCpu => "client_cpu_us_per_op",
        Metric::WallThroughput => "wall_ops_per_s",
        Metric::WallBandwidth => "wall_bytes_per_s",
    }
}

/// A table's cell: the figure, or why there is none; marked where a run is not VALID.
#[must_use]
pub fn cell(group: Option<&Group>, metric: Metric, look: Look<'_>) -> Cell {
    let Some(group) = group else {
        return Cell::None;
    };
    match over(group, metric, look) {
        Some(figure) => marked(group, Cell::figure(Some(figure), |v| unit(metric).show(v))),
        None if group.counted().next().is_some() => Cell::None,
        None => Cell::text(group.why_none()),
    }
}

/// `cell` with the mark of its group's verdict.
#[must_use]
pub fn marked(group: &Group, cell: Cell) -> Cell {
    match (cell, group.word().map_or("", mark)) {
        (
            Cell::Figure {
                over,
                shown,
                interval,
            },
            mark,
        ) if !mark.is_empty() => Cell::Figure {
            over,
            shown: format!("{shown} ({mark})"),
            interval,
        },
        (cell, _) => cell,
    }
}

/// The letter of a verdict; empty for VALID.
#[must_use]
pub const fn mark(word: bucketload_core::verdict::Word) -> &'static str {
    use bucketload_core::verdict::Word;
    match word {
        Word::Valid => "",
        Word::Degraded => "D",
        Word::Unsteady => "U",
        Word::Overloaded => "O",
        Word::ClientBound => "C",
        Word::Incomplete => "I",
    }
}

/// What the marks and brackets of tables mean.
pub const NOTE: &str = "In brackets: 95 % interval over the repetitions. Marks of cells that are not VALID: D degraded, \
     U unsteady, O overloaded, C client-bound, I incomplete runs among them.";

/// What the letters behind names in charts mean.
pub const LETTERS: &str = "Letters mark cells with runs that are not VALID: D degraded, U unsteady, O overloaded, C client-bound, I incomplete.";

/// The phases that a figure is drawn for: the one that is asked for, or all that runs have.
#[must_use]
pub fn phases<'a>(groups: &'a [Group], asked: &'a str) -> Vec<&'a str> {
    if !asked.is_empty() && !asked.ends_with('*') {
        return vec![asked];
    }
    let mut out: Vec<&str> = Vec::new();
    let mut single = true;
    for run in groups.iter().flat_map(|g| g.counted()) {
        single &= run.figures("", "").is_some();
        for slot in run.slots.iter().filter(|s| !s.phase.is_empty()) {
            if !out.contains(&&*slot.phase) && like(asked, &slot.phase) {
                out.push(&slot.phase);
            }
        }
    }
    match single && asked.is_empty() {
        true => vec![""],
        false => out,
    }
}

/// Whether a phase is asked for: by its name, by the beginning of its name with an asterisk behind it, or by nothing.
#[must_use]
pub fn like(asked: &str, phase: &str) -> bool {
    match asked.strip_suffix('*') {
        Some(beginning) => phase.starts_with(beginning),
        None => asked.is_empty() || asked == phase,
    }
}

/// The classes that runs have in `phase`: the one that is asked for, or all; `""` where there is one only.
#[must_use]
pub fn classes<'a>(groups: &'a [Group], phase: &str, asked: &'a str) -> Vec<&'a str> {
    if !asked.is_empty() {
        return vec![asked];
    }
    let mut out: Vec<&str> = Vec::new();
    for run in groups.iter().flat_map(|g| g.counted()) {
        for slot in run
            .slots
            .iter()
            .filter(|s| s.phase == phase && !s.class.is_empty())
        {
            if !out.contains(&&*slot.class) {
                out.push(&slot.class);
            }
        }
    }
    match out.len() {
        0 => vec![""],
        _ => out,
    }
}

/// `base` with what it is of: class and phase in brackets.
#[must_use]
pub fn titled(base: &str, phase: &str, class: &str) -> String {
    let of: Vec<&str> = [class, phase]
        .into_iter()
        .filter(|t| !t.is_empty())
        .collect();
    match of.is_empty() {
        true => base.to_owned(),
        false => format!("{base} ({})", of.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn phases_are_asked_for_by_name_or_beginning() {
        let name = "benchmark-0-0.0000";
        assert_eq!(
            ["", name, "benchmark*", "*", "benchmark", "cleanup*"].map(|asked| like(asked, name)),
            [true, true, true, true, false, false]
        );
    }
}
