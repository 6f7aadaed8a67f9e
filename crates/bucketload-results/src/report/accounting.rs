//! Figures that only some phases have: popularity over all phases, backlog, streams, size classes, gates.

use super::summary::{latencies, latency_row};
use crate::kit::{Section, Table};
use crate::output::accounting::{range, tails};
use crate::result::{PhaseResult, RunResult, Streams};
use crate::units;

/// Popularity of all operations side by side; `None` without any.
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
        Some([0.5, 0.99].map(|q| class.service.percentile_text(q)))
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
    let intro = "Share of the operations that went to the most popular objects. Results with different popularity \
                 are not comparable.";
    Some(Section::new("Popularity", intro).tables([Table::new(3, head).with(rows)]))
}

/// The backlog of a phase with arrivals.
pub(super) fn backlog(phase: &PhaseResult) -> Option<Table> {
    let backlog = phase.backlog.as_ref()?;
    let age = |s: f64| units::ns(s * 1e9);
    let mut table = Table::pairs("Backlog")
        .noted("Age of the oldest arrival that was due but had not ended, read once per interval.")
        .with([
            ["largest".to_owned(), age(backlog.max_s)],
            ["mean".to_owned(), age(backlog.mean_s)],
            ["at the end of the window".to_owned(), age(backlog.end_s)],
        ]);
    if let (Some(period), Some(batches)) = (backlog.period_s, backlog.max_batches) {
        let every = units::seconds(period);
        table.texts([
            format!("outstanding batches per client, one every {every}"),
            format!("at most {batches}"),
        ]);
    }
    Some(table)
}

/// Streams and size classes; `None` if the phase has none of them.
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
    (!tables.is_empty()).then(|| Section::new("Streams and sizes", "").tables(tables))
}

/// Conditions that the phase had to meet; `None` without any.
pub(super) fn gates(phase: &PhaseResult) -> Option<Table> {
    let rows = phase.gates.iter().map(|gate| {
        [
            gate.what.clone(),
            units::percent(gate.measured),
            units::percent(gate.limit),
            if gate.passed { "passed" } else { "FAILED" }.to_owned(),
        ]
    });
    let table = Table::new(1, ["", "measured", "at most", "outcome"]);
    (!phase.gates.is_empty()).then(|| table.titled("Conditions").with(rows))
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
            "The streams started or stopped too far apart: figures for the time when all were active mean little."
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
