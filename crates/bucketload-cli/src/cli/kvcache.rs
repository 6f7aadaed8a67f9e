//! `bucketload kvcache`.

use std::path::PathBuf;

use bucketload_core::plan::KvLookup;
use clap::{Args, ValueEnum, ValueHint};

use super::agents::AgentsArgs;
use super::gates::GateArgs;
use super::replay::factor;
use super::run::{LoadArgs, OutputArgs};
use super::target::TargetArgs;
use super::trace::{Window, duration, window};
use super::values::{Choices, choice, size};

const EXAMPLES: &str = "\
Examples:
  bucketload kvcache --trace conversation_trace.jsonl --dry-run
      Show requests, blocks, the hit ratio of a cache without limits, and the bytes to expect
  bucketload kvcache --trace conversation_trace.jsonl --bytes-per-token 64 --speed 60
      The same requests with small objects, sixty times as fast, on the embedded server
  bucketload kvcache --trace t.jsonl --model llama3.1-70b --tp 8 --budget 2TiB \\
      --prefill-per-token 40us --target s3://bench/kv --endpoint-url http://host:9000
  bucketload kvcache --preset mlperf-1 --bytes-per-token 64 --users 20 --duration 20s
      MLPerf Storage's first option with a tenth of the users and small entries, on the embedded server
  bucketload kvcache --preset mlperf-1 --clients 4 --target s3://bench --endpoint-url http://host:9000
      Four clients of 200 users each, for five minutes
  bucketload kvcache --preset mlperf-2 --show > mlperf-2.toml
      The workload as a file, for `run`, `compare`, `sweep` and `capacity`
See docs/kvcache.md.";

/// Serve the key-value cache of a language model from a store
///
/// Replays the requests of a Mooncake trace (--trace). Each request looks up the blocks of its prompt, reads those found
/// before the first miss, and writes the others behind. Reports hit ratios, load times, the time added to the first
/// token, and the backlog of writes. Or users converse as MLPerf Storage describes them (--preset mlperf-1, mlperf-2 or
/// mlperf-3). Reports bandwidth, tokens per second, and how far each class of requests keeps its targets.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KvcacheArgs {
    #[command(flatten)]
    pub(crate) trace: KvTraceArgs,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    #[command(flatten)]
    pub(crate) users: UserArgs,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) gates: GateArgs,

    #[command(flatten)]
    pub(crate) agents: AgentsArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The requests.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Trace options")]
pub(crate) struct KvTraceArgs {
    /// Trace in Mooncake's format: plain, gzip or zstd; `-` reads standard input (may be repeated)
    #[arg(long = "trace", value_name = "FILE", required_unless_present = "preset", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Use the requests between these times from the start of the trace only, such as 10m-20m; the cache starts empty
    #[arg(long, value_name = "FROM-TO", value_parser = window, requires = "files")]
    pub(crate) window: Option<Window>,

    /// Continue even if more than 0.1 % of the lines cannot be parsed
    #[arg(long, requires = "files")]
    pub(crate) lenient: bool,

    /// File for samples of lines that cannot be parsed, if there are any
    #[arg(
        long,
        value_name = "FILE",
        default_value = "bucketload-unparsable.txt",
        requires = "files"
    )]
    pub(crate) unparsable: PathBuf,

    /// Directory for temporary files (default: the system's)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "files")]
    pub(crate) temp: Option<PathBuf>,
}

/// The cache.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cache options")]
pub(crate) struct CacheArgs {
    /// Divide recorded times by this factor: 10 replays ten times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, requires = "files")]
    pub(crate) speed: f64,

    /// Ignore recorded times: begin a request when the one before has written everything (closed loop)
    #[arg(long, conflicts_with = "speed", requires = "files")]
    pub(crate) serial: bool,

    /// Take no new requests after this time (default: the end of the trace; 5m where users ask)
    #[arg(long, short, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<u64>,

    /// Language model, whose numbers give the bytes per token (default: llama3.1-8b; llama3.1-70b with --preset mlperf-3)
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// File with further models and other classes of requests (form: docs/kvcache.md)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) models: Option<PathBuf>,

    /// Bytes per token, instead of the model's
    #[arg(long, value_name = "SIZE", value_parser = positive)]
    pub(crate) bytes_per_token: Option<u64>,

    /// Bytes of a whole block, instead of its tokens times the bytes per token
    #[arg(long, value_name = "SIZE", value_parser = positive, conflicts_with = "bytes_per_token", requires = "files")]
    pub(crate) block_bytes: Option<u64>,

    /// Tokens of a block of the cache (default: 512, as in the trace; 256 with --preset lmcache)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=512), requires = "files")]
    pub(crate) block_tokens: Option<u64>,

    /// Tensor-parallel ranks: each block is stored as N objects (default: 1; where users ask, as many as keep objects
    /// below 5 GiB)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) tp: Option<u32>,

    /// Store each layer of the model as an object of its own
    #[arg(long)]
    pub(crate) layerwise: bool,

    /// What becomes of a last block that is not whole (default: keep; drop with --preset lmcache)
    #[arg(long, value_name = "HOW", value_parser = choice(PARTIAL), requires = "files")]
    pub(crate) partial_last: Option<bool>,

    /// How blocks are found (default: get; head with --preset lmcache)
    #[arg(long, value_name = "HOW", value_parser = choice(LOOKUPS), requires = "files")]
    pub(crate) lookup: Option<KvLookup>,

    /// Most objects of a request that are looked up or read at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) gets: u32,

    /// Most objects of a request that are written at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) puts: u32,

    /// Time to compute a token: delays the writes, and what a hit saves (default: 0, storage alone)
    #[arg(long, value_name = "TIME", default_value = "0s", hide_default_value = true, value_parser = duration, requires = "files")]
    pub(crate) prefill_per_token: u64,

    /// Most bytes of the cache: the least recently used blocks are evicted (default: no limit)
    #[arg(long, value_name = "SIZE", value_parser = positive, requires = "files")]
    pub(crate) budget: Option<u64>,

    /// Write only objects that do not exist (If-None-Match: *)
    #[arg(long, requires = "files")]
    pub(crate) if_absent: bool,

    /// Behave as a known cache does, or ask as the users of a known benchmark do
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) preset: Option<Preset>,

    /// Most operations in flight; a run that reaches this limit is marked semi-open
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536), requires = "files")]
    pub(crate) max_in_flight: u32,

    /// Compare every byte read with what was written
    #[arg(long)]
    pub(crate) verify: bool,

    /// Time limit of one operation (default: 30s; 2m where users ask)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<u64>,

    /// Leave the objects in the store after the run
    #[arg(long)]
    pub(crate) keep: bool,

    /// Seed of the content, and of what users ask (default: 1; 42 where users ask)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Users in place of a trace.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options for users (--preset mlperf-1, mlperf-2, mlperf-3)")]
pub(crate) struct UserArgs {
    /// Number of clients, over all agents: servers of the model, each with its own users, memory and limit on writes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with = "files")]
    pub(crate) clients: u32,

    /// Users of each client (default: the preset's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "files")]
    pub(crate) users: Option<u32>,

    /// Memory of each client that holds the newest entries; 0 for none (default: the preset's)
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "files")]
    pub(crate) memory: Option<u64>,

    /// Most requests of a client that write their entry at a time; 0 for no limit (default: the preset's)
    #[arg(long, value_name = "N", conflicts_with = "files")]
    pub(crate) allocations: Option<u32>,

    /// How fast answers are generated
    #[arg(long, value_name = "HOW", value_parser = choice(GENERATIONS), default_value = "none", conflicts_with = "files")]
    pub(crate) generation: u64,

    /// Set any field of the workload by its path, such as phases.kvcache.drain=5s (may be repeated)
    #[arg(long = "set", value_name = "PATH=VALUE", conflicts_with = "files")]
    pub(crate) set: Vec<String>,

    /// Print the workload in TOML, and do nothing
    #[arg(long, conflicts_with = "files")]
    pub(crate) show: bool,
}

/// A cache whose behaviour is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// LMCache: blocks of 256 tokens, HEAD before GET, a block that is not whole is not stored
    Lmcache,
    /// MLPerf Storage, option 1: 200 users of llama3.1-8b, 16 write at a time, no memory
    #[value(name = "mlperf-1")]
    Mlperf1,
    /// MLPerf Storage, option 2: 100 users of llama3.1-8b, 16 write at a time, memory of 4 GiB
    #[value(name = "mlperf-2")]
    Mlperf2,
    /// MLPerf Storage, option 3: 70 users of llama3.1-70b, 4 write at a time, no memory
    #[value(name = "mlperf-3")]
    Mlperf3,
}

/// Nanoseconds per token of the answer (docs/spec/ai-kvcache.md section 5).
const GENERATIONS: &Choices<u64> = &[
    ("none", "At once: storage alone", 0),
    ("fast", "2 ms per token", 2_000_000),
    ("realistic", "30 ms per token", 30_000_000),
];

const PARTIAL: &Choices<bool> = &[
    ("keep", "Store it, as large as its tokens", true),
    (
        "drop",
        "Do not store it; its tokens are always computed",
        false,
    ),
];

const LOOKUPS: &Choices<KvLookup> = &[
    ("get", "GET at once; 404 is a miss", KvLookup::Get),
    ("head", "HEAD each object first", KvLookup::Head),
    (
        "index",
        "The client knows what it has written, and asks nothing",
        KvLookup::Index,
    ),
];

fn positive(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("use a size above 0".to_owned()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::{KvcacheArgs, Preset};
    use crate::cli::{Command, command};

    fn parse(line: &str) -> Result<KvcacheArgs, String> {
        match command(&format!("bucketload kvcache {line}"))? {
            Command::Kvcache(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_trace_is_enough_and_contradictions_are_refused() {
        let args = parse("--trace a.jsonl --trace b.jsonl.gz --preset lmcache").unwrap();
        assert_eq!(args.trace.files.len(), 2);
        assert_eq!(args.cache.preset, Some(Preset::Lmcache));
        assert_eq!((args.cache.speed, args.cache.prefill_per_token), (1.0, 0));
        let args = parse("--preset mlperf-2 --users 3 --generation fast --agents h:1").unwrap();
        assert_eq!(args.users.generation, 2_000_000);
        assert!(args.trace.files.is_empty() && args.agents.is_distributed());
        for wrong in [
            "",
            "--trace a --speed 0",
            "--trace a --speed 2 --serial",
            "--trace a --bytes-per-token 0",
            "--trace a --bytes-per-token 64 --block-bytes 1MiB",
            "--trace a --budget 0",
            "--trace a --lookup guess",
            "--trace a --tp 0",
            "--trace a --gets 0",
            "--trace a --partial-last maybe",
            "--trace a --users 3",
            "--trace a --show",
            "--preset mlperf-1 --budget 1GiB",
            "--preset mlperf-1 --lookup head",
            "--preset mlperf-1 --speed 2",
            "--preset mlperf-1 --max-in-flight 3",
            "--preset mlperf-4",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
