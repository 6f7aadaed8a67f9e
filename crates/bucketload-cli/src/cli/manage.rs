//! Commands about workloads, results and settings.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use clap_complete::Shell;

use super::run::OutputFormat;
use super::target::TargetArgs;
use super::workload::WorkloadArgs;

/// List the built-in workloads
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkloadsArgs {}

/// Print a built-in workload, to read it or to start your own file from it
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload show online-service > my.toml")]
pub(crate) struct ShowArgs {
    /// Name of the workload (see `bucketload workloads`)
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Print the result of a run directory again, and rewrite its report
///
/// Also works on the directory of an interrupted or killed run, and on the directories of `capacity`, `sweep`,
/// `study-grid` and `s3-hpc`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run directory (default: the latest in bucketload-runs)
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,

    /// Format of the result on standard output
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: OutputFormat,

    /// Explain every term of the text
    #[arg(long, conflicts_with = "output")]
    pub(crate) explain: bool,

    /// File that says where objects are stored: lines KEY,NODE, one per copy; the report then shows the load of
    /// the data nodes
    ///
    /// Needs the operation log of the run (run --op-log). Keys are those of the store, including the run's
    /// prefix.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) placement: Option<PathBuf>,

    /// File that says which requests the data nodes served: lines KEY,NODE, one per request, from the store's
    /// own logs
    #[arg(long, value_name = "FILE", requires = "placement", value_hint = ValueHint::FilePath)]
    pub(crate) served: Option<PathBuf>,

    /// Write COSBench's archive (run-history.csv, workloads.csv, wN-NAME/...) of a run of a COSBench
    /// workload into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cosbench_artifacts: Option<PathBuf>,
}

/// Delete objects that earlier runs left in a target
///
/// Deletes only objects that carry the marker of a run. Deleting anything else takes --yes-delete-foreign.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload cleanup --target s3://bucket/prefix --dry-run")]
pub(crate) struct CleanupArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,

    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Delete everything below the target's prefix, including objects that no run created
    #[arg(long)]
    pub(crate) yes_delete_foreign: bool,
}

/// Explain settings
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// What to explain
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What to explain.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every effective setting and where it comes from; secrets are never shown
    Show {
        /// Also show the settings of this workload
        #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
        workload: Option<String>,

        #[command(flatten)]
        target: Box<TargetArgs>,

        #[command(flatten)]
        workload_args: Box<WorkloadArgs>,
    },
}

/// Print the JSON Schema of workload files, for editors
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload schema > workload.schema.json")]
pub(crate) struct SchemaArgs {}

/// Print the manual page, or write the pages of all commands into a directory
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload man | man -l -")]
pub(crate) struct ManArgs {
    /// Directory to write one page per command into
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,

    /// Write Markdown instead of roff, as in the manual's reference
    #[arg(long, requires = "out")]
    pub(crate) markdown: bool,
}

/// Print the completion script for a shell
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example:\n  bucketload completions bash > /etc/bash_completion.d/bucketload"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[cfg(test)]
mod tests {
    use super::ConfigCommand;
    use crate::cli::{Command, command};

    #[test]
    fn commands_take_what_they_need() {
        assert!(matches!(
            command("bucketload report runs/x --output json"),
            Ok(Command::Report(_))
        ));
        assert!(matches!(
            command("bucketload cleanup --target s3://b --dry-run"),
            Ok(Command::Cleanup(_))
        ));
        assert!(matches!(
            command("bucketload completions zsh"),
            Ok(Command::Completions(_))
        ));
        assert!(command("bucketload completions csh").is_err());
        assert!(command("bucketload show").is_err());
        assert!(command("bucketload").is_err());
    }

    #[test]
    fn config_show_takes_target_and_workload() {
        let parsed = command("bucketload config show get --rate 5 --profile dev").unwrap();
        let Command::Config(args) = parsed else {
            panic!("{parsed:?}");
        };
        let ConfigCommand::Show {
            workload,
            target,
            workload_args,
        } = args.command;
        assert_eq!(workload.as_deref(), Some("get"));
        assert_eq!(
            target.settings.get(&bucketload_target::flags::PROFILE),
            Some("dev")
        );
        assert_eq!(workload_args.rate.as_deref(), Some("5"));
    }
}
