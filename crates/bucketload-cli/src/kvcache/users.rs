//! MLPerf Storage's options as workloads (docs/spec/ai-kvcache.md section 5).

use std::fmt::Write as _;

use bucketload_core::plan::KvClass;
use bucketload_core::units::{format_duration, format_size};

use super::Models;
use crate::cli::kvcache::{CacheArgs, Preset, UserArgs};

/// An option of the benchmark.
struct Fixed {
    name: &'static str,
    model: &'static str,
    users: u32,
    memory: u64,
    allocations: u32,
}

const fn fixed(preset: Preset) -> Option<Fixed> {
    let (name, model, users, memory, allocations) = match preset {
        Preset::Lmcache => return None,
        Preset::Mlperf1 => ("mlperf-1", "llama3.1-8b", 200, 0, 16),
        Preset::Mlperf2 => ("mlperf-2", "llama3.1-8b", 100, 4 << 30, 16),
        Preset::Mlperf3 => ("mlperf-3", "llama3.1-70b", 70, 0, 4),
    };
    Some(Fixed {
        name,
        model,
        users,
        memory,
        allocations,
    })
}

/// Whether users ask, rather than a trace.
pub(crate) const fn is_of_users(preset: Option<Preset>) -> bool {
    matches!(
        preset,
        Some(Preset::Mlperf1 | Preset::Mlperf2 | Preset::Mlperf3)
    )
}

/// The name and the text of the workload that the preset and the flags describe.
///
/// # Errors
/// When there is no such model, or the classes of requests are others.
pub(crate) fn workload(
    preset: Preset,
    args: &CacheArgs,
    users: &UserArgs,
    models: &Models,
) -> Result<(String, String), String> {
    let fixed = fixed(preset).ok_or("--preset lmcache needs a trace; add --trace FILE")?;
    if models.classes()? != KvClass::mlperf() {
        return Err(
            "--models: users have MLPerf's classes of requests; remove [[class]] from the file"
                .to_owned(),
        );
    }
    let model = models.get(args.model.as_deref().unwrap_or(fixed.model))?;
    let per_token = args
        .bytes_per_token
        .unwrap_or_else(|| model.bytes_per_token());
    let name = format!("kvcache-{}", fixed.name);
    let mut text = format!(
        "# Users of a language model whose key-value cache is in the store: option {} of MLPerf Storage\n# \
         (docs/kvcache.md).\n\nname = {name:?}\nseed = 42\ntimeout = \"2m\"\n\n[phases.kvcache]\nduration = {:?}\n\
         steady-state = false # MLPerf counts everything\n\n[phases.kvcache.kvcache]\n",
        &fixed.name["mlperf-".len()..],
        format_duration(args.duration.unwrap_or(DURATION_NS)),
    );
    let mut line = |field: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{field} = {value}");
    };
    let quoted = |value: String| format!("{value:?}");
    line("clients", users.clients.to_string());
    line("users", users.users.unwrap_or(fixed.users).to_string());
    line("model", quoted(model.name.clone()));
    line("bytes-per-token", quoted(format_size(per_token)));
    if let Some(ranks) = args.tp {
        line("ranks", ranks.to_string());
    }
    if args.layerwise {
        line("layers", model.layers.to_string());
    }
    line("gets", args.gets.to_string());
    line("puts", args.puts.to_string());
    let memory = users.memory.unwrap_or(fixed.memory);
    line("memory", quoted(format_size(memory)));
    let allocations = users.allocations.unwrap_or(fixed.allocations);
    line("allocations", allocations.to_string());
    line("generation", quoted(format_duration(users.generation)));
    Ok((name, text))
}

/// Length of a trial of the benchmark.
const DURATION_NS: u64 = 300_000_000_000;
