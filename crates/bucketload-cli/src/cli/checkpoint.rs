//! `bucketload checkpoint`.

use std::path::PathBuf;

use bucketload_core::plan::checkpoint::LanguageModel;
use clap::{Args, ValueHint};

use super::agents::AgentsArgs;
use super::gates::GateArgs;
use super::run::{DataArgs, LoadArgs, OutputArgs, RoomArgs, RunArgs};
use super::target::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload checkpoint --model llama3-8b --plan
      Show which rank writes which objects, to the byte; needs no target
  bucketload checkpoint --model llama3-8b --target s3://bench --endpoint-url http://host:9000
      Write ten checkpoints of 105 GiB from eight ranks, 1.02 TiB in all, then read them
  bucketload checkpoint --model llama3-405b --subset 8 --scale 1/100 --count 3 --target file:///mnt/data --posix-fsync close
      The first eight of 512 ranks, a hundredth of the bytes, on files
  bucketload checkpoint --model llama3-70b --rank-shift 32 --agents h1:7400,h2:7400 --target s3://bench --endpoint-url http://host:9000
      64 ranks on two hosts; each reads what the other wrote

A rank is a process of a training job with its own accelerator. All ranks begin a checkpoint at the same
time, and it is complete when the last one has written its last byte. See docs/checkpoint.md.";

/// Write and read checkpoints of language models, as the ranks of a training job do
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    pub(crate) checkpoint: CheckpointOptions,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) room: RoomArgs,

    #[command(flatten)]
    pub(crate) gates: GateArgs,

    #[command(flatten)]
    pub(crate) agents: AgentsArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Print the objects and bytes of every rank and do nothing else (also with --output json)
    #[arg(long, help_heading = "Output options")]
    pub(crate) plan: bool,

    /// Write the workload that the flags describe to FILE, for `run`, `compare` and `sweep`, and do nothing else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output options", conflicts_with = "plan")]
    pub(crate) write_workload: Option<PathBuf>,

    /// Write the figures to FILE under the names that DLIO uses in its summary.json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output options")]
    pub(crate) dlio_summary: Option<PathBuf>,
}

/// What to write and read. Values are written as in a workload file.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Checkpoint options")]
pub(crate) struct CheckpointOptions {
    /// Model: llama3-8b, llama3-70b, llama3-405b, llama3-1t, or one of --models (default: llama3-8b)
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// File with the numbers of further models
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) models: Option<PathBuf>,

    /// What to measure: write, read (the checkpoints are written before, unmeasured), or both
    #[arg(long, value_name = "PHASE")]
    pub(crate) phase: Option<String>,

    /// Read the checkpoints of an earlier run with --keep, whose run directory this is; writes nothing
    ///
    /// Model, scale, ranks, seed and the number of checkpoints are those of that run. Name the same --target. The result
    /// says how long after that run this one began: MLPerf allows 30 s.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) read_from: Option<PathBuf>,

    /// Whether --read-from was given, as the workload says it.
    #[arg(skip)]
    pub(crate) existing: Option<String>,

    /// The model of the run of --read-from.
    #[arg(skip)]
    pub(crate) earlier: Option<LanguageModel>,

    /// Number of checkpoints (default: 10)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) count: Option<String>,

    /// Pause before each checkpoint (default: 5s)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) pause: Option<String>,

    /// Factor on the elements of every tensor, such as 1/1000 (default: 1; less if the target keeps objects in memory)
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    pub(crate) scale: Option<String>,

    /// Ranks of the job, a multiple of the model's tensor x pipeline (default: those of the model)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) ranks: Option<String>,

    /// Only the first N ranks take part
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) subset: Option<String>,

    /// Rank R reads what rank R + N wrote
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) rank_shift: Option<String>,

    /// Size of the parts in which larger objects are written; 0 for whole objects (default: 32MiB)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) part_size: Option<String>,

    /// Parts of an object that a rank sends at the same time (default: 16 on S3, else 1)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) parts_in_flight: Option<String>,

    /// Size of the ranges in which objects are read; 0 for whole objects (default: 128MiB)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) range_size: Option<String>,

    /// Ranges that a rank requests at the same time (default: 8)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) ranges_in_flight: Option<String>,

    /// After each checkpoint, rank 0 writes the object `latest`
    #[arg(long)]
    pub(crate) latest: bool,

    /// As --latest, but the object is replaced only if nobody else has changed it since (If-None-Match, If-Match); the
    /// result labels refusals as races
    #[arg(long, conflicts_with = "latest")]
    pub(crate) conditional_latest: bool,

    /// Extension of the objects' names: pt or pts3
    #[arg(long, value_name = "NAME")]
    pub(crate) extension: Option<String>,

    /// Time of training between two checkpoints, for the figures of lost time (default: 30m)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) interval: Option<String>,

    /// Seed of the data
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<String>,

    /// Do not compare what is read with what was written
    #[arg(long)]
    pub(crate) no_verify: bool,

    /// Longest time for one request, or for one object that is written in parts (default: 1h)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) timeout: Option<String>,

    /// Leave the objects in the target
    #[arg(long)]
    pub(crate) keep: bool,
}

impl CheckpointOptions {
    /// The name of the model.
    pub(crate) fn name(&self) -> &str {
        match (&self.earlier, &self.model) {
            (Some(model), _) => &model.name,
            (None, Some(name)) => name,
            (None, None) => "llama3-8b",
        }
    }
}

impl CheckpointArgs {
    /// The flags that every run has.
    pub(crate) fn as_run(&self) -> RunArgs {
        RunArgs {
            target: self.target.clone(),
            data: DataArgs {
                objects_of: self.checkpoint.read_from.clone(),
                ..DataArgs::default()
            },
            load: self.load.clone(),
            expect_rate: self.room.expect_rate,
            gates: self.gates.clone(),
            agents: self.agents.clone(),
            output: self.output.clone(),
            ..RunArgs::default()
        }
    }
}
