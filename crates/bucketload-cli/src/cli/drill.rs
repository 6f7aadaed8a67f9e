//! `bucketload drill`.

use std::path::PathBuf;

use bucketload_core::verdict::Word;
use clap::{Args, ValueHint};

use super::gates::{GateArgs, VERDICTS};
use super::run::{LoadArgs, OutputArgs};
use super::target::TargetArgs;
use super::values::choice;
use super::workload::WorkloadArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload drill slow-link
      Delay the answers of the embedded server, and see what that does
  bucketload drill black-hole --target s3://bucket/p --endpoint-url http://store:9000 --slo 'p99<50ms'
  bucketload drill node-kill --hook 'break=ssh n3 systemctl kill -s KILL minio' --hook 'mend=ssh n3 systemctl start minio' --target s3://bucket/p --endpoint-url http://store:9000
      Let commands break the store and mend it
  bucketload drill flapping --dry-run
      Print what would break and when, with every command; nothing is run
  bucketload drill --mend bucketload-runs/node-kill-20260131T235959Z
      Run what a killed drill still owes

Built-in drills: slow-link, narrow-link, slow-connect, black-hole, half-open, resets, refused, flapping, throttled, node-kill.";

/// Break something on purpose under load, mend it, and say what users noticed
///
/// The load goes through four stages: warm, steady (the baseline), fault and recover. Nothing is broken unless the
/// baseline is VALID. Faults of the network are made by a proxy of this program between client and store; commands
/// (--hook) may break the store itself.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DrillArgs {
    /// Name of a built-in drill, or a workload file with [[fault]] tables
    #[arg(value_name = "DRILL", value_hint = ValueHint::FilePath, required_unless_present = "mend")]
    pub(crate) drill: Option<String>,

    /// Command of a hook that the workload leaves open: break=COMMAND, mend=COMMAND or check=COMMAND
    ///
    /// A hook that breaks needs one that mends. `mend` runs whatever happens: at the end, after an error, after
    /// Ctrl-C and SIGTERM; after kill -9, `--mend DIR` and `cleanup` run it. `check` runs after `mend` until it
    /// succeeds. Commands are run by sh, with DRILL_FAULT, DRILL_HOOK, DRILL_TARGET,
    /// DRILL_ENDPOINTS and DRILL_RUN in their environment.
    #[arg(long = "hook", value_name = "NAME=COMMAND", value_parser = hook)]
    pub(crate) hooks: Vec<(String, String)>,

    /// Break things although the baseline has one of these verdicts (may be several, joined by commas)
    #[arg(long, value_name = "VERDICT,...", value_delimiter = ',', value_parser = choice(VERDICTS))]
    pub(crate) accept: Vec<Word>,

    /// Run what the drill in run directory DIR still owes: the commands that mend
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["drill", "hooks"])]
    pub(crate) mend: Option<PathBuf>,

    /// Do the same drill N times, into --out/1 to --out/N, and print the medians of its figures
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000), conflicts_with_all = ["mend", "dry_run"])]
    pub(crate) repeat: Option<u32>,

    /// Refused with the reason: the load of a drill comes from one process
    #[arg(long, hide = true, alias = "launch", value_name = "AGENTS")]
    pub(crate) agents: Option<String>,

    /// Stop as if interrupted when standard input closes
    #[arg(long, hide = true)]
    pub(crate) exit_with_stdin: bool,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) workload_args: WorkloadArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) gates: GateArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Reads `break=COMMAND`.
fn hook(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name @ ("break" | "mend" | "check"), command)) if !command.trim().is_empty() => {
            Ok((name.to_owned(), command.to_owned()))
        }
        _ => Err("write break=COMMAND, mend=COMMAND or check=COMMAND".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::hook;
    use crate::cli::command;

    #[test]
    fn hooks_are_named() {
        assert_eq!(
            hook("break=a b=c"),
            Ok(("break".to_owned(), "a b=c".to_owned()))
        );
        for wrong in ["brake=x", "break", "mend=", "=x"] {
            assert!(hook(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_drill_or_a_directory_is_named() {
        assert!(command("bucketload drill slow-link").is_ok());
        assert!(command("bucketload drill --mend d").is_ok());
        assert!(command("bucketload drill").is_err());
        assert!(command("bucketload drill slow-link --mend d").is_err());
    }
}
