//! What surrounds the measurement: other phases, failures in full, machine, settings.

use super::page::{Section, Table};
use crate::result::{PhaseResult, RunResult};
use crate::units;

/// Preparation and clean-up in one table; nothing when there were none.
pub(super) fn other_phases(result: &RunResult) -> Option<Section> {
    let rows: Vec<Vec<String>> = result
        .phases
        .iter()
        .filter(|phase| !phase.is_measured())
        .map(|phase: &PhaseResult| {
            vec![
                phase.name.clone(),
                format!("{:?}", phase.kind).to_lowercase(),
                units::ns(phase.drained_ns.saturating_sub(phase.started_ns) as f64),
                units::count(phase.totals.ok),
                units::bytes(phase.totals.bytes as f64),
                units::count(phase.totals.failed),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| Section {
        title: "Other phases".to_owned(),
        tables: vec![Table {
            head: ["phase", "kind", "duration", "operations", "bytes", "failed"]
                .map(str::to_owned)
                .to_vec(),
            rows,
            ..Table::default()
        }],
        ..Section::default()
    })
}

/// The first failures in full; nothing when there were none.
pub(super) fn failures(result: &RunResult) -> Option<Section> {
    (!result.failures.is_empty()).then(|| Section {
        title: "Failures".to_owned(),
        intro: "The first ones of each kind.".to_owned(),
        tables: vec![Table {
            head: ["time", "operation", "key", "error"]
                .map(str::to_owned)
                .to_vec(),
            rows: result
                .failures
                .iter()
                .map(|f| {
                    vec![
                        units::ns(f.at_ns as f64),
                        f.class.to_string(),
                        f.key.clone(),
                        f.error.clone(),
                    ]
                })
                .collect(),
            text: true,
            ..Table::default()
        }],
        ..Section::default()
    })
}

/// The trace of a replay and what was made of it; nothing for other runs.
pub(super) fn trace(result: &RunResult) -> Option<Section> {
    let trace = result.run.trace.as_ref()?;
    let rows = trace
        .facts
        .iter()
        .map(|(name, text)| vec![name.clone(), text.clone()]);
    Some(Section {
        title: "Trace".to_owned(),
        intro: "What was recorded, what of it is replayed, and where sizes come from.".to_owned(),
        tables: vec![Table {
            rows: rows.collect(),
            text: true,
            ..Table::default()
        }],
        ..Section::default()
    })
}

/// Machine, client, target and the workload's source.
pub(super) fn environment(result: &RunResult) -> Section {
    let (run, host) = (&result.run, &result.run.host);
    let mut rows: Vec<(String, String)> = vec![
        ("target".into(), run.target.clone()),
        (
            "driver".into(),
            format!("{} ({})", run.driver.driver, run.driver.engine),
        ),
        ("endpoints".into(), run.driver.endpoints.join(", ")),
    ];
    rows.extend(run.driver.settings.iter().cloned());
    rows.extend(run.facts.iter().cloned());
    rows.extend([
        ("load threads".to_owned(), run.client.threads.to_string()),
        ("payload".into(), run.payload.clone()),
        (
            "verification".into(),
            if run.verify { "every byte read" } else { "off" }.to_owned(),
        ),
        (
            "machine".into(),
            format!(
                "{}, {} cores, {}",
                host.cpu_model,
                host.cores,
                units::bytes(host.memory_bytes as f64)
            ),
        ),
        (
            "system".into(),
            format!("{} {}", host.platform, host.kernel),
        ),
        ("CPU governor".into(), host.governor.clone()),
        ("command".into(), run.command_line.join(" ")),
    ]);
    if let Some(c) = &result.calibration {
        rows.push((
            "null target".into(),
            format!(
                "{} operations/s possible, p99 {} at the offered rate, client CPU {} per operation",
                units::number(c.null_ops_per_s),
                units::ns(c.null_p99_ns as f64),
                units::ns(c.null_cpu_ns_per_op),
            ),
        ));
    }
    let damage = &result.damage;
    if !damage.torn.is_empty() || !damage.lines.is_empty() || damage.histograms > 0 {
        rows.push((
            "damage".into(),
            format!(
                "torn: {}; unreadable lines: {}; missing histograms: {}",
                damage.torn.join(", "),
                damage.lines.len() as u64 + damage.more_lines,
                damage.histograms
            ),
        ));
    }
    let settings = Table {
        rows: rows
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| vec![name, value])
            .collect(),
        text: true,
        ..Table::default()
    };
    let source = Table {
        title: "Workload".to_owned(),
        rows: run
            .workload_source
            .lines()
            .map(|line| vec![line.to_owned()])
            .collect(),
        text: true,
        ..Table::default()
    };
    Section {
        title: "Environment".to_owned(),
        tables: vec![settings, source],
        ..Section::default()
    }
}
