//! What only some phases state: popularity over all phases, backlog, streams, size classes, gates.

use bucketload_core::stats::quantile::Print;

use super::summary::{latencies, latency_row};
use crate::kit::{Section, Table};
use crate::output::accounting::range;
use crate::result::latency::{LOW_QUANTILES, QUANTILES};
use crate::result::{PhaseResult, RunResult, Streams};
use crate::units;

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
    let mut head = ["phase", "operation", "law", "objects"]
        .map(str::to_owned)
        .to_vec();
    head.extend([1, 10, 100].map(|k| format!("top {k} (theory)")));
    head.extend(["effective keys", "service p50", "service p99"].map(str::to_owned));
    let rows = entries.iter().map(|entry| {
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
    });
    let intro = "Which share of the operations went to the most popular objects. Results with \
                 different popularity cannot be compared.";
    Some(Section::new("Popularity", intro).tables([Table::new(3, head).with(rows)]))
}

/// The backlog of a phase with arrivals.
pub(super) fn backlog(phase: &PhaseResult) -> Option<Table> {
    let backlog = phase.backlog.as_ref()?;
    let age = |s: f64| units::ns(s * 1e9);
    let mut table = Table::pairs("Backlog")
        .noted("Age of the oldest arrival that was due but not ended, read once per interval.")
        .with([
            ["largest".to_owned(), age(backlog.max_s)],
            ["mean".to_owned(), age(backlog.mean_s)],
            ["at the end of the window".to_owned(), age(backlog.end_s)],
        ]);
    if let (Some(period), Some(batches)) = (backlog.period_s, backlog.max_batches) {
        let every = units::seconds(period);
        table.texts([
            format!("batches of a client outstanding, one every {every}"),
            format!("at most {batches}"),
        ]);
    }
    Some(table)
}

/// Streams, size classes and gates; nothing where the phase has none of them.
pub(super) fn section(phase: &PhaseResult) -> Option<Section> {
    let mut tables = Vec::new();
    if let Some(found) = &phase.streams {
        tables.extend([streams(found), tails(phase)]);
    }
    if !phase.size_classes.is_empty() {
        let rows = phase.size_classes.iter().map(|class| {
            let range = range(class.from_bytes, class.to_bytes);
            latency_row(&format!("{} {range}", class.class), &class.response)
        });
        tables.push(latencies("Response time by size").with(rows));
    }
    if !phase.gates.is_empty() {
        let rows = phase.gates.iter().map(|gate| {
            [
                gate.what.clone(),
                units::percent(gate.measured),
                units::percent(gate.limit),
                if gate.passed { "passed" } else { "FAILED" }.to_owned(),
            ]
        });
        let table = Table::new(1, ["", "measured", "at most", "outcome"]);
        tables.push(table.titled("Conditions").with(rows));
    }
    (!tables.is_empty()).then(|| Section::new("Accounting", "").tables(tables))
}

fn streams(s: &Streams) -> Table {
    let rate = |bytes: f64| format!("{}/s", units::bytes(bytes));
    let skew = format!(
        "{} and {}, {} of the time",
        units::seconds(s.start_skew_s),
        units::seconds(s.stop_skew_s),
        units::percent(s.skew)
    );
    let rows = [
        ("streams", units::count(s.streams)),
        ("net throughput", rate(s.net_bytes_per_s)),
        ("net throughput with gaps", rate(s.net_with_gap_bytes_per_s)),
        ("simplified throughput", rate(s.simplified_bytes_per_s)),
        (
            "operations per second while all were active",
            units::number(s.all_active_ops_per_s),
        ),
        (
            "operations per second while any was active",
            units::number(s.any_active_ops_per_s),
        ),
        ("gaps between operations", units::percent(s.gap)),
        ("all active", units::seconds(s.all_active_s)),
        ("any active", units::seconds(s.any_active_s)),
        ("start and stop skew", skew),
    ];
    let note = match s.is_skewed() {
        true => {
            "The streams began or ended too far apart: the figures of the common time say little."
        }
        false => {
            "Net: bytes over service times while all streams were active, summed over streams. With \
             gaps: over each stream's time from start to stop. Simplified: all bytes over the whole \
             time."
        }
    };
    let rows = rows.map(|(name, value)| [name.to_owned(), value]);
    Table::pairs("Streams").noted(note).with(rows)
}

/// Both tails of service time and bandwidth.
fn tails(phase: &PhaseResult) -> Table {
    let mut head = ["", "mean", "sd"].map(str::to_owned).to_vec();
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
    Table::new(1, head).titled("Per operation").with(rows)
}
