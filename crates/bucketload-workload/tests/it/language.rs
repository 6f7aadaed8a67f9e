//! Formatted workloads parse back, built-in workloads resolve as documented, and profiles and flags change
//! their fields.

use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{
    ArrivalLaw, ClosedPlan, GapLaw, KeyLaw, Limits, ModelPlan, OpenPlan, PhaseKind, Plan,
    SizeAssign, SizeKind, SizeLaw,
};
use bucketload_core::units::{format_duration, format_rate, format_size};
use bucketload_workload::resolve::{
    DryRun, EMBEDDED_MEMORY_BUDGET, Field, Override, Overrides, ResolveContext, Resolved, resolve,
};
use bucketload_workload::spec::law::{ArrivalSpec, KeySpec, PayloadSpec, SizeSpec, ThinkSpec};
use bucketload_workload::spec::{
    BUILTIN_WORKLOADS, ByteSize, KeysetSpec, Mix, MixSpec, Named, Nanos, PerSecond, PhaseSpec,
    WorkSpec, WorkloadFile, WorkloadSpec,
};
use proptest::prelude::*;

const WHOLE: ResolveContext = ResolveContext {
    memory_budget: None,
};
const EMBEDDED: ResolveContext = ResolveContext {
    memory_budget: Some(EMBEDDED_MEMORY_BUDGET),
};

fn builtin(name: &str, settings: &[(Field, &str)], context: &ResolveContext) -> Resolved {
    let file = WorkloadFile::builtin(name).unwrap();
    let overrides = Overrides {
        profile: None,
        settings: settings
            .iter()
            .map(|(field, value)| Override::new(field.clone(), value))
            .collect(),
    };
    resolve(&file, &overrides, context).unwrap_or_else(|error| panic!("{error}"))
}

fn run_phase(plan: &Plan) -> &bucketload_core::plan::PhasePlan {
    let mut phases = plan.phases.iter();
    phases.find(|phase| phase.kind == PhaseKind::Run).unwrap()
}

#[test]
fn every_built_in_workload_resolves_and_describes_itself() {
    for (name, _) in BUILTIN_WORKLOADS {
        let file = WorkloadFile::builtin(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(file.spec().name.as_deref(), Some(*name));
        let description = file.spec().description.clone().unwrap();
        assert!(
            !description.contains('\n') && description.len() < 100,
            "{name}"
        );
        for context in [WHOLE, EMBEDDED] {
            let plan = builtin(name, &[], &context).plan;
            assert_eq!(plan.phases[0].kind, PhaseKind::Init);
            assert_eq!(plan.phases.last().unwrap().kind, PhaseKind::Cleanup);
            DryRun::new(&plan).unwrap();
        }
        let profiles = file.spec().profiles.clone().unwrap_or_default();
        for profile in profiles.names() {
            let overrides = Overrides {
                profile: Some(profile.to_owned()),
                settings: Vec::new(),
            };
            assert_eq!(
                resolve(&file, &overrides, &WHOLE).unwrap().plan.profile,
                profile
            );
        }
    }
    let error = WorkloadFile::builtin("onlin-service").unwrap_err();
    assert!(
        error.to_string().contains("did you mean `online-service`?"),
        "{error}"
    );
}

/// The constants of docs/spec/scenarios.md section 3.1.
#[test]
fn online_service_is_the_scenario() {
    let plan = builtin("online-service", &[], &WHOLE).plan;
    assert_eq!(plan.profile, "literal");
    let [read, write] = plan.keysets.as_slice() else {
        panic!("{:?}", plan.keysets);
    };
    assert_eq!((read.count, read.prefix.as_str()), (100_000, "r/"));
    assert_eq!(read.assign, SizeAssign::LowDiscrepancy);
    assert_eq!(
        read.size,
        SizeLaw {
            law: SizeKind::Emg {
                mu: 32.0 * 1024.0,
                sigma: 8.0 * 1024.0,
                tau: 93.98 * 1024.0,
            },
            min: 1,
            max: 64 << 20,
        }
    );
    assert_eq!((write.count, write.prefix.as_str()), (20, "w/"));
    assert_eq!(
        write.size,
        SizeLaw {
            law: SizeKind::Zipf {
                n: 16384,
                s: 1.5036,
                unit: 4096,
                align: true,
            },
            min: 4096,
            max: 64 << 20,
        }
    );
    let run = run_phase(&plan);
    // 60 one-second bins remain after a warm-up of 15 s.
    assert_eq!(run.limits.duration_ns, 75_000_000_000);
    assert!(run.steady_state);
    let work = &run.works[0];
    let ModelPlan::Open(OpenPlan { arrival, .. }) = &work.model else {
        panic!("{:?}", work.model);
    };
    assert_eq!(
        *arrival,
        ArrivalLaw::LognormalGaps {
            rate: 200.0,
            cv: 2.0
        }
    );
    let mix: Vec<_> = work
        .mix
        .iter()
        .map(|entry| (entry.class, entry.weight, entry.keyset, entry.keys.clone()))
        .collect();
    let zipf = KeyLaw::Zipf {
        theta: 0.99,
        scramble: true,
    };
    assert_eq!(
        mix,
        [
            (OpClass::Get, 70.0, 0, zipf),
            (OpClass::Put, 30.0, 1, KeyLaw::Fresh)
        ]
    );
    let acloud = builtin(
        "online-service",
        &[(Field::Path("profile".into()), "acloud")],
        &WHOLE,
    );
    let ModelPlan::Open(OpenPlan { arrival, .. }) = &run_phase(&acloud.plan).works[0].model else {
        panic!("a closed loop");
    };
    let expected = ArrivalLaw::LognormalRate {
        rate: 200.0,
        cv: 0.5,
        slot_ns: 1_000_000_000,
    };
    assert_eq!(*arrival, expected);
}

#[test]
fn the_corpus_is_scaled_to_what_fits_into_memory() {
    let scaled = builtin("online-service", &[], &EMBEDDED);
    let count = scaled.plan.keysets[0].count;
    // 126 KiB and the overhead per object, in 512 MiB.
    assert!((4000..4250).contains(&count), "{count}");
    assert_eq!(count, (scaled.plan.scale * 100_000.0).round() as u64);
    assert!(scaled.notes[0].contains("--scale 1"), "{:?}", scaled.notes);
    let prepared = DryRun::new(&scaled.plan).unwrap().prepared_bytes;
    assert!(
        prepared < EMBEDDED_MEMORY_BUDGET as f64 && prepared > 0.95 * EMBEDDED_MEMORY_BUDGET as f64
    );

    let whole = builtin("online-service", &[(Field::Scale, "1")], &EMBEDDED);
    assert_eq!(
        (whole.plan.scale, whole.plan.keysets[0].count),
        (1.0, 100_000)
    );
    let tenth = builtin("online-service", &[(Field::Scale, "0.1")], &WHOLE);
    assert_eq!(tenth.plan.keysets[0].count, 10_000);
    let exact = builtin("online-service", &[(Field::Objects, "777")], &EMBEDDED);
    assert_eq!((exact.plan.scale, exact.plan.keysets[0].count), (1.0, 777));
}

#[test]
fn flags_reach_every_workload() {
    let plan = builtin(
        "get",
        &[
            (Field::Duration, "5s"),
            (Field::Workers, "3"),
            (Field::Size, "uniform(1k, 2k)"),
            (Field::Keys, "zipf(1.2)"),
            (Field::Seed, "42"),
            (Field::Verify, "true"),
            (Field::Timeout, "2s"),
            (Field::Payload, "compressible(2)"),
            (Field::Keep, "true"),
            (Field::Think, "5ms"),
            (Field::Ops, "1000"),
            (Field::Bytes, "1GiB"),
        ],
        &WHOLE,
    )
    .plan;
    assert_eq!(plan.seed, 42);
    assert!(plan.verify);
    assert_eq!(plan.timeout_ns, 2_000_000_000);
    assert_eq!(plan.payload, PayloadKind::Compressible { ratio: 2.0 });
    assert_eq!(
        plan.keysets[0].size.law,
        SizeKind::Uniform { a: 1024, b: 2048 }
    );
    assert_eq!(plan.phases.last().unwrap().kind, PhaseKind::Run);
    let run = run_phase(&plan);
    let limits = Limits {
        duration_ns: 5_000_000_000,
        ops: 1000,
        bytes: 1 << 30,
        drain_ns: 2_000_000_000,
    };
    assert_eq!(run.limits, limits);
    let closed = ModelPlan::Closed(ClosedPlan {
        workers: 3,
        think: GapLaw::Constant { ns: 5_000_000 },
    });
    assert_eq!(run.works[0].model, closed);
    let zipf = KeyLaw::Zipf {
        theta: 1.2,
        scramble: true,
    };
    assert_eq!(run.works[0].mix[0].keys, zipf);
}

#[test]
fn rate_and_workers_change_the_model_and_say_so() {
    let open = builtin(
        "get",
        &[(Field::Rate, "50/s"), (Field::MaxInFlight, "7")],
        &WHOLE,
    );
    let expected = ModelPlan::Open(OpenPlan {
        arrival: ArrivalLaw::Poisson { rate: 50.0 },
        max_in_flight: 7,
    });
    assert_eq!(run_phase(&open.plan).works[0].model, expected);
    assert!(
        open.notes[0].contains("--rate 50/s replaces `workers`"),
        "{:?}",
        open.notes
    );

    let faster = builtin("online-service", &[(Field::Rate, "1000/s")], &WHOLE);
    let ModelPlan::Open(OpenPlan {
        arrival,
        max_in_flight,
    }) = &run_phase(&faster.plan).works[0].model
    else {
        panic!("a closed loop");
    };
    assert_eq!(
        *arrival,
        ArrivalLaw::LognormalGaps {
            rate: 1000.0,
            cv: 2.0
        }
    );
    assert_eq!(*max_in_flight, 10_000);

    let closed = builtin("online-service", &[(Field::Workers, "8")], &WHOLE);
    let expected = ModelPlan::Closed(ClosedPlan {
        workers: 8,
        think: GapLaw::None,
    });
    assert_eq!(run_phase(&closed.plan).works[0].model, expected);
    assert!(
        closed.notes[0].contains("--workers 8"),
        "{:?}",
        closed.notes
    );
}

#[test]
fn a_mix_on_the_command_line_keeps_the_entries_other_fields() {
    let plan = builtin("online-service", &[(Field::Mix, "get=9,put=1")], &WHOLE).plan;
    let mix = &run_phase(&plan).works[0].mix;
    assert_eq!((mix[0].weight, mix[1].weight), (9.0, 1.0));
    assert_eq!((mix[0].keyset, mix[1].keyset), (0, 1));
    let only = builtin("online-service", &[(Field::Mix, "get=1")], &WHOLE).plan;
    assert_eq!(run_phase(&only).works[0].mix.len(), 1);
    let path = Field::Path("phases.run.mix.put.weight".into());
    let none = builtin("online-service", &[(path, "0")], &WHOLE).plan;
    assert_eq!(run_phase(&none).works[0].mix.len(), 1);
    // The short form of an entry becomes a table.
    let path = Field::Path("phases.run.mix.get.keys".into());
    let short = builtin("get", &[(path, "sequential")], &WHOLE).plan;
    assert_eq!(run_phase(&short).works[0].mix[0].keys, KeyLaw::Sequential);
}

#[test]
fn deleting_ends_with_the_last_object() {
    let ops = |settings: &[(Field, &str)]| {
        let resolved = builtin("delete", settings, &WHOLE);
        (run_phase(&resolved.plan).limits.ops, resolved.notes.len())
    };
    assert_eq!(ops(&[]), (20_000, 0));
    assert_eq!(ops(&[(Field::Scale, "0.1")]).0, 2000);
    assert_eq!(ops(&[(Field::Ops, "5")]), (5, 0));
    assert_eq!(ops(&[(Field::Ops, "20001")]), (20_001, 1));
}

/// Appends leave sizes that no plan knows; renames end with the last object, as deletes do; touches do not
/// change content.
#[test]
fn appends_renames_and_touches_are_understood() {
    let plan = |mix: &str, more: &str| {
        let text = format!(
            "verify = {more}\n[keysets.data]\ncount = 10\nsize = \"4KiB\"\n\
             [phases.run]\nduration = \"10s\"\nworkers = 1\nmix = {{ {mix} }}\n"
        );
        let file = WorkloadFile::parse("w.toml", &text).unwrap();
        resolve(&file, &Overrides::default(), &WHOLE).map(|resolved| resolved.plan)
    };
    let appends = plan("append = 1, get = 1", "false").unwrap();
    assert!(appends.keysets[0].overwritten);
    let keys = |plan: &Plan| run_phase(plan).works[0].mix[0].keys.clone();
    assert_eq!(keys(&appends), KeyLaw::Uniform);
    let error = plan("append = 1, get = 1", "true").unwrap_err().to_string();
    assert!(error.contains("cannot be verified"), "{error}");
    let renames = plan("rename = 1", "true").unwrap();
    assert!(!renames.keysets[0].overwritten);
    assert_eq!(keys(&renames), KeyLaw::Sequential);
    let touches = plan("touch = 1, get = 1", "true").unwrap();
    assert!(!touches.keysets[0].overwritten);
    assert_eq!(keys(&touches), KeyLaw::Uniform);
}

#[test]
fn settings_report_their_origin() {
    let resolved = builtin("online-service", &[(Field::Rate, "5/s")], &WHOLE);
    let of = |path: &str| {
        let found = resolved
            .settings
            .iter()
            .find(|setting| setting.path == path);
        let setting = found.unwrap_or_else(|| panic!("{path}: {:?}", resolved.settings));
        (setting.value.clone(), setting.location.to_string())
    };
    assert_eq!(
        of("phases.run.rate"),
        ("\"5/s\"".into(), "--rate 5/s".into())
    );
    let (value, place) = of("keysets.read.count");
    assert_eq!(value, "100000");
    assert!(place.starts_with("online-service.toml:"), "{place}");
}

#[test]
fn dry_run_predicts_open_loops_and_bounded_closed_ones() {
    let outlook = |name: &str, settings: &[(Field, &str)]| {
        DryRun::new(&builtin(name, settings, &WHOLE).plan)
            .unwrap()
            .measured
    };
    let open = outlook("online-service", &[]);
    assert_eq!((open.ops, open.seconds), (Some(15_000.0), Some(75.0)));
    let written = open.bytes_written.unwrap() / 4500.0;
    assert!((written / 392_475.0 - 1.0).abs() < 1e-3, "{written}");
    let limited = outlook("online-service", &[(Field::Ops, "1000")]);
    assert!((limited.seconds.unwrap() - 5.0).abs() < 1e-6, "{limited:?}");
    assert_eq!(outlook("get", &[]).ops, None);
    assert_eq!(outlook("delete", &[]).ops, Some(20_000.0));
    let text = DryRun::new(&builtin("online-service", &[], &WHOLE).plan)
        .unwrap()
        .to_string();
    assert!(text.contains("100,000 objects, 12.0 GiB"), "{text}");
    assert!(text.contains("get 70%, put 30%"), "{text}");
}

fn key_laws() -> impl Strategy<Value = KeyLaw> {
    let share = || (1u32..1000).prop_map(|x| f64::from(x) / 1000.0);
    let positive = || 0.001f64..50.0;
    prop_oneof![
        Just(KeyLaw::Sequential),
        Just(KeyLaw::Fresh),
        Just(KeyLaw::Uniform),
        (positive(), any::<bool>()).prop_map(|(theta, scramble)| KeyLaw::Zipf { theta, scramble }),
        (positive(), positive(), any::<bool>())
            .prop_map(|(s, v, scramble)| KeyLaw::ZipfMandelbrot { s, v, scramble }),
        (positive(), 0u64..5000).prop_map(|(theta, lag)| KeyLaw::Latest { theta, lag }),
        (share(), share(), any::<bool>()).prop_map(|(data, ops, scramble)| KeyLaw::Hotspot {
            data,
            ops,
            scramble
        }),
        (share(), share(), any::<bool>()).prop_map(|(percentile, fraction, scramble)| {
            KeyLaw::Exponential {
                percentile,
                fraction,
                scramble,
            }
        }),
    ]
}

fn arrivals() -> impl Strategy<Value = ArrivalLaw> {
    let rate = || 0.001f64..1e6;
    let ns = || 1u64..1 << 50;
    prop_oneof![
        rate().prop_map(|rate| ArrivalLaw::Constant { rate }),
        rate().prop_map(|rate| ArrivalLaw::Poisson { rate }),
        (rate(), 0.01f64..20.0).prop_map(|(rate, cv)| ArrivalLaw::LognormalGaps { rate, cv }),
        (rate(), 0.01f64..20.0, ns()).prop_map(|(rate, cv, slot_ns)| ArrivalLaw::LognormalRate {
            rate,
            cv,
            slot_ns
        }),
        (1u32..100, ns(), 1u32..100, 0u32..100, 0u64..3).prop_map(|(clients, p, min, more, s)| {
            ArrivalLaw::PeriodicBatch {
                clients,
                period_ns: p,
                min,
                max: min + more,
                spread_ns: p / 2 * s,
                gap_ns: if s == 0 { p / 400 } else { 0 },
            }
        }),
        (rate(), rate(), ns()).prop_map(|(from, to, over_ns)| ArrivalLaw::Ramp {
            from,
            to,
            over_ns
        }),
        (prop::collection::vec(rate(), 1..6), ns())
            .prop_map(|(rates, step_ns)| ArrivalLaw::Steps { rates, step_ns }),
    ]
}

fn size_kinds() -> impl Strategy<Value = SizeKind> {
    let bytes = || 0u64..1 << 45;
    let some = || 0.5f64..1e13;
    let simple = || {
        prop_oneof![
            bytes().prop_map(|bytes| SizeKind::Const { bytes }),
            (bytes(), bytes()).prop_map(|(a, more)| SizeKind::Uniform { a, b: a + more }),
            (some(), 1.0f64..9.0).prop_map(|(a, f)| SizeKind::Loguniform { a, b: a * f }),
            (some(), some(), some()).prop_map(|(mu, sigma, tau)| SizeKind::Emg { mu, sigma, tau }),
            (-9.0f64..30.0, 0.01f64..9.0).prop_map(|(mu, sigma)| SizeKind::Lognormal { mu, sigma }),
            (-9.0f64..30.0, 0.01f64..9.0, some())
                .prop_map(|(mu, sigma, cap)| SizeKind::TruncLognormal { mu, sigma, cap }),
            (1u64..1 << 20, 0.01f64..9.0, 1u64..1 << 20, any::<bool>())
                .prop_map(|(n, s, unit, align)| SizeKind::Zipf { n, s, unit, align }),
            (
                1u64..1 << 20,
                0.01f64..9.0,
                0.01f64..1e4,
                1u64..1 << 20,
                0u64..1 << 20
            )
                .prop_map(|(n, s, v, unit, offset)| SizeKind::ZipfMandelbrot {
                    n,
                    s,
                    v,
                    unit,
                    offset
                }),
            (some(), 0f64..=1.0, 0u64..1 << 20).prop_map(|(record, share, offset)| {
                SizeKind::Sides {
                    record,
                    stdev: record * share,
                    offset,
                }
            }),
            (bytes(), 1u64..1 << 40).prop_map(|(b, chunk)| SizeKind::Chunked {
                files: Box::new(SizeKind::Uniform { a: 0, b }),
                chunk
            }),
            (some(), 1.1f64..9.0, 0.01f64..9.0).prop_map(|(low, f, a)| SizeKind::BoundedPareto {
                low,
                high: low * f,
                a
            }),
            prop::collection::vec((bytes(), 0.1f64..100.0), 1..6)
                .prop_map(|bins| SizeKind::Histogram { bins }),
        ]
    };
    prop_oneof![
        simple(),
        prop::collection::vec((0.1f64..100.0, simple()), 1..4)
            .prop_map(|parts| SizeKind::Mixture { parts }),
    ]
}

fn sizes() -> impl Strategy<Value = SizeLaw> {
    (
        size_kinds(),
        prop::option::of((0u64..1 << 40, 0u64..1 << 40)),
    )
        .prop_map(|(law, bounds)| {
            let mut law = SizeSpec::unclamped(law).0;
            if let Some((min, more)) = bounds {
                (law.min, law.max) = (min, min + more);
            }
            law
        })
}

fn thinks() -> impl Strategy<Value = GapLaw> {
    let ns = || 1u64..1 << 50;
    prop_oneof![
        Just(GapLaw::None),
        ns().prop_map(|ns| GapLaw::Constant { ns }),
        ns().prop_map(|mean_ns| GapLaw::Exponential { mean_ns }),
        (ns(), ns()).prop_map(|(a, b)| GapLaw::Uniform {
            min_ns: a,
            max_ns: a + b
        }),
    ]
}

fn payloads() -> impl Strategy<Value = PayloadKind> {
    prop_oneof![
        Just(PayloadKind::Random),
        Just(PayloadKind::Zeros),
        (1.0f64..1000.0).prop_map(|ratio| PayloadKind::Compressible { ratio }),
        (0.0f64..=1.0).prop_map(|fraction| PayloadKind::Duplicate { fraction }),
    ]
}

proptest! {
    /// Every law that a plan can hold can be written into a workload and read back.
    #[test]
    fn formatted_laws_parse_back(
        keys in key_laws(), arrival in arrivals(), size in sizes(), range in sizes(),
        think in thinks(), payload in payloads(), timeout in any::<u64>(), part in any::<u64>(),
        rate in 0.001f64..1e9, seed in 0u64..1 << 63,
    ) {
        let text = format!(
            "seed = {seed}\npayload = \"{}\"\ntimeout = \"{}\"\n\
             [keysets.z]\nsize = \"{}\"\n[keysets.a]\n\
             [phases.run]\narrival = \"{}\"\nrate = \"{}\"\nthink = \"{}\"\n\
             [phases.run.mix.range-get]\nkeys = \"{}\"\nrange = \"{}\"\npart-size = \"{}\"\n",
            PayloadSpec(payload),
            format_duration(timeout),
            SizeSpec(size.clone()),
            ArrivalSpec { law: arrival.clone() },
            format_rate(rate),
            ThinkSpec(think),
            KeySpec(keys.clone()),
            SizeSpec(range.clone()),
            format_size(part),
        );
        let entry = MixSpec {
            keys: Some(KeySpec(keys)),
            range: Some(SizeSpec(range)),
            part_size: Some(ByteSize(part)),
            ..MixSpec::default()
        };
        let spec = WorkloadSpec {
            seed: Some(seed),
            payload: Some(PayloadSpec(payload)),
            timeout: Some(Nanos(timeout)),
            keysets: Some(Named(vec![
                ("z".to_owned(), KeysetSpec { size: Some(SizeSpec(size)), ..KeysetSpec::default() }),
                ("a".to_owned(), KeysetSpec::default()),
            ])),
            phases: Some(Named(vec![("run".to_owned(), PhaseSpec {
                work: WorkSpec {
                    arrival: Some(ArrivalSpec { law: arrival }),
                    rate: Some(PerSecond(rate)),
                    think: Some(ThinkSpec(think)),
                    mix: Some(Mix(Named(vec![("range-get".to_owned(), entry)]))),
                    ..WorkSpec::default()
                },
                ..PhaseSpec::default()
            })])),
            ..WorkloadSpec::default()
        };
        let file = WorkloadFile::parse("generated", &text);
        let file = file.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(file.spec(), &spec);
    }
}
