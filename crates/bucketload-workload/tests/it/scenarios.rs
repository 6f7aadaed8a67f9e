//! The built-in scenarios match docs/spec/scenarios.md sections 3, 5, 6.2, 9 and 10.

use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::generate::fingerprint::schedule_hash;
use bucketload_core::generate::sizes::SizeSampler;
use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::*;
use bucketload_core::stats::moments::index_of_dispersion;
use bucketload_workload::resolve::{
    EMBEDDED_MEMORY_BUDGET, Field, Override, Overrides, ResolveContext, Resolved, resolve,
};
use bucketload_workload::spec::WorkloadFile;

const SECOND: u64 = 1_000_000_000;

fn resolved(
    name: &str,
    profile: Option<&str>,
    settings: &[(Field, &str)],
    budget: Option<u64>,
) -> Resolved {
    let overrides = Overrides {
        profile: profile.map(str::to_owned),
        settings: settings
            .iter()
            .map(|(field, value)| Override::new(field.clone(), value))
            .collect(),
    };
    let file = WorkloadFile::builtin(name).unwrap();
    let context = ResolveContext {
        memory_budget: budget,
    };
    resolve(&file, &overrides, &context).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(name: &str, profile: Option<&str>) -> Plan {
    resolved(name, profile, &[], None).plan
}

fn measured(plan: &Plan) -> Vec<&PhasePlan> {
    let phases = plan.phases.iter();
    phases
        .filter(|phase| phase.kind == PhaseKind::Run)
        .collect()
}

fn prepared(plan: &Plan) -> Vec<&str> {
    plan.phases
        .iter()
        .filter(|phase| phase.kind == PhaseKind::Prepare)
        .map(|phase| phase.works[0].name.as_str())
        .collect()
}

/// Section 5: the stated band, its parameters, and the batches.
#[test]
fn file_backup_is_the_scenario() {
    for (profile, mu, below) in [
        (Some("f40"), 12.1956, 0.40),
        (None, 10.9119, 0.60),
        (Some("f80"), 9.4347, 0.80),
    ] {
        let plan = plan("file-backup", profile);
        let law = &plan.keysets[0].size;
        let expected = SizeKind::TruncLognormal {
            mu,
            sigma: 2.5,
            cap: f64::from(64 << 20),
        };
        assert_eq!(law.law, expected);
        assert_eq!(
            plan.keysets[1].size, *law,
            "earlier backups have the same sizes"
        );
        let share = SizeSampler::new(law).unwrap().cdf(100 * 1024);
        assert!((share - below).abs() < 1e-4, "{profile:?}: {share}");
        let [run] = measured(&plan)[..] else {
            panic!("one phase");
        };
        let ModelPlan::Open(OpenPlan {
            arrival,
            max_in_flight,
        }) = &run.works[0].model
        else {
            panic!("a batch never waits for the previous one");
        };
        assert_eq!(
            *arrival,
            ArrivalLaw::PeriodicBatch {
                clients: 8,
                period_ns: 5 * SECOND,
                min: 10,
                max: 100,
                spread_ns: 0,
                gap_ns: 0,
            }
        );
        // The three largest batches of every client fit before the run stops being open.
        assert_eq!(*max_in_flight, 2400);
        assert!(run.limits.duration_ns >= 75 * SECOND);
        let [put] = run.works[0].mix.as_slice() else {
            panic!("writes only, by default");
        };
        assert_eq!((put.class, &put.keys), (OpClass::Put, &KeyLaw::Sequential));
        assert!(!plan.keysets[0].overwritten);
        assert_eq!(prepared(&plan), [""; 0], "nothing is read");
    }
}

#[test]
fn file_backup_has_its_options() {
    let mix = [(Field::Mix, "put=70,restore=10,versions=20")];
    let plan = resolved("file-backup", Some("f80"), &mix, None).plan;
    let entries: Vec<_> = measured(&plan)[0].works[0]
        .mix
        .iter()
        .map(|entry| (entry.class, entry.weight, entry.keyset))
        .collect();
    assert_eq!(
        entries,
        [
            (OpClass::Put, 70.0, 0),
            (OpClass::Get, 10.0, 1),
            (OpClass::Put, 20.0, 1),
        ]
    );
    assert_eq!(prepared(&plan), ["earlier"]);
    assert!(plan.keysets[1].overwritten && !plan.keysets[0].overwritten);
    let chunked = self::plan("file-backup", Some("chunked"));
    assert_eq!(chunked.keysets[0].size.max, 4 << 20);
    for form in ["spread=2s", "gap=20ms"] {
        let law = format!("periodic-batch(5s, 10, 100, clients=8, {form})");
        resolved("file-backup", None, &[(Field::Arrival, &law)], None);
    }
}

/// A target in memory returns to the first key instead of growing without bound.
#[test]
fn file_backup_fits_into_memory() {
    let embedded = resolved("file-backup", None, &[], Some(EMBEDDED_MEMORY_BUDGET));
    let count = embedded.plan.keysets[0].count;
    // 512 MiB over 775 KiB.
    assert!((600..700).contains(&count), "{count}");
    let whole = plan("file-backup", None);
    // More than a day at 88 per second.
    assert!(whole.keysets[0].count as f64 / 88.0 > 86_400.0);
}

/// Procedure E4 of section 9.
#[test]
fn hotspot_runs_three_settings_of_popularity() {
    let plan = plan("hotspot", None);
    let laws: Vec<_> = measured(&plan)
        .iter()
        .map(|phase| phase.works[0].mix[0].keys.clone())
        .collect();
    assert_eq!(
        laws,
        [
            KeyLaw::Uniform,
            KeyLaw::Zipf {
                theta: 0.99,
                scramble: true
            },
            KeyLaw::ZipfMandelbrot {
                s: 1.8,
                v: 1.0,
                scramble: true
            },
        ]
    );
    let models: Vec<_> = measured(&plan)
        .iter()
        .map(|phase| (phase.works[0].model.clone(), phase.limits))
        .collect();
    assert!(models.windows(2).all(|w| w[0] == w[1]), "{models:?}");
    let settings = [
        (Field::Objects, "2000000"),
        (Field::Ops, "1000000"),
        (Field::Duration, "2h"),
    ];
    let paper = resolved("hotspot", None, &settings, None).plan;
    assert_eq!(paper.keysets[0].count, 2_000_000);
    assert!(measured(&paper).iter().all(|p| p.limits.ops == 1_000_000));
    assert!(paper.keysets[0].size.max <= 100 * 1024);
}

/// Section 6.2: closed loops, labelled, with the sizes and the popularity of the code.
#[test]
fn compat_variants_match_the_published_code() {
    let online = plan("online-service", Some("compat-ostorebench"));
    let works = &measured(&online)[0].works;
    let workers: Vec<_> = works
        .iter()
        .map(|work| match work.model {
            ModelPlan::Closed(ClosedPlan {
                workers,
                think: GapLaw::None,
            }) => (work.mix[0].class, workers),
            _ => panic!("{:?}", work.model),
        })
        .collect();
    // int(0.3 * 32) writers.
    assert_eq!(workers, [(OpClass::Get, 23), (OpClass::Put, 9)]);
    let popularity = KeyLaw::ZipfMandelbrot {
        s: 1.5,
        v: 2.0,
        scramble: false,
    };
    assert_eq!(works[0].mix[0].keys, popularity);
    let sizes = SizeSampler::new(&online.keysets[1].size).unwrap();
    // Section 6.1: P(< 400 KiB), median, p90, p99 and mean.
    assert!((sizes.cdf(400 * 1024 - 1) - 0.9982).abs() < 5e-5);
    let quantiles = [0.5, 0.9, 0.99].map(|q| sizes.quantile(q));
    assert_eq!(quantiles, [1028, 1175, 15_957]);
    assert!((sizes.mean() - 11_183.0).abs() < 1.0, "{}", sizes.mean());

    let backup = plan("file-backup", Some("compat-ostorebench"));
    let run = measured(&backup)[0];
    let ModelPlan::Closed(ClosedPlan { workers: 16, .. }) = run.works[0].model else {
        panic!("{:?}", run.works[0].model);
    };
    // 16 workers, 100 groups each, 5.5 files per group.
    assert_eq!(run.limits.ops, 16 * 100 * 11 / 2);
    let sizes = &backup.keysets[0].size.law;
    let (a, b) = (1024, (2 << 20) - 1);
    assert_eq!(*sizes, SizeKind::Uniform { a, b });

    let hotspot = plan("hotspot", Some("compat-ostorebench"));
    assert_eq!(measured(&hotspot).len(), 1);
    for plan in [&online, &backup, &hotspot] {
        assert_eq!(plan.compat, "ostorebench");
        assert_eq!(plan.payload, PayloadKind::Zeros);
        assert!(measured(plan).iter().all(|phase| !phase.steady_state));
    }
    for (name, profile) in [("online-service", "acloud"), ("file-backup", "f40")] {
        let open = plan(name, Some(profile));
        assert_eq!(open.compat, "");
        assert!(!serde_json::to_string(&open).unwrap().contains("compat"));
    }
}

/// The default schedule is a typical one: the dispersion of its seconds matches that of the law, 4, within
/// four standard errors at 75 windows (√(2/74) · 4 each).
#[test]
fn the_default_schedule_of_online_service_is_typical() {
    let plan = plan("online-service", None);
    let phase = plan
        .phases
        .iter()
        .position(|p| p.kind == PhaseKind::Run)
        .unwrap();
    let ModelPlan::Open(OpenPlan { arrival, .. }) = &plan.phases[phase].works[0].model else {
        panic!("an open loop");
    };
    let schedule = Schedule::new(plan.seed, phase as u16, 0, arrival).unwrap();
    let counts: Vec<f64> = (0..75)
        .map(|s| schedule.offered_between(s * SECOND, (s + 1) * SECOND) as f64)
        .collect();
    let index = index_of_dispersion(&counts, 1).unwrap();
    assert!((index - 4.0).abs() < 2.63, "{index}");
}

/// Section 3.1: a share of the reads goes to objects written by this run.
#[test]
fn online_service_reads_its_own_writes_on_request() {
    let mix = [(Field::Mix, "get=60,readback=10,put=30")];
    let with = resolved("online-service", None, &mix, None).plan;
    let entries = &measured(&with)[0].works[0].mix;
    let readback = entries
        .iter()
        .find(|entry| entry.keyset == 1 && entry.class == OpClass::Get);
    let latest = KeyLaw::Latest {
        theta: 0.99,
        lag: 600,
    };
    assert_eq!(readback.unwrap().keys, latest);
    assert_eq!(prepared(&with), ["read", "write"]);
    assert_eq!(prepared(&plan("online-service", None)), ["read"]);
}

/// Section 10, with the constants of PerfKitBenchmarker's tests.
#[test]
fn perfkit_tests_have_their_constants() {
    let shape =
        |name: &str, profile: Option<&str>| -> Vec<(String, OpClass, u32, u64, Option<f64>)> {
            let plan = plan(name, profile);
            measured(&plan)
                .iter()
                .map(|phase| {
                    assert!(phase.accounting.streams && !phase.steady_state, "{name}");
                    let ModelPlan::Closed(ClosedPlan { workers, .. }) = phase.works[0].model else {
                        panic!("{name}");
                    };
                    (
                        phase.name.clone(),
                        phase.works[0].mix[0].class,
                        workers,
                        phase.limits.ops,
                        phase.accounting.max_failed,
                    )
                })
                .collect()
        };
    let row = |name: &str, class, workers, ops, limit| {
        (name.to_owned(), class, workers, ops, Some(limit))
    };
    use OpClass::{Delete, DeleteMany, Get, Put};
    assert_eq!(
        shape("one-byte", None),
        [
            row("write", Put, 1, 1000, 0.05),
            row("read", Get, 1, 1000, 0.05)
        ]
    );
    assert_eq!(
        shape("single-stream", None),
        [
            row("write", Put, 1, 100, 0.1),
            row("read", Get, 1, 100, 0.1)
        ]
    );
    assert_eq!(
        shape("multi-stream", None),
        [
            row("write", Put, 10, 10_000, 0.05),
            row("read", Get, 10, 10_000, 0.05),
            row("delete", Delete, 10, 10_000, 0.05),
        ]
    );
    assert_eq!(
        shape("bulk-delete", None),
        [row("delete", DeleteMany, 10, 200, 0.05)]
    );
    assert_eq!(
        shape("bulk-delete", Some("each")),
        [row("delete", Delete, 10, 20_000, 0.05)]
    );
    assert_eq!(shape("redownload", None).len(), 2);
    let one = plan("one-byte", None);
    assert_eq!(one.keysets[0].size.law, SizeKind::Const { bytes: 1 });
    let hashed = plan("multi-stream", Some("hashed"));
    assert_eq!(hashed.keysets[0].naming, KeyNaming::Hashed);
    // At most 3500 objects per second: workers · objects per call / pause.
    for (profile, objects) in [("bulk", 100.0), ("each", 1.0)] {
        let plan = plan("bulk-delete", Some(profile));
        let ModelPlan::Closed(ClosedPlan {
            think: GapLaw::Constant { ns },
            ..
        }) = measured(&plan)[0].works[0].model
        else {
            panic!("a constant pause");
        };
        let cap = 10.0 * objects / (ns as f64 / 1e9);
        assert!((3490.0..=3500.0).contains(&cap), "{cap}");
    }
}

/// The fingerprint depends on the offered load (seed, law, sizes), not on how it is worded.
#[test]
fn the_schedule_hash_identifies_the_offered_load() {
    let base = plan("online-service", None);
    let hash = schedule_hash(&base).unwrap();
    assert_eq!(hash.len(), 16);
    let mut renamed = base.clone();
    renamed.workload = "another".into();
    renamed.timeout_ns += 1;
    assert_eq!(schedule_hash(&renamed).unwrap(), hash);
    assert_ne!(renamed.scenario_hash(), base.scenario_hash());
    let mut seeded = base.clone();
    seeded.seed += 1;
    let mut sized = base.clone();
    sized.keysets[1].size.max = 1 << 20;
    let others = [
        schedule_hash(&seeded).unwrap(),
        schedule_hash(&sized).unwrap(),
        schedule_hash(&plan("online-service", Some("acloud"))).unwrap(),
    ];
    assert!(others.iter().all(|other| *other != hash), "{others:?}");
}
