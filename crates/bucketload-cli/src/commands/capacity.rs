//! `bucketload capacity`: the search of [`bucketload_core::capacity`] on a campaign.

use std::path::Path;

use bucketload_core::capacity::{
    Limit, Recovery, Search, Settings, Slo, Trial, TrialMeaning, eval::absent_classes,
    trial_seconds,
};
use bucketload_core::op::OpClass;
use bucketload_core::plan::Plan;
use bucketload_core::units;
use bucketload_results::capacity::{CapacityStudy, Header, Record, SCHEMA, text::trial_line};
use bucketload_results::study::StudyWriter;
use bucketload_workload::resolve::{Field, Override};

use crate::campaign::Campaign;
use crate::cli::GlobalArgs;
use crate::cli::capacity::{CapacityArgs, SearchArgs};
use crate::commands::run::resolve_workload;
use crate::commands::study::{self, Reported};
use crate::connection::{Connection, flags_of};
use crate::exit::{Exit, Failure, OrFail};
use crate::signals;

/// Largest ratio of the ends of the bracket (docs/spec/statistics.md section 6).
const PRECISION: f64 = 1.05;
/// Confirmations of either end, and those of a quick search.
const CONFIRM: (u32, u32) = (5, 3);
/// Room for the warm-up that is cut off a trial, as a factor of its length.
const WARM_UP: f64 = 1.25;
/// A quick trial: seconds, and operations beyond the highest quantile.
const QUICK: (f64, f64) = (10.0, 20.0);
/// References: shortest length in seconds, and operations that their median rests on.
const REFERENCE: (f64, f64) = (10.0, 500.0);
const QUICK_REFERENCE: (f64, f64) = (2.0, 200.0);

/// Searches, analyses and prints.
pub(crate) fn execute(args: &CapacityArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let slo: Slo = args
        .search
        .slo
        .parse()
        .map_err(|e| Failure::usage(format!("--slo: {e}")))?;
    refuse(args)?;
    let (resolved, file, target) =
        resolve_workload(&args.workload, &args.target, &args.workload_args)?;
    let phase = study::one_phase(&resolved.plan, "capacity")?;
    let performed: Vec<OpClass> = resolved.plan.phases[phase]
        .works
        .iter()
        .flat_map(|work| &work.mix)
        .map(|entry| entry.class)
        .collect();
    if let Some(class) = absent_classes(&slo, &performed).first() {
        return Err(Failure::usage(format!(
            "--slo {}: the workload performs no {class}; name a class of its mix, or none",
            args.search.slo
        )));
    }
    let settings = settings(&args.search, resolved.plan.seed)?;
    let trial_s = trial_length(&args.search)?;
    let flags = flags_of(&args.target, file.spec().target.as_ref())?;
    let connection = Connection::open(target, &flags, &args.load)?;
    let dir = study::directory(&args.output, "capacity", &resolved.plan.workload);
    let (workload, profile) = study::names(&resolved);
    let header = Header {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload,
        profile,
        target: connection.describe(),
        started: study::now(),
        slo,
        settings,
        trial_s,
        quick: args.search.quick,
        command_line: study::command_line(),
    };
    let stop = signals::watched()?;
    let mut campaign = study::campaign(
        &dir,
        &file,
        &args.workload_args,
        connection,
        &args.load,
        global.quiet,
        &stop,
    )?;
    // Settings that do not fit the workload are refused before anything is written.
    campaign.plan(&overrides(header.settings.start_rate, 1.0))?;
    let ended = search(&mut campaign, &dir, &header, phase, global.quiet);
    let closed = campaign.close();
    let (exit, reported) = study::finish(&dir, &args.output, global.quiet, ended, closed)?;
    Ok(match reported {
        Some(Reported::Capacity(result)) if matches!(exit, Exit::Ok | Exit::Left) => {
            match &result.outcome {
                Some(outcome) if outcome.limit == Limit::Unconfirmed => Exit::GateFailed,
                Some(outcome) if outcome.low.is_none() => Exit::GateFailed,
                _ => exit,
            }
        }
        _ => exit,
    })
}

fn refuse(args: &CapacityArgs) -> Result<(), Failure> {
    let w = &args.workload_args;
    study::refuse(
        "capacity",
        "sets the load by itself",
        &[
            ("--rate", w.rate.is_some()),
            ("--workers", w.workers.is_some()),
            ("--think", w.think.is_some()),
            ("--duration", w.duration.is_some()),
            ("--ops", w.ops.is_some()),
            ("--bytes", w.bytes.is_some()),
            ("--dry-run", args.load.dry_run),
        ],
    )
}

fn settings(args: &SearchArgs, seed: u64) -> Result<Settings, Failure> {
    let rate = |flag: &str, text: &str| match units::parse_rate(text) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        Ok(_) => Err(Failure::usage(format!(
            "{flag} {text}: the rate is 0; name a higher one"
        ))),
        Err(e) => Err(Failure::usage(format!("{flag} {text}: {e}"))),
    };
    let start_rate = rate("--start-rate", &args.start_rate)?;
    let max_rate = args
        .max_rate
        .as_deref()
        .map(|text| rate("--max-rate", text))
        .transpose()?;
    if max_rate.is_some_and(|max| max < start_rate) {
        return Err(Failure::usage(format!(
            "--max-rate: it is below --start-rate {}; raise it or lower the other",
            args.start_rate
        )));
    }
    Ok(Settings {
        start_rate,
        max_rate,
        precision: PRECISION,
        confirm: args
            .confirm
            .unwrap_or(if args.quick { CONFIRM.1 } else { CONFIRM.0 }),
        reference_rate: start_rate / 2.0,
        recovery: if args.quick {
            Recovery::AfterFailure
        } else {
            Recovery::Always
        },
        seed,
    })
}

fn trial_length(args: &SearchArgs) -> Result<Option<f64>, Failure> {
    let Some(text) = &args.trial_duration else {
        return Ok(None);
    };
    let wrong = |what: String| Failure::usage(format!("--trial-duration {text}: {what}"));
    match units::parse_duration(text) {
        Ok(ns) if ns >= 1_000_000_000 => Ok(Some(ns as f64 / 1e9)),
        Ok(_) => Err(wrong("a trial takes at least 1s".to_owned())),
        Err(e) => Err(wrong(e.to_string())),
    }
}

/// Length of a trial in seconds.
fn seconds(header: &Header, trial: &Trial) -> f64 {
    let full = match (header.trial_s, header.quick) {
        (Some(seconds), _) => seconds,
        (None, true) => {
            let (least, beyond) = QUICK;
            let q = header.slo.highest_quantile().unwrap_or(0.0);
            (beyond / (1.0 - q) / trial.rate).max(least).ceil()
        }
        (None, false) => (trial_seconds(&header.slo, trial.rate) * WARM_UP).ceil(),
    };
    if !trial.purpose.is_reference() {
        return full;
    }
    let (least, median) = if header.quick {
        QUICK_REFERENCE
    } else {
        REFERENCE
    };
    (median / trial.rate).max(least).ceil().min(full)
}

fn overrides(rate: f64, seconds: f64) -> Vec<Override> {
    let duration = units::format_duration((seconds * 1e9) as u64);
    vec![
        Override::new(Field::Rate, &units::format_rate(rate)),
        Override::new(Field::Duration, &duration),
    ]
}

fn search(
    campaign: &mut Campaign,
    dir: &Path,
    header: &Header,
    phase: usize,
    quiet: bool,
) -> Result<(), Failure> {
    let mut writer = StudyWriter::<CapacityStudy>::create(dir, header).or_aborted()?;
    let mut search = Search::new(header.settings.clone());
    while let Some(trial) = search.ask() {
        let settings = overrides(trial.rate, seconds(header, &trial));
        let plan: Plan = campaign.plan(&settings)?;
        let name = format!(
            "{}-{:.0}",
            trial.purpose.name().replace(' ', "-"),
            trial.rate
        );
        let done = campaign.trial(&name, &settings)?;
        if done.exit == Exit::Interrupted {
            return Err(study::interrupted());
        }
        let (result, tally) = study::measured(&done, phase)?;
        let inside = study::relative(dir, &done);
        let record = Record::of(trial, inside, &header.slo, &plan, &result, &tally)
            .ok_or_else(|| Failure::aborted(format!("trial {name} has measured nothing")))?;
        if !quiet {
            eprintln!("{}", trial_line(&record));
        }
        writer.append(&record).or_aborted()?;
        if let TrialMeaning::Broken { reason } = &record.judgement.meaning {
            return Err(Failure::aborted(format!("trial {name}: {reason}")));
        }
        search.record(record.finding());
    }
    Ok(())
}
