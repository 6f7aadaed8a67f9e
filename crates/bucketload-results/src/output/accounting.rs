//! The text of what only some phases state: backlog, streams, both tails, size classes, gates.

use std::fmt::Write as _;

use bucketload_core::stats::quantile::Print;

use super::text::latency_row;
use crate::kit::{Cell, Style, Table};
use crate::result::latency::{HEAD as LATENCY, LOW_QUANTILES, QUANTILES};
use crate::result::{Latency, PhaseResult, Streams};
use crate::units;

pub(super) fn write(out: &mut String, phase: &PhaseResult, colour: bool) -> std::fmt::Result {
    if let Some(backlog) = &phase.backlog {
        let batches = match (backlog.max_batches, backlog.period_s) {
            (Some(n), Some(period)) => format!(
                ", at most {n} outstanding {} of a client (one every {})",
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
    sizes(out, phase, colour);
    if let Some(found) = &phase.streams {
        tails(out, phase, colour);
        streams(out, found)?;
    }
    for gate in &phase.gates {
        let word = if gate.passed {
            "passed".to_owned()
        } else {
            Style::Bad.paint("FAILED", colour)
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

/// Size classes under their operation.
fn sizes(out: &mut String, phase: &PhaseResult, colour: bool) {
    if phase.size_classes.is_empty() {
        return;
    }
    let mut table = Table::new(2, ["by size", ""].into_iter().chain(LATENCY));
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
    table.render(colour, out);
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
fn tails(out: &mut String, phase: &PhaseResult, colour: bool) {
    let mut head: Vec<String> = ["per operation", "", "mean", "sd"]
        .map(str::to_owned)
        .to_vec();
    let quantiles = || LOW_QUANTILES.into_iter().chain(QUANTILES);
    head.extend(quantiles().map(|q| format!("p{}", units::number(q * 100.0))));
    let mut table = Table::new(2, head);
    for class in &phase.classes {
        if class.service.n > 0 {
            table.row(tail_row(class.class.name(), &class.service));
        }
        if let Some(bandwidth) = &class.bandwidth {
            let mut row: Vec<Cell> = vec![
                String::new().into(),
                "Mbit/s".into(),
                units::number(bandwidth.mean_mbit_s).into(),
                units::number(bandwidth.sd_mbit_s).into(),
            ];
            for &(q, value) in &bandwidth.percentiles {
                // It rests on as many values as the time that it is the inverse of.
                let shown = class
                    .service
                    .percentile(q)
                    .is_some_and(|p| p.print != Print::Omit);
                row.push(if shown {
                    units::number(value).into()
                } else {
                    "-".into()
                });
            }
            table.row(row);
        }
    }
    table.render(colour, out);
}

fn tail_row(name: &str, latency: &Latency) -> Vec<Cell> {
    let mut row: Vec<Cell> = vec![
        name.to_owned().into(),
        "service".into(),
        units::ns(latency.mean_ns).into(),
        units::ns(latency.sd_ns).into(),
    ];
    for p in latency.low.iter().chain(&latency.percentiles) {
        row.push(match p.print {
            Print::Omit => "-".into(),
            _ => units::ns(p.value_ns as f64).into(),
        });
    }
    row
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
            "  the streams began {} and ended {} apart, {} of the time: the figures of the common \
             time say little",
            units::seconds(s.start_skew_s),
            units::seconds(s.stop_skew_s),
            units::percent(s.skew)
        )?;
    }
    Ok(())
}
