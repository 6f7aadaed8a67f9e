//! `bucketload train`.

use std::path::PathBuf;

use bucketload_core::units::parse_size;
use clap::{Args, ValueEnum, ValueHint};

use super::agents::AgentsArgs;
use super::gates::GateArgs;
use super::run::{DataArgs, LoadArgs, OutputArgs, RoomArgs};
use super::target::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload train --model unet3d --accelerator h100 --scale 1/1000 --epochs 2
      Records of a thousandth of the size, on the embedded server
  bucketload train --model unet3d --accelerator h100 --accelerators 8 --target s3://bench --endpoint-url http://host:9000
      Prepares what 20 steps need, 160 GB, and reads it five times
  bucketload train --model resnet50 --accelerator h100 --accelerators 16 --datasize --hosts 2 --host-memory 512GiB
      How many objects MLPerf's rule asks for
  bucketload train --model unet3d --accelerator h100 --accelerators 4 --show > unet3d.toml
      The workload as a file, for `run`, `compare`, `sweep` and `capacity`

AU, accelerator utilisation, is the share of time in which accelerators compute rather than wait for data. The
accelerators are emulated: they sleep as long as real ones compute. See docs/train.md.";

/// Emulate the training of AI models: can the store keep N accelerators busy?
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) train: TrainOptions,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) data: DataArgs,

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
}

/// What to train, and on what.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Training options")]
pub(crate) struct TrainOptions {
    /// Model: unet3d, resnet50, cosmoflow, retinanet, flux, dlrm, or one of the file of --models
    #[arg(long, value_name = "NAME", required_unless_present = "show_models")]
    pub(crate) model: Option<String>,

    /// Kind of accelerator: a100, h100, b200, mi355, as far as the model has a time for it
    #[arg(long, value_name = "NAME", required_unless_present = "show_models")]
    pub(crate) accelerator: Option<String>,

    /// Number of accelerators, over all agents
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) accelerators: u32,

    /// File of models to use instead of the built-in ones (their text: --show-models)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) models: Option<PathBuf>,

    /// Factor on the size of records, such as 1/1000; results are then not comparable with MLPerf's
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub(crate) scale: String,

    /// Objects of the data set: a number, or `rule` for what --datasize says (default: enough for 20 steps per epoch)
    #[arg(long, value_name = "N|rule")]
    pub(crate) objects: Option<String>,

    /// Passes over the data set (default: the model's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) epochs: Option<u32>,

    /// Most steps of an epoch (default: as many as the data set has)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,

    /// Readers per accelerator (default: the model's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) readers: Option<u32>,

    /// Batches that the readers of an accelerator may be ahead (default: the model's)
    #[arg(long, value_name = "N")]
    pub(crate) prefetch: Option<u32>,

    /// How to read objects (default: the model's)
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) read_mode: Option<TrainReadMode>,

    /// Bytes per request of --read-mode range (default: 8MiB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) range_size: Option<u64>,

    /// Time limit of the training; an epoch that it cuts short is marked
    #[arg(long, short, value_name = "TIME")]
    pub(crate) duration: Option<String>,

    /// Seed of the order of samples and of their sizes
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<String>,

    /// Compare every byte read with what was written
    #[arg(long)]
    pub(crate) verify: bool,

    /// Leave the objects in the store after the run
    #[arg(long)]
    pub(crate) keep: bool,

    /// Time limit of one attempt of a read, such as 10s
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,

    /// Set any field of the workload by its path, such as phases.train.drain=5s (may be repeated)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,

    /// Print how many objects MLPerf's rule asks for, and do nothing
    #[arg(long)]
    pub(crate) datasize: bool,

    /// Hosts that hold the accelerators, for the rule
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) hosts: u32,

    /// Memory of each host, for the rule (default: the memory of this machine)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) host_memory: Option<u64>,

    /// Print the workload in TOML, and do nothing
    #[arg(long, conflicts_with = "datasize")]
    pub(crate) show: bool,

    /// Print the built-in models in TOML, and do nothing
    #[arg(long)]
    pub(crate) show_models: bool,
}

/// How readers read objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrainReadMode {
    /// One request per object
    Whole,
    /// Consecutive ranges, as far as the next batch needs them
    Range,
    /// A range per column chunk, for models with columns
    Columns,
}

fn size(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("it must be at least 1 byte".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(e) => Err(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{TrainArgs, TrainReadMode};
    use crate::cli::{Command, command};

    fn parse(line: &str) -> Result<TrainArgs, String> {
        match command(line)? {
            Command::Train(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_model_and_an_accelerator_are_all_it_needs() {
        let args = parse("bucketload train --model unet3d --accelerator h100").unwrap();
        assert_eq!(
            (args.train.accelerators, args.train.scale.as_str()),
            (1, "1")
        );
        assert_eq!(args.train.read_mode, None);
        let args = parse(
            "bucketload train --model dlrm --accelerator b200 --accelerators 4 --read-mode range --range-size 1MiB \
             --duration 10s --target mem: --agents h:1 --slo au>=70%",
        )
        .unwrap();
        assert_eq!(args.train.read_mode, Some(TrainReadMode::Range));
        assert_eq!(args.train.range_size, Some(1 << 20));
        assert!(
            parse("bucketload train --show-models")
                .unwrap()
                .train
                .show_models
        );
        for wrong in [
            "bucketload train",
            "bucketload train --model unet3d",
            "bucketload train --model unet3d --accelerator h100 --accelerators 0",
            "bucketload train --model unet3d --accelerator h100 --readers 0",
            "bucketload train --model unet3d --accelerator h100 --range-size 0",
            "bucketload train --model unet3d --accelerator h100 --workers 3",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
