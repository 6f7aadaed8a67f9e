//! The gates of `run` and `replay`: objectives, verdicts that are failures, the precision at which phases end.

use bucketload_core::capacity::{Slo, Statistic, Timing, eval::absent_classes};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{PhaseKind, PhasePlan, Plan, StopFigure, StopRule};
use bucketload_results::output;
use bucketload_results::result::RunResult;

use crate::cli::gates::{GateArgs, Precision};
use crate::cli::run::OutputFormat;
use crate::exit::{Exit, Failure};

/// Window from which fewer than 30 batches suffice (docs/spec/statistics.md section 3), nanoseconds.
const WINDOW_NS: u64 = 300_000_000_000;

fn measured(plan: &Plan) -> impl Iterator<Item = &PhasePlan> {
    plan.phases
        .iter()
        .filter(|phase| phase.kind == PhaseKind::Run)
}

fn performed<'a>(phases: impl Iterator<Item = &'a PhasePlan>) -> Vec<OpClass> {
    let works = phases.flat_map(|phase| &phase.works);
    works
        .flat_map(|work| &work.mix)
        .map(|entry| entry.class)
        .collect()
}

/// Refuses objectives of operations that `plan` does not perform. A plan without a mix, such as a trace's, may perform
/// any.
///
/// # Errors
/// When an objective could never be met.
pub(crate) fn check(args: &GateArgs, plan: &Plan) -> Result<(), Failure> {
    let Some(slo) = &args.slo else {
        return Ok(());
    };
    check_figures(slo, plan)?;
    let performed = performed(measured(plan));
    match absent_classes(slo, &performed).first() {
        Some(class) if !performed.is_empty() => Err(Failure::usage(format!(
            "--slo {slo}: the workload performs no {class} operations; name a class of its mix, or no class"
        ))),
        _ => Ok(()),
    }
}

/// Refuses objectives on figures of training, checkpoints or a cache that the plan cannot have.
///
/// # Errors
/// Names the figure, why there is none, and what has it.
pub(crate) fn check_figures(slo: &Slo, plan: &Plan) -> Result<(), Failure> {
    let missing = slo.ai_figures().find_map(|figure| figure.missing_in(plan));
    match missing {
        Some(why) => Err(Failure::usage(format!("--slo {slo}: {why}"))),
        None => Ok(()),
    }
}

/// How to exit: as `exit` says, or with a failed gate if the verdict has a reason that the user called a failure. Says
/// on standard error what was met and missed where standard output is for programs.
pub(crate) fn judge(args: &GateArgs, result: &RunResult, format: OutputFormat, exit: Exit) -> Exit {
    if format != OutputFormat::Text {
        for line in output::objective_lines(result) {
            eprintln!("bucketload: --slo: {line}");
        }
    }
    let mut failed = false;
    for reason in &result.verdict.reasons {
        if args.fail_on.contains(&reason.word) {
            failed = true;
            let word = reason.word.name().to_lowercase();
            eprintln!(
                "bucketload: --fail-on {word} ({}): {}",
                reason.rule, reason.measured
            );
        }
    }
    match exit {
        Exit::Ok | Exit::Leftovers if failed => Exit::GateFailed,
        other => other,
    }
}

/// Lets the measured phases with a time limit end as soon as they are precise enough.
///
/// # Errors
/// When no phase could end so.
pub(crate) fn until_precise(plan: &mut Plan, precision: Precision) -> Result<(), Failure> {
    let mut applied = false;
    for phase in &mut plan.phases {
        if phase.kind != PhaseKind::Run || phase.limits.duration_ns == 0 {
            continue;
        }
        let open = phase
            .works
            .iter()
            .any(|work| work.model.open_cap().is_some());
        let figure = precision.figure.unwrap_or(match open {
            // The throughput of an open loop is what was offered.
            true => StopFigure::Duration {
                class: None,
                of: Timing::Response,
                statistic: Statistic::Quantile(0.99),
            },
            false => StopFigure::Throughput,
        });
        let (class, quantile) = match figure {
            StopFigure::Duration {
                class,
                statistic: Statistic::Quantile(q),
                ..
            } => (class, q),
            StopFigure::Duration { class, .. } => (class, 0.0),
            StopFigure::Throughput => (None, 0.0),
        };
        let performed = performed(std::iter::once(&*phase));
        if class.is_some_and(|class| !performed.contains(&class)) {
            continue;
        }
        applied = true;
        phase.stop = Some(StopRule {
            min_window_ns: WINDOW_NS,
            half_width: precision.half_width,
            quantile,
            figure,
        });
    }
    match applied {
        true => Ok(()),
        false => Err(Failure::usage(
            "--until-precise: no measured phase of this workload has a time limit and performs these operations; \
             remove the flag, or add --duration",
        )),
    }
}
