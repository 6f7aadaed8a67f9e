//! The consistency oracle at work: registers of all tracked keys, and a ticket per operation.
//!
//! ```text
//!  perform ── begin ──▶ Ticket ── watches body or listing ── end ──▶ ruling ──▶ Finding
//!                │                                            │
//!                └── shard of registers (one short lock each) ┘        audit: reads every key at the end
//! ```
//!
//! Operations of all load threads meet in the registers, which lie in many small maps, each behind a
//! lock of its own that is held for some hundred nanoseconds at the beginning and at the end of an
//! operation on a tracked key. Without an oracle the path of an operation has one branch more.
//!
//! Memory is bounded by the number of tracked keys. When more keys are written, half of them, chosen
//! by a hash of the key, are dropped and never tracked again; the share that is left is reported.

mod audit;
mod judge;
mod list;
mod ticket;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bucketload_core::generate::LawError;
use bucketload_core::generate::names::KeyNames;
use bucketload_core::generate::rng::mix64;
use bucketload_core::oracle::{Finding, FindingKind, KindCount, OracleSummary, Register};
use bucketload_core::payload::Arena;
use bucketload_core::plan::{PhaseKind, Plan};

use crate::options::RunOptions;

pub(crate) use audit::audit;
pub(crate) use ticket::{AnswerContext, Ticket};

/// Maps that the registers are spread over.
const SHARDS: usize = 256;
/// Findings of each kind that are reported in full.
pub(crate) const KEPT_PER_KIND: u32 = 100;
/// Keys that are tracked unless the caller says otherwise: at about 500 bytes each, 100 MiB.
pub(crate) const MOST_KEYS: usize = 200_000;

/// Key set and index.
pub(crate) type Id = (u16, u64);

type Registers = HashMap<Id, Register>;

/// What the oracle knows; shared by all load threads and all phases of a run.
pub(crate) struct Oracle {
    arena: Arc<Arena>,
    names: Vec<KeyNames>,
    /// Initial objects of each key set.
    counts: Vec<u64>,
    shards: Box<[Mutex<Registers>]>,
    /// Keys with a greater hash are not tracked.
    threshold: AtomicU64,
    keys: AtomicU64,
    most_keys: u64,
    /// Whether a thread is dropping keys.
    shedding: AtomicBool,
    /// Whether keys may have objects from before the run.
    inherited: bool,
    mutations: AtomicU64,
    unknown: AtomicU64,
    reads: AtomicU64,
    lists: AtomicU64,
    unjudged: AtomicU64,
    /// Findings and answers of each kind.
    found: [[AtomicU64; 2]; FindingKind::ALL.len()],
    /// Findings of each kind that may still be reported in full.
    kept: [AtomicU32; FindingKind::ALL.len()],
}

impl Oracle {
    /// An oracle for the phases of `plan` that `options` name, with content cut from `arena`.
    pub(crate) fn new(
        plan: &Plan,
        options: &RunOptions,
        arena: Arc<Arena>,
    ) -> Result<Self, LawError> {
        let prefix = options.names_prefix();
        let names = plan.keysets.iter().map(|set| KeyNames::new(prefix, set));
        let mut phases = plan.phases.iter().enumerate();
        let claims = phases.any(|(i, p)| p.kind == PhaseKind::Init && options.includes(i));
        Ok(Self {
            arena,
            names: names.collect::<Result<_, _>>()?,
            counts: plan.keysets.iter().map(|set| set.count).collect(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            threshold: AtomicU64::new(u64::MAX),
            keys: AtomicU64::new(0),
            shedding: AtomicBool::new(false),
            most_keys: options.oracle_keys.max(1) as u64,
            inherited: !claims,
            mutations: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            unjudged: AtomicU64::new(0),
            found: Default::default(),
            kept: std::array::from_fn(|_| AtomicU32::new(KEPT_PER_KIND)),
        })
    }

    fn hash((keyset, key): Id) -> u64 {
        mix64(key ^ (u64::from(keyset) << 48))
    }

    /// Whether the key is one of those that are tracked.
    fn is_tracked(&self, id: Id) -> bool {
        Self::hash(id) <= self.threshold.load(Relaxed)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Registers> {
        // A panic elsewhere leaves plain values, none of them half written.
        self.shards[hash as usize % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the key's register, if there is one.
    fn with<T>(&self, id: Id, f: impl FnOnce(&mut Register) -> T) -> Option<T> {
        let hash = Self::hash(id);
        if hash > self.threshold.load(Relaxed) {
            return None;
        }
        self.shard(hash).get_mut(&id).map(f)
    }

    /// Works on the key's register, which is made if the key is to be tracked.
    fn with_new<T>(&self, id: Id, f: impl FnOnce(&mut Register) -> T) -> Option<T> {
        let hash = Self::hash(id);
        if hash > self.threshold.load(Relaxed) {
            return None;
        }
        let mut made = false;
        let outcome = {
            let mut shard = self.shard(hash);
            let register = shard.entry(id).or_insert_with(|| {
                made = true;
                Register::new(self.inherited)
            });
            f(register)
        };
        if made && self.keys.fetch_add(1, Relaxed) >= self.most_keys {
            self.shed();
        }
        Some(outcome)
    }

    /// Drops half of the keys.
    #[cold]
    fn shed(&self) {
        if self.shedding.swap(true, Relaxed) {
            return;
        }
        while self.keys.load(Relaxed) > self.most_keys {
            let threshold = self.threshold.load(Relaxed) / 2;
            self.threshold.fetch_min(threshold, Relaxed);
            for shard in &self.shards {
                let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                let before = shard.len();
                shard.retain(|&id, _| Self::hash(id) <= threshold);
                shard.shrink_to_fit();
                self.keys.fetch_sub((before - shard.len()) as u64, Relaxed);
            }
        }
        self.shedding.store(false, Relaxed);
    }

    /// Counts an answer that showed a finding, `new` when it is not one that was seen before.
    fn count(&self, kind: FindingKind, new: bool) {
        let [findings, answers] = &self.found[kind as usize];
        findings.fetch_add(u64::from(new), Relaxed);
        answers.fetch_add(1, Relaxed);
    }

    /// Whether another finding of `kind` is to be reported in full.
    fn keeps(&self, kind: FindingKind) -> bool {
        let take = |n: u32| n.checked_sub(1);
        self.kept[kind as usize]
            .fetch_update(Relaxed, Relaxed, take)
            .is_ok()
    }

    /// What the oracle did so far. `audited` and `unaudited` are those of the audit.
    pub(crate) fn summary(&self, (audited, unaudited): (u64, u64)) -> OracleSummary {
        let found = FindingKind::ALL.into_iter().filter_map(|kind| {
            let [findings, answers] = &self.found[kind as usize];
            let count = KindCount {
                findings: findings.load(Relaxed),
                answers: answers.load(Relaxed),
            };
            (count.answers > 0).then_some((kind, count))
        });
        OracleSummary {
            keys: self.keys.load(Relaxed),
            share: (self.threshold.load(Relaxed) as f64 + 1.0) / (u64::MAX as f64 + 1.0),
            mutations: self.mutations.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
            reads: self.reads.load(Relaxed),
            lists: self.lists.load(Relaxed),
            unjudged: self.unjudged.load(Relaxed),
            audited,
            unaudited,
            found: found.collect(),
        }
    }
}

/// Takes findings to whoever writes them down.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(Finding);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bucketload_core::payload::{Arena, PayloadKind};
    use bucketload_core::plan::Plan;

    use super::Oracle;
    use crate::options::RunOptions;

    #[test]
    fn memory_is_bounded_by_tracking_a_share_of_the_keys() {
        let plan: Plan = serde_json::from_value(serde_json::json!({
            "workload": "", "profile": "", "seed": 1, "scale": 1.0,
            "payload": { "kind": "random" }, "verify": false, "timeout_ns": 1,
            "retry": { "max_attempts": 1, "backoff_ns": 0, "max_backoff_ns": 0 },
            "not_found_is_failure": true, "keysets": [], "phases": [],
        }))
        .unwrap();
        let options = RunOptions {
            oracle_keys: 500,
            ..RunOptions::default()
        };
        let arena = Arc::new(Arena::new(PayloadKind::Random, 1));
        let oracle = Oracle::new(&plan, &options, arena).unwrap();
        for key in 0..10_000 {
            oracle.with_new((0, key), |_| ());
            let summary = oracle.summary((0, 0));
            assert!(summary.keys <= 501, "{summary:?}");
        }
        let summary = oracle.summary((0, 0));
        let kept = (0..10_000).filter(|&key| oracle.with((0, key), |_| ()).is_some());
        assert_eq!(kept.count() as u64, summary.keys);
        // The share is a power of two; the number of keys is binomial with it: four standard errors.
        let expected = 10_000.0 * summary.share;
        assert!(
            (summary.keys as f64 - expected).abs() < 4.0 * expected.sqrt(),
            "{summary:?}"
        );
        assert!(summary.keys > 150 && summary.share < 0.06);
    }
}
