//! `bucketload replay`.

use bucketload_core::plan::OnAbsent;
use bucketload_trace::LapKeys;
use clap::Args;

use super::gates::GateArgs;
use super::run::{LoadArgs, OutputArgs};
use super::target::TargetArgs;
use super::trace::{TraceArgs, duration, rate};
use super::values::{Choices, choice, size};

const EXAMPLES: &str = "\
Examples:
  bucketload replay access.log.gz --dry-run
      Show what would be replayed: identity, span, operations, objects that must exist
  bucketload replay IBMObjectStoreTrace000Part0 --sample 1% --speed 10
      Replay a hundredth of the keys, ten times as fast, on the embedded server
  bucketload replay audit-*.json --target s3://bench/replay --endpoint-url http://host:9000
  bucketload replay dump.csv --map ts=1,key=2,op=3,size=4 --time-unit ms --op-map R=GET,W=PUT
  bzip2 -dc old.bz2 | bucketload replay -";

/// Replay recorded requests: the logs of object stores and caches
///
/// Reads the logs of S3, CloudTrail, MinIO, Ceph RGW, Swift, IBM COS, Twitter, Meta, warp and Bucketload
/// itself, and files of separated values. Requests are due at their recorded times whatever the store does;
/// objects that must have existed are created before the replay.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,

    #[command(flatten)]
    pub(crate) timing: TimingArgs,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    #[command(flatten)]
    pub(crate) absent: AbsentArgs,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) gates: GateArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// When requests are due.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Timing options")]
pub(crate) struct TimingArgs {
    /// Divide recorded times by this factor: 10 replays ten times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) speed: f64,

    /// Scale recorded times to this mean rate; keeps the shape of bursts
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with_all = ["speed", "asap", "cap_rate", "cap_bytes"])]
    pub(crate) rate: Option<f64>,

    /// Send at most this many requests per second; the delay counts as shaping, not as latency
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "asap")]
    pub(crate) cap_rate: Option<f64>,

    /// Transfer at most this many object bytes per second
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "asap")]
    pub(crate) cap_bytes: Option<u64>,

    /// Ignore recorded times: send requests in order, as fast as the store answers with N in flight (closed loop)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with_all = ["speed", "max_in_flight"])]
    pub(crate) asap: Option<u32>,

    /// What to do with late requests: `issue` sends them at once, `drop:TIME` drops those that are later than TIME
    #[arg(long, value_name = "HOW", default_value = "issue", value_parser = late)]
    pub(crate) late: Late,

    /// Order of requests on the same key (default: `strict`, or `none` if the trace writes and deletes nothing)
    #[arg(long, value_name = "HOW", value_parser = choice(PER_KEY))]
    pub(crate) per_key: Option<bool>,

    /// Most requests in flight; a run that reaches this limit is marked semi-open
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_in_flight: u32,

    /// Stop after this time; with --laps auto, repeat the trace until then
    #[arg(long, short, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<u64>,
}

/// How the load differs from the recorded load.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Scaling options")]
pub(crate) struct ShapeArgs {
    /// Passes over the trace, or `auto`: as many as --duration needs
    #[arg(long, value_name = "N", default_value = "1", value_parser = laps)]
    pub(crate) laps: Laps,

    /// Names that later laps use for objects that the trace changes
    #[arg(long, value_name = "HOW", default_value = "suffix", value_parser = choice(LAP_KEYS))]
    pub(crate) lap_keys: LapKeys,

    /// Number of copies of the trace to replay at the same time, each with its own keys
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) copies: u32,

    /// Factor on sizes, offsets and lengths
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) size_factor: f64,

    /// Raise the size of smaller objects to this; empty objects stay empty
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) min_size: Option<u64>,

    /// Lower the size of larger objects to this
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_size: Option<u64>,

    /// Rename a bucket of the trace; bucket names become key prefixes (may be repeated)
    #[arg(long, value_name = "FROM=TO", value_parser = rename)]
    pub(crate) map_bucket: Vec<(String, String)>,

    /// Seed of everything random: content, jitter, placement of ranges
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// How to treat absent objects and recorded failures.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Absent objects")]
pub(crate) struct AbsentArgs {
    /// How to treat objects that must have existed when the recording started
    #[arg(long, value_name = "HOW", default_value = "preload", value_parser = choice(ON_ABSENT))]
    pub(crate) on_absent: OnAbsent,

    /// Also replay requests that were answered with 4xx
    #[arg(long)]
    pub(crate) replay_errors: bool,

    /// Requests in flight while creating objects before the replay
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) preload_workers: u32,

    /// Time limit of one attempt of a request
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: u64,

    /// Leave the objects in the store after the run
    #[arg(long)]
    pub(crate) keep: bool,
}

/// How to treat late requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// Sent at once.
    Issue,
    /// Dropped when later than this, in nanoseconds.
    Drop(u64),
}

const PER_KEY: &Choices<bool> = &[
    (
        "strict",
        "No request is sent before the last write or delete of its key has ended",
        true,
    ),
    (
        "none",
        "Requests are sent when due, whatever is still in flight",
        false,
    ),
];

/// Passes over the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Laps {
    /// A fixed number.
    Count(u32),
    /// As many as the duration needs.
    Auto,
}

const LAP_KEYS: &Choices<LapKeys> = &[
    (
        "suffix",
        "New names for objects that the trace writes or deletes; other objects are shared",
        LapKeys::Suffix,
    ),
    ("reuse", "The same names", LapKeys::Reuse),
];

const ON_ABSENT: &Choices<OnAbsent> = &[
    (
        "preload",
        "Create them before the replay; an absent object is then a failure",
        OnAbsent::Preload,
    ),
    (
        "expect",
        "Create nothing; a 404 is a success only if the trace has one",
        OnAbsent::Expect,
    ),
    (
        "skip",
        "Create them, and skip requests on keys that are known to be absent",
        OnAbsent::Skip,
    ),
    (
        "fail",
        "Create them, and stop at the first object that is absent although the trace says it exists",
        OnAbsent::Fail,
    ),
];

pub(crate) fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err("use a number above 0".to_owned()),
    }
}

fn late(text: &str) -> Result<Late, String> {
    match text.split_once(':') {
        None if text == "issue" => Ok(Late::Issue),
        Some(("drop", time)) => duration(time).map(Late::Drop),
        _ => Err("use issue or drop:TIME such as drop:500ms".to_owned()),
    }
}

fn laps(text: &str) -> Result<Laps, String> {
    match (text, text.parse::<u32>()) {
        ("auto", _) => Ok(Laps::Auto),
        (_, Ok(n)) if (1..=1_000_000).contains(&n) => Ok(Laps::Count(n)),
        _ => Err("use a number of at least 1, or auto".to_owned()),
    }
}

fn rename(text: &str) -> Result<(String, String), String> {
    let (from, to) = text.split_once('=').ok_or("write FROM=TO")?;
    Ok((from.to_owned(), to.trim_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Laps, Late, ReplayArgs};
    use crate::cli::{Command, command};

    fn parse(line: &str) -> Result<ReplayArgs, String> {
        match command(line)? {
            Command::Replay(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_file_is_enough_and_contradictions_are_refused() {
        let args = parse("bucketload replay a.log b.log.gz --laps auto --late drop:2s").unwrap();
        assert_eq!(args.trace.files.len(), 2);
        assert_eq!(
            (args.shape.laps, args.timing.late),
            (Laps::Auto, Late::Drop(2_000_000_000))
        );
        for wrong in [
            "bucketload replay",
            "bucketload replay a --speed 0",
            "bucketload replay a --rate 5/s --speed 2",
            "bucketload replay a --asap 8 --cap-rate 5/s",
            "bucketload replay a --laps 0",
            "bucketload replay a --copies 65",
            "bucketload replay a --format nonsense",
            "bucketload replay a --late never",
            "bucketload replay a --on-absent fill",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
