//! `bucketload capacity`: the search of [`bucketload_core::capacity`], each trial a run of a campaign.

use bucketload_core::capacity::{
    Limit, Recovery, Search, Settings, Slo, Trial, TrialMeaning, eval::absent_classes,
    trial_seconds,
};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{PhaseKind, Plan, WorkPlan};
use bucketload_core::units;
use bucketload_results::capacity::{
    CapacityResult, CapacityStudy, Header, Record, SCHEMA, page, text,
};
use bucketload_results::error::ResultsError;
use bucketload_results::study::StudyFiles;
use bucketload_workload::resolve::{Field, Override};

use crate::campaign::Campaign;
use crate::cli::GlobalArgs;
use crate::cli::capacity::{CapacityArgs, Over, SearchArgs};
use crate::commands::gates;
use crate::commands::run::resolve_workload;
use crate::connection::{Connection, flags_of};
use crate::exit::{Exit, Failure, OrFail};
use crate::experiment::{self, Experiment, Journal, Measured, Session};

/// Largest ratio of the bracket's ends (docs/spec/statistics.md section 6).
const PRECISION: f64 = 1.05;
/// Confirmations of each end of the bracket: of a full search and of a quick one.
const CONFIRM: (u32, u32) = (5, 3);
/// Factor on a trial's length that makes room for the warm-up, which is cut off.
const WARM_UP: f64 = 1.25;
/// A quick trial: least seconds, and operations beyond the highest quantile.
const QUICK: (f64, f64) = (10.0, 20.0);
/// Fewest steps of an epoch: one is left out, and the others give a mean.
const LEAST_STEPS: f64 = 3.0;
/// Most connections of all users together, as the workload language allows.
const MOST_CONNECTIONS: u64 = 100_000;
/// A reference trial: least seconds, and operations that its median is computed from.
const REFERENCE: (f64, f64) = (10.0, 500.0);
const QUICK_REFERENCE: (f64, f64) = (2.0, 200.0);

impl Experiment for CapacityStudy {
    type Result = CapacityResult;

    fn result(files: StudyFiles<Self>) -> CapacityResult {
        CapacityResult::new(files)
    }

    fn text(result: &CapacityResult, with_trials: bool) -> String {
        text::text(result, with_trials)
    }

    fn page(result: &CapacityResult) -> String {
        page::html(result)
    }

    fn exit(result: &CapacityResult) -> Exit {
        let failed = result
            .outcome
            .as_ref()
            .is_some_and(|outcome| outcome.limit == Limit::Unconfirmed || outcome.low.is_none());
        if failed { Exit::GateFailed } else { Exit::Ok }
    }

    fn run_directory(record: &Record) -> &str {
        &record.dir
    }

    fn record_again(
        header: &Header,
        old: &Record,
        trial: &Measured,
    ) -> Result<Option<Record>, ResultsError> {
        Ok(record(header, old.trial, old.dir.clone(), trial))
    }
}

fn record(header: &Header, trial: Trial, dir: String, of: &Measured) -> Option<Record> {
    Record::of(
        trial,
        dir,
        &header.slo,
        &of.manifest.plan,
        &of.result,
        &of.tally,
    )
}

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
    let mut works = resolved.plan.phases.iter().flat_map(|phase| &phase.works);
    if works.any(|work| work.model.checkpoint().is_some()) {
        return Err(Failure::usage(format!(
            "{}: a checkpoint has no rate to search for: its ranks move all its bytes as fast as the store takes them; \
             to find the best number of parts in flight or ranks, use `sweep {0} --over \
             checkpoint.parts-in-flight=1,4,16` with count = 1 and phase = \"write\"",
            args.workload
        )));
    }
    experiment::check_one_phase(&resolved.plan, "capacity")?;
    gates::check_figures(&slo, &resolved.plan)?;
    let phases = resolved.plan.phases.iter();
    let performed: Vec<OpClass> = phases
        .filter(|phase| phase.kind == PhaseKind::Run)
        .flat_map(|phase| &phase.works)
        .flat_map(|work| &work.mix)
        .map(|entry| entry.class)
        .collect();
    if let Some(class) = absent_classes(&slo, &performed).first() {
        return Err(Failure::usage(format!(
            "--slo {}: the workload performs no {class} operations; name a class of its mix, or no class",
            args.search.slo
        )));
    }
    let settings = match args.search.over {
        None => settings(&args.search, resolved.plan.seed)?,
        Some(Over::Accelerators) => over_accelerators(&args.search, &resolved.plan)?,
        Some(Over::Users) => over_users(&args.search, &resolved.plan)?,
    };
    refuse_rates(&args.search, &resolved.plan)?;
    let varied = varied(&resolved.plan);
    let trial_s = trial_length(&args.search)?;
    let flags = flags_of(&args.target, file.spec().target.as_ref())?;
    let connection = Connection::open(target, &flags, &args.load)?;
    let plan = resolved.plan;
    let session = Session::new("capacity", &plan.workload, &args.output, global.quiet)?;
    let header = Header {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload: plan.workload,
        profile: plan.profile,
        target: connection.describe(),
        started: experiment::now(),
        slo,
        settings,
        trial_s,
        quick: args.search.quick,
        command_line: experiment::command_line(),
        unit: match args.search.over {
            Some(Over::Users) => "users".to_owned(),
            Some(Over::Accelerators) | None => String::new(),
        },
    };
    let mut campaign = session.campaign(
        &session.dir,
        &file,
        &args.workload_args,
        connection,
        &args.load,
    )?;
    // Settings that do not fit the workload are refused before anything is written.
    let first = match header.settings.whole {
        true => load(&varied, header.settings.start_rate, None),
        false => overrides(header.settings.start_rate, 1.0),
    };
    campaign.plan(&first)?;
    let mut journal = session.create(&header)?;
    let ended = search(&session, &mut campaign, &mut journal, &header, &varied);
    session.finish::<CapacityStudy>(ended, campaign.close())
}

fn refuse(args: &CapacityArgs) -> Result<(), Failure> {
    let w = &args.workload_args;
    experiment::refuse(
        "capacity",
        "has no dry run",
        &[("--dry-run", args.load.dry_run)],
    )?;
    experiment::refuse(
        "capacity",
        "sets the load itself",
        &[
            ("--rate", w.rate.is_some()),
            ("--workers", w.workers.is_some()),
            ("--think", w.think.is_some()),
            ("--duration", w.duration.is_some()),
            ("--ops", w.ops.is_some()),
            ("--bytes", w.bytes.is_some()),
        ],
    )
}

fn settings(args: &SearchArgs, seed: u64) -> Result<Settings, Failure> {
    let rate = |flag: &str, text: &str| match units::parse_rate(text) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        Ok(_) => Err(Failure::usage(format!(
            "{flag} {text}: the rate must be above 0"
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
            "--max-rate is below --start-rate {}; raise --max-rate or lower --start-rate",
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
        stop_at_client: true,
        whole: false,
    })
}

fn trial_length(args: &SearchArgs) -> Result<Option<f64>, Failure> {
    let Some(text) = &args.trial_duration else {
        return Ok(None);
    };
    let wrong = |what: String| Failure::usage(format!("--trial-duration {text}: {what}"));
    match units::parse_duration(text) {
        Ok(ns) if ns >= 1_000_000_000 => Ok(Some(ns as f64 / 1e9)),
        Ok(_) => Err(wrong("a trial must last at least 1s".to_owned())),
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

/// Refuses a search for a rate of users, who ask when they have thought.
fn refuse_rates(args: &SearchArgs, plan: &Plan) -> Result<(), Failure> {
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    match args.over.is_none() && works.any(|work| work.model.kvcache().is_some()) {
        true => Err(Failure::usage(
            "the users of a cache have no rate to search for; add --over users",
        )),
        false => Ok(()),
    }
}

/// The path of the number of accelerators or users in the workload; empty if it has neither.
fn varied(plan: &Plan) -> String {
    let works = plan
        .phases
        .iter()
        .flat_map(|phase| phase.works.iter().map(move |work| (phase, work)));
    let field = |work: &WorkPlan| {
        let train = work.model.train().map(|_| "train.accelerators");
        train.or_else(|| work.model.kvcache().map(|_| "kvcache.users"))
    };
    let mut found = works.filter_map(|(phase, work)| Some((phase, work, field(work)?)));
    found
        .next()
        .map_or_else(String::new, |(phase, work, field)| {
            // A phase with a single work has its fields directly, and the work has the phase's name.
            match phase.name == work.name {
                true => format!("phases.{}.{field}", phase.name),
                false => format!("phases.{}.works.{}.{field}", phase.name, work.name),
            }
        })
}

/// The settings of a trial with `number` accelerators or users, for so many seconds at most.
fn load(varied: &str, number: f64, seconds: Option<f64>) -> Vec<Override> {
    let field = Field::Path(varied.to_owned());
    let mut all = vec![Override::new(field, &format!("{number:.0}"))];
    all.extend(seconds.map(|seconds| {
        let duration = units::format_duration((seconds * 1e9) as u64);
        Override::new(Field::Duration, &duration)
    }));
    all
}

/// The search for the largest number of accelerators.
fn over_accelerators(args: &SearchArgs, plan: &Plan) -> Result<Settings, Failure> {
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    let Some(train) = works.find_map(|work| work.model.train()) else {
        return Err(Failure::usage(
            "--over accelerators: the workload has none; use a workload that trains, such as `train --show` prints",
        ));
    };
    let samples = train.samples as f64 * train.objects as f64;
    let most = (samples / train.batch as f64 / LEAST_STEPS).floor();
    if most < 1.0 {
        return Err(Failure::usage(format!(
            "--over accelerators: {} objects do not give a single accelerator {LEAST_STEPS} steps; use a larger data set",
            train.objects
        )));
    }
    Ok(whole(args, plan, most))
}

/// The search for the largest number of users.
fn over_users(args: &SearchArgs, plan: &Plan) -> Result<Settings, Failure> {
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    let cache = works.find_map(|work| work.model.kvcache());
    let Some((cache, users)) = cache.and_then(|cache| Some((cache, cache.users.as_ref()?))) else {
        return Err(Failure::usage(
            "--over users: the workload has none; use one with the cache of a language model, such as \
             `kvcache --preset mlperf-1 --show` prints",
        ));
    };
    let each = u64::from(cache.max_in_flight) / users.all().max(1);
    let most = MOST_CONNECTIONS / each.max(1) / u64::from(users.clients.max(1));
    Ok(whole(args, plan, most as f64))
}

/// A search for a whole number up to `most`.
fn whole(args: &SearchArgs, plan: &Plan, most: f64) -> Settings {
    let confirm = if args.quick { CONFIRM.1 } else { CONFIRM.0 };
    Settings {
        start_rate: 1.0,
        max_rate: Some(most),
        precision: PRECISION,
        confirm: args.confirm.unwrap_or(confirm),
        reference_rate: 1.0,
        recovery: Recovery::Never,
        seed: plan.seed,
        stop_at_client: true,
        whole: true,
    }
}

fn search(
    session: &Session<'_>,
    campaign: &mut Campaign,
    journal: &mut Journal<CapacityStudy>,
    header: &Header,
    varied: &str,
) -> Result<(), Failure> {
    let mut search = Search::new(header.settings.clone());
    while let Some(trial) = search.ask() {
        let settings = match header.settings.whole {
            true => {
                let quick = header.quick.then_some(QUICK.0);
                load(varied, trial.rate, header.trial_s.or(quick))
            }
            false => overrides(trial.rate, seconds(header, &trial)),
        };
        let name = format!(
            "{}-{:.0}",
            trial.purpose.name().replace(' ', "-"),
            trial.rate
        );
        let done = campaign.trial(&name, &settings)?;
        let measured = Measured::read(&done.dir).or_aborted()?;
        let inside = session.relative(&done.dir);
        let record = record(header, trial, inside, &measured)
            .ok_or_else(|| Failure::aborted(format!("trial {name} measured nothing")))?;
        journal.append(&record, &text::trial_line(header, &record))?;
        if let TrialMeaning::Broken { reason } = &record.judgement.meaning {
            return Err(Failure::aborted(format!("trial {name}: {reason}")));
        }
        search.record(record.finding());
    }
    Ok(())
}
