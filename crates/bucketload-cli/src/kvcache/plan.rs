//! Turns options into a plan: init, the requests, clean-up (docs/spec/ai-kvcache.md section 4).

use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{
    KeyLaw, KeyNaming, KeysetPlan, KvLookup, KvcachePlan, Limits, MixEntry, PhaseKind, PhasePlan,
    Plan, RetryPlan, SizeAssign, SizeLaw, WorkPlan,
};
use bucketload_trace::{BlockStatistics, MOONCAKE_BLOCK_TOKENS};

use super::{ModelShape, Models};
use crate::cli::kvcache::{CacheArgs, Preset};

/// The model that no flag names.
pub(crate) const MODEL: &str = "llama3.1-8b";
/// Time limit of one operation.
const TIMEOUT_NS: u64 = 30_000_000_000;
/// Most bytes of an object that S3 takes in one request.
const MOST_BYTES: u64 = 5 << 30;
/// Objects of a request that removes evicted blocks.
const BATCH: u64 = 1000;
/// Objects on which calibration works.
const CALIBRATED: u64 = 1024;

/// What the plan needs besides the flags.
pub(crate) struct CacheOptions<'a> {
    pub(crate) name: String,
    /// Identity of the trace.
    pub(crate) trace: String,
    pub(crate) blocks: BlockStatistics,
    pub(crate) models: &'a Models,
}

/// The plan of `args`.
///
/// # Errors
/// An option that cannot be carried out, with a remedy.
pub(crate) fn plan(args: &CacheArgs, options: CacheOptions<'_>) -> Result<Plan, String> {
    let model = options.models.get(args.model.as_deref().unwrap_or(MODEL))?;
    let cache = cache(args, model, &options)?;
    let object = cache.part_bytes(cache.block_bytes, 0);
    if object > MOST_BYTES {
        return Err(format!(
            "an object would have {object} bytes, more than the 5 GiB of one PUT; use --layerwise, --tp, \
             --bytes-per-token or --block-tokens"
        ));
    }
    let mix = mix(&cache, &options.blocks);
    let timeout_ns = args.timeout.unwrap_or(TIMEOUT_NS);
    let limits = Limits {
        duration_ns: args.duration.unwrap_or(0),
        drain_ns: timeout_ns,
        ..Limits::default()
    };
    let works = vec![WorkPlan {
        name: "kvcache".to_owned(),
        model: cache.into(),
        mix,
    }];
    let bare = |name: &str, kind| PhasePlan::new(name, kind, Vec::new(), Limits::default());
    let mut phases = vec![
        bare("init", PhaseKind::Init),
        PhasePlan::new("kvcache", PhaseKind::Run, works, limits),
    ];
    if !args.keep {
        phases.push(bare("cleanup", PhaseKind::Cleanup));
    }
    Ok(Plan {
        workload: options.name,
        profile: String::new(),
        compat: String::new(),
        seed: args.seed.unwrap_or(1),
        scale: 1.0,
        size_scale: 1.0,
        payload: PayloadKind::Random,
        verify: args.verify,
        timeout_ns,
        retry: RetryPlan::NONE,
        not_found_is_failure: true,
        keysets: vec![KeysetPlan {
            name: "blocks".to_owned(),
            prefix: "kv/".to_owned(),
            shards: 1,
            count: CALIBRATED,
            size: SizeLaw::constant(object),
            assign: SizeAssign::Random,
            overwritten: false,
            naming: KeyNaming::Index,
            existing: false,
            buckets: None,
        }],
        phases,
    })
}

fn cache(
    args: &CacheArgs,
    model: &ModelShape,
    options: &CacheOptions<'_>,
) -> Result<KvcachePlan, String> {
    let lmcache = args.preset == Some(Preset::Lmcache);
    let trace_block_tokens = MOONCAKE_BLOCK_TOKENS as u64;
    let block_tokens = match (args.block_tokens, lmcache) {
        (Some(tokens), _) => tokens,
        // LMCache's chunk (docs/spec/ai-kvcache.md section 2).
        (None, true) => 256,
        (None, false) => trace_block_tokens,
    };
    if block_tokens == 0 || !trace_block_tokens.is_multiple_of(block_tokens) {
        return Err(format!(
            "--block-tokens {block_tokens}: the blocks of the trace have {trace_block_tokens} tokens; use a divisor of \
             that, such as 256"
        ));
    }
    let per_token = args
        .bytes_per_token
        .unwrap_or_else(|| model.bytes_per_token());
    let block_bytes = args
        .block_bytes
        .unwrap_or_else(|| per_token.saturating_mul(block_tokens));
    let layers = if args.layerwise { model.layers } else { 1 };
    let ranks = args.tp.unwrap_or(1);
    let parts = u64::from(ranks) * u64::from(layers);
    if block_bytes < parts {
        return Err(format!(
            "a block of {block_bytes} bytes cannot be stored in {parts} objects; use --block-bytes or --bytes-per-token \
             to make it larger"
        ));
    }
    Ok(KvcachePlan {
        trace: options.trace.clone(),
        speed: if args.serial { 0.0 } else { args.speed },
        model: model.name.clone(),
        trace_block_tokens,
        block_tokens,
        block_bytes,
        ranks,
        layers,
        partial_last: args.partial_last.unwrap_or(!lmcache),
        lookup: args.lookup.unwrap_or(match lmcache {
            true => KvLookup::Head,
            false => KvLookup::Get,
        }),
        gets: args.gets,
        puts: args.puts,
        prefill_ns_per_token: args.prefill_per_token,
        budget_bytes: args.budget.unwrap_or(0),
        if_absent: args.if_absent,
        classes: options.models.classes()?,
        max_in_flight: args.max_in_flight,
        users: None,
    })
}

/// The operations of the cache. Their weights are those of a cache without limits; only calibration draws from them.
fn mix(cache: &KvcachePlan, blocks: &BlockStatistics) -> Vec<MixEntry> {
    let entry = |class, keys, weight: u64| MixEntry {
        weight: weight.max(1) as f64,
        ..MixEntry::new(class, 0, keys)
    };
    let (read, written) = (blocks.prefix_hits, blocks.listed - blocks.prefix_hits);
    let mut mix = Vec::new();
    if cache.lookup == KvLookup::Head {
        let asked = read + blocks.requests;
        mix.push(entry(OpClass::Head, KeyLaw::Uniform, asked));
    }
    mix.push(entry(OpClass::Get, KeyLaw::Uniform, read));
    mix.push(entry(cache.put_class(), KeyLaw::Fresh, written));
    if cache.budget_bytes > 0 {
        mix.push(MixEntry {
            count: BATCH,
            ..entry(OpClass::DeleteMany, KeyLaw::Sequential, written / BATCH)
        });
    }
    mix
}
