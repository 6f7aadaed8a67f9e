//! What only some phases state: popularity over all phases, backlog, streams, size classes, gates.

use bucketload_core::stats::quantile::Print;

use super::page::{Section, Table};
use super::summary::latency_row;
use crate::output::accounting::range;
use crate::result::latency::{LOW_QUANTILES, QUANTILES};
use crate::result::{PhaseResult, RunResult, Streams};
use crate::units;

fn texts<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Popularity of all operations side by side; nothing without any.
pub(super) fn identity(result: &RunResult) -> Option<Section> {
    let entries = &result.run.popularity;
    if entries.is_empty() {
        return None;
    }
    let service = |phase: &str, work: &str, class| {
        let phase = result.measured().find(|p| p.name == phase)?;
        let class = phase
            .classes
            .iter()
            .find(|c| c.work_name == work && c.class == class)?;
        let show = |q| {
            let p = class.service.percentile(q)?;
            (p.print != Print::Omit).then(|| units::ns(p.value_ns as f64))
        };
        Some([show(0.5), show(0.99)].map(|text| text.unwrap_or_else(|| "–".to_owned())))
    };
    let mut head = texts(["phase", "operation", "law", "objects"]);
    head.extend([1, 10, 100].map(|k| format!("top {k} (theory)")));
    head.extend(texts(["effective keys", "service p50", "service p99"]));
    let rows = entries
        .iter()
        .map(|entry| {
            let mut row = vec![
                entry.phase.clone(),
                entry.class.to_string(),
                entry.law.clone(),
                units::count(entry.objects),
            ];
            row.extend(entry.top.iter().map(|top| {
                let theory = top.theory.map_or_else(|| "–".to_owned(), units::percent);
                format!("{} ({theory})", units::percent(top.realised))
            }));
            row.push(units::number(entry.effective));
            let times = service(&entry.phase, &entry.work, entry.class);
            row.extend(times.unwrap_or_else(|| ["–".to_owned(), "–".to_owned()]));
            row
        })
        .collect();
    Some(Section {
        title: "Popularity".to_owned(),
        intro: "Which share of the operations went to the most popular objects. Results with \
                different popularity cannot be compared."
            .to_owned(),
        tables: vec![Table {
            head,
            rows,
            ..Table::default()
        }],
        ..Section::default()
    })
}

/// The backlog of a phase with arrivals.
pub(super) fn backlog(phase: &PhaseResult) -> Option<Table> {
    let backlog = phase.backlog.as_ref()?;
    let mut rows = vec![
        vec!["largest".to_owned(), units::ns(backlog.max_s * 1e9)],
        vec!["mean".to_owned(), units::ns(backlog.mean_s * 1e9)],
        vec![
            "at the end of the window".to_owned(),
            units::ns(backlog.end_s * 1e9),
        ],
    ];
    if let (Some(period), Some(batches)) = (backlog.period_s, backlog.max_batches) {
        rows.push(vec![
            format!(
                "batches of a client outstanding, one every {}",
                units::seconds(period)
            ),
            format!("at most {batches}"),
        ]);
    }
    Some(Table {
        title: "Backlog".to_owned(),
        rows,
        note: "Age of the oldest arrival that was due but not ended, read once per interval."
            .to_owned(),
        ..Table::default()
    })
}

/// Streams, size classes and gates; nothing where the phase has none of them.
pub(super) fn section(phase: &PhaseResult) -> Option<Section> {
    let mut tables = Vec::new();
    if let Some(found) = &phase.streams {
        tables.push(streams(found));
        tables.push(tails(phase));
    }
    if !phase.size_classes.is_empty() {
        let mut table = Table {
            title: "Response time by size".to_owned(),
            head: texts(["", "n", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"]),
            ..Table::default()
        };
        for class in &phase.size_classes {
            let name = format!(
                "{} {}",
                class.class,
                range(class.from_bytes, class.to_bytes)
            );
            table.rows.push(latency_row(&name, &class.response));
        }
        tables.push(table);
    }
    if !phase.gates.is_empty() {
        tables.push(Table {
            title: "Conditions".to_owned(),
            head: texts(["", "measured", "at most", "outcome"]),
            rows: phase
                .gates
                .iter()
                .map(|gate| {
                    vec![
                        gate.what.clone(),
                        units::percent(gate.measured),
                        units::percent(gate.limit),
                        if gate.passed { "passed" } else { "FAILED" }.to_owned(),
                    ]
                })
                .collect(),
            ..Table::default()
        });
    }
    (!tables.is_empty()).then(|| Section {
        title: "Accounting".to_owned(),
        tables,
        ..Section::default()
    })
}

fn streams(s: &Streams) -> Table {
    let rate = |bytes: f64| format!("{}/s", units::bytes(bytes));
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    Table {
        title: "Streams".to_owned(),
        rows: vec![
            row("streams", units::count(s.streams)),
            row("net throughput", rate(s.net_bytes_per_s)),
            row("net throughput with gaps", rate(s.net_with_gap_bytes_per_s)),
            row("simplified throughput", rate(s.simplified_bytes_per_s)),
            row(
                "operations per second while all were active",
                units::number(s.all_active_ops_per_s),
            ),
            row(
                "operations per second while any was active",
                units::number(s.any_active_ops_per_s),
            ),
            row("gaps between operations", units::percent(s.gap)),
            row("all active", units::seconds(s.all_active_s)),
            row("any active", units::seconds(s.any_active_s)),
            row(
                "start and stop skew",
                format!(
                    "{} and {}, {} of the time",
                    units::seconds(s.start_skew_s),
                    units::seconds(s.stop_skew_s),
                    units::percent(s.skew)
                ),
            ),
        ],
        note: if s.is_skewed() {
            "The streams began or ended too far apart: the figures of the common time say little."
        } else {
            "Net: bytes over service times while all streams were active, summed over streams. With \
             gaps: over each stream's time from start to stop. Simplified: all bytes over the whole \
             time."
        }
        .to_owned(),
        ..Table::default()
    }
}

/// Both tails of service time and bandwidth.
fn tails(phase: &PhaseResult) -> Table {
    let mut head = texts(["", "mean", "sd"]);
    let quantiles = LOW_QUANTILES.into_iter().chain(QUANTILES);
    head.extend(quantiles.map(|q| format!("p{}", units::number(q * 100.0))));
    let mut rows = Vec::new();
    for class in phase.classes.iter().filter(|class| class.service.n > 0) {
        let service = &class.service;
        let mut row = vec![
            format!("{} service time", class.class),
            units::ns(service.mean_ns),
            units::ns(service.sd_ns),
        ];
        let printed = || service.low.iter().chain(&service.percentiles);
        row.extend(printed().map(|p| match p.print {
            Print::Omit => "–".to_owned(),
            _ => units::ns(p.value_ns as f64),
        }));
        rows.push(row);
        if let Some(bandwidth) = &class.bandwidth {
            let mut row = vec![
                format!("{} Mbit/s per object", class.class),
                units::number(bandwidth.mean_mbit_s),
                units::number(bandwidth.sd_mbit_s),
            ];
            row.extend(bandwidth.percentiles.iter().map(|&(q, value)| {
                let shown = service
                    .percentile(q)
                    .is_some_and(|p| p.print != Print::Omit);
                if shown {
                    units::number(value)
                } else {
                    "–".to_owned()
                }
            }));
            rows.push(row);
        }
    }
    Table {
        title: "Per operation".to_owned(),
        head,
        rows,
        ..Table::default()
    }
}
