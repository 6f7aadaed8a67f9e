//! Where a work's operations come from: arrivals, operations, names and think times.

use std::fmt::Write as _;

use bucketload_core::generate::rng::mix64;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::{ArrivalLaw, GapLaw, KeyLaw, ModelPlan, Plan, SizeKind, WorkPlan};

/// One planned arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) seq: u64,
    /// Nanoseconds since the start of the phase.
    pub(crate) due_ns: u64,
}

/// The arrivals that one thread takes from the global schedule.
#[derive(Clone)]
pub(crate) struct Arrivals {
    gap_ns: f64,
    seed: u64,
    poisson: bool,
    seq: u64,
    at: f64,
    index: u64,
    of: u64,
}

impl Iterator for Arrivals {
    type Item = Arrival;
    fn next(&mut self) -> Option<Arrival> {
        loop {
            let seq = self.seq;
            self.seq += 1;
            if self.poisson {
                let u = (mix64(self.seed ^ seq) >> 11) as f64 / (1u64 << 53) as f64;
                self.at += -(1.0 - u).ln() * self.gap_ns;
            } else {
                self.at += self.gap_ns;
            }
            if seq % self.of == self.index {
                return Some(Arrival {
                    seq,
                    due_ns: self.at as u64,
                });
            }
        }
    }
}

/// The generators of one work.
pub(crate) struct Source {
    seed: u64,
    work: WorkPlan,
    plan: Plan,
    prefix: String,
}

impl Source {
    pub(crate) fn new(plan: &Plan, phase: usize, work: usize, prefix: &str) -> Self {
        Self {
            seed: plan.seed ^ mix64((phase * 1000 + work) as u64),
            work: plan.phases[phase].works[work].clone(),
            plan: plan.clone(),
            prefix: prefix.to_owned(),
        }
    }

    pub(crate) fn arrivals(&self, index: u64, of: u64) -> Arrivals {
        let (rate, poisson) = match &self.work.model {
            ModelPlan::Open { arrival, .. } => match arrival {
                ArrivalLaw::Constant { rate } => (*rate, false),
                ArrivalLaw::Poisson { rate } => (*rate, true),
                _ => (1.0, false),
            },
            ModelPlan::Closed { .. } => (1.0, false),
        };
        Arrivals {
            gap_ns: 1e9 / rate,
            seed: self.seed,
            poisson,
            seq: 0,
            at: 0.0,
            index,
            of,
        }
    }

    pub(crate) fn op(&self, seq: u64) -> Op {
        let total: f64 = self.work.mix.iter().map(|m| m.weight).sum();
        let mut u = (mix64(self.seed ^ mix64(seq)) >> 11) as f64 / (1u64 << 53) as f64 * total;
        let mut entry = self.work.mix.len() - 1;
        for (i, m) in self.work.mix.iter().enumerate() {
            if u < m.weight {
                entry = i;
                break;
            }
            u -= m.weight;
        }
        let m = &self.work.mix[entry];
        let set = &self.plan.keysets[m.keyset as usize];
        let key = match m.keys {
            KeyLaw::Sequential => seq,
            KeyLaw::Fresh => set.count + seq,
            _ => mix64(self.seed ^ !seq) % set.count.max(1),
        };
        let size = match &set.size.law {
            SizeKind::Const { bytes } => *bytes,
            _ => 4096,
        };
        Op {
            seq,
            class: m.class,
            entry: entry as u16,
            keyset: m.keyset,
            key,
            source_key: 0,
            source_keyset: 0,
            version: 0,
            size,
            range: None,
            count: m.count,
            pages: m.pages,
        }
    }

    pub(crate) fn delimiter(&self, op: &Op) -> &str {
        &self.work.mix[usize::from(op.entry)].delimiter
    }

    pub(crate) fn render(&self, op: &Op, key: &mut String, source: &mut String) {
        key.clear();
        source.clear();
        key.push_str(&self.prefix);
        key.push_str(&self.plan.keysets[usize::from(op.keyset)].prefix);
        if !matches!(op.class, OpClass::List | OpClass::ListV1) {
            let _ = write!(key, "{:012}", op.key);
        }
    }

    pub(crate) fn think_ns(&self, _worker: u64, _iteration: u64) -> u64 {
        match self.work.model {
            ModelPlan::Closed {
                think: GapLaw::Constant { ns },
                ..
            } => ns,
            _ => 0,
        }
    }
}
