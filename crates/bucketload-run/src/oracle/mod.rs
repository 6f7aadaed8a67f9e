//! The consistency oracle at work: registers of all tracked keys, and a ticket per operation.
//!
//! ```text
//!  perform ── begin ──▶ Ticket ── watches body or listing ── end ──▶ ruling ──▶ Finding
//!                │                                            │
//!                └── shard of registers (one short lock each) ┘        audit: reads every key at the end
//! ```
//!
//! The load threads share the registers, which are spread over many small maps. Each map has its own lock, held for a
//! few hundred nanoseconds at the beginning and the end of an operation on a tracked key. A run without an oracle pays
//! one branch per operation.
//!
//! The number of tracked keys is bounded. When more keys are written, half of them, chosen by a hash of the key, are
//! dropped and never tracked again. The remaining share is reported.

mod audit;
mod audit_versions;
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

pub(crate) use audit::{Audit, audit};
pub(crate) use audit_versions::audit_versions;
pub(crate) use ticket::{AnswerContext, Ticket};

/// Number of maps that the registers are spread over.
const SHARDS: usize = 256;
/// Most findings of each kind that are reported in full.
pub(crate) const KEPT_PER_KIND: u32 = 100;
/// Default limit on tracked keys: 100 MiB at about 500 bytes each.
pub(crate) const MOST_KEYS: usize = 200_000;

/// A key: key set and index.
pub(crate) type KeyId = (u16, u64);

type Registers = HashMap<KeyId, Register>;

/// The consistency oracle, shared by all load threads and phases of a run.
pub(crate) struct Oracle {
    arena: Arc<Arena>,
    names: Vec<KeyNames>,
    /// Initial objects of each key set.
    counts: Vec<u64>,
    shards: Box<[Mutex<Registers>]>,
    /// Keys whose hash is greater are not tracked.
    threshold: AtomicU64,
    keys: AtomicU64,
    most_keys: u64,
    /// Whether a thread is dropping keys.
    shedding: AtomicBool,
    /// Whether keys may hold objects from before the run.
    inherited: bool,
    mutations: AtomicU64,
    unknown: AtomicU64,
    reads: AtomicU64,
    lists: AtomicU64,
    unjudged: AtomicU64,
    /// Per kind: number of findings, and of answers that showed one.
    found: [[AtomicU64; 2]; FindingKind::ALL.len()],
    /// Findings of each kind that may still be reported in full.
    kept: [AtomicU32; FindingKind::ALL.len()],
}

impl Oracle {
    /// An oracle for the phases of `plan` that `options` select. `arena` provides the content.
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

    fn hash((keyset, key): KeyId) -> u64 {
        mix64(key ^ (u64::from(keyset) << 48))
    }

    /// Whether the key is tracked.
    fn is_tracked(&self, id: KeyId) -> bool {
        Self::hash(id) <= self.threshold.load(Relaxed)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Registers> {
        // A panic elsewhere leaves no value half written.
        self.shards[hash as usize % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` on the key's register, if there is one.
    fn with<T>(&self, id: KeyId, f: impl FnOnce(&mut Register) -> T) -> Option<T> {
        let hash = Self::hash(id);
        if hash > self.threshold.load(Relaxed) {
            return None;
        }
        self.shard(hash).get_mut(&id).map(f)
    }

    /// Calls `f` on the key's register. Creates the register unless the key is not to be tracked.
    fn with_new<T>(&self, id: KeyId, f: impl FnOnce(&mut Register) -> T) -> Option<T> {
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

    /// Counts an answer that showed a finding; `new` if the finding was not seen before.
    fn count(&self, kind: FindingKind, new: bool) {
        let [findings, answers] = &self.found[kind as usize];
        findings.fetch_add(u64::from(new), Relaxed);
        answers.fetch_add(1, Relaxed);
    }

    /// Whether the budget allows another finding of `kind` to be reported in full. Takes one from it.
    fn keeps(&self, kind: FindingKind) -> bool {
        let take = |n: u32| n.checked_sub(1);
        self.kept[kind as usize]
            .fetch_update(Relaxed, Relaxed, take)
            .is_ok()
    }

    /// What the oracle has done so far.
    pub(crate) fn summary(&self, audit: Audit) -> OracleSummary {
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
            audited: audit.audited,
            unaudited: audit.unclear.values().sum(),
            unaudited_why: audit.unclear,
            found: found.collect(),
        }
    }
}

/// Receives findings.
pub(crate) type OnFinding<'a> = &'a mut dyn FnMut(Finding);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bucketload_core::payload::{Arena, PayloadKind};
    use bucketload_core::plan::Plan;

    use super::Oracle;
    use crate::options::RunOptions;

    #[test]
    fn only_a_share_of_many_keys_is_tracked() {
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
            let summary = oracle.summary(super::Audit::default());
            assert!(summary.keys <= 501, "{summary:?}");
        }
        let summary = oracle.summary(super::Audit::default());
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
