//! Works that consist of jobs: the built-in workload's properties, the laws of docs/spec/scenarios.md section
//! 4 at 10^6 draws, and mistakes with their locations.

use bucketload_core::generate::jobs::JobGen;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{
    ArrivalLaw, JobStart, JobsPlan, ModelPlan, PhaseKind, Plan, StageKind, StagePace,
};
use bucketload_workload::resolve::{
    DryRun, EMBEDDED_MEMORY_BUDGET, Overrides, ResolveContext, Resolved, resolve,
};
use bucketload_workload::spec::{Location, SpecError, WorkloadFile};

const MIB: f64 = 1024.0 * 1024.0;

fn builtin(profile: &str, memory_budget: Option<u64>) -> Resolved {
    let file = WorkloadFile::builtin("big-data-analysis").unwrap();
    let overrides = Overrides {
        profile: Some(profile.to_owned()),
        settings: Vec::new(),
    };
    let context = ResolveContext { memory_budget };
    resolve(&file, &overrides, &context).unwrap_or_else(|error| panic!("{error}"))
}

fn jobs(plan: &Plan) -> (u16, &JobsPlan) {
    let index = plan
        .phases
        .iter()
        .position(|p| p.kind == PhaseKind::Run)
        .unwrap();
    match &plan.phases[index].works[0].model {
        ModelPlan::Jobs(jobs) => (index as u16, jobs),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_analysis_scenario_matches_its_specification() {
    let resolved = builtin("literal", None);
    let (_, plan) = jobs(&resolved.plan);
    let arrival = ArrivalLaw::Poisson { rate: 0.1 };
    assert_eq!(plan.start, JobStart::Open { arrival });
    let kinds: Vec<StageKind> = plan.stages.iter().map(|s| s.kind).collect();
    use StageKind::{Read, Write};
    assert_eq!(kinds, [Write, Read, Write, Read, Write]);
    assert!(plan.stages.iter().all(|s| (s.min, s.max) == (10, 19)));
    assert_eq!(
        (plan.retain, plan.pace),
        (20, StagePace::Poisson { rate: 10.0 })
    );
    assert_eq!(resolved.plan.size_scale, 1.0 / 1024.0);
    // 43.5 PUT, 29 GET, 43.5 DELETE (29 temporary objects, and 14.5 old results).
    assert!((plan.mean_job_ops() - 116.0).abs() < 1e-9);
    let works = &resolved.plan.phases[1].works[0];
    let of = |class| -> f64 {
        let entries = works.mix.iter().filter(|e| e.class == class);
        entries.map(|e| e.weight).sum()
    };
    let weights = [OpClass::Put, OpClass::Get, OpClass::Delete].map(of);
    assert_eq!(weights, [43.5, 29.0, 43.5]);
    // 819 MiB written and 546 MiB read per job, 12 jobs in two minutes.
    let outlook = DryRun::new(&resolved.plan).unwrap().measured;
    let mib = |bytes: Option<f64>| bytes.unwrap() / 12.0 / MIB;
    assert!(
        (mib(outlook.bytes_written) - 819.0).abs() < 2.0,
        "{outlook:?}"
    );
    assert!((mib(outlook.bytes_read) - 546.0).abs() < 2.0, "{outlook:?}");

    let compat = builtin("compat-ostorebench", None).plan;
    let (_, plan) = jobs(&compat);
    assert_eq!(plan.start, JobStart::Closed { jobs: 8 });
    assert_eq!((plan.pace, plan.retain), (StagePace::Sequential, 0));
    assert_eq!(compat.phases[1].works[0].model.open_cap(), None);
}

/// The table of docs/spec/scenarios.md section 4.2, scaled by 2^-10: profile, share of empty objects, share
/// of the others above 10 MiB, mean and quantiles in MiB.
#[test]
fn sizes_follow_the_published_table() {
    type Row = (&'static str, f64, f64, f64, [(f64, f64); 5]);
    let rows: [Row; 4] = [
        (
            "literal",
            0.2,
            0.8,
            18.8,
            [
                (0.25, 0.045),
                (0.5, 15.0),
                (0.75, 31.0),
                (0.9, 47.8),
                (0.99, 62.2),
            ],
        ),
        (
            "paper-uniform",
            0.2,
            0.8,
            23.9,
            [
                (0.25, 0.045),
                (0.5, 21.8),
                (0.75, 43.0),
                (0.9, 55.6),
                (0.99, 63.2),
            ],
        ),
        (
            "corrected",
            0.2,
            0.2,
            5.47,
            [
                (0.25, 0.007),
                (0.5, 0.154),
                (0.75, 3.28),
                (0.9, 19.9),
                (0.99, 56.9),
            ],
        ),
        (
            "compat-ostorebench",
            0.0,
            0.844,
            32.0,
            [
                (0.25, 16.0),
                (0.5, 32.0),
                (0.75, 48.0),
                (0.9, 57.6),
                (0.99, 63.4),
            ],
        ),
    ];
    for (profile, empty, above, mean, quantiles) in rows {
        let plan = builtin(profile, None).plan;
        let ops = JobGen::new(&plan, jobs(&plan).0, 0).unwrap();
        let mut sizes = Vec::with_capacity(1_000_000);
        'draws: for job in 0.. {
            for stage in [0, 2, 4] {
                for i in 0..ops.ops_in(job, stage) {
                    sizes.push(ops.object_size(job, stage, i));
                    if sizes.len() == 1_000_000 {
                        break 'draws;
                    }
                }
            }
        }
        sizes.sort_unstable();
        let n = sizes.len() as f64;
        let share = |up_to: f64| sizes.partition_point(|&s| s as f64 <= up_to * MIB) as f64 / n;
        // Four standard errors of a share, plus half a unit of the figure's printed digits.
        let near = |got: f64, p: f64, digits: f64, what: &str| {
            let bound = 4.0 * (p * (1.0 - p) / n).sqrt() + digits;
            assert!(
                (got - p).abs() <= bound,
                "{profile} {what}: {got}, stated {p} ± {bound}"
            );
        };
        near(share(0.0), empty, 1e-6, "empty");
        let of_others = (1.0 - share(10.0)) / (1.0 - share(0.0));
        near(
            of_others,
            above,
            if above == 0.844 { 5e-4 } else { 1e-6 },
            "above the threshold",
        );
        let got = sizes.iter().map(|&s| s as f64).sum::<f64>() / n / MIB;
        // The standard deviation of every law is below 22 MiB: four standard errors of 10^6 draws are 0.09
        // MiB.
        assert!(
            (got - mean).abs() < 0.09 + 0.05,
            "{profile} mean: {got}, stated {mean}"
        );
        for (q, mib) in quantiles {
            // The printed value is rounded: the quantile's share lies between those of its rounding limits.
            let half = if mib < 1.0 {
                5e-4
            } else if mib < 10.0 {
                5e-3
            } else {
                0.05
            };
            let four_se = 4.0 * (q * (1.0 - q) / n).sqrt();
            let (low, high) = (share(mib - half) - four_se, share(mib + half) + four_se);
            assert!(
                low <= q && q <= high,
                "{profile} p{q}: {mib} MiB is at {low}..{high}"
            );
        }
    }
}

#[test]
fn stages_have_ten_to_nineteen_operations_and_reads_choose_uniformly() {
    let plan = builtin("literal", None).plan;
    let ops = JobGen::new(&plan, jobs(&plan).0, 0).unwrap();
    let mut lengths = [0f64; 10];
    let mut positions = [0f64; 10];
    let mut gaps = 0.0;
    for job in 0..20_000 {
        let n = ops.ops_in(job, 0);
        lengths[(n - 10) as usize] += 1.0;
        for i in 0..ops.ops_in(job, 1) {
            let op = ops.op(job, 1, i);
            let of = (0..n).find(|&j| ops.op(job, 0, j).key == op.key);
            let j = of.expect("an object of the previous write stage");
            assert_eq!(op.size, ops.object_size(job, 0, j));
            if n == 10 {
                positions[j as usize] += 1.0;
            }
        }
        gaps += ops.gap_ns(job, 2, 3) as f64;
    }
    // Chi-square with 9 degrees of freedom: 27.9 is the 0.999 quantile.
    for cells in [lengths, positions] {
        let mean = cells.iter().sum::<f64>() / 10.0;
        let chi2: f64 = cells.iter().map(|c| (c - mean).powi(2) / mean).sum();
        assert!(chi2 < 27.9, "{cells:?}");
    }
    // Exponential with mean 100 ms: four standard errors are 2.8 ms.
    assert!((gaps / 20_000.0 - 1e8).abs() < 2.9e6, "{gaps}");
}

#[test]
fn objects_shrink_until_they_fit_into_a_target_in_memory() {
    let small = builtin("literal", Some(EMBEDDED_MEMORY_BUDGET));
    let exponent = small.plan.size_scale.log2();
    assert!(
        (-16.0..-11.0).contains(&exponent) && exponent.fract() == 0.0,
        "{exponent}"
    );
    assert!(
        small
            .notes
            .iter()
            .any(|note| note.starts_with("size scale")),
        "{:?}",
        small.notes
    );
    let whole = builtin("literal", None);
    assert_ne!(small.plan.scenario_hash(), whole.plan.scenario_hash());
    assert_eq!(
        small.plan.keysets[0].size.max,
        (64 << 30) / (1u64 << -exponent as u32)
    );
}

#[test]
fn large_objects_are_multipart_uploads() {
    let file = WorkloadFile::builtin("big-data-analysis").unwrap();
    let overrides = Overrides {
        profile: None,
        settings: vec![bucketload_workload::resolve::Override::parse("size-scale=1").unwrap()],
    };
    let plan = resolve(&file, &overrides, &ResolveContext::default())
        .unwrap()
        .plan;
    let ops = JobGen::new(&plan, jobs(&plan).0, 0).unwrap();
    let mut seen = [0, 0];
    for job in 0..100 {
        for i in 0..ops.ops_in(job, 0) {
            let op = ops.op(job, 0, i);
            let large = op.size > 64 << 20;
            seen[usize::from(large)] += 1;
            let expected = if large {
                OpClass::MultipartPut
            } else {
                OpClass::Put
            };
            assert_eq!(op.class, expected);
            if large {
                assert_eq!(op.count, (8 << 20).max(op.size.div_ceil(10_000)));
            }
        }
    }
    assert!(seen[0] > 100 && seen[1] > 100, "{seen:?}");
}

const GOOD: &str = r#"
[keysets.temp]
size = "4KiB"

[keysets.results]
size = "4KiB"

[phases.run]
model = "jobs"
duration = "10s"
rate = "12/min"

[phases.run.jobs]
ops = "2..3"
"#;

fn problems(text: &str) -> Result<Plan, SpecError> {
    let file = WorkloadFile::parse("w.toml", text)?;
    resolve(&file, &Overrides::default(), &ResolveContext::default()).map(|r| r.plan)
}

#[test]
fn mistakes_are_reported_with_location_and_remedy() {
    let plan = problems(GOOD).unwrap();
    assert!(
        matches!(&jobs(&plan).1.start, JobStart::Open { arrival } if *arrival == ArrivalLaw::Poisson { rate: 0.2 })
    );
    // Text replaced, replacement, line, field, part of the message, part of the remedy.
    type Case = (
        &'static str,
        &'static str,
        usize,
        &'static str,
        &'static str,
        &'static str,
    );
    let cases: [Case; 13] = [
        (
            "\"2..3\"",
            "\"3..2\"",
            14,
            "phases.run.jobs.ops",
            "not a number of operations",
            "10..19",
        ),
        (
            "\"2..3\"",
            "0",
            14,
            "phases.run.jobs.ops",
            "not a number of operations",
            "10..19",
        ),
        (
            "ops =",
            "opps =",
            14,
            "phases.run.jobs.opps",
            "unknown field",
            "`ops`",
        ),
        (
            "ops = \"2..3\"",
            "stages = [\"write\", \"reed\"]",
            14,
            "phases.run.jobs.stages",
            "unknown name `reed`",
            "`read`",
        ),
        (
            "ops = \"2..3\"",
            "stages = [\"read\"]",
            14,
            "phases.run.jobs.stages",
            "no earlier stage writes",
            "",
        ),
        (
            "ops = \"2..3\"",
            "stages = [\"write\", \"write\"]",
            14,
            "phases.run.jobs.stages",
            "right after another write stage",
            "",
        ),
        (
            "ops = \"2..3\"",
            "temp = \"tmp\"",
            14,
            "phases.run.jobs.temp",
            "no key set `tmp`",
            "[keysets.tmp]",
        ),
        (
            "ops = \"2..3\"",
            "pace = \"burst\"\nstage-rate = 5",
            15,
            "phases.run.jobs.stage-rate",
            "has a rate",
            "poisson",
        ),
        (
            "model = \"jobs\"\n",
            "",
            12,
            "phases.run.jobs",
            "not consist of jobs",
            "model = \"jobs\"",
        ),
        (
            "duration =",
            "ops = 5\nduration =",
            10,
            "phases.run.ops",
            "cut jobs short",
            "jobs.limit",
        ),
        (
            "rate = \"12/min\"",
            "rate = \"12/min\"\nmix = { get = 1 }",
            12,
            "phases.run.mix",
            "no `mix`",
            "remove",
        ),
        (
            "[keysets.temp]",
            "[keysets.temp]\ncount = 5",
            3,
            "keysets.temp.count",
            "create their own objects",
            "remove",
        ),
        (
            "duration = \"10s\"\n",
            "",
            8,
            "phases.run",
            "never ends",
            "duration",
        ),
    ];
    for (old, new, at, field, message, remedy) in cases {
        let text = GOOD.replace(old, new);
        assert_ne!(text, GOOD, "{old}");
        let error = problems(&text).expect_err(new);
        let problem = error
            .problems()
            .iter()
            .find(|p| p.field == field)
            .unwrap_or_else(|| panic!("{new}: {error}"));
        let Location::File { line, .. } = problem.location else {
            panic!("{error}");
        };
        assert_eq!(line, at, "{new}: {error}");
        assert!(problem.message.contains(message), "{new}: {error}");
        assert!(problem.remedy.contains(remedy), "{new}: {error}");
    }
    let limited = GOOD
        .replace("duration = \"10s\"\n", "")
        .replace("ops = \"2..3\"", "limit = 7");
    assert_eq!(jobs(&problems(&limited).unwrap()).1.limit, 7);
}
