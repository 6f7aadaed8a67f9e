//! `bucketload run`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bucketload_results::oplog::OpLogFormat;
use bucketload_run::Pacing;
use clap::{Args, ValueEnum, ValueHint};

use super::agents::AgentsArgs;
use super::cosbench::CosbenchArgs;
use super::gates::{GateArgs, Precision, precision};
use super::target::TargetArgs;
use super::values::{Choices, CoreList, byte_rate, choice, duration, fact, listen_address};
use super::workload::WorkloadArgs;
use crate::exit::Failure;

const EXAMPLES: &str = "\
Examples:
  bucketload run online-service
  bucketload run online-service --dry-run
      Show what would happen: objects, bytes, operations, duration
  bucketload run my.toml --target s3://bench --endpoint-url http://host:9000 --rate 500/s
  bucketload run mixed --mix get=9,put=1 --size \"4k/70:1m/30\" --workers 64 --verify
  bucketload run get --target null:
      Measure what the client alone can do
  bucketload run ossperf --objects 10 --size 1MiB --parallel 8 --target s3://bench --endpoint-url http://host:9000
      Run OSSperf's six steps in a separate bucket, and append a line to results.csv
  bucketload run workload.xml --size 4KiB --duration 5s --target mem:
      Run a COSBench workload on the embedded server, with other sizes and times
  bucketload run online-service --objects 2000 --size 16KiB --prepare-only --target s3://bench --endpoint-url http://host:9000 --out filled
      Prepare the objects and keep them; --prepare-only --data filled goes on after an interruption, --data filled measures on them
  bucketload run my.toml --target s3://bench --endpoint-url http://host:9000 --agents h1:7400,h2:7400
      Run from two hosts, each with `bucketload agent --listen`; the result is a single run

Credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or from the
files of the AWS command line; never from flags.";

/// Run a workload, print the result with a verdict, and write a run directory with a report
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Name of a built-in workload (see `bucketload workloads`) or a workload file: TOML, or COSBench's XML
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub(crate) workload: String,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) workload_args: WorkloadArgs,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    /// Calibrate this client anew, even if a run with the same settings did so within the last 24 hours
    ///
    /// A calibration is kept below $XDG_CACHE_HOME or ~/.cache, for this program, machine, boot and workload, and
    /// the result says its age. Runs on agents and replays always calibrate.
    #[arg(long, conflicts_with = "no_calibration", help_heading = "Run options")]
    pub(crate) no_calibration_cache: bool,

    #[command(flatten)]
    pub(crate) gates: GateArgs,

    /// End a measured phase once the 95 % interval of a figure is this tight: 2%, or 2%,FIGURE
    ///
    /// FIGURE is throughput (the default of closed loops), or a mean or percentile as in --slo, such as p99 (the
    /// default of open loops) or get.p50. The phase has to be steady and to have 30 intervals; --duration remains
    /// its maximum. The result says whether the phase ended so.
    #[arg(long, value_name = "SHARE[,FIGURE]", value_parser = precision, help_heading = "Run options")]
    pub(crate) until_precise: Option<Precision>,

    #[command(flatten)]
    pub(crate) cosbench: CosbenchArgs,

    #[command(flatten)]
    pub(crate) agents: AgentsArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Rate at which the target is expected to take data, bytes per second; from verbs with [`RoomArgs`].
    #[arg(skip)]
    pub(crate) expect_rate: Option<u64>,

    /// Stop as if interrupted when standard input closes, which happens when the parent process ends
    #[arg(long, help_heading = "Run options")]
    pub(crate) exit_with_stdin: bool,

    /// Refuse targets that are directories of this machine, except below --allow-root; for workloads of others
    #[arg(long, hide = true)]
    pub(crate) confined: bool,

    /// With --confined: directory below which targets may lie (may be repeated)
    #[arg(long, hide = true, requires = "confined", value_name = "DIR")]
    pub(crate) allow_root: Vec<PathBuf>,
}

/// How long the writing takes that a run announces.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Run options")]
pub(crate) struct RoomArgs {
    /// Rate at which the target is expected to take data, such as 2GiB/s
    ///
    /// The run says beforehand how much it will write, with this flag also how long that takes, and is refused on a
    /// directory whose file system has no room for it.
    #[arg(long, value_name = "RATE", value_parser = byte_rate)]
    pub(crate) expect_rate: Option<u64>,
}

/// Objects of an earlier run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Run options")]
pub(crate) struct DataArgs {
    /// Read the objects of an earlier run with --keep, whose run directory this is (workload cold-read)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) objects_of: Option<PathBuf>,

    /// Least age of these objects (default: 72h)
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "objects_of")]
    pub(crate) min_age: Option<Duration>,

    /// Prepare the workload's objects, keep them and stop; with --data, prepare what is missing
    ///
    /// A journal beside the objects says which of them are there, so the preparation may be stopped or killed and
    /// continued any number of times: `--prepare-only --data RUN`.
    #[arg(long, conflicts_with = "objects_of")]
    pub(crate) prepare_only: bool,

    /// Measure on the objects that run RUN prepared with --prepare-only; keeps them
    ///
    /// RUN is a run directory, or the identifier of the run. The workload and the settings that determine the objects
    /// must be the same. A run on an incomplete data set is refused, and so is a workload that deletes or changes
    /// objects.
    #[arg(long, value_name = "RUN", conflicts_with = "objects_of", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<String>,

    /// Measure even if objects of the data set are missing
    #[arg(long, requires = "data", conflicts_with = "prepare_only")]
    pub(crate) incomplete: bool,

    /// Read N objects of the data set, spread over it, and compare every byte, before anything is measured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) check: Option<u64>,
}

impl DataArgs {
    /// Whether the objects stay in the target as a data set.
    pub(crate) const fn keeps(&self) -> bool {
        self.prepare_only || self.data.is_some()
    }
}

/// How to generate the load, and what the run may do to the target.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run options")]
pub(crate) struct LoadArgs {
    /// Print what would happen, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Load threads (default: one per core, or one per two cores if the target is on this machine)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Cores to pin load threads to, such as 0-3,8; `none` disables pinning
    #[arg(long, value_name = "LIST", value_parser = CoreList::parse)]
    pub(crate) cores: Option<CoreList>,

    /// How an open loop waits for the next arrival
    #[arg(long, value_name = "HOW", default_value = "timer", value_parser = choice(PACINGS))]
    pub(crate) pacing: Pacing,

    /// Never sleep, but poll sockets and clock all the time; for latency studies at low concurrency
    #[arg(long, conflicts_with = "pacing")]
    pub(crate) busy_poll: bool,

    /// Skip driving a target that does nothing before the load; rule V5 is then not checked
    #[arg(long)]
    pub(crate) no_calibration: bool,

    /// Create the bucket if it does not exist
    #[arg(long)]
    pub(crate) create_bucket: bool,

    /// Read each object back right after its write was acknowledged, and compare every byte
    ///
    /// The check does not count as time of the write, but keeps the worker busy. If the object is missing or
    /// differs in length or content, the write is a failure of kind `corrupt`.
    #[arg(long)]
    pub(crate) check_writes: bool,
}

const PACINGS: &Choices<Pacing> = &[
    (
        "timer",
        "With a kernel timer, about 20 µs late at the median; the core may sleep",
        Pacing::Timer,
    ),
    (
        "precise",
        "With a kernel timer, and spinning for the last 20 µs",
        Pacing::Precise,
    ),
];

/// Output of a run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output options")]
pub(crate) struct OutputArgs {
    /// Format of the result on standard output
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: OutputFormat,

    /// Explain every term of the text
    #[arg(long)]
    pub(crate) explain: bool,

    /// Run directory (default: bucketload-runs/WORKLOAD-TIME)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,

    /// Fact about the target to include in the result, such as durability=3-copies or deployment=a (may be
    /// repeated)
    #[arg(long = "fact", value_name = "NAME=VALUE", value_parser = fact)]
    pub(crate) facts: Vec<(String, String)>,

    /// Log every operation into the run directory (ops-*.parquet or ops-*.csv.zst)
    ///
    /// The log never slows down the load: records that its writer cannot keep up with are dropped and counted.
    #[arg(
        long,
        value_parser = choice(OP_LOG_FORMATS),
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "parquet"
    )]
    pub(crate) op_log: Option<OpLogFormat>,

    /// File to append a result line to, for workloads with OSSperf's six steps (default: results.csv in the
    /// working directory)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) results_csv: Option<PathBuf>,

    /// Serve live metrics for Prometheus at this address; PORT alone means loopback
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub(crate) prometheus: Option<SocketAddr>,
}

impl OutputArgs {
    /// Refuses combinations that mean nothing.
    ///
    /// # Errors
    /// When terms are to be explained in a format for programs.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.explain && self.output != OutputFormat::Text {
            true => Err(Failure::usage(
                "--explain is for text; remove it, or write --output text",
            )),
            false => Ok(()),
        }
    }
}

/// Formats of the operation log.
pub(crate) const OP_LOG_FORMATS: &Choices<OpLogFormat> = &[
    (
        "parquet",
        "Apache Parquet, for DuckDB, pandas and others",
        OpLogFormat::Parquet,
    ),
    (
        "csv.zst",
        "Comma-separated values, compressed",
        OpLogFormat::CsvZst,
    ),
];

/// Formats of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Tables for people
    #[default]
    Text,
    /// One JSON document at the end
    Json,
    /// One JSON record per line: run, phases, classes, points over time, failures
    Jsonl,
    /// The table per operation class as comma-separated values
    Csv,
}

#[cfg(test)]
mod tests {
    use super::{OpLogFormat, OutputFormat, Pacing, RunArgs};
    use crate::cli::{Command, command};

    fn parse(line: &str) -> Result<RunArgs, String> {
        match command(line)? {
            Command::Run(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn defaults_need_no_flags() {
        let args = parse("bucketload run online-service").unwrap();
        assert_eq!(args.workload, "online-service");
        assert_eq!(args.target.target, None);
        assert_eq!(args.load.pacing, Pacing::Timer);
        assert_eq!(args.output.output, OutputFormat::Text);
        assert!(!args.load.dry_run && !args.load.busy_poll && !args.load.create_bucket);
    }

    #[test]
    fn flags_of_all_groups_mix() {
        let args = parse(
            "bucketload run get --rate 5 --target mem: --threads 2 --cores 0-1 --pacing precise \
             --output jsonl --out /tmp/x --prometheus 9464 --dry-run",
        )
        .unwrap();
        assert_eq!(args.load.threads, Some(2));
        assert_eq!(args.load.pacing, Pacing::Precise);
        assert_eq!(
            args.output.prometheus.unwrap().to_string(),
            "127.0.0.1:9464"
        );
        for wrong in [
            "bucketload run",
            "bucketload run get --threads 0",
            "bucketload run get --pacing precise --busy-poll",
            "bucketload run get --output xml",
            "bucketload run get --secret-key x",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_operation_log_has_a_default_form() {
        let form = |flag: &str| parse(&format!("bucketload run {flag} get"));
        assert_eq!(form("--quiet").unwrap().output.op_log, None);
        assert_eq!(
            form("--op-log").unwrap().output.op_log,
            Some(OpLogFormat::Parquet)
        );
        let csv = form("--op-log=csv.zst").unwrap();
        assert_eq!(
            (csv.output.op_log, csv.workload.as_str()),
            (Some(OpLogFormat::CsvZst), "get")
        );
        assert!(form("--op-log=json").unwrap_err().contains("csv.zst"));
    }
}
