//! What exactly ran, at the end of the text.

use std::fmt::Write as _;

use crate::result::RunResult;
use crate::units;

/// Appends workload, target, run, driver, data set and popularity.
pub(super) fn write(out: &mut String, result: &RunResult) -> std::fmt::Result {
    let run = &result.run;
    let profile = if run.profile.is_empty() || run.profile == run.workload {
        String::new()
    } else {
        format!(" ({})", run.profile)
    };
    writeln!(out, "{}{profile} on {}", run.workload, run.target)?;
    writeln!(
        out,
        "  run {}, started {}, scenario {}, schedule {}, seed {}",
        run.run_id,
        run.started,
        run.scenario_hash,
        if run.schedule_hash.is_empty() {
            "-"
        } else {
            &run.schedule_hash
        },
        run.seed
    )?;
    if !run.compat.is_empty() {
        writeln!(
            out,
            "  compat: {}: reproduces a published procedure; not comparable with other results",
            run.compat
        )?;
    }
    let settings: String = run
        .driver
        .settings
        .iter()
        .map(|(name, value)| format!(", {name} {value}"))
        .collect();
    writeln!(
        out,
        "  driver {} ({}){settings}; payload {}{}",
        run.driver.driver,
        run.driver.engine,
        run.payload,
        if run.verify {
            ", every byte read is verified"
        } else {
            ""
        }
    )?;
    if run.size_scale != 1.0 {
        writeln!(
            out,
            "  sizes scaled by {}: comparable only with the same factor",
            units::factor(run.size_scale)
        )?;
    }
    if run.scale_note.is_empty() {
        writeln!(out, "  scale {}", run.scale)?;
    } else {
        writeln!(out, "  scale {}: {}", run.scale, run.scale_note)?;
    }
    for (name, text) in run.trace.iter().flat_map(|trace| &trace.facts) {
        writeln!(out, "  {name}: {text}")?;
    }
    for (name, value) in &run.facts {
        writeln!(out, "  {name}: {value}")?;
    }
    if !run.data_note.is_empty() {
        writeln!(out, "  data: {}", run.data_note)?;
    }
    for popularity in &run.popularity {
        let phase = if result.measured().count() > 1 {
            format!("{}: ", popularity.phase)
        } else {
            String::new()
        };
        writeln!(out, "  popularity: {phase}{}", popularity.line())?;
    }
    Ok(())
}
