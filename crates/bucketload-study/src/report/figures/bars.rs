//! Metrics per target as bars, and multiples of the baseline.

use super::super::estimate::ratio;
use super::super::groups::Group;
use super::super::published;
use super::super::show::{self, Look};
use super::super::svg::{Axis, Bar, Bars, Body, Chart, Unit};
use super::{Context, bars_note, hollow, line_name, processes, targets};
use crate::model::{Figure, Metric};

/// A bar per target (and value).
pub(super) fn bars(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let metric = figure.metric.unwrap_or(Metric::Throughput);
    per_phase(context, figure, metric, |look| {
        let groups = context.groups();
        let several = processes(groups).len() > 1;
        let swept = groups.iter().any(|g| !g.value.is_empty());
        let targets = targets(groups);
        let mut rows: Vec<(String, Vec<Bar>)> = Vec::new();
        for group in groups {
            let Some(bar) = bar(group, metric, look) else {
                continue;
            };
            let name = match swept {
                true => line_name(&group.value, group.processes, several),
                false => line_name(&group.label, group.processes, several),
            };
            match rows.iter_mut().find(|(known, _)| *known == name) {
                Some((_, bars)) => bars.push(bar),
                None => rows.push((name, vec![bar])),
            }
        }
        Bars {
            groups: rows,
            legend: if swept { legend(&targets) } else { Vec::new() },
            mark: None,
        }
    })
}

/// Even and skewed popularity side by side: a group per target, a bar per phase (or value of a sweep).
pub(super) fn hotspot(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let groups = context.groups();
    let phases = show::phases(groups, &figure.phase);
    let has_tail = phases.iter().any(|phase| {
        let look = Look {
            phase,
            class: &figure.class,
        };
        groups
            .iter()
            .any(|g| !show::values(g, Metric::P99, look).is_empty())
    });
    // Short runs have too few operations for a tail.
    let usual = if has_tail { Metric::P99 } else { Metric::P50 };
    let metric = figure.metric.unwrap_or(usual);
    let mut values: Vec<&str> = Vec::new();
    for group in groups {
        if !values.contains(&&*group.value) {
            values.push(&group.value);
        }
    }
    let sides: Vec<(&str, &str)> = values
        .iter()
        .flat_map(|value| phases.iter().map(move |phase| (*value, *phase)))
        .collect();
    let rows = targets(groups).into_iter().map(|(target, label, _)| {
        let bars = sides
            .iter()
            .enumerate()
            .filter_map(|(side, (value, phase))| {
                let group = groups
                    .iter()
                    .find(|g| g.target == target && g.value == *value)?;
                let look = Look {
                    phase,
                    class: &figure.class,
                };
                Some(Bar {
                    look: side,
                    ..bar(group, metric, look)?
                })
            });
        (label.to_owned(), bars.collect())
    });
    let rows: Vec<(String, Vec<Bar>)> = rows.collect();
    let rows: Vec<_> = rows
        .into_iter()
        .filter(|(_, bars)| !bars.is_empty())
        .collect();
    let x = Axis::fitting(
        &show::label(metric),
        show::unit(metric),
        rows.iter().flat_map(|(_, b)| b.iter().map(|bar| bar.value)),
    );
    let name = |(value, phase): &(&str, &str)| format!("{value} {phase}").trim().to_owned();
    let bars = Bars {
        groups: rows,
        legend: sides.iter().map(name).collect(),
        mark: None,
    };
    let mut chart = context.chart(
        figure,
        &[show::key(metric), &figure.class],
        show::titled(show::name(metric), "", &figure.class),
        (x.clone(), x),
        Body::Bars(bars),
    );
    chart.note = bars_note(groups, show::is_percentile(metric)) + hollow(groups);
    vec![chart]
}

fn per_phase(
    context: &Context<'_>,
    figure: &Figure,
    metric: Metric,
    make: impl Fn(Look<'_>) -> Bars,
) -> Vec<Chart> {
    let groups = context.groups();
    let phases = show::phases(groups, &figure.phase);
    let charts = phases.into_iter().map(|phase| {
        let bars = make(Look {
            phase,
            class: &figure.class,
        });
        let values = bars
            .groups
            .iter()
            .flat_map(|(_, b)| b.iter().map(|bar| bar.value));
        let x = Axis::fitting(&show::label(metric), show::unit(metric), values);
        let mut chart = context.chart(
            figure,
            &[show::key(metric), &figure.class, phase],
            show::titled(show::name(metric), phase, &figure.class),
            (x.clone(), x),
            Body::Bars(bars),
        );
        chart.note = bars_note(groups, show::is_percentile(metric)) + hollow(groups);
        chart
    });
    charts.collect()
}

fn bar(group: &Group, metric: Metric, look: Look<'_>) -> Option<Bar> {
    let over = show::over(group, metric, look)?;
    let mark = group.word().map_or("", show::mark);
    let mark = if mark.is_empty() {
        String::new()
    } else {
        format!(" ({mark})")
    };
    Some(Bar {
        look: group.look,
        value: over.value,
        ci: over.ci,
        text: format!("{}{mark}", show::unit(metric).show(over.value)),
        flawed: group.flawed(),
        published: false,
    })
}

fn legend(targets: &[(&str, &str, usize)]) -> Vec<String> {
    let most = targets.iter().map(|(_, _, look)| *look).max().unwrap_or(0);
    let name = |look: usize| {
        let found = targets.iter().find(|(_, _, l)| *l == look);
        found.map_or_else(String::new, |(_, label, _)| (*label).to_owned())
    };
    (0..=most).map(name).collect()
}

/// What multiples are shown of: each metric of each class.
pub(in super::super) fn rows(
    groups: &[Group],
    phase: &str,
    class: &str,
    metric: Option<Metric>,
) -> Vec<(String, Metric, String)> {
    let mut out = Vec::new();
    let classes = show::classes(groups, phase, class);
    let metrics = match metric {
        Some(metric) => vec![metric],
        None => vec![Metric::Mean, Metric::P50, Metric::P99],
    };
    if metric.is_none() {
        out.push((
            "throughput".to_owned(),
            Metric::Throughput,
            class.to_owned(),
        ));
    }
    for class in &classes {
        for metric in &metrics {
            let name = match class.is_empty() {
                true => show::name(*metric).to_owned(),
                false => format!("{class}: {}", show::name(*metric)),
            };
            out.push((name, *metric, (*class).to_owned()));
        }
    }
    out
}

/// How many times the baseline each other target is.
pub(super) fn multiples(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let groups = context.groups();
    let baseline = context.files.baseline();
    let targets = targets(groups);
    let Some((_, base_label, _)) = targets
        .iter()
        .find(|(name, _, _)| *name == baseline)
        .copied()
    else {
        return Vec::new();
    };
    let mut values: Vec<&str> = groups.iter().map(|g| g.value.as_str()).collect();
    values.dedup();
    let mut seen: Vec<&str> = Vec::new();
    values.retain(|v| {
        let new = !seen.contains(v);
        seen.push(v);
        new
    });
    let mut charts = Vec::new();
    for phase in show::phases(groups, &figure.phase) {
        for value in &values {
            let of = |target: &str| {
                groups
                    .iter()
                    .find(|g| g.target == target && g.value == *value)
            };
            let Some(base) = of(baseline) else { continue };
            let mut out = Vec::new();
            for (name, metric, class) in rows(groups, phase, &figure.class, figure.metric) {
                let look = Look {
                    phase,
                    class: &class,
                };
                let base_values = show::blocks(base, metric, look);
                let mut bars = Vec::new();
                for (target, _, colour) in targets.iter().filter(|(name, _, _)| *name != baseline) {
                    let Some(group) = of(target) else { continue };
                    let Some(over) = ratio(&base_values, &show::blocks(group, metric, look)) else {
                        continue;
                    };
                    bars.push(Bar {
                        look: *colour,
                        value: over.value,
                        ci: over.ci,
                        text: Unit::Times.show(over.value),
                        flawed: group.flawed() || base.flawed(),
                        published: false,
                    });
                }
                if !bars.is_empty() {
                    out.push((name, bars));
                }
            }
            let spread = out
                .iter()
                .flat_map(|(_, b): &(String, Vec<Bar>)| b.iter().map(|b| b.value));
            let x = Axis::fitting(
                &format!("multiples of {base_label}"),
                Unit::Times,
                spread.chain([1.0]),
            );
            let bars = Bars {
                groups: out,
                legend: legend(&targets),
                mark: Some(1.0),
            };
            let mut chart = context.chart(
                figure,
                &[phase, value],
                show::titled(&format!("multiples of {base_label}"), phase, value),
                (x.clone(), x),
                Body::Bars(bars),
            );
            chart.note = format!(
                "Geometric means of the ratios inside the blocks with 95 % intervals (t, logarithms), where two blocks hold both sides; \
                 the line is {base_label}. Times: less is better. Throughput: more is better.{}",
                hollow(groups)
            );
            if published::scenario(&context.measured.experiment.workload).is_some()
                && context.files.study.published == "ostorebench"
            {
                chart.note += " Published multiples stand in the table.";
            }
            charts.push(chart);
        }
    }
    charts
}
