//! What works on named buckets and objects are expected to do.

use super::Rates;
use bucketload_core::op::OpClass;
use bucketload_core::plan::named::{NamePattern, NamedEntry, NamedPlan};
use bucketload_core::plan::{ModelPlan, SizeKind, WorkPlan};

fn count(pattern: &NamePattern) -> u64 {
    let bounds = pattern.numbers.bounds();
    bounds.map_or(0, |(lo, hi)| u64::from(hi - lo) + 1)
}

/// Operations of a walk, without the making and deleting of buckets beside it.
fn walked(entry: &NamedEntry) -> u64 {
    count(&entry.bucket).saturating_mul(entry.object.as_ref().map_or(1, count))
}

/// Objects that a walk writes; `None` for other works.
pub(super) fn written(work: &WorkPlan) -> Option<u64> {
    match &work.model {
        ModelPlan::Named(plan) if plan.walk && work.mix[0].class.writes_body() => {
            Some(walked(&plan.entries[0]))
        }
        _ => None,
    }
}

/// Operations of a work, where its limits say so.
pub(super) fn ops(work: &WorkPlan) -> Option<f64> {
    let ModelPlan::Named(plan) = &work.model else {
        return None;
    };
    if plan.walk {
        return Some(walked(&plan.entries[0]) as f64);
    }
    (plan.runtime_ns == 0 && plan.bytes == 0 && plan.ops > 0).then_some(plan.ops as f64)
}

/// Shares and bytes of a work's operations.
pub(super) fn rates(plan: &NamedPlan, work: &WorkPlan) -> Rates {
    let sum: f64 = work.mix.iter().map(|entry| entry.weight).sum();
    let (mut read, mut written) = (0.0, 0.0);
    let mut mix: Vec<(OpClass, f64)> = Vec::new();
    for (entry, named) in work.mix.iter().zip(&plan.entries) {
        let share = entry.weight / sum.max(f64::MIN_POSITIVE);
        let drawn = named
            .sizes
            .as_ref()
            .map(|sizes| sizes.numbers.mean() * sizes.unit_bytes as f64);
        let files = named
            .files
            .iter()
            .map(|file| file.bytes as f64)
            .sum::<f64>();
        // What is read is estimated from what is written.
        let written_sizes = entry.size.as_ref().map(|size| match size.law {
            SizeKind::Const { bytes } => bytes as f64,
            _ => 0.0,
        });
        let bytes = match (&named.range, drawn.or(written_sizes)) {
            (Some(range), _) => range.len as f64,
            (None, Some(bytes)) => bytes,
            (None, None) => files / named.files.len().max(1) as f64,
        };
        if entry.class.reads_body() {
            read += share * bytes;
        } else if entry.class.writes_body() {
            written += share * bytes;
        }
        match mix.iter_mut().find(|(class, _)| *class == entry.class) {
            Some((_, sum)) => *sum += share,
            None => mix.push((entry.class, share)),
        }
    }
    mix.sort_by(|a, b| b.1.total_cmp(&a.1));
    Rates { read, written, mix }
}

/// The model in words.
#[must_use]
pub fn describe(plan: &NamedPlan) -> String {
    let plural = if plan.workers == 1 { "" } else { "s" };
    let how = match plan.walk {
        true => ", each once through its share of the names",
        false => " on named objects",
    };
    let mut out = format!("closed loop, {} worker{plural}{how}", plan.workers);
    if plan.ops > 0 {
        out.push_str(&format!(", {} operations", plan.ops));
    }
    if plan.bytes > 0 {
        out.push_str(&format!(", {} bytes", plan.bytes));
    }
    if plan.max_ops_per_s > 0 {
        out.push_str(&format!(", at most {}/s", plan.max_ops_per_s));
    }
    if plan.max_bytes_per_s > 0 {
        out.push_str(&format!(", at most {} B/s", plan.max_bytes_per_s));
    }
    out
}
