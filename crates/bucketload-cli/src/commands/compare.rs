//! `bucketload compare`: finds or measures two sets of runs, and compares them.

use std::path::{Path, PathBuf};

use bucketload_core::stats::decide::Decision;
use bucketload_results::compare::{Comparison, Options, Run, compare, find};
use bucketload_results::{output, report};

use crate::campaign::interleave::{self, Outcome};
use crate::cli::GlobalArgs;
use crate::cli::compare::{CompareArgs, CompareFormat, ComparisonArgs, FailOn, LiveArgs};
use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::cli::workload::WorkloadArgs;
use crate::commands::docs::print;
use crate::commands::report::text_options;
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;
use crate::target::Target;

/// What A and B are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Directories that hold runs.
    Runs,
    /// Targets, for one workload.
    Targets,
    /// Workloads, or one workload with different flags.
    Workloads,
}

/// Compares and prints.
pub(crate) fn execute(
    args: &CompareArgs,
    global: &GlobalArgs,
    color: bool,
) -> Result<Exit, Failure> {
    let mut options = Options {
        meanings: drivers::meanings,
        margin: args.comparison.margin.0,
        paired: args.comparison.paired,
        allow: args.comparison.allow_different.clone(),
    };
    let kind = kind(args)?;
    let mut leftovers = None;
    let (a, b, schedule, page) = if kind == Kind::Runs {
        let (a, b) = recorded(args)?;
        (a, b, String::new(), args.comparison.report.clone())
    } else {
        options.paired = true;
        match interleave::execute(args, kind, &options, global)? {
            Outcome::DryRun => return Ok(Exit::Ok),
            Outcome::Interrupted => return Ok(Exit::Interrupted),
            Outcome::Measured(pairs) => {
                let page = args.comparison.report.clone();
                let page = page.unwrap_or_else(|| pairs.dir.join("report.html"));
                leftovers = pairs.leftovers;
                (pairs.a, pairs.b, pairs.schedule, Some(page))
            }
        }
    };
    let refused = |e: bucketload_results::compare::Refusal| Failure {
        // Runs that were measured here are not a mistake of the user.
        exit: if kind == Kind::Runs {
            Exit::Usage
        } else {
            Exit::GateFailed
        },
        message: e.to_string(),
    };
    let mut comparison = compare(&a, &b, &options).map_err(refused)?;
    comparison.schedule = schedule;
    if let Some(page) = &page {
        let html = report::comparison_html(&comparison, &a, &b);
        files::write(page, html)?;
        if kind != Kind::Runs {
            files::write(
                page.with_file_name("compare.json"),
                output::comparison_json(&comparison),
            )?;
        }
    }
    show(&comparison, &args.comparison, color)?;
    if let Some(page) = page.filter(|_| !global.quiet) {
        eprintln!("bucketload: report: {}", page.display());
    }
    if let Some(leftovers) = &leftovers {
        eprintln!("bucketload: {}", leftovers.message);
    }
    Ok(
        match (
            exit(comparison.decision, args.comparison.fail_on),
            leftovers,
        ) {
            (Exit::Ok, Some(leftovers)) => leftovers.exit,
            (exit, _) => exit,
        },
    )
}

fn exit(decision: Decision, fail_on: FailOn) -> Exit {
    let fails = match (decision, fail_on) {
        (Decision::Slower, FailOn::Slower | FailOn::Inconclusive)
        | (Decision::Inconclusive, FailOn::Inconclusive) => true,
        (Decision::Faster | Decision::Equivalent, _)
        | (Decision::Inconclusive, FailOn::Slower)
        | (_, FailOn::Never) => false,
    };
    if fails { Exit::GateFailed } else { Exit::Ok }
}

fn show(c: &Comparison, args: &ComparisonArgs, colour: bool) -> Result<(), Failure> {
    let text = match args.output {
        CompareFormat::Text => output::comparison_text(c, text_options(colour, false)),
        CompareFormat::Json => output::comparison_json(c),
        CompareFormat::Csv => output::comparison_csv(c),
        CompareFormat::Markdown => output::comparison_markdown(c),
    };
    print(text.as_bytes()).map(drop)
}

fn kind_of(text: &str) -> Kind {
    if Path::new(text).is_dir() {
        Kind::Runs
    } else if text.contains(':') && Target::parse(text).is_ok() {
        Kind::Targets
    } else {
        Kind::Workloads
    }
}

/// The kind of the arguments, which must be the same for both.
fn kind(args: &CompareArgs) -> Result<Kind, Failure> {
    let name = |kind| match kind {
        Kind::Runs => "a directory of runs",
        Kind::Targets => "a target",
        Kind::Workloads => "a workload",
    };
    let Some(a) = args.a.as_deref() else {
        return Ok(Kind::Runs);
    };
    let kind = kind_of(a);
    match (args.b.as_deref(), kind) {
        (None, Kind::Runs) => {
            return Err(Failure::usage(format!(
                "there is nothing to compare with {a}; name a second directory of runs"
            )));
        }
        (None, _) => {}
        (Some(b), _) if kind_of(b) != kind => {
            return Err(Failure::usage(format!(
                "A ({a}) is {}, but B ({b}) is {}; both must be of the same kind, and run directories must exist",
                name(kind),
                name(kind_of(b))
            )));
        }
        (Some(_), _) => {}
    }
    match (kind, &args.live.workload) {
        (Kind::Targets, None) => Err(Failure::usage(
            "two targets need a workload; name it with --workload NAME",
        )),
        (Kind::Workloads | Kind::Runs, Some(_)) => Err(Failure::usage(
            "--workload is for the comparison of two targets; remove it",
        )),
        _ => Ok(kind),
    }
}

/// The runs of two sets of directories.
fn recorded(args: &CompareArgs) -> Result<(Vec<Run>, Vec<Run>), Failure> {
    let flags = [
        (
            "--runs, --pause, --out and the like",
            args.live != LiveArgs::default(),
        ),
        ("target options", args.target != TargetArgs::default()),
        (
            "workload options",
            args.workload_args != WorkloadArgs::default(),
        ),
        ("run options", args.load != LoadArgs::default()),
    ];
    if let Some((flag, _)) = flags.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{flag} have no effect on runs that exist already; remove them"
        )));
    }
    let side = |given: &Option<String>, listed: &[PathBuf]| -> Result<_, Failure> {
        let given = given.iter().map(PathBuf::from);
        let mut runs = Vec::new();
        for path in given.chain(listed.iter().cloned()) {
            for dir in find(&path).or_usage()? {
                runs.push(Run::load(&dir).or_usage()?);
            }
        }
        Ok(runs)
    };
    Ok((
        side(&args.a, &args.comparison.a_runs)?,
        side(&args.b, &args.comparison.b_runs)?,
    ))
}

#[cfg(test)]
mod tests {
    use bucketload_core::stats::decide::Decision;

    use super::{Kind, exit, kind_of};
    use crate::cli::compare::FailOn;
    use crate::exit::Exit;

    #[test]
    fn kinds_of_arguments_are_recognised() {
        assert_eq!(kind_of("/"), Kind::Runs);
        for target in ["mem:", "null:", "s3://b/p", "file:///data", "serve:///data"] {
            assert_eq!(kind_of(target), Kind::Targets, "{target}");
        }
        for workload in ["get", "online-service", "some/where.toml"] {
            assert_eq!(kind_of(workload), Kind::Workloads, "{workload}");
        }
    }

    #[test]
    fn the_gate_fails_on_the_chosen_outcome() {
        use Decision::{Equivalent, Faster, Inconclusive, Slower};
        for (word, fail_on, expected) in [
            (Slower, FailOn::Slower, Exit::GateFailed),
            (Slower, FailOn::Never, Exit::Ok),
            (Inconclusive, FailOn::Slower, Exit::Ok),
            (Inconclusive, FailOn::Inconclusive, Exit::GateFailed),
            (Slower, FailOn::Inconclusive, Exit::GateFailed),
            (Equivalent, FailOn::Inconclusive, Exit::Ok),
            (Faster, FailOn::Inconclusive, Exit::Ok),
        ] {
            assert_eq!(exit(word, fail_on), expected, "{word} {fail_on:?}");
        }
    }
}
