//! The result as one JSON document, or as one record per line.

use serde::Serialize;
use serde_json::{Value, json};

use crate::result::{ClassResult, PhaseResult, RunResult, SCHEMA};

/// The whole result as one JSON document with a final line break. Its format is that of
/// [`crate::result`].
#[must_use]
pub fn json(result: &RunResult) -> String {
    pretty(result)
}

pub(super) fn pretty<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// The result as JSON lines. The field `record` of each record says what it is.
///
/// | record | fields |
/// |---|---|
/// | `run` | `schema`, `summary`, `run` (header), `verdict`, `calibration`, `warnings`, `damage` |
/// | `phase` | the phase without `classes`, `series`, `realised` |
/// | `class` | `phase`, then the class without distribution functions and maps |
/// | `realised` | `phase`, then the entry |
/// | `point` | `phase`, then the values of the series at one instant |
/// | `failure` | one failed operation in full |
/// | `io500` | the scores of IO500; only for its runs |
/// | `ossperf` | the six steps of OSSperf; only for workloads that consist of them |
/// | `rounds` | how soon listings were correct; only for works in rounds |
/// | `checkpoint` | times of checkpoints; only for workloads that consist of them |
/// | `train` | how busy accelerators were; only for phases that train |
/// | `oracle` | work and findings of the consistency oracle, by kind; only if it judged |
/// | `finding` | one finding of the oracle with its evidence |
///
/// A `phase` is followed by its classes, entries and points.
#[must_use]
pub fn jsonl(result: &RunResult) -> String {
    let mut out = String::new();
    line(
        &mut out,
        "run",
        json!({
            "schema": SCHEMA,
            "summary": result.summary,
            "run": result.run,
            "verdict": result.verdict,
            "calibration": result.calibration,
            "warnings": result.warnings,
            "damage": result.damage,
        }),
    );
    for phase in &result.phases {
        phase_lines(&mut out, phase);
    }
    for failure in &result.failures {
        line(&mut out, "failure", value(failure));
    }
    if let Some(table) = &result.io500 {
        line(&mut out, "io500", value(table));
    }
    if let Some(run) = &result.ossperf {
        line(&mut out, "ossperf", value(run));
    }
    if let Some(rounds) = &result.rounds {
        line(&mut out, "rounds", value(rounds));
    }
    if let Some(checkpoint) = &result.checkpoint {
        line(&mut out, "checkpoint", value(checkpoint));
    }
    for train in &result.train {
        line(&mut out, "train", value(train));
    }
    if let Some(oracle) = &result.oracle {
        line(&mut out, "oracle", without(value(oracle), &["findings"]));
        for finding in &oracle.findings {
            line(&mut out, "finding", value(finding));
        }
    }
    out
}

fn phase_lines(out: &mut String, phase: &PhaseResult) {
    line(
        out,
        "phase",
        without(value(phase), &["classes", "series", "realised"]),
    );
    for class in &phase.classes {
        line(out, "class", of_phase(phase, class_value(class)));
    }
    for entry in &phase.realised {
        line(out, "realised", of_phase(phase, value(entry)));
    }
    // A point has the values of all series at one instant.
    let series = value(&phase.series);
    for i in 0..phase.series.t_s.len() {
        let at = |(name, values): (&String, &Value)| Some((name.clone(), values.get(i)?.clone()));
        let point = series.as_object().into_iter().flatten().filter_map(at);
        line(out, "point", of_phase(phase, point.collect()));
    }
}

fn class_value(class: &ClassResult) -> Value {
    without(
        value(class),
        &["response_cdf", "service_cdf", "over_time", "heat_map"],
    )
}

fn value<T: Serialize>(item: &T) -> Value {
    serde_json::to_value(item).unwrap_or_default()
}

fn without(mut value: Value, fields: &[&str]) -> Value {
    if let Value::Object(map) = &mut value {
        fields.iter().for_each(|field| drop(map.remove(*field)));
    }
    value
}

fn of_phase(phase: &PhaseResult, mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.insert("phase".to_owned(), phase.name.clone().into());
    }
    value
}

fn line(out: &mut String, record: &str, mut value: Value) {
    if let Value::Object(map) = &mut value {
        map.insert("record".to_owned(), record.into());
    }
    out.push_str(&value.to_string());
    out.push('\n');
}
