//! The definition of the command line, and its conversion into settings.
//!
//! Plain structs and conversions without side effects; the commands are in [`crate::commands`]. Help texts, man pages
//! and completions ([`docs`]) are generated from this definition.
//!
//! ```text
//! Cli ─┬─ GlobalArgs
//!      └─ Command ─┬─ run      WorkloadArgs ─> workload::resolve::Overrides, TargetArgs, LoadArgs, OutputArgs
//!                  ├─ agent    a share of a run on another host (the run itself has AgentsArgs)
//!                  ├─ replay   TraceArgs ─> trace::PrepareOptions, TimingArgs, ShapeArgs, AbsentArgs
//!                  ├─ model    TraceArgs
//!                  ├─ compare  CompareArgs: flags for both sides, and for each side
//!                  ├─ capacity, sweep, study-grid, s3-hpc  several runs in one directory
//!                  ├─ study    StudyArgs: a matrix of runs; list, show, report
//!                  ├─ io500    Io500Args: IO500's configuration and ours
//!                  ├─ md-workbench  WorkbenchArgs: MD-Workbench's options
//!                  ├─ kvcache  KvTraceArgs, CacheArgs: the cache of a language model
//!                  ├─ checkpoint  CheckpointArgs: models, ranks, scale; becomes a workload
//!                  ├─ train    TrainArgs: a model of training and its accelerators
//!                  ├─ placement  PlacementArgs: one subcommand per kind of store
//!                  ├─ bundle, verify-bundle  a directory as one file, and its verification
//!                  ├─ serve    ServeArgs
//!                  ├─ gateway  GatewayArgs
//!                  ├─ controller  queue and web console; submit, cancel, info, top talk to one
//!                  ├─ init     a target by name
//!                  ├─ config   effective settings and where they come from
//!                  ├─ doctor   DoctorArgs: what a store does otherwise
//!                  └─ workloads, show, report, cleanup, schema, man, completions, help
//! ```
//!
//! Values that belong to a workload stay text here. The resolver parses them, so that mistakes in a file and on the
//! command line get the same explanation.

pub(crate) mod agents;
pub(crate) mod bundle;
pub(crate) mod capacity;
pub(crate) mod checkpoint;
pub(crate) mod compare;
pub(crate) mod controller;
pub(crate) mod convert;
pub(crate) mod cosbench;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod drill;
pub(crate) mod gates;
pub(crate) mod gateway;
pub(crate) mod grid;
pub(crate) mod help;
pub(crate) mod hpc;
pub(crate) mod init;
pub(crate) mod io500;
pub(crate) mod kvcache;
pub(crate) mod manage;
pub(crate) mod markdown;
pub(crate) mod mdworkbench;
pub(crate) mod model;
pub(crate) mod placement;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod study;
pub(crate) mod sweep;
pub(crate) mod target;
pub(crate) mod trace;
pub(crate) mod train;
pub(crate) mod values;
pub(crate) mod variables;
pub(crate) mod workload;

use clap::{Args, Parser, Subcommand};

use agents::{AgentArgs, K8sArgs, SlurmArgs};
use bundle::{BundleArgs, VerifyBundleArgs};
use capacity::CapacityArgs;
use checkpoint::CheckpointArgs;
use compare::CompareArgs;
use controller::{CancelArgs, ControllerArgs, InfoArgs, SubmitArgs, TopArgs};
use convert::ConvertArgs;
use doctor::DoctorArgs;
use drill::DrillArgs;
use gateway::GatewayArgs;
use grid::GridArgs;
use help::HelpArgs;
use hpc::HpcArgs;
use init::InitArgs;
use io500::Io500Args;
use kvcache::KvcacheArgs;
use manage::{
    CleanupArgs, CompletionsArgs, ConfigArgs, ManArgs, ReportArgs, SchemaArgs, ShowArgs,
    WorkloadsArgs,
};
use mdworkbench::WorkbenchArgs;
use model::ModelArgs;
use placement::PlacementArgs;
use replay::ReplayArgs;
use run::RunArgs;
use serve::ServeArgs;
use study::StudyArgs;
use sweep::SweepArgs;
use train::TrainArgs;

/// Exit codes, for help texts.
const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the run finished, but a gate failed (verification, objective, regression)
  2    mistake on the command line, in the workload or in the configuration
  3    the target cannot be used
  4    the run was aborted
  5    success, but clean-up left objects in the target; the result is valid
  130  interrupted; partial results are kept";

const EXAMPLES: &str = "\
Examples:
  bucketload run online-service
      Benchmark the embedded server; needs no server, configuration or credentials
  bucketload run online-service --target s3://bucket/prefix --endpoint-url http://host:9000
      Run the same workload against a real store
  bucketload run get --size 1MiB --workers 32 --duration 1m
      Read objects of 1 MiB with 32 workers in a closed loop
  bucketload compare s3://old/t s3://new/t --workload mixed --runs 5 --duration 30s
      Say which of two stores is faster, with intervals
  bucketload cleanup --target s3://bucket/prefix --dry-run
      List the objects that killed runs left behind";

/// The benchmark for object storage: open-loop load, honest latencies and a verdict on every
/// result
#[derive(Debug, Parser)]
#[command(
    name = "bucketload",
    version,
    propagate_version = true,
    subcommand_required = true,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}")
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// When to use colour; `auto` depends on the terminal, NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t = ColorWhen::Auto,
        help_heading = "Global options"
    )]
    pub(crate) color: ColorWhen,

    /// Print results and errors only, without progress and notes
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless the environment says otherwise
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorWhen {
    /// Whether to use colour on a stream, given the values of NO_COLOR and CLICOLOR_FORCE (no-color.org,
    /// bixense.com/clicolors). An empty NO_COLOR counts as unset.
    pub(crate) fn applies(
        self,
        is_terminal: bool,
        no_color: Option<&str>,
        clicolor_force: Option<&str>,
    ) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if no_color.is_some_and(|value| !value.is_empty()) => false,
            Self::Auto => {
                is_terminal || clicolor_force.is_some_and(|value| !value.is_empty() && value != "0")
            }
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Agent(AgentArgs),
    #[command(name = "k8s")]
    K8s(K8sArgs),
    Slurm(SlurmArgs),
    Drill(Box<DrillArgs>),
    Replay(Box<ReplayArgs>),
    Model(Box<ModelArgs>),
    Convert(ConvertArgs),
    Compare(Box<CompareArgs>),
    Capacity(Box<CapacityArgs>),
    Sweep(Box<SweepArgs>),
    Study(Box<StudyArgs>),
    StudyGrid(Box<GridArgs>),
    #[command(name = "s3-hpc")]
    S3Hpc(HpcArgs),
    #[command(name = "io500")]
    Io500(Box<Io500Args>),
    MdWorkbench(Box<WorkbenchArgs>),
    Kvcache(Box<KvcacheArgs>),
    Checkpoint(Box<CheckpointArgs>),
    Train(Box<TrainArgs>),
    Init(Box<InitArgs>),
    Workloads(WorkloadsArgs),
    Show(ShowArgs),
    Report(ReportArgs),
    Bundle(BundleArgs),
    VerifyBundle(VerifyBundleArgs),
    Placement(PlacementArgs),
    Serve(ServeArgs),
    Gateway(GatewayArgs),
    Controller(ControllerArgs),
    Submit(SubmitArgs),
    Cancel(CancelArgs),
    Info(InfoArgs),
    Top(TopArgs),
    Doctor(Box<DoctorArgs>),
    Cleanup(CleanupArgs),
    Config(ConfigArgs),
    Schema(SchemaArgs),
    Man(ManArgs),
    Completions(CompletionsArgs),
    Help(HelpArgs),
}

/// The command of a line without quotes.
#[cfg(test)]
pub(crate) fn command(line: &str) -> Result<Command, String> {
    let cli = Cli::try_parse_from(line.split_whitespace());
    cli.map(|cli| cli.command).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Cli, ColorWhen, Command};

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_flags_may_appear_anywhere() {
        for line in [
            "bucketload -q --color never workloads",
            "bucketload workloads --color never -q",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert!(cli.global.quiet);
            assert_eq!(cli.global.color, ColorWhen::Never);
            assert!(matches!(cli.command, Command::Workloads(_)));
        }
    }

    #[test]
    fn every_command_and_flag_has_a_help_text() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for arg in command.get_arguments() {
                assert!(
                    arg.get_help().is_some(),
                    "{} {}",
                    command.get_name(),
                    arg.get_id()
                );
            }
        }
    }

    #[test]
    fn colour_follows_flag_then_environment_then_terminal() {
        let auto = ColorWhen::Auto;
        assert!(auto.applies(true, None, None));
        assert!(!auto.applies(false, None, None));
        assert!(!auto.applies(true, Some("1"), Some("1")));
        assert!(auto.applies(true, Some(""), None));
        assert!(auto.applies(false, None, Some("1")));
        assert!(!auto.applies(false, None, Some("0")));
        assert!(ColorWhen::Always.applies(false, Some("1"), None));
        assert!(!ColorWhen::Never.applies(true, None, Some("1")));
    }
}
