//! The highest load that meets the objectives.

use bucketload_core::capacity::Limit;
use bucketload_results::kit::svg::{Bar, Bars, Body, Point};
use bucketload_results::kit::{Axis, Chart, Series, Unit};

use super::super::estimate::Estimate;
use super::super::groups::Group;
use super::{Context, hollow, targets};

/// Confirmed lower and refuted upper ends of the searches of a group, operations per second.
pub(in super::super) fn ends(group: &Group) -> (Vec<f64>, Vec<f64>) {
    let outcomes = || {
        let searches = group.extra.capacity.iter();
        searches.filter_map(|c| c.outcome.as_ref())
    };
    let low = outcomes().filter_map(|o| o.low.as_ref());
    let high = outcomes().filter_map(|o| o.high.as_ref());
    (
        low.map(|side| side.rate).collect(),
        high.map(|side| side.rate).collect(),
    )
}

/// Confirmed capacity per target as bars, and the latency of each search over its load.
pub(super) fn capacity(context: &Context<'_>) -> Vec<Chart> {
    let groups = context.groups();
    let swept = groups.iter().any(|g| !g.value.is_empty());
    let rows = groups.iter().filter_map(|group| {
        let (low, high) = ends(group);
        let name = match swept {
            true => format!("{}, {}", group.label, group.value),
            false => group.label.clone(),
        };
        let bar = confirmed(group, Estimate::mean(&low), Estimate::mean(&high))?;
        Some((name, vec![bar]))
    });
    let bars = Bars {
        groups: rows.collect(),
        ..Bars::default()
    };
    let x = Axis::fitting(
        "load that meets the objectives (operations/s)",
        Unit::PerS,
        bars.values(),
    );
    let searches = groups.iter().flat_map(|g| &g.extra.capacity);
    let objectives = searches.map(|c| c.header.slo.to_string());
    let objectives = objectives.reduce(|a, b| if a == b { a } else { format!("{a}; {b}") });
    let objectives = objectives.unwrap_or_default();
    let title = format!("capacity at {objectives}");
    let chart = context.chart(&[], &title, (x.clone(), x), Body::Bars(bars));
    let note = format!(
        "The bar is the highest confirmed load; the line extends to the lowest refuted one.{}",
        hollow(groups)
    );
    vec![chart.noted(note), latency(context, &objectives)]
}

/// The bar of a group with its bracket, or with the interval over several searches if that is wider.
fn confirmed(group: &Group, lower: Option<Estimate>, upper: Option<Estimate>) -> Option<Bar> {
    let Some(lower) = lower else {
        return unconfirmed(group, upper);
    };
    let (from, to) = lower.ci.unwrap_or((lower.value, lower.value));
    let text = match upper {
        Some(upper) => format!(
            "{}–{}",
            Unit::Number.show(lower.value),
            Unit::PerS.show(upper.value)
        ),
        None => format!("≥ {}", Unit::PerS.show(lower.value)),
    };
    Some(Bar {
        look: group.look,
        value: lower.value,
        ci: Some((from.min(lower.value), to.max(upper.map_or(to, |u| u.value)))),
        text,
        flawed: group.flawed(),
    })
}

/// The empty bar of a group whose searches confirmed no load, with the reason.
fn unconfirmed(group: &Group, upper: Option<Estimate>) -> Option<Bar> {
    let first = group.extra.capacity.first()?;
    let limit = first.outcome.as_ref().map(|outcome| outcome.limit);
    let text = match (upper, limit) {
        (Some(upper), _) => format!("< {}, none confirmed", Unit::PerS.show(upper.value)),
        (None, Some(Limit::Client)) => "none confirmed: the client was the limit".to_owned(),
        (None, Some(_)) => "none confirmed".to_owned(),
        (None, None) => "the search did not finish".to_owned(),
    };
    Some(Bar {
        look: group.look,
        value: 0.0,
        ci: upper.map(|upper| (0.0, upper.value)),
        text,
        flawed: true,
    })
}

/// The 99th percentile over the offered load, of all trials.
fn latency(context: &Context<'_>, objectives: &str) -> Chart {
    let groups = context.groups();
    let lines = targets(groups).into_iter().map(|(target, label, look)| {
        let own = groups.iter().filter(|g| g.target == target);
        let loads = own.flat_map(|g| &g.extra.capacity).flat_map(|c| &c.curve);
        let points = loads.map(|load| Point {
            flawed: load.passes < load.trials,
            ..Point::from((load.rate, load.p99_ns as f64))
        });
        let mut line = Series::line(label, look, points);
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        line.markers = true;
        line
    });
    let lines: Vec<Series> = lines.collect();
    let values = |of: fn(&Point) -> f64| lines.iter().flat_map(move |l| l.points.iter().map(of));
    let x = Axis::fitting("offered load (operations/s)", Unit::PerS, values(|p| p.x));
    let y = Axis::fitting("p99 response time", Unit::Ns, values(|p| p.y));
    let title = format!("p99 against load during the capacity search at {objectives}");
    let chart = context.chart(&["latency"], &title, (x, y), Body::Lines(lines));
    chart.noted(
        "One point per rate, the median of its trials; hollow: a trial at this rate missed the objectives.",
    )
}
