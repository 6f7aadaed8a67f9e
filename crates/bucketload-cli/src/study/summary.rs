//! A study as text: its plan, and the outcomes of its cells.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bucketload_core::units::format_duration;
use bucketload_results::units;
use bucketload_study::journal::{End, State};
use bucketload_study::model::{Plan, Study};

use super::execute::LEFTOVERS;

const SECOND: u64 = 1_000_000_000;

/// A duration in whole seconds.
pub(super) fn seconds(ns: u64) -> String {
    match ns / SECOND {
        0 => "0s".to_owned(),
        s if s < 120 => format!("{s}s"),
        s if s < 7200 => format!("{}m {:02}s", s / 60, s % 60),
        s => format!("{}h {:02}m", s / 3600, s % 3600 / 60),
    }
}

/// A duration in tenths of a second.
pub(super) fn tenths(ns: u64) -> String {
    format!("{:.1}s", ns as f64 / SECOND as f64)
}

/// The plan, for `--dry-run`.
///
/// `written` has the bytes that cells write to each target: all together, and the most of one cell.
pub(super) fn plan(study: &Study, plan: &Plan, written: &BTreeMap<String, (u64, u64)>) -> String {
    let mut out = format!("{}: {}\n", study.name, study.title);
    // Writing to a string cannot fail.
    for note in &plan.notes {
        let _ = writeln!(out, "  {note}");
    }
    let _ = writeln!(
        out,
        "  {} cells, pauses of {}, estimated {}",
        plan.cells.len(),
        format_duration(study.recovery_ns),
        seconds(plan.estimate_ns)
    );
    for (target, (all, most)) in written {
        let _ = writeln!(
            out,
            "  training data, checkpoints and cached blocks on {target}: {} written in all, at most {} at a time",
            units::bytes(*all as f64),
            units::bytes(*most as f64)
        );
    }
    for cell in &plan.cells {
        let _ = writeln!(
            out,
            "{}: {} {}",
            cell.id,
            cell.command.name(),
            cell.args.join(" ")
        );
    }
    out
}

/// A row per experiment and target with the numbers of cells by outcome, followed by the reasons for failures.
pub(super) fn text(study: &Study, plan: &Plan, state: &State) -> String {
    let mut rows = vec![
        [
            "experiment",
            "target",
            "cells",
            "measured",
            "verdicts",
            "failed",
            "skipped",
        ]
        .map(str::to_owned),
    ];
    let mut reasons: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    for experiment in &study.experiments {
        for target in &study.targets {
            let cells = plan.cells.iter();
            let cells =
                cells.filter(|c| c.experiment == experiment.name && c.target == target.name);
            let (mut all, mut measured, mut failed, mut skipped) = (0, 0, 0, 0);
            let mut verdicts: BTreeMap<&str, u32> = BTreeMap::new();
            for cell in cells {
                all += 1;
                let mut because = |reason: &str| {
                    let value = if cell.value.is_empty() {
                        String::new()
                    } else {
                        format!(" {}", cell.value)
                    };
                    let key = (
                        experiment.name.clone(),
                        format!("{}{value}", target.name),
                        reason.to_owned(),
                    );
                    *reasons.entry(key).or_default() += 1;
                };
                match state.end_of(&cell.id) {
                    Some(End::Finished { verdict, exit, .. }) => {
                        measured += 1;
                        if !verdict.is_empty() {
                            *verdicts.entry(verdict).or_default() += 1;
                        }
                        match exit {
                            0 => {}
                            5 => because(LEFTOVERS),
                            _ => because("a gate failed"),
                        }
                    }
                    Some(End::Failed { reason, .. }) => {
                        failed += 1;
                        because(reason);
                    }
                    Some(End::Skipped { reason }) => {
                        skipped += 1;
                        because(&format!("skipped: {reason}"));
                    }
                    None => {}
                }
            }
            if all > 0 {
                let verdicts: Vec<String> = verdicts
                    .iter()
                    .map(|(word, n)| format!("{n} {word}"))
                    .collect();
                rows.push([
                    experiment.name.clone(),
                    target.name.clone(),
                    all.to_string(),
                    measured.to_string(),
                    verdicts.join(", "),
                    failed.to_string(),
                    skipped.to_string(),
                ]);
            }
        }
    }
    let mut out = String::new();
    let widths: Vec<usize> = (0..7)
        .map(|i| {
            rows.iter()
                .map(|row| row[i].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}", width = *width));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for ((experiment, place, reason), count) in &reasons {
        let times = if *count > 1 {
            format!(" ({count} cells)")
        } else {
            String::new()
        };
        let _ = writeln!(out, "{experiment} on {place}: {reason}{times}");
    }
    out
}
