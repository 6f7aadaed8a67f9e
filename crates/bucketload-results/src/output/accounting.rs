//! Text of figures that only some phases have: backlog, streams, both tails, size classes, gates.

use std::fmt::Write as _;

use bucketload_core::capacity::Statistic;
use bucketload_core::stats::quantile::Print;

use super::TextOptions;
use super::text::{EXPENDABLE, latency_row};
use crate::kit::{Style, Table};
use crate::result::latency::{HEAD as LATENCY, LOW_QUANTILES, QUANTILES};
use crate::result::{Percentile, PhaseResult, Streams};
use crate::units;

pub(super) fn write(out: &mut String, phase: &PhaseResult, on: TextOptions) -> std::fmt::Result {
    if let Some(backlog) = &phase.backlog {
        let batches = match (backlog.max_batches, backlog.period_s) {
            (Some(n), Some(period)) => format!(
                ", at most {n} outstanding {} per client (one every {})",
                if n == 1 { "batch" } else { "batches" },
                units::seconds(period)
            ),
            _ => String::new(),
        };
        writeln!(
            out,
            "  backlog: the oldest outstanding arrival was at most {} old (mean {}){batches}",
            units::ns(backlog.max_s * 1e9),
            units::ns(backlog.mean_s * 1e9)
        )?;
    }
    sizes(out, phase, on);
    if let Some(found) = &phase.streams {
        out.push('\n');
        tails(phase).render_within(on.width, on.colour, out);
        streams(out, found)?;
    }
    for gate in &phase.gates {
        let word = if gate.passed {
            "passed".to_owned()
        } else {
            Style::Bad.paint("FAILED", on.colour)
        };
        writeln!(
            out,
            "  {word}: {} {} (at most {})",
            gate.what,
            units::percent(gate.measured),
            units::percent(gate.limit)
        )?;
    }
    Ok(())
}

/// Latencies by size class.
fn sizes(out: &mut String, phase: &PhaseResult, on: TextOptions) {
    if phase.size_classes.is_empty() {
        return;
    }
    let table = Table::new(2, ["by size", ""].into_iter().chain(LATENCY));
    let mut table = table.expending(&EXPENDABLE);
    for class in &phase.size_classes {
        let range = range(class.from_bytes, class.to_bytes);
        let title = format!("{} {range}", class.class);
        let mut rough = false;
        for (what, latency) in [("response", &class.response), ("service", &class.service)] {
            if what == "response" || phase.open_loop {
                table.row(latency_row(title.clone(), what, latency, &mut rough));
            }
        }
    }
    table.render_within(on.width, on.colour, out);
}

/// `empty`, `1 B to 10 MiB`, `from 10 MiB`.
pub(crate) fn range(from: u64, to: Option<u64>) -> String {
    let size = |bytes: u64| units::bytes(bytes as f64);
    match (from, to) {
        (0, Some(1)) => "empty".to_owned(),
        (0, Some(to)) => format!("below {}", size(to)),
        (from, Some(to)) => format!("{} to {}", size(from), size(to)),
        (from, None) => format!("from {}", size(from)),
    }
}

/// Both tails of service time and, for objects of one size, of bandwidth.
pub(crate) fn tails(phase: &PhaseResult) -> Table {
    let quantiles = LOW_QUANTILES.into_iter().chain(QUANTILES);
    let quantiles = quantiles.map(|q| Statistic::Quantile(q).name());
    let head = ["per operation", "mean", "sd"].map(str::to_owned);
    let table = Table::new(1, head.into_iter().chain(quantiles));
    let mut table = table.expending(&["p0.1", "p5", "p95", "sd", "p10", "p90", "p1"]);
    for class in phase.classes.iter().filter(|class| class.service.n > 0) {
        let service = &class.service;
        let percentiles = service.low.iter().chain(&service.percentiles);
        let mut row = vec![
            format!("{} service time", class.class),
            units::ns(service.mean_ns),
            units::ns(service.sd_ns),
        ];
        row.extend(percentiles.map(Percentile::text));
        table.texts(row);
        let Some(bandwidth) = &class.bandwidth else {
            continue;
        };
        let mut row = vec![
            format!("{} Mbit/s per object", class.class),
            units::number(bandwidth.mean_mbit_s),
            units::number(bandwidth.sd_mbit_s),
        ];
        // A bandwidth has as many values beyond it as the service time of the same quantile.
        row.extend(bandwidth.percentiles.iter().map(|&(q, value)| {
            match service.percentile(q).map(|p| p.print) {
                Some(Print::Plain | Print::Bold) => units::number(value),
                Some(Print::Omit) | None => "–".to_owned(),
            }
        }));
        table.texts(row);
    }
    table
}

fn streams(out: &mut String, s: &Streams) -> std::fmt::Result {
    let rate = |bytes: f64| format!("{}/s", units::bytes(bytes));
    write!(
        out,
        "  {} streams, all active for {} of {}",
        s.streams,
        units::seconds(s.all_active_s),
        units::seconds(s.any_active_s)
    )?;
    if s.simplified_bytes_per_s > 0.0 {
        write!(
            out,
            ": net {}, net with gaps {}, simplified {}",
            rate(s.net_bytes_per_s),
            rate(s.net_with_gap_bytes_per_s),
            rate(s.simplified_bytes_per_s)
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "  {} ops/s while all were active, {} ops/s while any was; gaps between operations {}",
        units::rate(s.all_active_ops_per_s),
        units::rate(s.any_active_ops_per_s),
        units::percent(s.gap)
    )?;
    if s.is_skewed() {
        writeln!(
            out,
            "  the streams started {} and stopped {} apart, {} of the time: figures for the time when all were \
             active mean little",
            units::seconds(s.start_skew_s),
            units::seconds(s.stop_skew_s),
            units::percent(s.skew)
        )?;
    }
    Ok(())
}
