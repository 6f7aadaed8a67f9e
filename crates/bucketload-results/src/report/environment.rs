//! The surroundings of the measurement: other phases, failures in full, machine, settings.

use crate::kit::{Section, Table};
use crate::output::word;
use crate::result::{PhaseResult, RunResult};
use crate::units;

/// Preparation and clean-up in one table; `None` if there were none.
pub(super) fn other_phases(result: &RunResult) -> Option<Section> {
    let row = |phase: &PhaseResult| {
        [
            phase.name.clone(),
            word(&phase.kind),
            units::ns(phase.drained_ns.saturating_sub(phase.started_ns) as f64),
            units::count(phase.totals.ok),
            units::bytes(phase.totals.bytes as f64),
            units::count(phase.totals.failed),
        ]
    };
    let others = result.phases.iter().filter(|phase| !phase.is_measured());
    let head = ["phase", "kind", "duration", "operations", "bytes", "failed"];
    let table = Table::new(2, head).with(others.map(row));
    (!table.rows.is_empty()).then(|| Section::new("Other phases", "").tables([table]))
}

/// The first failures in full; `None` if there were none.
pub(super) fn failures(result: &RunResult) -> Option<Section> {
    let rows = result.failures.iter().map(|f| {
        let at = units::ns(f.at_ns as f64);
        [at, f.class.to_string(), f.key.clone(), f.error.clone()]
    });
    let table = Table::new(4, ["time", "operation", "key", "error"]).with(rows);
    (!table.rows.is_empty())
        .then(|| Section::new("Failures", "The first failures of each kind.").tables([table]))
}

/// The trace of a replay and its use; `None` for other runs.
pub(super) fn trace(result: &RunResult) -> Option<Section> {
    let trace = result.run.trace.as_ref()?;
    let facts = trace.facts.iter();
    let table = Table::prose("").with(facts.map(|(name, text)| [name.as_str(), text.as_str()]));
    let intro = "The recorded trace, the part of it that is replayed, and the source of the sizes.";
    Some(Section::new("Trace", intro).tables([table]))
}

/// The command, what identifies the run, and the source of the workload.
pub(super) fn what(result: &RunResult) -> Section {
    let run = &result.run;
    let mut rows = vec![
        ("target", run.target.clone()),
        ("command", run.command_line.join(" ")),
        ("scenario", run.scenario_hash.clone()),
        ("schedule", run.schedule_hash.clone()),
        ("seed", run.seed.to_string()),
        ("scale", run.scale.to_string()),
        ("payload", run.payload.clone()),
    ];
    if run.size_scale != 1.0 {
        rows.push(("sizes scaled by", units::factor(run.size_scale)));
    }
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let rows = rows.map(|(name, value)| [name.to_owned(), value]);
    let intro = "Two runs of one scenario do the same work; with one schedule, they offer the same operations at the \
                 same instants.";
    Section {
        source: run.workload_source.clone(),
        ..Section::new("What exactly was run?", intro)
    }
    .tables([Table::prose("").with(rows)])
}

/// Machine, client and target.
pub(super) fn environment(result: &RunResult) -> Section {
    let (run, host) = (&result.run, &result.run.host);
    let mut rows: Vec<(String, String)> = vec![
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
    ]);
    if let Some(c) = &result.calibration {
        rows.push((
            "null target".into(),
            format!(
                "{} operations/s possible, p99 {} at the offered rate, client CPU {} per operation{}",
                units::number(c.null_ops_per_s),
                units::ns(c.null_p99_ns as f64),
                units::ns(c.null_cpu_ns_per_op),
                c.age_s.map_or_else(String::new, |age| format!(
                    " (from the cache, measured {} min before)",
                    age / 60
                )),
            ),
        ));
    }
    let damage = &result.damage;
    if !damage.torn.is_empty() || !damage.lines.is_empty() || damage.histograms > 0 {
        rows.push((
            "damage".into(),
            format!(
                "incomplete: {}; unreadable lines: {}; missing histograms: {}",
                damage.torn.join(", "),
                damage.lines.len() as u64 + damage.more_lines,
                damage.histograms
            ),
        ));
    }
    rows.retain(|(_, value)| !value.is_empty());
    let settings = Table::prose("").with(rows.into_iter().map(|(name, value)| [name, value]));
    Section::new("Environment", "").tables([settings])
}
