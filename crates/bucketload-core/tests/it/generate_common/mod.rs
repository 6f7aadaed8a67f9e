//! Plans for the generator tests.

use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::*;

/// Always the same size.
pub(crate) fn constant(bytes: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Const { bytes },
        min: 0,
        max: u64::MAX,
    }
}

/// Sizes from `a` to `b`.
pub(crate) fn uniform(a: u64, b: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Uniform { a, b },
        min: 0,
        max: u64::MAX,
    }
}

/// A key set of `count` objects with randomly assigned sizes.
pub(crate) fn keyset(name: &str, count: u64, size: SizeLaw) -> KeysetPlan {
    KeysetPlan {
        name: name.into(),
        prefix: format!("{name}/"),
        shards: 4,
        count,
        size,
        assign: SizeAssign::Random,
        overwritten: false,
        naming: KeyNaming::Index,
        existing: false,
        buckets: None,
    }
}

/// A mix entry without options.
pub(crate) fn entry(class: OpClass, weight: f64, keyset: u16, keys: KeyLaw) -> MixEntry {
    MixEntry {
        weight,
        ..MixEntry::new(class, keyset, keys)
    }
}

/// A phase with one closed work per mix.
pub(crate) fn phase(kind: PhaseKind, mixes: Vec<Vec<MixEntry>>) -> PhasePlan {
    let work = |mix| WorkPlan {
        name: "work".into(),
        model: ModelPlan::Closed(ClosedPlan::without_pauses(1)),
        mix,
    };
    let works = mixes.into_iter().map(work).collect();
    PhasePlan::new("phase", kind, works, Limits::default())
}

/// A plan of these phases.
pub(crate) fn plan(keysets: Vec<KeysetPlan>, phases: Vec<PhasePlan>) -> Plan {
    Plan {
        workload: "test".into(),
        profile: String::new(),
        compat: String::new(),
        seed: 2020,
        scale: 1.0,
        size_scale: 1.0,
        payload: PayloadKind::Random,
        verify: false,
        timeout_ns: 1,
        retry: RetryPlan::NONE,
        not_found_is_failure: true,
        keysets,
        phases,
    }
}

/// A plan of one run phase with one work.
pub(crate) fn run(keysets: Vec<KeysetPlan>, mix: Vec<MixEntry>) -> Plan {
    plan(keysets, vec![phase(PhaseKind::Run, vec![mix])])
}

/// The default popularity.
pub(crate) fn zipf() -> KeyLaw {
    KeyLaw::Zipf {
        theta: 0.99,
        scramble: true,
    }
}

/// The online-service mix of docs/spec/scenarios.md section 3.1.
pub(crate) fn online() -> Plan {
    let kib = 1024.0;
    let read = SizeLaw {
        law: SizeKind::Emg {
            mu: 32.0 * kib,
            sigma: 8.0 * kib,
            tau: 93.98 * kib,
        },
        min: 1,
        max: 64 << 20,
    };
    let write = SizeLaw {
        law: SizeKind::Zipf {
            n: 16_384,
            s: 1.5036,
            unit: 4096,
            align: true,
        },
        min: 1,
        max: 64 << 20,
    };
    let mut read = keyset("r", 100_000, read);
    read.assign = SizeAssign::LowDiscrepancy;
    run(
        vec![read, keyset("w", 0, write)],
        vec![
            entry(OpClass::Get, 70.0, 0, zipf()),
            entry(OpClass::Put, 30.0, 1, KeyLaw::Fresh),
        ],
    )
}
