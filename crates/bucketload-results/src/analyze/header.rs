//! The head of a result: the manifest and the plan in words.

use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{ArrivalLaw, GapLaw, ModelPlan, RanksPlan, ReplayTiming, WorkPlan};
use bucketload_workload::resolve::{describe_jobs, describe_named};
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
fn timestamp(unix_ns: u64) -> String {
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

/// How a work makes load, in words.
pub(crate) fn load(work: &WorkPlan) -> String {
    let how = match &work.model {
        ModelPlan::Closed { workers, think } => {
            let pause = match *think {
                GapLaw::None => String::new(),
                GapLaw::Constant { ns } => format!(", {} ms think time", ms(ns)),
                GapLaw::Exponential { mean_ns } => {
                    format!(", exponential think time of mean {} ms", ms(mean_ns))
                }
                GapLaw::Uniform { min_ns, max_ns } => {
                    format!(", think time {} to {} ms", ms(min_ns), ms(max_ns))
                }
            };
            let plural = if *workers == 1 { "" } else { "s" };
            format!("closed loop, {workers} worker{plural}{pause}")
        }
        ModelPlan::Rounds(rounds) => format!(
            "{} rounds, {} workers write {} objects each and delete {:.0} % of them",
            rounds.iterations,
            rounds.workers,
            rounds.objects,
            rounds.delete * 100.0
        ),
        ModelPlan::Open {
            arrival,
            max_in_flight,
        } => format!(
            "open loop, {}, at most {max_in_flight} in flight",
            arrivals(arrival)
        ),
        ModelPlan::Jobs(jobs) => format!(
            "{}, at most {} in flight",
            describe_jobs(jobs),
            jobs.max_in_flight
        ),
        ModelPlan::Named(plan) => describe_named(plan),
        ModelPlan::Ranks(plan) => ranks(plan),
        ModelPlan::Replay(replay) => format!(
            "replay of trace {}, {}, at most {} in flight{}",
            replay.trace,
            timing(&replay.timing),
            replay.max_in_flight,
            match replay.per_key {
                true => ", requests wait for the latest change of their key",
                false => "",
            }
        ),
    };
    format!("{}: {how}", work.name)
}

fn ranks(plan: &RanksPlan) -> String {
    let wall = match (plan.stonewall_ns, plan.wear_out) {
        (0, _) => String::new(),
        (ns, true) => format!(", stonewall of {} s with wear-out", ns as f64 / 1e9),
        (ns, false) => format!(", stonewall of {} s", ns as f64 / 1e9),
    };
    format!(
        "{} ranks, names as {}{wall}",
        plan.ranks,
        plan.mapping.name()
    )
}

fn timing(timing: &ReplayTiming) -> String {
    let limit = |rate: f64, unit: &str| match rate > 0.0 {
        true => format!(", at most {rate} {unit}/s"),
        false => String::new(),
    };
    match *timing {
        ReplayTiming::Original { speed: 1.0 } => "at its own times".to_owned(),
        ReplayTiming::Original { speed } => format!("{speed} times as fast as recorded"),
        ReplayTiming::Rate {
            ops_per_s,
            recorded_ops_per_s,
        } => format!("at {ops_per_s}/s on average (recorded: {recorded_ops_per_s}/s)"),
        ReplayTiming::Capped {
            speed,
            ops_per_s,
            bytes_per_s,
        } => format!(
            "{speed} times as fast as recorded{}{}",
            limit(ops_per_s, "requests"),
            limit(bytes_per_s, "bytes")
        ),
        ReplayTiming::Asap => "as fast as the store answers (closed loop)".to_owned(),
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn arrivals(law: &ArrivalLaw) -> String {
    match law {
        ArrivalLaw::Constant { rate } => format!("constant {rate}/s"),
        ArrivalLaw::Poisson { rate } => format!("Poisson {rate}/s"),
        ArrivalLaw::LognormalGaps { rate, cv } => {
            format!("log-normal gaps {rate}/s (CV {cv})")
        }
        ArrivalLaw::LognormalRate { rate, cv, slot_ns } => format!(
            "log-normal rate {rate}/s (CV {cv} per {} s)",
            *slot_ns as f64 / 1e9
        ),
        ArrivalLaw::PeriodicBatch {
            clients,
            period_ns,
            min,
            max,
            spread_ns,
            gap_ns,
        } => {
            let how = match (*spread_ns, *gap_ns) {
                (0, 0) => "at once".to_owned(),
                (0, gap) => format!("{} ms apart", ms(gap)),
                (spread, _) => format!("within {} s", spread as f64 / 1e9),
            };
            let period_s = *period_ns as f64 / 1e9;
            format!("{min} to {max} {how} every {period_s} s from each of {clients} clients")
        }
        ArrivalLaw::Ramp { from, to, over_ns } => {
            format!("{from} to {to}/s over {} s", *over_ns as f64 / 1e9)
        }
        ArrivalLaw::Steps { rates, step_ns } => format!(
            "steps of {} s at {}/s",
            *step_ns as f64 / 1e9,
            rates
                .iter()
                .map(f64::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}
