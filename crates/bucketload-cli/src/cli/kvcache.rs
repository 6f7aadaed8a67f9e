//! `bucketload kvcache`.

use std::path::PathBuf;

use bucketload_core::plan::KvLookup;
use clap::{Args, ValueEnum, ValueHint};

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
See docs/kvcache.md.";

/// Serve the key-value cache of a language model from a store
///
/// Replays the requests of a Mooncake trace. Each request looks up the blocks of its prompt, reads those found before
/// the first miss, and writes the others behind. Reports hit ratios, load times, the time added to the first token, and
/// the backlog of writes.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KvcacheArgs {
    #[command(flatten)]
    pub(crate) trace: KvTraceArgs,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) gates: GateArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The requests.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Trace options")]
pub(crate) struct KvTraceArgs {
    /// Trace in Mooncake's format: plain, gzip or zstd; `-` reads standard input (may be repeated)
    #[arg(long = "trace", value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Use the requests between these times from the start of the trace only, such as 10m-20m; the cache starts empty
    #[arg(long, value_name = "FROM-TO", value_parser = window)]
    pub(crate) window: Option<Window>,

    /// Continue even if more than 0.1 % of the lines cannot be parsed
    #[arg(long)]
    pub(crate) lenient: bool,

    /// File for samples of lines that cannot be parsed, if there are any
    #[arg(long, value_name = "FILE", default_value = "bucketload-unparsable.txt")]
    pub(crate) unparsable: PathBuf,

    /// Directory for temporary files (default: the system's)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) temp: Option<PathBuf>,
}

/// The cache.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cache options")]
pub(crate) struct CacheArgs {
    /// Divide recorded times by this factor: 10 replays ten times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) speed: f64,

    /// Ignore recorded times: begin a request when the one before has written everything (closed loop)
    #[arg(long, conflicts_with = "speed")]
    pub(crate) serial: bool,

    /// Take no new requests after this time
    #[arg(long, short, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<u64>,

    /// Language model, whose numbers give the bytes per token
    #[arg(long, value_name = "NAME", default_value = "llama3.1-8b")]
    pub(crate) model: String,

    /// File with further models and other classes of requests (form: docs/kvcache.md)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) models: Option<PathBuf>,

    /// Bytes per token, instead of the model's
    #[arg(long, value_name = "SIZE", value_parser = positive)]
    pub(crate) bytes_per_token: Option<u64>,

    /// Bytes of a whole block, instead of its tokens times the bytes per token
    #[arg(long, value_name = "SIZE", value_parser = positive, conflicts_with = "bytes_per_token")]
    pub(crate) block_bytes: Option<u64>,

    /// Tokens of a block of the cache (default: 512, as in the trace; 256 with --preset lmcache)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=512))]
    pub(crate) block_tokens: Option<u64>,

    /// Tensor-parallel ranks: each block is stored as N objects
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) tp: u32,

    /// Store each layer of the model as an object of its own
    #[arg(long)]
    pub(crate) layerwise: bool,

    /// What becomes of a last block that is not whole (default: keep; drop with --preset lmcache)
    #[arg(long, value_name = "HOW", value_parser = choice(PARTIAL))]
    pub(crate) partial_last: Option<bool>,

    /// How blocks are found (default: get; head with --preset lmcache)
    #[arg(long, value_name = "HOW", value_parser = choice(LOOKUPS))]
    pub(crate) lookup: Option<KvLookup>,

    /// Most objects of a request that are looked up or read at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) gets: u32,

    /// Most objects of a request that are written at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) puts: u32,

    /// Time to compute a token: delays the writes, and what a hit saves (default: 0, storage alone)
    #[arg(long, value_name = "TIME", default_value = "0s", hide_default_value = true, value_parser = duration)]
    pub(crate) prefill_per_token: u64,

    /// Most bytes of the cache: the least recently used blocks are evicted (default: no limit)
    #[arg(long, value_name = "SIZE", value_parser = positive)]
    pub(crate) budget: Option<u64>,

    /// Write only objects that do not exist (If-None-Match: *)
    #[arg(long)]
    pub(crate) if_absent: bool,

    /// Behave as a known cache does
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) preset: Option<Preset>,

    /// Most operations in flight; a run that reaches this limit is marked semi-open
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) max_in_flight: u32,

    /// Compare every byte read with what was written
    #[arg(long)]
    pub(crate) verify: bool,

    /// Time limit of one operation
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: u64,

    /// Leave the objects in the store after the run
    #[arg(long)]
    pub(crate) keep: bool,

    /// Seed of the content
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// A cache whose behaviour is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// LMCache: blocks of 256 tokens, HEAD before GET, a block that is not whole is not stored
    Lmcache,
}

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
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
