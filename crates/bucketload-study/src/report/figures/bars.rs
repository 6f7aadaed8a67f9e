//! Metrics per target as bars, and multiples of the baseline.

use bucketload_results::kit::svg::{Bar, Bars, Body};
use bucketload_results::kit::{Axis, Chart, Unit};

use super::super::estimate::ratio;
use super::super::groups::Group;
use super::super::published;
use super::super::show::{self, Ops};
use super::{Context, hollow, line_name, processes, targets};
use crate::model::Metric;

/// One bar per target (and value).
pub(super) fn bars(context: &Context<'_>) -> Vec<Chart> {
    let metric = context.figure.metric.unwrap_or(Metric::Throughput);
    let groups = context.groups();
    let several = processes(groups).len() > 1;
    let swept = groups.iter().any(|g| !g.value.is_empty());
    let chart = |ops: Ops<'_>| {
        let mut bars = Bars {
            legend: if swept { legend(groups) } else { Vec::new() },
            ..Bars::default()
        };
        for group in groups {
            let of = if swept { &group.value } else { &group.label };
            if let Some(bar) = bar(group, metric, ops) {
                bars.add(&line_name(of, group.processes, several), bar);
            }
        }
        of_metric(context, metric, ops, bars)
    };
    context.selections().into_iter().map(chart).collect()
}

/// The chart of a metric in a phase.
fn of_metric(context: &Context<'_>, metric: Metric, ops: Ops<'_>, bars: Bars) -> Chart {
    let x = Axis::fitting(&show::label(metric), metric.unit, bars.values());
    let parts = [metric.id, ops.class, ops.phase];
    let title = show::titled(metric.title, ops.phase, ops.class);
    let chart = context.chart(&parts, &title, (x.clone(), x), Body::Bars(bars));
    chart.noted(context.note(metric))
}

/// Even and skewed popularity side by side: one group per target, one bar per phase (or value of a sweep).
pub(super) fn hotspot(context: &Context<'_>) -> Vec<Chart> {
    let groups = context.groups();
    let selections = context.selections();
    let has_tail = |ops: &Ops<'_>| {
        let mut values = groups.iter().map(|g| show::values(g, Metric::P99, *ops));
        values.any(|values| !values.is_empty())
    };
    // Short runs have too few operations for a tail.
    let usual = match selections.iter().any(has_tail) {
        true => Metric::P99,
        false => Metric::P50,
    };
    let metric = context.figure.metric.unwrap_or(usual);
    let values = context.measured.values();
    let sides = || {
        values
            .iter()
            .flat_map(|value| selections.iter().map(move |ops| (*value, *ops)))
    };
    let name = |(value, ops): (&str, Ops<'_>)| format!("{value} {}", ops.phase).trim().to_owned();
    let mut bars = Bars {
        legend: sides().map(name).collect(),
        ..Bars::default()
    };
    for (target, label, _) in targets(groups) {
        for (look, (value, ops)) in sides().enumerate() {
            let group = context.measured.group(target, value);
            if let Some(found) = group.and_then(|g| bar(g, metric, ops)) {
                bars.add(label, Bar { look, ..found });
            }
        }
    }
    let ops = Ops {
        phase: "",
        class: &context.figure.class,
    };
    vec![of_metric(context, metric, ops, bars)]
}

fn bar(group: &Group, metric: Metric, ops: Ops<'_>) -> Option<Bar> {
    let estimate = show::estimate(group, metric, ops)?;
    Some(Bar {
        look: group.look,
        value: estimate.value,
        ci: estimate.ci,
        text: show::with_mark(metric.unit.show(estimate.value), group),
        flawed: group.flawed(),
    })
}

/// Names of the targets by their looks.
fn legend(groups: &[Group]) -> Vec<String> {
    let mut out = Vec::new();
    for (_, label, look) in targets(groups) {
        out.resize(out.len().max(look + 1), String::new());
        label.clone_into(&mut out[look]);
    }
    out
}

/// The rows of multiples: each metric of each class.
pub(in super::super) fn rows(
    groups: &[Group],
    phase: &str,
    class: &str,
    metric: Option<Metric>,
) -> Vec<(String, Metric, String)> {
    let mut out = Vec::new();
    if metric.is_none() {
        let name = "throughput".to_owned();
        out.push((name, Metric::Throughput, class.to_owned()));
    }
    let metrics = match metric {
        Some(metric) => vec![metric],
        None => vec![Metric::Mean, Metric::P50, Metric::P99],
    };
    for class in show::classes(groups, phase, class) {
        out.extend(metrics.iter().map(|metric| {
            let name = match class {
                "" => metric.title.to_owned(),
                class => format!("{class}: {}", metric.title),
            };
            (name, *metric, class.to_owned())
        }));
    }
    out
}

/// Multiples of the baseline for each other target.
pub(super) fn multiples(context: &Context<'_>) -> Vec<Chart> {
    let groups = context.groups();
    let baseline = context.files.baseline();
    let mut others = targets(groups);
    let Some(at) = others.iter().position(|(name, _, _)| *name == baseline) else {
        return Vec::new();
    };
    let (_, base_label, _) = others.remove(at);
    let label = format!("multiples of {base_label}");
    let quoted = context.files.study.published == "ostorebench"
        && published::scenario(&context.measured.experiment.workload).is_some();
    let note = format!(
        "Geometric means of the ratios inside the blocks with 95 % intervals (t, logarithms), if two blocks hold both sides; \
         the line is {base_label}. Times: lower is better. Throughput: higher is better.{}{}",
        hollow(groups),
        if quoted {
            " The table has the published multiples."
        } else {
            ""
        }
    );
    let chart = |phase: &str, value: &str| {
        let of = |target: &str| context.measured.group(target, value);
        let base = of(baseline)?;
        let mut bars = Bars {
            legend: legend(groups),
            mark: Some(1.0),
            ..Bars::default()
        };
        for (name, metric, class) in
            rows(groups, phase, &context.figure.class, context.figure.metric)
        {
            let class = class.as_str();
            let blocks = |group: &Group| show::blocks(group, metric, Ops { phase, class });
            for (target, _, look) in &others {
                let group = of(target);
                let estimate = group.and_then(|group| ratio(&blocks(base), &blocks(group)));
                if let (Some(group), Some(estimate)) = (group, estimate) {
                    let bar = Bar {
                        look: *look,
                        value: estimate.value,
                        ci: estimate.ci,
                        text: Unit::Times.show(estimate.value),
                        flawed: group.flawed() || base.flawed(),
                    };
                    bars.add(&name, bar);
                }
            }
        }
        let x = Axis::fitting(&label, Unit::Times, bars.values().chain([1.0]));
        let title = show::titled(&label, phase, value);
        let chart = context.chart(&[phase, value], &title, (x.clone(), x), Body::Bars(bars));
        Some(chart.noted(&*note))
    };
    let phases = show::phases(groups, &context.figure.phase);
    let values = context.measured.values();
    let each = phases
        .iter()
        .flat_map(|phase| values.iter().map(move |value| (phase, value)));
    each.filter_map(|(phase, value)| chart(phase, value))
        .collect()
}
