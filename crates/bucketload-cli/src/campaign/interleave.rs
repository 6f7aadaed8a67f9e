//! Two campaigns measured alternately: pairs of trials with the same seed and schedule on both sides.
//!
//! ```text
//!  prepare A, prepare B ──► pause ─ A ─ pause ─ B ─ pause ─ B ─ pause ─ A … ──► clean up B, A
//!                           └──── pair 1 ────┘      └──── pair 2 ────┘
//! ```
//!
//! A pair is repeated if one of its trials says nothing about the store: the trial was client-bound or incomplete, or
//! its verdict is not VALID and the user did not allow that. At most as many pairs are repeated as were asked for. All
//! run directories are kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bucketload_core::verdict::Word;
use bucketload_results::compare::{Options, Run, UsableVerdict, comparable, usable};
use bucketload_results::rundir::Manifest;
use bucketload_run::StopHandle;
use bucketload_workload::resolve::Overrides;
use clap::Parser as _;

use super::order::{self, SideName};
use super::{Campaign, CampaignSpec, Trial};
use crate::cli::GlobalArgs;
use crate::cli::compare::{CompareArgs, Order, SideArgs};
use crate::cli::target::TargetArgs;
use crate::cli::values::words;
use crate::commands::compare::Kind;
use crate::commands::workloads::load;
use crate::connection::{Connection, flags_of, target_of};
use crate::embedded::random_hex;
use crate::exit::{Exit, Failure, OrFail, first_failure};
use crate::job::forget_hollow;
use crate::named;
use crate::{setup, signals};

/// How the measurement ended.
pub(crate) enum Outcome {
    /// There are as many usable pairs as were asked for.
    Measured(MeasuredPairs),
    /// A dry run, which measures nothing.
    DryRun,
    /// The user stopped the measurement.
    Interrupted,
}

/// The runs of both sides, pair by pair.
pub(crate) struct MeasuredPairs {
    pub(crate) a: Vec<Run>,
    pub(crate) b: Vec<Run>,
    /// The order in which the runs were measured, in words.
    pub(crate) schedule: String,
    /// The directory of both campaigns.
    pub(crate) dir: PathBuf,
    /// Why the clean-up of the targets was incomplete.
    pub(crate) leftovers: Option<Failure>,
}

/// One side of the command line.
struct Side {
    workload: String,
    target: TargetArgs,
    overrides: Overrides,
}

/// Measures A and B alternately.
///
/// # Errors
/// When the command line is wrong, the sides cannot be compared, a target cannot be used, or too few pairs are usable.
pub(crate) fn execute(
    args: &CompareArgs,
    kind: Kind,
    options: &Options,
    global: &GlobalArgs,
) -> Result<Outcome, Failure> {
    let sides = [
        side(
            args,
            kind,
            args.a.as_deref(),
            args.live.a_with.as_deref(),
            "--a-with",
        )?,
        side(
            args,
            kind,
            args.b.as_deref().or(args.a.as_deref()),
            args.live.b_with.as_deref(),
            "--b-with",
        )?,
    ];
    let started = time::OffsetDateTime::now_utc();
    let name = Path::new(&sides[0].workload)
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let out = args.live.out.as_deref();
    let dir = setup::run_directory(out, &format!("compare-{name}"), started)?;
    let existed = dir.exists();
    let order = PairOrder {
        runs: args.live.runs.unwrap_or(5),
        order: args.live.order.unwrap_or_default(),
        pause: args.live.pause.unwrap_or(Duration::from_secs(2)),
        seed: seed(args)?,
    };
    let stop = StopHandle::new();
    let [a, b] = sides;
    let mut a = campaign(a, "a", args, global, &dir, &stop)?;
    let mut b = campaign(b, "b", args, global, &dir, &stop)?;
    let manifests = [a.outlook()?, b.outlook()?];
    let differences = comparable(&manifests[0], &manifests[1], options).or_usage()?;
    let schedule = order::describe(order.order, order.seed, 0..order.runs);
    let say = |text: &str| {
        if !global.quiet {
            eprintln!("bucketload: {text}");
        }
    };
    if args.load.dry_run {
        println!("order of the runs: {schedule}");
        for (label, m) in ["A", "B"].into_iter().zip(&manifests) {
            println!(
                "{label}: {} on {}, scenario {}",
                m.plan.workload, m.target, m.scenario_hash
            );
        }
        for d in differences {
            let [name, a, b] = d.words();
            println!("allowed difference: {name}: {a} against {b}");
        }
        return Ok(Outcome::DryRun);
    }
    say(&format!("order of the runs: {schedule}"));
    signals::watch(stop.clone()).or_aborted()?;
    let measured = measure(&mut a, &mut b, &order, options, &say);
    let places = format!("{} and {}", a.dir().display(), b.dir().display());
    // A may have created the bucket that both use, so A closes last.
    let leftovers = first_failure(b.close(), a.close()).err();
    let message = leftovers.as_ref().map(|failure| failure.message.as_str());
    match measured {
        Ok(UsablePairs { a, b, pairs }) => Ok(Outcome::Measured(MeasuredPairs {
            leftovers,
            a,
            b,
            schedule: order::describe(order.order, order.seed, pairs),
            dir,
        })),
        Err(failure) if failure.exit == Exit::Interrupted => {
            say(&format!("interrupted; the runs are kept in {places}"));
            if let Some(message) = message {
                eprintln!("bucketload: {message}");
            }
            Ok(Outcome::Interrupted)
        }
        Err(failure) => {
            if matches!(failure.exit, Exit::Usage | Exit::Target) {
                forget_hollow(&dir, existed, &[]).or_aborted()?;
            }
            Err(failure.with_leftovers(message))
        }
    }
}

fn side(
    args: &CompareArgs,
    kind: Kind,
    given: Option<&str>,
    with: Option<&str>,
    flag: &str,
) -> Result<Side, Failure> {
    let given = given.unwrap_or_default().to_owned();
    let side_args = match with {
        None => SideArgs::default(),
        Some(text) => words(text)
            .and_then(|words| SideArgs::try_parse_from(words).map_err(|e| e.to_string()))
            .map_err(|e| Failure::usage(format!("{flag}: {}", e.trim_start_matches("error: "))))?,
    };
    let mut target = args.target.with(&side_args.target);
    let workload = if kind == Kind::Targets {
        if args.target.target.is_some() || side_args.target.target.is_some() {
            return Err(Failure::usage(
                "--target: A and B are already targets; remove --target, and name the workload with --workload",
            ));
        }
        target.target = Some(given);
        named::expand(&mut target).or_usage()?;
        args.live.workload.clone().unwrap_or_default()
    } else {
        given
    };
    let mut overrides = args.workload_args.overrides().or_usage()?;
    let special = side_args.workload_args.overrides().or_usage()?;
    overrides.profile = special.profile.or(overrides.profile);
    overrides.settings.extend(special.settings);
    Ok(Side {
        workload,
        target,
        overrides,
    })
}

fn campaign(
    side: Side,
    name: &str,
    args: &CompareArgs,
    global: &GlobalArgs,
    dir: &Path,
    stop: &StopHandle,
) -> Result<Campaign, Failure> {
    let file = load(&side.workload)?;
    let target = target_of(&side.target, file.spec().target.as_ref())?;
    let flags = flags_of(&side.target, file.spec().target.as_ref())?;
    Campaign::open(CampaignSpec {
        file,
        overrides: side.overrides,
        connection: Connection::open(target, &flags, &args.load)?,
        load: args.load.clone(),
        dir: dir.join(name),
        resumed: None,
        independent: false,
        quiet: global.quiet,
        stop: stop.clone(),
    })
}

/// How many pairs are measured, and in which order.
struct PairOrder {
    runs: u32,
    order: Order,
    /// Pause before each run.
    pause: Duration,
    /// Seed of the random order.
    seed: u64,
}

/// The seed of the random order: as given, or a random one.
fn seed(args: &CompareArgs) -> Result<u64, Failure> {
    match args.live.order_seed {
        Some(_) if args.live.order != Some(Order::Random) => Err(Failure::usage(
            "--order-seed needs --order random: the order abba has no seed",
        )),
        Some(seed) => Ok(seed),
        None => {
            let random = random_hex(4).or_aborted()?;
            Ok(u64::from_str_radix(&random, 16).unwrap_or(0))
        }
    }
}

#[derive(Default)]
struct UsablePairs {
    a: Vec<Run>,
    b: Vec<Run>,
    /// Numbers of the pairs, from 0.
    pairs: Vec<u32>,
}

/// Measures as many usable pairs as were asked for.
fn measure(
    a: &mut Campaign,
    b: &mut Campaign,
    order: &PairOrder,
    options: &Options,
    say: &dyn Fn(&str),
) -> Result<UsablePairs, Failure> {
    a.prepare(&[])?;
    b.prepare(&[])?;
    let wanted = order.runs as usize;
    let mut measured = UsablePairs::default();
    for pair in 0..2 * order.runs {
        if measured.a.len() == wanted {
            break;
        }
        let mut found = [None, None];
        for side in order::of_pair(order.order, order.seed, pair) {
            let campaign = match side {
                SideName::A => &mut *a,
                SideName::B => &mut *b,
            };
            campaign.prepare(&[])?;
            campaign.pause(order.pause);
            let name = format!("pair-{:02}", pair + 1);
            say(&format!(
                "pair {} of {wanted}: {side:?}",
                measured.a.len() + 1
            ));
            let trial = campaign.trial(&name, &[])?;
            found[side as usize] = run(trial, options, say)?;
            if found[side as usize].is_none() {
                break;
            }
        }
        if let [Some(a), Some(b)] = found {
            measured.a.push(a);
            measured.b.push(b);
            measured.pairs.push(pair);
        }
    }
    if measured.a.len() < wanted {
        return Err(Failure::gate(format!(
            "only {} of {wanted} pairs are usable; see above why the others are not",
            measured.a.len()
        )));
    }
    Ok(measured)
}

/// The run of a trial, unless the trial cannot be used for a comparison.
fn run(trial: Trial, options: &Options, say: &dyn Fn(&str)) -> Result<Option<Run>, Failure> {
    let verdict = &trial.result.verdict;
    if trial.exit == Exit::GateFailed && verdict.word != Word::Incomplete {
        return Err(Failure::gate(format!(
            "{}: verification failed, the store was full or most operations failed; \
             there is nothing to compare",
            trial.dir.display()
        )));
    }
    let allowed = options.allow.iter().any(|allowed| allowed == "verdict");
    let usable = match usable(verdict.word) {
        UsableVerdict::Yes => true,
        UsableVerdict::IfAllowed => allowed,
        UsableVerdict::No => false,
    };
    if !usable {
        let why: Vec<String> = verdict
            .reasons
            .iter()
            .map(|reason| format!("{}: {}", reason.rule, reason.measured))
            .collect();
        say(&format!(
            "{} is {} ({}): measuring the pair again",
            trial.dir.display(),
            verdict.word,
            why.join("; ")
        ));
        return Ok(None);
    }
    let manifest = Manifest::read(&trial.dir).or_aborted()?;
    Ok(Some(Run {
        directory: trial.dir,
        manifest,
        result: trial.result,
    }))
}

impl Campaign {
    /// The manifest that a trial without further settings would have.
    ///
    /// # Errors
    /// When the workload cannot be resolved.
    fn outlook(&self) -> Result<Manifest, Failure> {
        let plan = self.plan(&[])?;
        let (source, connection) = (self.spec.file.text(), &self.spec.connection);
        let mut manifest = setup::manifest(&self.id, &plan, source, connection, &self.options)?;
        manifest.driver = connection.driver.facts();
        Ok(manifest)
    }
}
