//! `bucketload replay`.

use clap::{Args, ValueEnum};

use super::run::{LoadArgs, OutputArgs};
use super::target::TargetArgs;
use super::trace::{TraceArgs, duration, rate};
use super::values::size;

const EXAMPLES: &str = "\
Examples:
  bucketload replay access.log.gz --dry-run
      What would be replayed: identity, span, operations, objects that must exist
  bucketload replay IBMObjectStoreTrace000Part0 --sample 1% --speed 10
      A hundredth of the keys, ten times as fast, on the embedded server
  bucketload replay audit-*.json --target s3://bench/replay --endpoint-url http://host:9000
  bucketload replay dump.csv --map ts=1,key=2,op=3,size=4 --time-unit ms --op-map R=GET,W=PUT
  bzip2 -dc old.bz2 | bucketload replay -";

/// Replay recorded requests: the logs of object stores and caches
///
/// Reads the logs of S3, CloudTrail, MinIO, Ceph RGW, Swift, IBM COS, Twitter, Meta, warp, of
/// Bucketload itself and any separated values. Requests are due at their recorded instants whatever
/// the store does; objects that must have existed are created before.
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
    pub(crate) output: OutputArgs,
}

/// When requests are due.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Timing options")]
pub(crate) struct TimingArgs {
    /// Divide recorded times by this: 10 is ten times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) speed: f64,

    /// Scale times so that this is the mean rate; keeps the shape of bursts
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with_all = ["speed", "asap", "cap_rate", "cap_bytes"])]
    pub(crate) rate: Option<f64>,

    /// Send at most so many requests per second; the delay counts as shaping, not as latency
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "asap")]
    pub(crate) cap_rate: Option<f64>,

    /// Move at most so many object bytes per second
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "asap")]
    pub(crate) cap_bytes: Option<u64>,

    /// In order only, as fast as the store answers with N in flight: a closed loop
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with_all = ["speed", "max_in_flight"])]
    pub(crate) asap: Option<u32>,

    /// Requests that are late: `issue` sends them at once, `drop:TIME` sheds those later than that
    #[arg(long, value_name = "HOW", default_value = "issue", value_parser = late)]
    pub(crate) late: Late,

    /// Order of requests on one key; `strict` unless nothing is written or deleted
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) per_key: Option<PerKey>,

    /// Most requests in flight; reaching it marks the run semi-open
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_in_flight: u32,

    /// End after this time; with --laps auto the trace is repeated until then
    #[arg(long, short, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<u64>,
}

/// How the load differs from the recorded one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Scaling options")]
pub(crate) struct ShapeArgs {
    /// Passes over the trace, or `auto`: as many as --duration needs
    #[arg(long, value_name = "N", default_value = "1", value_parser = laps)]
    pub(crate) laps: Laps,

    /// Names of objects that the trace changes, in later laps; suffix unless nothing is changed
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) lap_keys: Option<LapKeysArg>,

    /// Copies of the trace at a time, each with keys of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) copies: u32,

    /// Factor on sizes, offsets and lengths
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) size_factor: f64,

    /// Smaller objects get this size; empty ones stay empty
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) min_size: Option<u64>,

    /// Larger objects get this size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_size: Option<u64>,

    /// Another name for a bucket of the trace; names of buckets become prefixes (may be repeated)
    #[arg(long, value_name = "FROM=TO", value_parser = rename)]
    pub(crate) map_bucket: Vec<(String, String)>,

    /// Seed of what is random: content, jitter, placement of ranges
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// What becomes of absent objects and recorded failures.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Absent objects")]
pub(crate) struct AbsentArgs {
    /// Objects that must have existed when recording began
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub(crate) on_absent: OnAbsentArg,

    /// Replay requests that were answered 4xx too
    #[arg(long)]
    pub(crate) replay_errors: bool,

    /// Requests in flight while objects are created before the replay
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) preload_workers: u32,

    /// Longest duration of one attempt of a request
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: u64,

    /// Leave the objects in the store after the run
    #[arg(long)]
    pub(crate) keep: bool,
}

/// What becomes of late requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// Sent at once.
    Issue,
    /// Shed when later than so many nanoseconds.
    Drop(u64),
}

/// Order of requests on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PerKey {
    /// None is sent before the latest write or delete of its key has ended
    Strict,
    /// At their instants, whatever has ended
    None,
}

/// Passes over the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Laps {
    /// So many.
    Count(u32),
    /// As many as the duration needs.
    Auto,
}

/// Names in later laps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LapKeysArg {
    /// New names for what the trace writes or deletes; the rest is shared
    Suffix,
    /// The same names
    Reuse,
}

/// Objects that must have existed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnAbsentArg {
    /// Create them before; an absent object is then a failure
    #[default]
    Preload,
    /// Create nothing; a 404 is a success where the trace has one, and only there
    Expect,
    /// Create them, and leave out requests on keys that are known to be absent
    Skip,
    /// Create them, and end the run at the first object that is absent against the trace
    Fail,
}

fn factor(text: &str) -> Result<f64, String> {
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
    use clap::Parser;

    use super::{Laps, Late, ReplayArgs};
    use crate::cli::{Cli, Command};

    fn parse(line: &str) -> Result<ReplayArgs, String> {
        match Cli::try_parse_from(line.split_whitespace()) {
            Ok(Cli {
                command: Command::Replay(args),
                ..
            }) => Ok(*args),
            Ok(other) => Err(format!("{other:?}")),
            Err(error) => Err(error.to_string()),
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
