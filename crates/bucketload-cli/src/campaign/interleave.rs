//! Two campaigns measured in turn: pairs of trials with the same seed and schedule on both sides.
//!
//! ```text
//!  prepare A, prepare B ──► pause ─ A ─ pause ─ B ─ pause ─ B ─ pause ─ A … ──► clean up B, A
//!                           └──── pair 1 ────┘      └──── pair 2 ────┘
//! ```
//!
//! A pair with a trial that says nothing about the store (client-bound, incomplete, or not valid
//! without leave) is measured again, for as many pairs as were asked for in the first place. All
//! run directories are kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bucketload_results::compare::{Options, Run, UsableVerdict, comparable, usable};
use bucketload_results::rundir::Manifest;
use bucketload_run::StopHandle;
use bucketload_workload::resolve::{EMBEDDED_MEMORY_BUDGET, Overrides, ResolveContext};
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
use crate::exit::{Exit, Failure, OrFail, also};
use crate::target::Target;
use crate::{setup, signals};

/// How it ended.
pub(crate) enum Outcome {
    /// Enough pairs.
    Measured(Pairs),
    /// Nothing was to be measured.
    DryRun,
    /// The user stopped it.
    Interrupted,
}

/// Runs that belong together, in order.
pub(crate) struct Pairs {
    /// The runs of A.
    pub(crate) a: Vec<Run>,
    /// Their partners.
    pub(crate) b: Vec<Run>,
    /// The order in which they were made, in words.
    pub(crate) schedule: String,
    /// The directory of both campaigns.
    pub(crate) dir: PathBuf,
    /// What their clean-up left in the targets.
    pub(crate) left: Option<Failure>,
}

/// One side of the command line.
struct Side {
    workload: String,
    target: TargetArgs,
    overrides: Overrides,
}

/// Measures A and B in turn.
///
/// # Errors
/// When the command line is wrong, the sides may not be compared, a target cannot be used, or too
/// few pairs are usable.
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
    let made = Making {
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
    let schedule = order::describe(made.order, made.seed, 0..made.runs);
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
            println!("differs by request: {}: {} against {}", d.field, d.a, d.b);
        }
        return Ok(Outcome::DryRun);
    }
    say(&format!("order of the runs: {schedule}"));
    signals::watch(stop.clone()).or_aborted()?;
    let measured = measure(&mut a, &mut b, &made, options, &say);
    let places = format!("{} and {}", a.dir().display(), b.dir().display());
    // A may have made the bucket that both work in: it goes last.
    let closed = also(b.close(), a.close());
    let left = closed.as_ref().err().map(|left| left.message.clone());
    let measured = interrupted(measured).map_err(|failure| failure.and_left(left.as_deref()))?;
    let Some(Measured { a, b, pairs }) = measured else {
        say(&format!("interrupted; the runs are kept in {places}"));
        if let Some(left) = left {
            eprintln!("bucketload: {left}");
        }
        return Ok(Outcome::Interrupted);
    };
    Ok(Outcome::Measured(Pairs {
        left: closed.err(),
        a,
        b,
        schedule: order::describe(made.order, made.seed, pairs),
        dir,
    }))
}

/// Turns an interruption into `None`.
fn interrupted<T>(outcome: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match outcome {
        Err(failure) if failure.exit == Exit::Interrupted => Ok(None),
        other => other.map(Some),
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
    let own = match with {
        None => SideArgs::default(),
        Some(text) => words(text)
            .and_then(|words| SideArgs::try_parse_from(words).map_err(|e| e.to_string()))
            .map_err(|e| Failure::usage(format!("{flag}: {}", e.trim_start_matches("error: "))))?,
    };
    let mut target = args.target.with(&own.target);
    let workload = if kind == Kind::Targets {
        if args.target.target.is_some() || own.target.target.is_some() {
            return Err(Failure::usage(
                "--target: A and B are the targets already; give the workload by --workload",
            ));
        }
        target.target = Some(given);
        args.live.workload.clone().unwrap_or_default()
    } else {
        given
    };
    let mut overrides = args.workload_args.overrides().or_usage()?;
    let special = own.workload_args.overrides().or_usage()?;
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
    let context = ResolveContext {
        memory_budget: (target == Target::Memory).then_some(EMBEDDED_MEMORY_BUDGET),
    };
    Campaign::open(CampaignSpec {
        file,
        overrides: side.overrides,
        context,
        connection: Connection::open(target, &flags, &args.load)?,
        load: args.load.clone(),
        dir: dir.join(name),
        resumed: None,
        quiet: global.quiet,
        stop: stop.clone(),
    })
}

/// How the runs are made.
struct Making {
    /// Pairs.
    runs: u32,
    order: Order,
    /// Before each run.
    pause: Duration,
    /// Of the random order.
    seed: u64,
}

/// The seed of the random order: as given, else a random one.
fn seed(args: &CompareArgs) -> Result<u64, Failure> {
    match args.live.order_seed {
        Some(_) if args.live.order != Some(Order::Random) => Err(Failure::usage(
            "--order-seed is for --order random; ABBA has no seed",
        )),
        Some(seed) => Ok(seed),
        None => {
            let random = random_hex(4).or_aborted()?;
            Ok(u64::from_str_radix(&random, 16).unwrap_or(0))
        }
    }
}

/// Usable pairs.
#[derive(Default)]
struct Measured {
    a: Vec<Run>,
    b: Vec<Run>,
    /// Numbers of the pairs, from 0.
    pairs: Vec<u32>,
}

/// Measures as many usable pairs as were asked for.
fn measure(
    a: &mut Campaign,
    b: &mut Campaign,
    made: &Making,
    options: &Options,
    say: &dyn Fn(&str),
) -> Result<Measured, Failure> {
    a.prepare(&[])?;
    b.prepare(&[])?;
    let wanted = made.runs as usize;
    let mut measured = Measured::default();
    for pair in 0..2 * made.runs {
        if measured.a.len() == wanted {
            break;
        }
        let mut found = [None, None];
        for side in order::of_pair(made.order, made.seed, pair) {
            let campaign = match side {
                SideName::A => &mut *a,
                SideName::B => &mut *b,
            };
            campaign.prepare(&[])?;
            campaign.pause(made.pause);
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
        return Err(Failure {
            exit: Exit::GateFailed,
            message: format!(
                "only {} of {wanted} pairs are usable; the others are invalid as said above",
                measured.a.len()
            ),
        });
    }
    Ok(measured)
}

/// The run of a trial, unless it is of no use for a comparison.
fn run(trial: Trial, options: &Options, say: &dyn Fn(&str)) -> Result<Option<Run>, Failure> {
    let failed = |exit, message: String| Err(Failure { exit, message });
    match trial.exit {
        Exit::Interrupted => return failed(Exit::Interrupted, "interrupted".to_owned()),
        Exit::GateFailed
            if trial.result.verdict.word != bucketload_core::verdict::Word::Incomplete =>
        {
            let message = format!(
                "{}: verification failed, the store was full or most operations failed; \
                 there is nothing to compare",
                trial.dir.display()
            );
            return failed(Exit::GateFailed, message);
        }
        _ => {}
    }
    let verdict = &trial.result.verdict;
    let leave = options.allow.iter().any(|allowed| allowed == "verdict");
    let fits = match usable(verdict.word) {
        UsableVerdict::Yes => true,
        UsableVerdict::IfAllowed => leave,
        UsableVerdict::No => false,
    };
    if !fits {
        let why: Vec<String> = verdict
            .reasons
            .iter()
            .map(|reason| format!("{}: {}", reason.rule, reason.measured))
            .collect();
        say(&format!(
            "{} is {} ({}): the pair is measured again",
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
        let resolved = self.resolve(&[])?;
        let spec = &self.spec;
        let (file, connection) = (&spec.file, &spec.connection);
        let mut manifest =
            setup::manifest(&self.id, &resolved, file.text(), connection, &self.options)?;
        manifest.driver = connection.driver.facts();
        Ok(manifest)
    }
}
