//! How load was spread: over several endpoints, and over data nodes where they are known.

use bucketload_core::stats::balance::Indices;

use super::page::{Axis, BarSeries, Bars, Chart, Section, Table};
use super::summary::percentile;
use crate::result::{EndpointBalance, NodeBalance};
use crate::units;

/// Endpoints or nodes shown as bars; the busiest ones of more.
const BARS: usize = 32;

/// The section about endpoints.
pub(super) fn endpoints(balance: &EndpointBalance) -> Section {
    let mut charts = vec![bars(
        "Requests per endpoint",
        Axis::linear("requests", ""),
        balance
            .endpoints
            .iter()
            .map(|e| (e.name.as_str(), e.requests as f64)),
        "",
    )];
    if balance.bytes.is_some() {
        charts.push(bars(
            "Object bytes per endpoint",
            Axis::linear("object bytes", "B"),
            balance
                .endpoints
                .iter()
                .map(|e| (e.name.as_str(), e.bytes as f64)),
            "B",
        ));
    }
    let mut table = Table {
        title: "Endpoints".to_owned(),
        head: [
            "",
            "requests",
            "failed",
            "bytes",
            "time spent",
            "service mean",
            "p50",
            "p99",
            "max",
        ]
        .map(str::to_owned)
        .to_vec(),
        note:
            "Time spent is the sum of the service times there; several requests at a time add up."
                .to_owned(),
        ..Table::default()
    };
    for e in &balance.endpoints {
        table.rows.push(vec![
            e.name.clone(),
            units::count(e.requests),
            units::count(e.failed),
            units::bytes(e.bytes as f64),
            units::seconds(e.busy_s),
            units::ns(e.service.mean_ns),
            percentile(&e.service, 0.5),
            percentile(&e.service, 0.99),
            units::ns(e.service.max_ns as f64),
        ]);
    }
    let mut remarks = Vec::new();
    if let Some(null) = &balance.null {
        remarks.push(vec![
            "even routing by chance alone".to_owned(),
            format!(
                "coefficient of variation about {}, at most {} in 95 of 100 runs; peak factor at most {}",
                units::number(null.cv),
                units::number(null.cv_bound),
                units::number(null.peak_bound)
            ),
        ]);
        remarks.push(vec![
            "test against even routing".to_owned(),
            format!(
                "χ² {} with {} degrees of freedom, p {}{}",
                units::number(null.chi_square),
                units::number(null.df),
                units::number(null.p_value),
                if null.p_value < 0.01 {
                    ": uneven beyond chance"
                } else {
                    ": nothing beyond chance"
                }
            ),
        ]);
    }
    if let Some(over) = &balance.over_time {
        let persistence = over.persistence.map_or_else(
            || "no ranking to follow".to_owned(),
            |r| format!("rank correlation from window to window {} (1 = the same ones stay busy, 0 = it wanders)", units::number(r)),
        );
        remarks.push(vec![
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
        remarks.push(vec![
            "peak factor and response p99".to_owned(),
            format!(
                "correlation {} (95 % interval {} to {}) over {} windows; no statement about the cause",
                units::number(tail.correlation),
                units::number(tail.ci.0),
                units::number(tail.ci.1),
                tail.windows
            ),
        ]);
    }
    Section {
        title: "Load balance over endpoints".to_owned(),
        intro: "Each worker's connection belongs to one endpoint; workers take the endpoints in turn. The \
                workload alone therefore causes no imbalance of requests; what goes beyond chance comes from \
                endpoints of different speed (a closed loop sends more to the faster ones) or from workers \
                that do not divide evenly."
            .to_owned(),
        tables: vec![
            table,
            indices(&[
                ("requests", balance.requests),
                ("object bytes", balance.bytes),
                ("time spent", balance.busy),
            ]),
            Table {
                rows: remarks,
                text: true,
                ..Table::default()
            },
        ],
        charts,
    }
}

/// The section about data nodes.
pub(super) fn nodes(balance: &NodeBalance) -> Section {
    let named = |of: fn(&crate::result::NodeResult) -> Option<f64>| {
        let nodes = balance.nodes.iter();
        nodes.filter_map(move |n| Some((n.name.as_str(), of(n)?)))
    };
    let mut charts = vec![bars(
        "Requests expected per node",
        Axis::linear("requests", ""),
        named(|n| Some(n.expected)),
        "",
    )];
    if balance.nodes.iter().any(|n| n.observed.is_some()) {
        charts.push(bars(
            "Requests observed per node",
            Axis::linear("requests", ""),
            named(|n| n.observed),
            "",
        ));
    }
    let a = &balance.attribution;
    let mut rows = vec![vec![
        "hottest key".to_owned(),
        format!(
            "{} of all requests: the peak factor cannot be below {}",
            units::percent(balance.hottest_share),
            units::number(balance.one_key_bound)
        ),
    ]];
    if let Some(peak) = a.by_workload {
        rows.push(vec![
            "caused by the workload".to_owned(),
            format!(
                "peak factor {} from key popularity and placement alone",
                units::number(peak)
            ),
        ]);
    }
    if let Some(ratio) = a.by_system {
        rows.push(vec![
            "caused by the system".to_owned(),
            format!(
                "observed over expected peak factor {}; 1 = nothing",
                units::number(ratio)
            ),
        ]);
    }
    if let Some(null) = &balance.null {
        rows.push(vec![
            "even routing by chance alone".to_owned(),
            format!(
                "peak factor at most {} in 95 of 100 runs",
                units::number(null.peak_bound)
            ),
        ]);
    }
    if balance.unknown > 0 {
        rows.push(vec![
            "requests on keys without a place".to_owned(),
            units::count(balance.unknown),
        ]);
    }
    Section {
        title: "Load balance over data nodes".to_owned(),
        intro: "Requests of the operation log joined on the key with the placement that was given. Expected: \
                every copy of a key answers equally often."
            .to_owned(),
        tables: vec![
            indices(&[
                ("objects", a.objects),
                ("requests expected", a.expected),
                ("requests observed", a.observed),
            ]),
            Table {
                rows,
                text: true,
                ..Table::default()
            },
        ],
        charts,
    }
}

/// The indices of several loads, with published ones for orientation.
fn indices(loads: &[(&str, Option<Indices>)]) -> Table {
    let mut table = Table {
        title: "Indices of balance".to_owned(),
        head: [
            "", "peak / mean", "CV", "Jain", "Gini", "entropy", "effective", "usable capacity",
        ]
        .map(str::to_owned)
        .to_vec(),
        note: "Even load: 1, 0, 1, 0, 1, all, 100 %. The published line is a hotspot experiment on six data nodes of \
               another installation (10^6 reads, Zipf-Mandelbrot popularity): for orientation, not for \
               comparison."
            .to_owned(),
        ..Table::default()
    };
    for (name, found) in loads {
        if let Some(i) = found {
            table.rows.push(vec![
                (*name).to_owned(),
                units::number(i.peak),
                units::number(i.cv),
                units::number(i.jain),
                units::number(i.gini),
                units::number(i.entropy),
                format!("{} of {}", units::number(i.effective), i.nodes),
                units::percent(i.usable),
            ]);
        }
    }
    // docs/spec/scenarios.md section 8, from the published figure.
    let published = [
        "another machine's, published",
        "3.64",
        "1.22",
        "0.40",
        "0.55",
        "–",
        "2.4 of 6",
        "27 %",
    ];
    table.rows.push(published.map(str::to_owned).to_vec());
    table
}

/// One bar per name, with a mark at the mean of all.
fn bars<'a>(
    title: &str,
    axis: Axis,
    loads: impl Iterator<Item = (&'a str, f64)>,
    unit: &'static str,
) -> Chart {
    let mut loads: Vec<(&str, f64)> = loads.collect();
    let mean = loads.iter().map(|(_, load)| load).sum::<f64>() / loads.len().max(1) as f64;
    let all = loads.len();
    if all > BARS {
        loads.sort_by(|a, b| b.1.total_cmp(&a.1));
        loads.truncate(BARS);
    }
    let mut chart = Chart::bars(
        title,
        axis,
        Bars {
            rows: loads.iter().map(|(name, _)| (*name).to_owned()).collect(),
            series: vec![BarSeries {
                name: title.to_owned(),
                values: loads.iter().map(|(_, load)| *load).collect(),
                color: 0,
            }],
            notes: Vec::new(),
            shares: false,
            unit,
        },
    );
    if all > BARS {
        chart.note = format!("The busiest {BARS} of {all}.");
    }
    chart.marks.push(super::page::Mark {
        x: mean,
        label: "mean".to_owned(),
    });
    chart
}
