//! Metrics: their values over the runs of a group, names and units.

use bucketload_core::verdict::Word;
use bucketload_results::kit::{Cell, Unit};

use super::digest::{Figures, Run};
use super::estimate::Estimate;
use super::groups::Group;
use crate::model::Metric;

/// The distinct `items`, in order of first occurrence.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    for item in items {
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}

/// The operations of a figure: a class (empty: all) in a phase (empty: the only measuring one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ops<'a> {
    /// Phase.
    pub phase: &'a str,
    /// Class.
    pub class: &'a str,
}

/// Values of `metric`, one per counted run.
#[must_use]
pub fn values(group: &Group, metric: Metric, ops: Ops<'_>) -> Vec<f64> {
    group
        .counted()
        .filter_map(|run| run.value(metric, ops.phase, ops.class))
        .collect()
}

/// A figure of each counted run.
pub fn each(group: &Group, ops: Ops<'_>, figure: impl Fn(&Figures) -> Option<f64>) -> Vec<f64> {
    group
        .counted()
        .filter_map(|run| run.figures(ops.phase, ops.class))
        .filter_map(figure)
        .collect()
}

/// Values of runs, each with its block.
pub type Blocks = Vec<(u32, f64)>;

/// Values of `metric` with the block (repetition) of their run, for ratios.
#[must_use]
pub fn blocks(group: &Group, metric: Metric, ops: Ops<'_>) -> Blocks {
    let value = |run: &Run| run.value(metric, ops.phase, ops.class);
    let counted = group.counted();
    counted
        .filter_map(|run| Some((run.repetition, value(run)?)))
        .collect()
}

/// `metric` over the runs: percentiles as medians, everything else as means.
#[must_use]
pub fn estimate(group: &Group, metric: Metric, ops: Ops<'_>) -> Option<Estimate> {
    let values = values(group, metric, ops);
    match is_percentile(metric) {
        true => Estimate::median(&values),
        false => Estimate::mean(&values),
    }
}

/// True if a cell shows the median of the runs' percentiles.
#[must_use]
pub const fn is_percentile(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::P50 | Metric::P95 | Metric::P99 | Metric::P999 | Metric::LoadP50 | Metric::LoadP99
    )
}

/// Its name with the unit, for axes.
#[must_use]
pub fn label(metric: Metric) -> String {
    match metric.unit {
        Unit::PerS if metric == Metric::Samples => "samples/s".to_owned(),
        Unit::PerS => format!("{} (operations/s)", metric.title),
        Unit::UsPerOp => format!("{} (µs)", metric.title),
        _ => metric.title.to_owned(),
    }
}

/// A table cell with the metric's figure.
#[must_use]
pub fn figure(group: &Group, metric: Metric, ops: Ops<'_>) -> Cell {
    Estimate::cell(estimate(group, metric, ops), |v| metric.unit.show(v))
}

/// A table cell: the figure, or why there is none; marked if a run is not VALID.
#[must_use]
pub fn cell(group: Option<&Group>, metric: Metric, ops: Ops<'_>) -> Cell {
    let Some(group) = group else {
        return Cell::None;
    };
    match figure(group, metric, ops) {
        Cell::None if group.counted().next().is_none() => Cell::text(group.why_none()),
        cell => cell.marked(&mark(group)),
    }
}

/// The letter of a group's verdict in brackets; empty for VALID.
#[must_use]
pub fn mark(group: &Group) -> String {
    match group.word() {
        None | Some(Word::Valid) => "",
        Some(Word::Degraded) => "(D)",
        Some(Word::Unsteady) => "(U)",
        Some(Word::Overloaded) => "(O)",
        Some(Word::ClientBound) => "(C)",
        Some(Word::Incomplete) => "(I)",
    }
    .to_owned()
}

/// `name` with the mark of the group.
#[must_use]
pub fn with_mark(name: String, group: &Group) -> String {
    format!("{name} {}", mark(group)).trim_end().to_owned()
}

/// Explains the marks and brackets of tables.
pub const NOTE: &str = "In brackets: 95 % interval over the repetitions. Marks of cells with runs that are not VALID: D degraded, \
     U unsteady, O overloaded, C client-bound, I incomplete.";

/// Explains the letters after names in charts.
pub const LETTERS: &str = "Letters mark cells with runs that are not VALID: D degraded, U unsteady, O overloaded, C client-bound, I incomplete.";

/// The phases of a figure: the requested one, or all that runs have.
#[must_use]
pub fn phases<'a>(groups: &'a [Group], requested: &'a str) -> Vec<&'a str> {
    if !requested.is_empty() && !requested.ends_with('*') {
        return vec![requested];
    }
    let runs = || groups.iter().flat_map(|g| g.counted());
    if requested.is_empty() && runs().all(|run| run.figures("", "").is_some()) {
        return vec![""];
    }
    let named = runs().flat_map(|run| &run.slots).map(|s| s.phase.as_str());
    distinct(named.filter(|phase| !phase.is_empty() && like(requested, phase)))
}

/// The phases of a figure or table of `metric`: figures of training, checkpoints and caches are those of the whole run
/// unless a phase is requested.
#[must_use]
pub fn phases_of<'a>(groups: &'a [Group], requested: &'a str, metric: Metric) -> Vec<&'a str> {
    match metric.ai() {
        Some(_) if requested.is_empty() => vec![""],
        _ => phases(groups, requested),
    }
}

/// True if a phase is requested: by name, by a prefix followed by `*`, or by an empty text.
#[must_use]
pub fn like(requested: &str, phase: &str) -> bool {
    match requested.strip_suffix('*') {
        Some(beginning) => phase.starts_with(beginning),
        None => requested.is_empty() || requested == phase,
    }
}

/// The classes that runs have in `phase`: the requested one, or all; `""` if there are none.
#[must_use]
pub fn classes<'a>(groups: &'a [Group], phase: &str, requested: &'a str) -> Vec<&'a str> {
    if !requested.is_empty() {
        return vec![requested];
    }
    let slots = groups
        .iter()
        .flat_map(|g| g.counted())
        .flat_map(|r| &r.slots);
    let own = slots.filter(|s| s.phase == phase && !s.class.is_empty());
    match distinct(own.map(|s| s.class.as_str())) {
        none if none.is_empty() => vec![""],
        classes => classes,
    }
}

/// `base` followed by class and phase in brackets.
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
    fn phases_are_requested_by_name_or_prefix() {
        let name = "benchmark-0-0.0000";
        assert_eq!(
            ["", name, "benchmark*", "*", "benchmark", "cleanup*"]
                .map(|requested| like(requested, name)),
            [true, true, true, true, false, false]
        );
    }
}
