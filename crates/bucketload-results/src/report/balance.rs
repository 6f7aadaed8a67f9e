//! Load balance over several endpoints, and over data nodes if they are known.

use bucketload_core::stats::balance::Indices;

use crate::kit::svg::{Bar, Bars, Body};
use crate::kit::{Axis, Chart, Section, Table, Unit};
use crate::result::{EndpointBalance, EndpointResult, NodeBalance, NodeResult};
use crate::units;

/// Limit on the bars; of more endpoints or nodes, the busiest are shown.
const BARS: usize = 32;

/// The section on endpoints.
pub(super) fn endpoints(balance: &EndpointBalance) -> Section {
    let loads = |of: fn(&EndpointResult) -> u64| {
        let all = balance.endpoints.iter();
        all.map(move |e| (e.name.as_str(), of(e) as f64))
    };
    let mut charts = vec![bars(
        "Requests per endpoint",
        Axis::linear("requests", Unit::Number),
        loads(|e| e.requests),
    )];
    if balance.bytes.is_some() {
        charts.push(bars(
            "Object bytes per endpoint",
            Axis::linear("object bytes", Unit::Bytes),
            loads(|e| e.bytes),
        ));
    }
    let head = [
        "",
        "requests",
        "failed",
        "bytes",
        "time spent",
        "service mean",
        "p50",
        "p99",
        "max",
    ];
    let rows = balance.endpoints.iter().map(|e| {
        [
            e.name.clone(),
            units::count(e.requests),
            units::count(e.failed),
            units::bytes(e.bytes as f64),
            units::seconds(e.busy_s),
            units::ns(e.service.mean_ns),
            e.service.percentile_text(0.5),
            e.service.percentile_text(0.99),
            units::ns(e.service.max_ns as f64),
        ]
    });
    let table = Table::new(1, head)
        .titled("Endpoints")
        .noted(
            "Time spent is the sum of the service times at an endpoint; concurrent requests add up.",
        )
        .with(rows);
    let mut remarks = Vec::new();
    if let Some(null) = &balance.null {
        remarks.push([
            "even routing, variation by chance".to_owned(),
            format!(
                "coefficient of variation about {}, at most {} in 95 % of runs; peak factor at most {}",
                units::number(null.cv),
                units::number(null.cv_bound),
                units::number(null.peak_bound)
            ),
        ]);
        remarks.push([
            "test against even routing".to_owned(),
            format!(
                "χ² {} with {} degrees of freedom, p {}{}",
                units::number(null.chi_square),
                units::number(null.df),
                units::number(null.p_value),
                if null.p_value < 0.01 {
                    ": uneven beyond chance"
                } else {
                    ": consistent with chance"
                }
            ),
        ]);
    }
    if let Some(over) = &balance.over_time {
        let persistence = over.persistence.map_or_else(
            || "no ranking".to_owned(),
            |r| format!("rank correlation between windows {} (1: the same endpoints stay busy, 0: the load moves around)", units::number(r)),
        );
        remarks.push([
            format!(
                "in {} windows of {} s",
                over.windows,
                units::number(balance.window_s)
            ),
            format!(
                "peak factor: median {}, 95th percentile {}; {persistence}",
                units::number(over.peak_median),
                units::number(over.peak_p95)
            ),
        ]);
    }
    if let Some(tail) = &balance.tail {
        remarks.push([
            "peak factor and response p99".to_owned(),
            format!(
                "correlation {} (95 % interval {} to {}) over {} windows; it says nothing about the cause",
                units::number(tail.correlation),
                units::number(tail.ci.0),
                units::number(tail.ci.1),
                tail.windows
            ),
        ]);
    }
    let intro = "Each worker connects to one endpoint; workers are assigned round-robin. The workload alone therefore \
                 causes no imbalance of requests. Imbalance beyond chance comes from endpoints of different speed (a \
                 closed loop sends more to the faster ones) or from a number of workers that does not divide evenly.";
    let indices = indices(&[
        ("requests", balance.requests),
        ("object bytes", balance.bytes),
        ("time spent", balance.busy),
    ]);
    Section::new("Load balance over endpoints", intro)
        .folded()
        .tables([table, indices, Table::prose("").with(remarks)])
        .charts(charts)
}

/// The section on data nodes.
pub(super) fn nodes(balance: &NodeBalance) -> Section {
    let named = |of: fn(&NodeResult) -> Option<f64>| {
        let nodes = balance.nodes.iter();
        nodes.filter_map(move |n| Some((n.name.as_str(), of(n)?)))
    };
    let mut charts = vec![bars(
        "Requests expected per node",
        Axis::linear("requests", Unit::Number),
        named(|n| Some(n.expected)),
    )];
    if balance.nodes.iter().any(|n| n.observed.is_some()) {
        charts.push(bars(
            "Requests observed per node",
            Axis::linear("requests", Unit::Number),
            named(|n| n.observed),
        ));
    }
    let a = &balance.attribution;
    let mut rows = vec![[
        "hottest key".to_owned(),
        format!(
            "{} of all requests: the peak factor cannot be below {}",
            units::percent(balance.hottest_share),
            units::number(balance.one_key_bound)
        ),
    ]];
    if let Some(peak) = a.by_workload {
        rows.push([
            "caused by the workload".to_owned(),
            format!(
                "peak factor {} from key popularity and placement alone",
                units::number(peak)
            ),
        ]);
    }
    if let Some(ratio) = a.by_system {
        rows.push([
            "caused by the system".to_owned(),
            format!(
                "observed over expected peak factor {} (1: no effect)",
                units::number(ratio)
            ),
        ]);
    }
    if let Some(null) = &balance.null {
        rows.push([
            "even routing, variation by chance".to_owned(),
            format!(
                "peak factor at most {} in 95 % of runs",
                units::number(null.peak_bound)
            ),
        ]);
    }
    if balance.unknown > 0 {
        rows.push([
            "requests for keys without a placement".to_owned(),
            units::count(balance.unknown),
        ]);
    }
    let intro = "Requests of the operation log, joined by key with the given placement. Expected: every copy of a key \
                 answers equally often.";
    let indices = indices(&[
        ("objects", a.objects),
        ("requests expected", a.expected),
        ("requests observed", a.observed),
    ]);
    Section::new("Load balance over data nodes", intro)
        .tables([indices, Table::prose("").with(rows)])
        .charts(charts)
}

/// Indices of several loads, with published ones for orientation.
fn indices(loads: &[(&str, Option<Indices>)]) -> Table {
    let head = [
        "",
        "peak / mean",
        "CV",
        "Jain",
        "Gini",
        "entropy",
        "effective",
        "usable capacity",
    ];
    let found = loads
        .iter()
        .filter_map(|(name, load)| Some((name, (*load)?)));
    let rows = found.map(|(name, i)| {
        [
            (*name).to_owned(),
            units::number(i.peak),
            units::number(i.cv),
            units::number(i.jain),
            units::number(i.gini),
            units::number(i.entropy),
            format!("{} of {}", units::number(i.effective), i.nodes),
            units::percent(i.usable),
        ]
    });
    // docs/spec/scenarios.md section 8, from the published figure.
    let published = [
        "published, another installation",
        "3.64",
        "1.22",
        "0.40",
        "0.55",
        "–",
        "2.4 of 6",
        "27 %",
    ];
    Table::new(1, head)
        .titled("Indices of balance")
        .noted(
            "An even load has 1, 0, 1, 0, 1, all, 100 %. The published row is from a hotspot experiment on six data \
             nodes of another installation (10^6 reads, Zipf-Mandelbrot popularity), for orientation only.",
        )
        .with(rows)
        .with([published])
}

/// One bar per name, with a line at the mean of all.
fn bars<'a>(title: &str, axis: Axis, loads: impl Iterator<Item = (&'a str, f64)>) -> Chart {
    let mut loads: Vec<(&str, f64)> = loads.collect();
    let mean = loads.iter().map(|(_, load)| load).sum::<f64>() / loads.len().max(1) as f64;
    let all = loads.len();
    let mut note = "The line is the mean.".to_owned();
    if all > BARS {
        loads.sort_by(|a, b| b.1.total_cmp(&a.1));
        loads.truncate(BARS);
        note = format!("The busiest {BARS} of {all}. {note}");
    }
    let bar = |value| Bar {
        value,
        text: axis.unit.show(value),
        ..Bar::default()
    };
    let groups = loads
        .iter()
        .map(|(name, load)| ((*name).to_owned(), vec![bar(*load)]));
    let bars = Bars {
        groups: groups.collect(),
        legend: Vec::new(),
        mark: Some(mean),
    };
    Chart::new(title, axis.clone(), axis, Body::Bars(bars)).noted(note)
}
