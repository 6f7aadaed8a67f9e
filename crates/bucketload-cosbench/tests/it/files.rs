//! Whole workload files: accepted files, rejected files, and warnings.

use bucketload_cosbench::{
    Division, OperationKind, Selector, WorkKind, Workload, parse, workload_config,
};
use proptest::prelude::*;

/// The structure of typical files: every stage, inherited adapters, a mix.
const SAMPLE: &str = r#"<?xml version="1.0" encoding="UTF-8" ?>
<workload name="s3-sample" description="sample benchmark for s3">
  <storage type="s3" config="accesskey=AK;secretkey=SK==;endpoint=http://127.0.0.1:9000" />
  <workflow>
    <workstage name="init">
      <work type="init" workers="1" config="cprefix=s3testqwer;containers=r(1,2)" />
    </workstage>
    <workstage name="prepare">
      <work type="prepare" workers="4"
            config="cprefix=s3testqwer;containers=r(1,2);objects=r(1,10);sizes=c(64)KB" />
    </workstage>
    <workstage name="main">
      <work name="main" workers="8" runtime="30" rampup="5">
        <operation type="read" ratio="80" config="cprefix=s3testqwer;containers=u(1,2);objects=u(1,10)" />
        <operation type="write" ratio="20"
          config="cprefix=s3testqwer;containers=u(1,2);objects=u(11,20);sizes=c(64)KB" />
      </work>
    </workstage>
    <workstage name="delay" closuredelay="60"><work type="delay"/></workstage>
    <workstage name="cleanup">
      <work type="cleanup" workers="1" config="cprefix=s3testqwer;containers=r(1,2);objects=r(1,20)" />
    </workstage>
    <workstage name="dispose">
      <work type="dispose" workers="1" config="cprefix=s3testqwer;containers=r(1,2)" />
    </workstage>
  </workflow>
</workload>"#;

fn read(text: &str) -> Workload {
    parse(text).unwrap_or_else(|e| panic!("{e}")).workload
}

/// A workload with one normal work with these attributes and operations.
fn one(attributes: &str, operations: &str) -> String {
    format!(
        "<workload name=\"w\"><storage type=\"mock\"/><workflow><workstage name=\"m\">\
         <work name=\"main\" {attributes}>{operations}</work></workstage></workflow></workload>"
    )
}

const READ: &str = "<operation type=\"read\" config=\"containers=u(1,2);objects=u(1,3)\"/>";

#[test]
fn a_typical_file_is_understood() {
    let parsed = parse(SAMPLE).unwrap();
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    let workload = parsed.workload;
    assert_eq!(workload.name, "s3-sample");
    let kinds: Vec<_> = workload.stages.iter().map(|s| s.works[0].kind).collect();
    let wanted = [
        WorkKind::Init,
        WorkKind::Prepare,
        WorkKind::Normal,
        WorkKind::Delay,
        WorkKind::Cleanup,
        WorkKind::Dispose,
    ];
    assert_eq!(kinds, wanted);
    let prepare = &workload.stages[1].works[0];
    assert_eq!((prepare.workers, prepare.total_ops, prepare.afr), (4, 4, 0));
    assert_eq!(prepare.division, Division::Object);
    assert!(!prepare.operations[0].target.containers_too);
    assert_eq!(
        prepare.storage.config.get("secretkey").as_deref(),
        Some("SK==")
    );
    let main = &workload.stages[2].works[0];
    assert_eq!((main.runtime_s, main.rampup_s, main.afr), (30, 5, 200_000));
    let ratios: Vec<_> = main
        .operations
        .iter()
        .map(|op| (op.kind, op.ratio))
        .collect();
    assert_eq!(
        ratios,
        [(OperationKind::Read, 80), (OperationKind::Write, 20)]
    );
    assert_eq!(
        main.operations[0].target.objects,
        Some(Selector::Uniform { lo: 1, hi: 10 })
    );
    assert!(workload.stages[3].is_delay());
    assert_eq!(
        workload.stages[5].works[0].operations[0].target.objects,
        Some(Selector::Empty)
    );
}

#[test]
fn the_written_form_is_equivalent() {
    let first = read(SAMPLE);
    let again = read(&workload_config(&first, false));
    assert_eq!(again.stages.len(), first.stages.len());
    for (a, b) in again.stages.iter().zip(&first.stages) {
        for (a, b) in a.works.iter().zip(&b.works) {
            let targets = |work: &bucketload_cosbench::Work| -> Vec<_> {
                work.operations.iter().map(|op| op.target.clone()).collect()
            };
            assert_eq!(targets(a), targets(b));
            assert_eq!(
                (a.kind, a.workers, a.runtime_s),
                (b.kind, b.workers, b.runtime_s)
            );
            assert_eq!(a.storage.adapter, b.storage.adapter);
        }
    }
    let shown = workload_config(&first, true);
    assert!(
        shown.contains("secretkey=***") && !shown.contains("SK=="),
        "{shown}"
    );
}

#[test]
fn adapters_replace_and_configs_accumulate() {
    let text = "<workload name=\"w\" config=\"cprefix=a;containers=c(1)\">\
        <storage type=\"mock\" config=\"delay=1\"/><workflow config=\"objects=c(2)\">\
        <workstage name=\"m\"><work name=\"x\" workers=\"1\" totalOps=\"9\" config=\"cprefix=b\">\
        <storage type=\"none\"/><operation type=\"read\" config=\"oprefix=o\"/></work>\
        </workstage></workflow></workload>";
    let workload = read(text);
    let work = &workload.stages[0].works[0];
    assert_eq!(work.storage.adapter.name, "none");
    assert_eq!(work.storage.config.get("delay"), None);
    let target = &work.operations[0].target;
    assert_eq!(
        (target.cprefix.as_str(), target.oprefix.as_str()),
        ("b", "o")
    );
    assert_eq!(target.objects, Some(Selector::Constant(2)));
}

#[test]
fn impossible_workloads_are_rejected_at_once() {
    let stage = |inner: &str| {
        format!(
            "<workload name=\"w\"><workflow><workstage name=\"s\">{inner}</workstage></workflow></workload>"
        )
    };
    for (text, wanted) in [
        ("<workload name=\"w\">".to_owned(), "XML"),
        (
            "<workload><workflow/></workload>".to_owned(),
            "no attribute `name`",
        ),
        ("<workload name=\"w\"/>".to_owned(), "no workflow"),
        (
            "<workload name=\"w\"><workflow/></workload>".to_owned(),
            "no workstage",
        ),
        (stage(""), "no work"),
        (one("runtime=\"1\"", READ), "`workers`"),
        (one("workers=\"0\" runtime=\"1\"", READ), "out of range"),
        (
            one("workers=\"x\" runtime=\"1\"", READ),
            "not a whole number",
        ),
        (one("workers=\"1\"", READ), "never end"),
        (
            one("workers=\"5\" totalOps=\"4\"", READ),
            "share 4 operations",
        ),
        (
            one("workers=\"1\" totalOps=\"2147483648\"", READ),
            "out of range",
        ),
        (one("workers=\"1\" runtime=\"1\"", ""), "no operation"),
        (
            one("workers=\"1\" runtime=\"1\" division=\"half\"", READ),
            "no division",
        ),
        (
            one(
                "workers=\"1\" runtime=\"1\"",
                &READ.replace("read\"", "read\" ratio=\"60\""),
            ),
            "sum to 60",
        ),
        (
            one("workers=\"1\" runtime=\"1\"", &READ.replace("read", "raed")),
            "did you mean `read`",
        ),
        (
            one(
                "workers=\"1\" runtime=\"1\"",
                &READ.replace("u(1,3)", "f(1,3)"),
            ),
            "no selector",
        ),
        (
            one("workers=\"1\" runtime=\"1\"", &READ.replace("read", "head")),
            "does not work with",
        ),
        (stage("<work type=\"delay\"/>"), "stage called `delay`"),
        (
            stage("<work type=\"init\" workers=\"1\" config=\"containers=u(1,2)\"/>"),
            "one after another",
        ),
        (
            one("workers=\"1\" runtime=\"1\"", READ).replace("\"mock\"", "\"s4\""),
            "no storage type",
        ),
        (
            one("workers=\"1\" runtime=\"1\"", READ).replace("\"mock\"", "\"s3\""),
            "no such key defined: accesskey",
        ),
    ] {
        let error = parse(&text).expect_err(&text).to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
        assert!(error.starts_with("line 1"), "{error}");
    }
}

#[test]
fn ignored_settings_are_reported() {
    let text = one(
        "workers=\"1\" Runtime=\"9\" totalOps=\"1\" colour=\"red\"",
        "<operation type=\"read\" config=\"containers=c(1);objects=c(1);hashcheck=true\"/><foo/>",
    );
    let parsed = parse(&text).unwrap();
    let said: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    for wanted in [
        "did you mean `runtime`",
        "`colour` is not an attribute",
        "`foo` is ignored",
        "hashCheck",
    ] {
        assert!(
            said.iter().any(|text| text.contains(wanted)),
            "{wanted}: {said:#?}"
        );
    }
}

#[test]
fn equal_operations_are_numbered() {
    let op = |ratio: u32, more: &str| {
        format!(
            "<operation type=\"read\" ratio=\"{ratio}\" config=\"containers=c(1);objects=c(1){more}\"/>"
        )
    };
    let text = one(
        "workers=\"1\" runtime=\"1\"",
        &format!("{}{}{}", op(50, ""), op(30, ""), op(20, ";name=mine")),
    );
    let workload = read(&text);
    let names: Vec<_> = workload.stages[0].works[0]
        .operations
        .iter()
        .map(|op| op.display_name.clone())
        .collect();
    assert_eq!(names, ["1-read", "2-read", "mine"]);
    let ids: Vec<_> = workload.stages[0].works[0]
        .operations
        .iter()
        .map(|op| op.id.as_str())
        .collect();
    assert_eq!(ids, ["op1", "op2", "op3"]);
}

#[test]
fn operations_with_ratio_0_do_not_count() {
    let zero = "<operation type=\"nonsense\" ratio=\"0\"/>";
    let workload = read(&one(
        "workers=\"1\" runtime=\"1\"",
        &format!("{READ}{zero}"),
    ));
    assert_eq!(workload.stages[0].works[0].operations.len(), 1);
}

proptest! {
    #[test]
    fn no_text_panics(text in "[<>/a-z\"= ]{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn damaged_files_do_not_panic(at in 0usize..2000, byte in 32u8..127) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = parse(&String::from_utf8(bytes).unwrap());
    }
}
