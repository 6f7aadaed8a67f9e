use bucketload_core::capacity::Slo;
use bucketload_core::stats::decide::Better;
use bucketload_results::kit::Unit;

use crate::model::{Command, FigureKind, Metric, OptionValue, Order};

use super::{BUILTIN_STUDIES, SpecError, parse};

const SMALL: &str = r#"
name = "small"
title = "A small one"
seed = 7
[[target]]
name = "memory"
url = "mem:"
[[experiment]]
name = "reads"
workload = "get"
field = "workers"
values = [1, 2]
options = { size = "4KiB", verify = true }
[[experiment.figure]]
kind = "curve"
metric = "throughput"
[quick]
repetitions = 3
recovery = "10ms"
[quick.experiment.reads]
values = [1]
options = { duration = "1s" }
"#;

fn problems(text: &str) -> SpecError {
    parse("s.toml", text, false).expect_err("it should be refused")
}

/// The line of the problem, its field and the words of message and remedy.
fn refused(change: (&str, &str), line: usize, field: &str, words: &[&str]) {
    let text = SMALL.replacen(change.0, change.1, 1);
    assert_ne!(text, SMALL, "{change:?} changes nothing");
    let error = problems(&text).to_string();
    assert!(error.contains(&format!("s.toml:{line}:")), "{error}");
    if !field.is_empty() {
        assert!(error.contains(&format!(": {field}: ")), "{error}");
    }
    for word in words {
        assert!(error.contains(word), "{word}: {error}");
    }
}

/// One vocabulary: what a study calls a metric may also stand in an SLO, if the store is to answer for it.
#[test]
fn every_metric_is_known_to_studies_and_objectives() {
    for metric in Metric::ALL {
        let name = format!("metric = \"{}\"", metric.brief);
        let text = SMALL.replacen("metric = \"throughput\"", &name, 1);
        let study = parse("s.toml", &text, false);
        if metric.is_of_grids() {
            assert!(study.is_err(), "{name}");
            continue;
        }
        if metric.ai().is_some() {
            // The experiment measures a workload of reads, which has no such figure.
            let refused = study.unwrap_err().to_string();
            assert!(refused.contains(" is a metric of ") && refused.contains("command = "));
        } else {
            assert_eq!(
                study.unwrap().experiments[0].figures[0].metric,
                Some(*metric)
            );
        }
        let bound = match metric.unit {
            Unit::PerS => ">5/s",
            Unit::BytesPerS => ">5MiB/s",
            Unit::Ns => "<5ms",
            Unit::Share if metric.better == Some(Better::Higher) => ">5%",
            Unit::Share => "<5%",
            // The client's cost is no property of the store.
            _ => continue,
        };
        let slo: Slo = format!("{}{bound}", metric.brief).parse().unwrap();
        assert_eq!(
            bound.starts_with('>'),
            metric.better == Some(Better::Higher)
        );
        assert_eq!(slo.objectives[0].class, None);
    }
}

#[test]
fn quick_values_override_those_outside() {
    let study = parse("s.toml", SMALL, false).unwrap();
    assert_eq!(
        (study.seed, study.order, study.repetitions),
        (7, Order::Random, 5)
    );
    let experiment = &study.experiments[0];
    assert_eq!(experiment.command, Command::Run);
    assert_eq!(experiment.values, ["1", "2"]);
    assert_eq!(experiment.figures[0].kind, FigureKind::Curve);
    assert_eq!(experiment.options["verify"], OptionValue::Switch(true));

    let quick = parse("s.toml", SMALL, true).unwrap();
    assert_eq!((quick.repetitions, quick.recovery_ns), (3, 10_000_000));
    let experiment = &quick.experiments[0];
    assert_eq!(experiment.values, ["1"]);
    // Options are overridden one by one.
    assert_eq!(
        experiment.options["size"],
        OptionValue::Text("4KiB".to_owned())
    );
    assert_eq!(
        experiment.options["duration"],
        OptionValue::Text("1s".to_owned())
    );
}

#[test]
fn single_values_may_have_their_own_options() {
    let text = SMALL
        .replace(
            "[[experiment.figure]]",
            "[experiment.value-options]\n2 = { ops = 30, size = \"1KiB\" }\n[[experiment.figure]]",
        )
        .replace(
            "values = [1]\noptions",
            "values = [1, 2]\nvalue-options.2 = { ops = 5 }\noptions",
        );
    let of = |quick: bool| {
        let study = parse("s.toml", &text, quick).unwrap_or_else(|e| panic!("{e}"));
        let back: crate::model::Study = toml::from_str(&toml::to_string(&study).unwrap()).unwrap();
        assert_eq!(back, study);
        let options = crate::plan::PlanOptions::default();
        let plan = crate::plan::plan(&study, options, "0", |_| Ok::<_, ()>(1)).unwrap();
        let cell = |value: &str| {
            let cell = plan.cells.iter().find(|cell| cell.value == value).unwrap();
            cell.args.join(" ")
        };
        (cell("1"), cell("2"))
    };
    let (one, two) = of(false);
    assert!(
        one.contains("--size=4KiB") && !one.contains("--ops"),
        "{one}"
    );
    assert!(
        two.contains("--size=1KiB") && two.contains("--ops=30") && two.contains("--verify"),
        "{two}"
    );
    let (one, two) = of(true);
    assert!(
        one.contains("--duration=1s") && !one.contains("--ops"),
        "{one}"
    );
    assert!(
        two.contains("--size=1KiB") && two.contains("--ops=5"),
        "{two}"
    );
    let wrong = text.replace("\n2 = {", "\n3 = {");
    let error = problems(&wrong).to_string();
    assert!(
        error.contains("`3` is not one of the values") && error.contains("possible here: 1, 2"),
        "{error}"
    );
    let error = problems(&text.replace("2 = { ops = 30, size = \"1KiB\" }", "2 = 30"));
    assert!(error.to_string().contains("value-options.2"), "{error}");
}

#[test]
fn the_resolved_study_reads_back_unchanged() {
    for (name, text) in BUILTIN_STUDIES {
        for quick in [false, true] {
            let study = parse(name, text, quick).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(study.name, *name);
            let written = toml::to_string(&study).unwrap();
            assert_eq!(
                toml::from_str::<crate::model::Study>(&written).unwrap(),
                study
            );
        }
    }
}

#[test]
fn errors_name_line_field_and_remedy() {
    refused(
        ("seed = 7", "sead = 7"),
        4,
        "sead",
        &["no such field", "possible here", "seed"],
    );
    refused(("seed = 7", "seed = \"7\""), 4, "seed", &["a whole number"]);
    refused(("seed = 7", "order = \"sideways\""), 4, "order", &["abba"]);
    refused(("seed = 7", "recovery = \"5\""), 4, "recovery", &["help"]);
    refused(
        ("url = \"mem:\"", ""),
        5,
        "target[0].url",
        &["no address", "server"],
    );
    refused(
        ("url = \"mem:\"", "url = \"mem:\"\napi = \"s3\""),
        8,
        "target[0].api",
        &["add server"],
    );
    refused(
        (
            "url = \"mem:\"",
            "server = \"minio\"\nsettings = { SECRET_KEY = \"x\" }",
        ),
        8,
        "target[0].settings.SECRET_KEY",
        &["secrets", "environment"],
    );
    refused(
        ("workload = \"get\"", ""),
        8,
        "experiment[0].workload",
        &["workload is missing"],
    );
    refused(("[1, 2]", "[1, 1]"), 12, "experiment[0].values", &["twice"]);
    refused(
        ("field = \"workers\"", "field = \"target\""),
        11,
        "experiment[0].field",
        &["targets"],
    );
    refused(
        ("size = \"4KiB\"", "out = \"x\""),
        13,
        "experiment[0].options.out",
        &["--dir"],
    );
    refused(
        ("kind = \"curve\"", "kind = \"pie\""),
        15,
        "experiment[0].figure[0].kind",
        &["latency-cdf"],
    );
    refused(
        ("metric = \"throughput\"", "metric = \"x\""),
        16,
        "experiment[0].figure[0].metric",
        &["p999"],
    );
    refused(
        ("metric = \"throughput\"", "metric = \"wall-bandwidth\""),
        14,
        "experiment[0].figure",
        &["study-grid"],
    );
    refused(
        ("[quick.experiment.reads]", "[quick.experiment.writes]"),
        20,
        "quick.experiment.writes",
        &["possible here: reads"],
    );
    refused(("seed = 7", "seed = = 7"), 4, "", &["toml.io"]);
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = SMALL
        .replace("seed = 7", "sead = 7")
        .replace("mem:", "")
        .replace("[1, 2]", "[]");
    assert_eq!(problems(&text).problems.len(), 3);
}
