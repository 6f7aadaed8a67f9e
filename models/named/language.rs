//! Works on named buckets and objects.

use crate::resolve::dryrun::{Rates, by_class};
use crate::resolve::models::DescribedModel;
use crate::resolve::models::workers;
use bucketload_core::generate::LawError;
use bucketload_core::plan::named::{NamePattern, NamedEntry, NamedPlan};
use bucketload_core::plan::{Limits, Plan, SizeKind, WorkPlan};

fn count(pattern: &NamePattern) -> u64 {
    let bounds = pattern.numbers.bounds();
    bounds.map_or(0, |(lo, hi)| u64::from(hi - lo) + 1)
}

/// Number of operations of a walk, excluding the creation and deletion of buckets.
fn walked(entry: &NamedEntry) -> u64 {
    count(&entry.bucket).saturating_mul(entry.object.as_ref().map_or(1, count))
}

impl DescribedModel for NamedPlan {
    fn in_outlook(&self) -> String {
        let how = match self.walk {
            true => ", each once through its share of the names",
            false => " on named objects",
        };
        let mut out = workers(self.workers) + how;
        if self.ops > 0 {
            out.push_str(&format!(", {} operations", self.ops));
        }
        if self.bytes > 0 {
            out.push_str(&format!(", {} bytes", self.bytes));
        }
        if self.max_ops_per_s > 0 {
            out.push_str(&format!(", at most {}/s", self.max_ops_per_s));
        }
        if self.max_bytes_per_s > 0 {
            out.push_str(&format!(", at most {} B/s", self.max_bytes_per_s));
        }
        out
    }

    fn rates(&self, plan: &Plan, phase: usize, work: usize) -> Result<Rates, LawError> {
        let work = &plan.phases[phase].works[work];
        let sum: f64 = work.mix.iter().map(|entry| entry.weight).sum();
        let (mut read, mut written) = (0.0, 0.0);
        let mut shares = Vec::new();
        for (entry, named) in work.mix.iter().zip(&self.entries) {
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
            // Read sizes are estimated from written sizes.
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
            shares.push((entry.class, share));
        }
        let mix = by_class(shares.into_iter());
        Ok(Rates { read, written, mix })
    }

    fn ops(&self, _: &WorkPlan, _: &Limits, _: &Rates, _: bool) -> Option<f64> {
        if self.walk {
            return Some(walked(&self.entries[0]) as f64);
        }
        (self.runtime_ns == 0 && self.bytes == 0 && self.ops > 0).then_some(self.ops as f64)
    }

    fn written(&self, work: &WorkPlan) -> u64 {
        match self.walk && work.mix[0].class.writes_body() {
            true => walked(&self.entries[0]),
            false => 0,
        }
    }
}
