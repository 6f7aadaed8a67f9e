//! COSBench workloads on the ordinary runner.
//!
//! ```text
//!  XML ─ cosbench::parse ─► Workload ─ overrides (flags) ─► plan (entry) ─► Plan ─► the runner
//!                              │                       └─► storage ─────► Target, settings
//!                              └─ expanded, without secrets: the manifest's workload source
//!  run directory ─ artifacts ─► archive (run-history.csv, workloads.csv, wN-NAME/…)
//! ```

pub(crate) mod artifacts;
mod entry;
mod figures;
pub(crate) mod local;
mod overrides;
mod plan;
mod storage;
mod timeline;
pub(crate) mod triggers;

use std::path::Path;

use bucketload_core::agent::AgentsFile;
use bucketload_core::plan::Plan;
use bucketload_core::plan::crews::{self, Pins};
use bucketload_cosbench::{Location, Parsed, parse, workload_config};
use bucketload_workload::resolve::Resolved;
use bucketload_workload::spec::TargetSpec;

use crate::cli::cosbench::{Compat, CosbenchArgs};
use crate::cli::target::TargetArgs;
use crate::cli::workload::WorkloadArgs;
use crate::exit::{Failure, OrFail};
use crate::files;
use crate::target::Target;

/// A loaded workload and its target.
pub(crate) struct Loaded {
    pub(crate) resolved: Resolved,
    /// The workload as COSBench understands it, without secrets.
    pub(crate) source: String,
    pub(crate) target: Target,
    /// Target flags, with the workload's storage settings added.
    pub(crate) target_args: TargetArgs,
    /// Scripts around the phases.
    pub(crate) triggers: Vec<triggers::Trigger>,
}

/// Name of the profile in plans, which keeps results from being compared with those of other workloads.
pub(crate) const PROFILE: &str = "cosbench";
/// The [`bucketload_core::plan::Plan::compat`] of a plan that reproduces COSBench's numbers.
pub(crate) const STRICT: &str = "cosbench-strict";

/// How a workload is run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunMode {
    /// Only say what would happen.
    pub(crate) dry_run: bool,
    /// Agents carry out the run.
    pub(crate) agents: bool,
}

/// The agents that stand for the drivers to which works of `plan` are pinned.
///
/// # Errors
/// When pinned works leave no agent for other works.
pub(crate) fn pins(
    plan: &Plan,
    agents: &AgentsFile,
    notes: &mut Vec<String>,
) -> Result<Pins, Failure> {
    let known = agents.drivers();
    let mut pins = Pins::new();
    for name in plan::drivers(plan) {
        match known.get(name) {
            Some(agent) => drop(pins.insert(name.to_owned(), *agent)),
            // As COSBench does.
            None => notes.push(format!(
                "no agent has the driver name `{name}`, so works that name it are divided over all agents; agents are \
                 named driver1 to driver{}, and by their addresses and hosts",
                agents.agents.len()
            )),
        }
    }
    let count = agents.agents.len() as u32;
    match crews::unassigned_work(plan, count, &pins) {
        None => Ok(pins),
        Some((stage, work)) => Err(Failure::usage(format!(
            "stage `{stage}`: works are pinned to all {count} agents, so no agent is left for work `{work}`; \
             start more agents, or remove a `driver`"
        ))),
    }
}

/// A message about something that is refused, with its place in the file.
pub(crate) fn refuse(place: &Location, problem: &str, remedy: &str) -> String {
    match place.line {
        0 => format!("{problem}; {remedy}"),
        _ => format!("{place}: {problem}; {remedy}"),
    }
}

/// Whether `name` is a workload in XML, judged by its extension or its first characters.
pub(crate) fn is_workload(name: &str) -> bool {
    let path = Path::new(name);
    if !path.is_file() {
        return name.ends_with(".xml");
    }
    let named = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("xml"));
    named || begins_with_tag(path)
}

fn begins_with_tag(path: &Path) -> bool {
    use std::io::Read as _;
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(256).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    read.is_ok() && text.starts_with('<')
}

/// Reads the workload `name` and turns it into a plan.
///
/// # Errors
/// Everything that COSBench would refuse or stop at, and everything that is not supported, with its place and a remedy.
pub(crate) fn load(
    name: &str,
    args: &CosbenchArgs,
    target: &TargetArgs,
    workload: &WorkloadArgs,
    mode: RunMode,
) -> Result<Loaded, Failure> {
    let at = |text: String| Failure::usage(format!("{name}: {text}"));
    let Parsed {
        workload: mut parsed,
        warnings,
    } = parse(&files::read(name)?).map_err(|e| at(e.to_string()))?;
    let mut notes: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let settings = overrides::Settings::new(workload).or_usage()?;
    overrides::apply(&mut parsed, &settings, &args.skip_operations, &mut notes).map_err(at)?;
    let mut chosen = storage::choose(&parsed, target, &mut notes).map_err(at)?;
    if let Some(files) = local::files(&parsed, args, mode).map_err(at)? {
        notes.push(format!(
            "localwrite: {}writes files below {}, where they remain after the run",
            if mode.agents { "each agent " } else { "" },
            files.display()
        ));
        chosen.args.settings.local_files = Some(files);
        chosen.args.settings.local_files_on_agents = mode.agents;
    }
    let strict = args.compat == Some(Compat::Strict);
    let mut plan = plan::plan(&parsed, &settings, strict, &mut notes).map_err(at)?;
    if let Some(timeout_ns) = settings.timeout_ns {
        plan.timeout_ns = timeout_ns;
    } else if let Some(timeout_ns) = chosen.timeout_ns {
        plan.timeout_ns = timeout_ns;
    }
    let triggers = triggers::triggers(&parsed, args, mode, &mut notes).map_err(at)?;
    if mode.dry_run && !args.delete_named {
        notes.extend(plan::delete_note(&plan));
    }
    if !mode.agents && plan::drivers(&plan).next().is_some() {
        notes.push(
            "works are not pinned to drivers, because this machine runs them all (with --agents or --launch, \
             `driver1` is the first agent)"
                .to_owned(),
        );
    }
    Ok(Loaded {
        resolved: Resolved {
            plan,
            notes,
            target: TargetSpec::default(),
            settings: Vec::new(),
            drill: None,
        },
        source: workload_config(&parsed, true),
        target: chosen.target,
        target_args: chosen.args,
        triggers,
    })
}
