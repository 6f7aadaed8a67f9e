//! Building blocks of plans whose load comes from ranks (`io500`, `md-workbench`).

use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::ranks::{RankMapping, RankTask, RanksPlan};
use bucketload_core::plan::{
    Accounting, BucketsPlan, KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry, PhaseKind, PhasePlan,
    Plan, RetryPlan, SizeAssign, SizeKind, SizeLaw, WorkPlan,
};

/// How long a phase waits for requests in flight at its end.
const DRAIN_NS: u64 = 60_000_000_000;
/// Most bytes of all ranks' buffers together.
pub(crate) const MOST_BUFFERS: u64 = 4 << 30;

/// A plan of phases that try each request once and compare no bytes.
pub(crate) fn plan(
    name: &str,
    seed: u64,
    timeout_ns: u64,
    payload: PayloadKind,
    keysets: Vec<KeysetPlan>,
    phases: Vec<PhasePlan>,
) -> Plan {
    Plan {
        workload: name.to_owned(),
        profile: name.to_owned(),
        compat: String::new(),
        seed,
        scale: 1.0,
        size_scale: 1.0,
        payload,
        verify: false,
        timeout_ns,
        retry: RetryPlan {
            max_attempts: 1,
            backoff_ns: 0,
            max_backoff_ns: 0,
        },
        not_found_is_failure: true,
        keysets,
        phases,
    }
}

/// A phase without load of its own.
pub(crate) fn control(name: &str, kind: PhaseKind) -> PhasePlan {
    PhasePlan {
        name: name.to_owned(),
        kind,
        works: Vec::new(),
        limits: Limits::default(),
        steady_state: false,
        stop: None,
        accounting: Accounting::default(),
    }
}

/// A measuring phase that consists of `work`, with the same name.
pub(crate) fn measuring(work: WorkPlan) -> PhasePlan {
    PhasePlan {
        limits: Limits {
            drain_ns: DRAIN_NS,
            ..Limits::default()
        },
        works: vec![work.clone()],
        ..control(&work.name, PhaseKind::Run)
    }
}

/// Ranks without steps, shift, stonewall and wait.
pub(crate) const fn ranks(ranks: u32, task: RankTask, mapping: RankMapping) -> RanksPlan {
    RanksPlan {
        ranks,
        task,
        mapping,
        opening: 0,
        first_opens: false,
        closing: 0,
        shift: 0,
        steps: 0,
        follows: None,
        part: None,
        after: Vec::new(),
        start: 0,
        stonewall_ns: 0,
        wear_out: false,
        waiting: 0.0,
        newer_than: None,
    }
}

/// A key set whose objects the ranks name.
pub(crate) fn keyset(
    name: &str,
    prefix: String,
    bytes: u64,
    buckets: Option<BucketsPlan>,
) -> KeysetPlan {
    KeysetPlan {
        name: name.to_owned(),
        prefix,
        shards: 1,
        count: 0,
        size: constant(bytes),
        assign: SizeAssign::Random,
        overwritten: false,
        naming: KeyNaming::Index,
        existing: false,
        buckets,
    }
}

/// A request of a rank's step.
pub(crate) fn entry(class: OpClass, keyset: u16, bytes: Option<u64>) -> MixEntry {
    MixEntry {
        class,
        weight: 1.0,
        keyset,
        keys: KeyLaw::Sequential,
        size: bytes.map(constant),
        range: None,
        count: 0,
        pages: 0,
        delimiter: String::new(),
    }
}

const fn constant(bytes: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Const { bytes },
        min: bytes,
        max: bytes,
    }
}
