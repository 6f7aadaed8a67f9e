//! Plans and options for tests.

use std::time::Duration;

use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{
    Accounting, ArrivalLaw, ClosedPlan, GapLaw, KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry,
    ModelPlan, OpenPlan, PhaseKind, PhasePlan, Plan, RetryPlan, SizeAssign, SizeKind, SizeLaw,
    WorkPlan,
};
use bucketload_run::{Cores, RunOptions};

pub fn const_size(bytes: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Const { bytes },
        min: bytes,
        max: bytes,
    }
}

pub fn keyset(name: &str, count: u64) -> KeysetPlan {
    KeysetPlan {
        name: name.into(),
        prefix: format!("{name}/"),
        shards: 1,
        count,
        size: const_size(4096),
        assign: SizeAssign::Random,
        overwritten: false,
        naming: KeyNaming::Index,
        existing: false,
        buckets: None,
    }
}

pub fn entry(class: OpClass, weight: f64, keyset: u16, keys: KeyLaw) -> MixEntry {
    MixEntry {
        class,
        weight,
        keyset,
        keys,
        size: None,
        range: None,
        count: 0,
        pages: 0,
        delimiter: String::new(),
    }
}

pub fn gets() -> Vec<MixEntry> {
    vec![entry(OpClass::Get, 1.0, 0, KeyLaw::Uniform)]
}

pub fn closed(workers: u32) -> ModelPlan {
    ModelPlan::Closed(ClosedPlan {
        workers,
        think: GapLaw::None,
    })
}

pub fn open(arrival: ArrivalLaw, max_in_flight: u32) -> ModelPlan {
    ModelPlan::Open(OpenPlan {
        arrival,
        max_in_flight,
    })
}

pub fn constant(rate: f64, max_in_flight: u32) -> ModelPlan {
    open(ArrivalLaw::Constant { rate }, max_in_flight)
}

pub fn phase(kind: PhaseKind, works: Vec<WorkPlan>, limits: Limits) -> PhasePlan {
    PhasePlan {
        name: format!("{kind:?}"),
        kind,
        works,
        limits,
        steady_state: false,
        stop: None,
        accounting: Accounting::default(),
    }
}

pub fn work(model: ModelPlan, mix: Vec<MixEntry>) -> WorkPlan {
    WorkPlan {
        name: "w".into(),
        model,
        mix,
    }
}

pub fn ms(n: u64) -> u64 {
    n * 1_000_000
}

pub fn for_ops(ops: u64) -> Limits {
    Limits {
        ops,
        drain_ns: ms(2_000),
        ..Limits::default()
    }
}

pub fn for_ms(duration: u64) -> Limits {
    Limits {
        duration_ns: ms(duration),
        drain_ns: ms(2_000),
        ..Limits::default()
    }
}

pub fn plan(phases: Vec<PhasePlan>) -> Plan {
    Plan {
        workload: "test".into(),
        profile: String::new(),
        compat: String::new(),
        seed: 42,
        scale: 1.0,
        size_scale: 1.0,
        payload: PayloadKind::Zeros,
        verify: false,
        timeout_ns: ms(5_000),
        retry: RetryPlan {
            max_attempts: 1,
            backoff_ns: 0,
            max_backoff_ns: 0,
        },
        not_found_is_failure: true,
        keysets: vec![keyset("r", 1000), keyset("w", 0)],
        phases,
    }
}

/// A plan with one measured phase.
pub fn one(model: ModelPlan, mix: Vec<MixEntry>, limits: Limits) -> Plan {
    plan(vec![phase(PhaseKind::Run, vec![work(model, mix)], limits)])
}

pub fn options(threads: usize) -> RunOptions {
    RunOptions {
        run_id: "run-1".into(),
        bucket: "b".into(),
        prefix: "t/".into(),
        threads: Some(threads),
        cores: Cores::Unpinned,
        interval: Duration::from_millis(100),
        ..RunOptions::default()
    }
}
