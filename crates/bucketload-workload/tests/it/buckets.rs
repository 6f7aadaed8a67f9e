//! Workloads that create buckets: OSSperf's six steps, provisioning, chains, and rejected workloads.

use bucketload_core::generate::ops::OpGen;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{
    BucketService, ClosedPlan, KeyLaw, ModelPlan, PhaseKind, PhasePlan, Plan,
};
use bucketload_workload::resolve::{Field, Override, Overrides, ResolveContext, resolve};
use bucketload_workload::spec::WorkloadFile;
use proptest::prelude::*;

fn resolved(
    file: &WorkloadFile,
    profile: Option<&str>,
    settings: &[(&str, &str)],
) -> Result<Plan, String> {
    let field = |name: &str| match name {
        "objects" => Field::Objects,
        "size" => Field::Size,
        "workers" => Field::Workers,
        "ops" => Field::Ops,
        path => Field::Path(path.to_owned()),
    };
    let overrides = Overrides {
        profile: profile.map(str::to_owned),
        settings: settings
            .iter()
            .map(|(name, value)| Override::new(field(name), value))
            .collect(),
    };
    resolve(file, &overrides, &ResolveContext::default())
        .map(|resolved| resolved.plan)
        .map_err(|error| error.to_string())
}

fn builtin(name: &str, settings: &[(&str, &str)]) -> Plan {
    resolved(&WorkloadFile::builtin(name).unwrap(), None, settings).unwrap()
}

fn measured(plan: &Plan) -> Vec<&PhasePlan> {
    let phases = plan.phases.iter();
    phases
        .filter(|phase| phase.kind == PhaseKind::Run)
        .collect()
}

fn steps(plan: &Plan) -> Vec<(&str, OpClass, u64, u32)> {
    let of = |phase: &'_ PhasePlan| {
        let work = &phase.works[0];
        let ModelPlan::Closed(ClosedPlan { workers, .. }) = work.model else {
            panic!("an open loop");
        };
        (work.mix[0].class, phase.limits.ops, workers)
    };
    measured(plan)
        .into_iter()
        .map(|phase| {
            let (class, ops, workers) = of(phase);
            (phase.name.as_str(), class, ops, workers)
        })
        .collect()
}

/// docs/spec/ossperf.md section 1: six steps in this order; uploads, downloads and deletes go in parallel.
#[test]
fn ossperf_is_six_steps_with_the_requested_number_of_files() {
    let plan = builtin(
        "ossperf",
        &[("objects", "12"), ("size", "0"), ("workers", "8")],
    );
    assert_eq!(
        steps(&plan),
        [
            ("create-bucket", OpClass::MakeBucket, 1, 1),
            ("upload", OpClass::Put, 12, 8),
            ("list", OpClass::List, 1, 1),
            ("download", OpClass::Get, 12, 8),
            ("erase-objects", OpClass::Delete, 12, 8),
            ("erase-bucket", OpClass::DeleteBucket, 1, 1),
        ]
    );
    assert!(plan.verify && plan.keysets[0].size.max == 0);
    assert!(
        plan.phases
            .iter()
            .all(|phase| phase.kind != PhaseKind::Prepare)
    );
    let sequential = builtin("ossperf", &[]);
    assert!(steps(&sequential).iter().all(|step| step.3 == 1));
    // A limit on operations replaces the number of objects.
    let limited = builtin("ossperf", &[("ops", "3")]);
    assert_eq!(measured(&limited)[1].limits.ops, 3);
    let file = WorkloadFile::builtin("ossperf").unwrap();
    let large = resolved(&file, Some("multipart"), &[("size", "6GiB")]).unwrap();
    assert_eq!(steps(&large)[1].1, OpClass::MultipartPut);
    let refused = resolved(&file, None, &[("size", "6GiB")]).unwrap_err();
    assert!(refused.contains("multipart-put"), "{refused}");
}

#[test]
fn provisioning_creates_each_bucket_and_then_its_first_object() {
    let plan = builtin("bucket-provision", &[]);
    let provision = measured(&plan)[0];
    assert_eq!(provision.limits.ops, 40);
    let index = plan
        .phases
        .iter()
        .position(|phase| phase.name == "provision");
    let ops = OpGen::new(&plan, index.unwrap(), 0).unwrap();
    let buckets = plan.keysets[0].buckets.as_ref().unwrap();
    for n in 0..20 {
        let (make, put) = (ops.op(2 * n), ops.op(2 * n + 1));
        assert_eq!((make.class, make.key), (OpClass::MakeBucket, n));
        assert_eq!((put.class, buckets.number_of(put.key)), (OpClass::Put, n));
    }
}

proptest! {
    /// Every worker performs all entries on one object before its next one, and all workers together go
    /// through every object once.
    #[test]
    fn chains_take_every_object_through_every_entry_in_order(
        workers in 1u64..7, rounds in 1u64..20,
    ) {
        let count = workers * rounds;
        let text = format!(
            "[keysets.d]\ncount = {count}\nsize = 1\nprepare = false\n[phases.run]\nonce = true\n\
             workers = {workers}\nkeys = \"chained\"\n\
             mix = {{ put = {{ keys = \"chained\" }}, get = {{ keys = \"chained\" }}, delete = {{ keys = \"chained\" }} }}\n"
        );
        let file = WorkloadFile::parse("w.toml", &text).unwrap();
        let plan = resolved(&file, None, &[]).unwrap();
        let phase = plan.phases.iter().position(|p| p.kind == PhaseKind::Run).unwrap();
        prop_assert_eq!(plan.phases[phase].limits.ops, 3 * count);
        let ops = OpGen::new(&plan, phase, 0).unwrap();
        let mut seen = vec![0; count as usize];
        for worker in 0..workers {
            for turn in 0..3 * rounds {
                let op = ops.op(worker + turn * workers);
                let class = [OpClass::Put, OpClass::Get, OpClass::Delete][(turn % 3) as usize];
                prop_assert_eq!(op.class, class);
                prop_assert_eq!(op.key, (turn / 3) * workers + worker);
                prop_assert_eq!(op.size, if class == OpClass::Delete { 0 } else { 1 });
                seen[op.key as usize] += 1;
            }
        }
        prop_assert!(seen.iter().all(|n| *n == 3));
    }
}

#[test]
fn impossible_workloads_are_rejected_with_field_and_remedy() {
    let file = WorkloadFile::builtin("ossperf").unwrap();
    for (settings, words) in [
        (
            &[
                ("keysets.files.buckets.name", "under_score"),
                ("keysets.files.buckets.exact", "true"),
            ][..],
            &["keysets.files.buckets.name", "hyphens"][..],
        ),
        (
            &[
                ("keysets.files.buckets.name", "lower"),
                ("keysets.files.buckets.exact", "true"),
                ("keysets.files.buckets.service", "s3ninja"),
            ],
            &["lower-case letters", "s3ninja"],
        ),
        (&[("keysets.files.buckets.count", "0")], &["0 buckets"]),
        (
            &[
                ("keysets.files.buckets.count", "2"),
                ("keysets.files.buckets.exact", "true"),
            ],
            &["exact", "one name"],
        ),
        (
            &[("keysets.files.buckets.service", "minioo")],
            &["did you mean `minio`"],
        ),
        (
            &[("keysets.files.prepare", "true")],
            &["prepare", "do not exist before"],
        ),
        (
            &[("keysets.files.shards", "4")],
            &["shards", "spread over buckets"],
        ),
        (&[("oracle", "true")], &["oracle", "its own buckets"]),
        (
            &[("phases.upload.mix.put.keys", "fresh")],
            &["phases.upload.once"],
        ),
        (
            &[("phases.create-bucket.mix.make-bucket.keys", "fresh")],
            &["fresh", "numbered"],
        ),
        (
            &[("phases.upload.rate", "5/s")],
            &["phases.upload.once", "closed loop"],
        ),
    ] {
        let error = resolved(&file, None, settings).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{settings:?}: {error}");
        }
    }
    let parse = |text: &str| WorkloadFile::parse("w.toml", text).unwrap();
    let head = "[keysets.d]\ncount = 5\nsize = 1\nprepare = false\n";
    for (text, words) in [
        (
            "buckets = {}\n[phases.run]\nworkers = 1\nonce = true\nmix.put = { keys = \"sequential\" }\n",
            &["keysets.d.buckets", "no phase creates"][..],
        ),
        (
            "[phases.run]\nworkers = 1\nops = 1\nmix.make-bucket = {}\n",
            &["its own buckets"],
        ),
        (
            "[phases.run]\nworkers = 2\nonce = true\nmix = { put = { keys = \"chained\" }, head = { keys = \"chained\" } }\n",
            &["divide evenly"],
        ),
        (
            "[phases.run]\nworkers = 1\nops = 5\nmix = { put = { keys = \"chained\" }, list = { keys = \"sequential\" } }\n",
            &["chained", "all entries"],
        ),
        (
            "[phases.run]\nworkers = 1\nops = 5\nonce = true\nmix.put = { keys = \"sequential\" }\n",
            &["phases.run.once", "use either"],
        ),
    ] {
        let error = resolved(&parse(&format!("{head}{text}")), None, &[]).unwrap_err();
        words
            .iter()
            .for_each(|word| assert!(error.contains(word), "{error}"));
    }
}

#[test]
fn generated_names_follow_the_service() {
    let name = |service: &str| {
        let plan = builtin("ossperf", &[("keysets.files.buckets.service", service)]);
        plan.keysets[0]
            .buckets
            .as_ref()
            .unwrap()
            .bucket_name("17-5c", 0)
    };
    assert_eq!(name("any"), "ossperf-17-5c-0");
    assert_eq!(name("nimbus-cumulus"), "OSSPERF-17-5C-0");
    for service in BucketService::ALL {
        let text = service.name();
        service
            .check(&name(text))
            .unwrap_or_else(|rule| panic!("{text}: {rule}"));
    }
}

#[test]
fn plans_without_buckets_keep_their_identity() {
    let plan = builtin("get", &[]);
    let text = serde_json::to_string(&plan).unwrap();
    assert!(!text.contains("buckets") && !text.contains("chained"));
    assert_eq!(
        KeyLaw::Chained,
        serde_json::from_str(r#"{"kind":"chained"}"#).unwrap()
    );
}

/// Files touched by one phase exist for the next one.
#[test]
fn touched_files_can_be_read() {
    let settings = [("size", "0"), ("phases.write.mix.put.op", "touch")];
    let plan = builtin("study-grid", &settings);
    let classes: Vec<OpClass> = steps(&plan).iter().map(|step| step.1).collect();
    assert_eq!(classes, [OpClass::Touch, OpClass::Get, OpClass::Delete]);
}
