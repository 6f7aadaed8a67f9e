//! Regenerates the offered operations and compares them with their laws.

use std::collections::HashMap;

use bucketload_core::generate::jobs::JobGen;
use bucketload_core::generate::objects::Ranking;
use bucketload_core::generate::ops::OpGen;
use bucketload_core::generate::sizes::SizeSampler;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::{KeyLaw, MixEntry, Plan};
use bucketload_core::stats::ks;

use super::accounting::key_law;
use crate::result::realised::{MAX_SAMPLE, SIZE_QUANTILES};
use crate::result::{Realised, RealisedPopularity, RealisedSizes, SizeQuantile, TopShare};

/// Limit on the points of the curve of shares by rank.
const RANK_POINTS: usize = 200;

/// Operations drawn from one mix entry.
#[derive(Clone, Default)]
struct EntrySample {
    n: u64,
    sizes: Vec<u64>,
    keys: HashMap<u64, u64>,
}

/// Compares the first `offered` operations (at most [`MAX_SAMPLE`]) of a work with their laws.
/// Empty if the plan cannot generate operations; a run would have refused such a plan.
pub(crate) fn work(plan: &Plan, phase: usize, work: usize, offered: u64) -> Vec<Realised> {
    let model = &plan.phases[phase].works[work].model;
    if model.jobs().is_some() {
        return jobs(plan, phase, work, offered);
    }
    // A trace brings its own operations. Draws on named objects or by ranks have no sequence number among
    // all operations of the work.
    let traced = model.replay().is_some() || model.kvcache().is_some();
    let by_ranks = model.ranks().is_some() || model.checkpoint().is_some();
    if traced || model.named().is_some() || by_ranks {
        return Vec::new();
    }
    let Ok(generator) = OpGen::new(plan, phase, work) else {
        return Vec::new();
    };
    let work_plan = &plan.phases[phase].works[work];
    let sample = offered.min(MAX_SAMPLE);
    let mut entries = vec![EntrySample::default(); work_plan.mix.len()];
    for seq in 0..sample {
        let op = generator.op(seq);
        let entry = &work_plan.mix[usize::from(op.entry)];
        let into = &mut entries[usize::from(op.entry)];
        into.n += 1;
        into.sizes.extend(size_of(&op));
        if has_popularity(entry) {
            let key = if op.class.has_source() {
                op.source_key
            } else {
                op.key
            };
            *into.keys.entry(key).or_default() += 1;
        }
    }
    entries
        .into_iter()
        .zip(&work_plan.mix)
        .enumerate()
        .map(|(i, (drawn, entry))| Realised {
            work: work as u16,
            work_name: work_plan.name.clone(),
            entry: i as u16,
            class: entry.class,
            n: drawn.n,
            sample,
            share_theory: generator.probability(i as u16),
            share: drawn.n as f64 / sample.max(1) as f64,
            sizes: sizes(plan, entry, drawn.sizes),
            popularity: popularity(plan, entry, &generator, i as u16, &drawn.keys),
        })
        .collect()
}

/// Compares the operations of the first jobs, about `offered` operations, with their laws.
fn jobs(plan: &Plan, phase: usize, work: usize, offered: u64) -> Vec<Realised> {
    let Ok(generator) = JobGen::new(plan, phase as u16, work as u16) else {
        return Vec::new();
    };
    let work_plan = &plan.phases[phase].works[work];
    let mut entries = vec![EntrySample::default(); work_plan.mix.len()];
    let mut sample = 0;
    let mut job = 0;
    while sample < offered.min(MAX_SAMPLE) {
        for stage in 0..generator.stages() {
            for position in 0..generator.ops_in(job, stage) {
                let op = generator.op(job, stage, position);
                let into = &mut entries[usize::from(op.entry)];
                into.n += 1;
                into.sizes.extend(size_of(&op));
                sample += 1;
            }
        }
        job += 1;
    }
    let reads_and_writes = |entry: &MixEntry| entry.class.reads_body() || entry.class.writes_body();
    let of = |entry: &&MixEntry| reads_and_writes(entry);
    let total: f64 = work_plan.mix.iter().filter(of).map(|e| e.weight).sum();
    entries
        .into_iter()
        .zip(&work_plan.mix)
        .enumerate()
        // Deletions follow from the writes.
        .filter(|(_, (_, entry))| reads_and_writes(entry))
        .map(|(i, (drawn, entry))| Realised {
            work: work as u16,
            work_name: work_plan.name.clone(),
            entry: i as u16,
            class: entry.class,
            n: drawn.n,
            sample,
            share_theory: entry.weight / total,
            share: drawn.n as f64 / sample.max(1) as f64,
            // Sizes above the limit of single PUTs split the law in two; neither part has quantiles of its own.
            sizes: match work_plan
                .mix
                .iter()
                .any(|e| e.class == OpClass::MultipartPut)
            {
                true if entry.class.writes_body() => None,
                _ => sizes(plan, entry, drawn.sizes),
            },
            popularity: None,
        })
        .collect()
}

/// Size of the operation's body in bytes, if the plan determines it.
fn size_of(op: &Op) -> Option<u64> {
    match op.class {
        class if class.reads_range() => op.range.map(|range| range.len),
        class if class.writes_body() || class.reads_body() => {
            Some(op.size).filter(|&size| size != Op::UNKNOWN_SIZE)
        }
        _ => None,
    }
}

fn has_popularity(entry: &MixEntry) -> bool {
    !entry.class.on_bucket() && !matches!(entry.keys, KeyLaw::Fresh | KeyLaw::Sequential)
}

fn sizes(plan: &Plan, entry: &MixEntry, mut drawn: Vec<u64>) -> Option<RealisedSizes> {
    // The sizes of parts follow from the sizes of objects by no law of their own.
    if drawn.is_empty() || entry.class.by_part() {
        return None;
    }
    let law = match (&entry.range, &entry.size) {
        (Some(range), _) if entry.class == OpClass::RangeGet => &range.len,
        (_, Some(size)) => size,
        _ => &plan.keysets.get(usize::from(entry.keyset))?.size,
    };
    let law = SizeSampler::new(law).ok()?;
    drawn.sort_unstable();
    let n = drawn.len();
    let rank = |q: f64| ((q * n as f64).ceil() as usize).clamp(1, n);
    let sum: u128 = drawn.iter().map(|&bytes| u128::from(bytes)).sum();
    let quantiles = SIZE_QUANTILES
        .into_iter()
        .map(|q| SizeQuantile {
            q,
            theory: law.quantile(q) as f64,
            realised: drawn[rank(q) - 1] as f64,
        })
        .collect();
    let values: Vec<f64> = drawn.iter().map(|&bytes| bytes as f64).collect();
    Some(RealisedSizes {
        n: n as u64,
        mean_bytes: sum as f64 / n as f64,
        ks: ks::distance_to(
            &values,
            |x| law.cdf(x as u64),
            |x| if x >= 1.0 { law.cdf(x as u64 - 1) } else { 0.0 },
        ),
        ks_critical: ks::critical_1_percent(n as u64),
        quantiles,
    })
}

fn popularity(
    plan: &Plan,
    entry: &MixEntry,
    generator: &OpGen,
    index: u16,
    keys: &HashMap<u64, u64>,
) -> Option<RealisedPopularity> {
    if keys.is_empty() {
        return None;
    }
    let n: u64 = keys.values().sum();
    let objects = plan.keysets.get(usize::from(entry.keyset))?.count;
    let mut counts: Vec<u64> = keys.values().copied().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // An object has a fixed share only if its popularity does not move.
    let fixed = match entry.keys {
        KeyLaw::Latest { .. } => None,
        KeyLaw::Hotspot { data, ops, .. } if ops < data => None,
        _ => generator.shares(index),
    };
    let ranking = Ranking::new(&entry.keys, plan.seed, entry.keyset, objects);
    let of_top = |k: u64| -> u64 {
        if fixed.is_some() {
            let objects = (0..k.min(objects)).map(|rank| ranking.object(rank));
            objects.filter_map(|object| keys.get(&object)).sum()
        } else {
            counts.iter().take(k as usize).sum()
        }
    };
    let top = [1, 10, 100]
        .into_iter()
        .map(|k| {
            let realised = of_top(k) as f64 / n as f64;
            TopShare {
                k,
                theory: fixed.map(|shares| match k {
                    1 => shares.top1,
                    10 => shares.top10,
                    _ => shares.top100,
                }),
                realised,
                standard_error: (realised * (1.0 - realised) / n as f64).sqrt(),
            }
        })
        .collect();
    Some(RealisedPopularity {
        law: key_law(&entry.keys),
        n,
        objects,
        used: counts.len() as u64,
        top,
        effective_theory: fixed.map(|shares| shares.effective_keys),
        effective: effective(&counts, n),
        by_rank: by_rank(&counts, n),
    })
}

/// 1/Σp² from counts, corrected for the bias of small samples (Simpson's estimate n(n-1)/Σc(c-1)). If no object
/// was used twice, the number of objects used.
fn effective(counts: &[u64], n: u64) -> f64 {
    let pairs: f64 = counts.iter().map(|&c| c as f64 * (c as f64 - 1.0)).sum();
    if pairs > 0.0 {
        n as f64 * (n as f64 - 1.0) / pairs
    } else {
        counts.len() as f64
    }
}

/// Shares by rank of use, at logarithmically spaced ranks.
fn by_rank(counts: &[u64], n: u64) -> Vec<(u64, f64)> {
    let last = counts.len() as f64;
    let mut ranks: Vec<usize> = (0..RANK_POINTS)
        .map(|i| last.powf(i as f64 / (RANK_POINTS - 1) as f64).round() as usize)
        .map(|rank| rank.clamp(1, counts.len()))
        .collect();
    ranks.dedup();
    ranks
        .into_iter()
        .map(|rank| (rank as u64, counts[rank - 1] as f64 / n as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{by_rank, effective};

    #[test]
    fn effective_number_of_keys() {
        assert_eq!(effective(&[1; 50], 50), 50.0);
        // 4 keys with 1000 uses each.
        assert!((effective(&[1000; 4], 4000) - 4.0).abs() < 0.01);
        assert_eq!(effective(&[500], 500), 1.0);
    }

    #[test]
    fn the_curve_by_rank_is_bounded_and_complete() {
        let counts: Vec<u64> = (1..=10_000).rev().collect();
        let n = counts.iter().sum();
        let curve = by_rank(&counts, n);
        assert!(curve.len() <= 200);
        assert_eq!((curve[0].0, curve.last().unwrap().0), (1, 10_000));
        assert_eq!(by_rank(&[7], 7), [(1, 1.0)]);
    }
}
