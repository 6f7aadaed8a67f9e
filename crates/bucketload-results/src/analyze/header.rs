//! The header of a result: manifest and plan as text.

use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{PhasePlan, WorkPlan};
use bucketload_workload::resolve::describe;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::result::RunHeader;
use crate::rundir::Manifest;

pub(crate) fn header(m: &Manifest) -> RunHeader {
    RunHeader {
        run_id: m.run_id.clone(),
        version: m.version.clone(),
        status: m.status,
        error: m.error.clone(),
        workload: m.plan.workload.clone(),
        profile: m.plan.profile.clone(),
        compat: m.plan.compat.clone(),
        scenario_hash: m.scenario_hash.clone(),
        schedule_hash: m.schedule_hash.clone(),
        popularity: Vec::new(),
        seed: m.seed,
        scale: m.plan.scale,
        size_scale: m.plan.size_scale,
        scale_note: m.scale_note.clone(),
        facts: m.facts.clone(),
        data_note: m.data_note.clone(),
        payload: payload(&m.plan.payload),
        verify: m.plan.verify,
        target: m.target.clone(),
        driver: m.driver.clone(),
        client: m.client.clone(),
        host: m.host.clone(),
        op_log: m.op_log,
        command_line: m.command_line.clone(),
        started: timestamp(m.started_unix_ns),
        started_unix_ns: m.started_unix_ns,
        ended_unix_ns: m.ended_unix_ns,
        workload_source: m.workload_source.clone(),
        trace: m.trace.clone(),
    }
}

/// RFC 3339 in UTC, whole seconds; empty for an instant beyond the calendar.
pub(crate) fn timestamp(unix_ns: u64) -> String {
    OffsetDateTime::from_unix_timestamp((unix_ns / 1_000_000_000) as i64)
        .ok()
        .and_then(|t| t.format(&Rfc3339).ok())
        .unwrap_or_default()
}

fn payload(kind: &PayloadKind) -> String {
    match kind {
        PayloadKind::Random => "random (unique, incompressible)".to_owned(),
        PayloadKind::Zeros => "zeros".to_owned(),
        PayloadKind::Timestamp(_) => {
            "timestamp (IOR's pattern: the same in every transfer)".to_owned()
        }
        PayloadKind::Compressible { ratio } => format!("compressible {ratio}:1"),
        PayloadKind::Duplicate { fraction } => {
            format!("random, {} % duplicates", fraction * 100.0)
        }
    }
}

/// The precision at which the phase may end before its limits; empty if it may not.
pub(crate) fn precision(phase: &PhasePlan) -> String {
    phase.stop.as_ref().map_or_else(String::new, |rule| {
        let share = crate::units::percent(rule.half_width);
        format!("{} ± {share}", rule.figure.name())
    })
}

/// How a work generates load, as text; with its name if the phase has several works.
pub(crate) fn load(phase: &PhasePlan) -> Vec<String> {
    let text = |work: &WorkPlan| match phase.works.len() {
        1 => describe(&work.model),
        _ => format!("{}: {}", work.name, describe(&work.model)),
    };
    phase.works.iter().map(text).collect()
}
