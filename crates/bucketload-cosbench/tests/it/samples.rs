//! The sample workloads (specification section 8): each well-formed one parses unchanged with its intended
//! meaning, and each ill-formed one is rejected with line and column.

use std::path::Path;

use bucketload_cosbench::{
    Division, OperationKind, Parsed, Selector, WorkKind, Workload, parse, workload_config,
};

fn text(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    std::fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn sample(name: &str) -> Parsed {
    parse(&text(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn kinds(workload: &Workload) -> Vec<WorkKind> {
    let works = workload.stages.iter().flat_map(|stage| &stage.works);
    works.map(|work| work.kind).collect()
}

#[test]
fn every_well_formed_sample_parses_and_is_written_out_again() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut well_formed = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "librados-sample-annotated.xml" {
            continue;
        }
        let first = sample(&name).workload;
        // A workload archived by COSBench can be submitted again and is equivalent.
        let again =
            parse(&workload_config(&first, false)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(kinds(&again.workload), kinds(&first), "{name}");
        let targets = |w: &Workload| -> Vec<_> {
            let works = w.stages.iter().flat_map(|s| &s.works);
            let operations = works.flat_map(|w| &w.operations);
            operations
                .map(|o| (o.kind, o.ratio, o.division, o.target.clone()))
                .collect()
        };
        assert_eq!(targets(&again.workload), targets(&first), "{name}");
        well_formed += 1;
    }
    assert_eq!(well_formed, 31);
}

#[test]
fn the_five_canonical_stages() {
    let workload = sample("workload-config.xml").workload;
    use WorkKind::{Cleanup, Dispose, Init, Normal, Prepare};
    assert_eq!(kinds(&workload), [Init, Prepare, Normal, Cleanup, Dispose]);
    let main = &workload.stages[2].works[0];
    let ratios: Vec<_> = main.operations.iter().map(|o| (o.kind, o.ratio)).collect();
    assert_eq!(
        ratios,
        [(OperationKind::Read, 80), (OperationKind::Write, 20)]
    );
    assert_eq!(main.storage.config.get("size").as_deref(), Some("2000"));
    let noop = sample("noop-config.xml").workload;
    let adapters = noop.stages.iter().flat_map(|s| &s.works);
    assert!(
        adapters
            .into_iter()
            .all(|w| w.storage.adapter.name == "none" && w.auth.adapter.name == "none")
    );
    assert!(
        sample("noop-write-config.xml").workload.stages[2].works[0].operations[0]
            .target
            .zeros
    );
}

#[test]
fn misspelt_and_inherited() {
    let parsed = sample("hashcheck.xml");
    let misspelt = parsed
        .warnings
        .iter()
        .filter(|w| w.text.contains("`hashCheck`"))
        .count();
    assert_eq!(misspelt, 3, "{:?}", parsed.warnings);
    let reuse = sample("reusedata.xml").workload;
    let hosts: Vec<_> = reuse
        .stages
        .iter()
        .map(|s| s.works[0].storage.config.get("host").unwrap().into_owned())
        .collect();
    assert_eq!(hosts[..4], ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    // A storage completely replaces the inherited one.
    assert_eq!(reuse.stages[2].works[0].storage.config.get("policy"), None);
    assert_eq!(
        reuse.stages[0].works[0].operations[0].target.cprefix,
        "reuse-"
    );
    let ampli = sample("ampli-config-sample.xml").workload;
    assert_eq!(ampli.stages[1].works.len(), 3);
}

#[test]
fn delays() {
    let workload = sample("delay-stage-config-sample.xml").workload;
    let delays: Vec<_> = workload
        .stages
        .iter()
        .map(|s| (s.is_delay(), s.closure_delay_s))
        .collect();
    assert_eq!(
        delays,
        [
            (false, 0),
            (true, 10),
            (false, 5),
            (true, 15),
            (false, 5),
            (false, 0)
        ]
    );
    assert!(
        workload.stages[5].works[0].operations[0]
            .target
            .containers_too
    );
    assert_eq!(sample("asus.xml").workload.stages[2].works[0].workers, 1);
}

#[test]
fn operations_of_special_works_in_an_expanded_file_are_ignored() {
    let parsed = sample("openio-config-sample.xml");
    let prepare = &parsed.workload.stages[1].works[0];
    assert_eq!((prepare.total_ops, prepare.division), (2, Division::Object));
    assert_eq!(prepare.operations.len(), 1);
    let main = &parsed.workload.stages[2].works[0];
    assert_eq!(main.division, Division::Container);
    assert_eq!(main.operations[2].kind, OperationKind::Delete);
}

#[test]
fn selectors_of_the_samples() {
    let sizes = |name: &str, stage: usize| {
        let workload = sample(name).workload;
        workload.stages[stage].works[0].operations[0]
            .target
            .sizes
            .clone()
            .unwrap()
    };
    let zmanda = sizes("zmanda 90-5 large (1).xml", 1);
    // Further numbers of a constant are ignored.
    assert_eq!(
        (zmanda.selector, zmanda.unit_bytes),
        (Selector::Constant(1), 1_000_000)
    );
    let Selector::Histogram(buckets) = sizes("asus.xml", 1).selector else {
        panic!("no histogram");
    };
    assert_eq!(buckets.len(), 6);
    let kib = sizes("sio-config-smoke-test.xml", 1);
    assert_eq!(kib.unit_bytes, 1024);
    let sequence = &sample("librados-sample-annotated-mended.xml")
        .workload
        .stages[1]
        .works[0];
    assert_eq!(
        sequence.operations[0].target.objects,
        Some(Selector::Sequential { lo: 1, hi: 20 })
    );
}

#[test]
fn the_broken_sample_is_rejected_with_its_location() {
    let refused = parse(&text("librados-sample-annotated.xml")).unwrap_err();
    assert_eq!(refused.location.line, 8, "{refused}");
    assert!(
        refused.location.column > 0 && refused.to_string().contains("column"),
        "{refused}"
    );
}

/// As shipped, some files contain `<placeholder>` inside an attribute, which is not valid XML.
#[test]
fn placeholders_are_rejected_with_their_location() {
    let whole = text("s3-config-sample.xml").replace("AKEXAMPLE", "<accesskey>");
    let refused = parse(&whole).unwrap_err();
    assert_eq!(refused.location.line, 3, "{refused}");
}

/// The negative cases of specification section 8.
#[test]
fn outcomes_of_submission() {
    let one = |attributes: &str, operations: &str| {
        format!(
            "<workload name=\"w\"><workflow><workstage name=\"m\"><work name=\"x\" {attributes}>{operations}\
             </work></workstage></workflow></workload>"
        )
    };
    let read = |ratio: u32| {
        format!(
            "<operation type=\"read\" ratio=\"{ratio}\" config=\"containers=c(1);objects=c(1)\"/>"
        )
    };
    let good = "workers=\"2\" runtime=\"1\"";
    for (text, accepted) in [
        (one(good, &read(100)), true),
        (one(good, &read(90)), false),
        (one("workers=\"2\"", &read(100)), false),
        (one("runtime=\"1\"", &read(100)), false),
        (
            one("workers=\"2\" runtime=\"1\" interval=\"0\"", &read(100)),
            false,
        ),
        (
            one("workers=\"2\" runtime=\"1\" afr=\"2000000\"", &read(100)),
            false,
        ),
        (
            one("workers=\"2\" totalOps=\"3000000000\"", &read(100)),
            false,
        ),
        (one("workers=\" 2 \" runtime=\" 1 \"", &read(100)), true),
        (
            one("workers=\"2\" runtime=\"1\" colour=\"red\"", &read(100)),
            true,
        ),
        (
            one("workers=\"2\" runtime=\"1\" type=\"weird\"", &read(100)),
            true,
        ),
        (one(good, &(read(100) + &read(0))), true),
        (one(good, &(read(100) + "<extra><work/></extra>")), true),
        (
            one(good, &read(100)).replace("name=\"m\"", "name=\"\""),
            false,
        ),
    ] {
        let outcome = parse(&text);
        assert_eq!(outcome.is_ok(), accepted, "{text}\n{outcome:?}");
        if let Err(refused) = outcome {
            assert!(
                refused.location.line > 0 && refused.location.column > 0,
                "{refused}"
            );
        }
    }
}
