//! What the consistency oracle and the rounds of listings found.

use bucketload_core::oracle::{Finding, FindingKind};

use super::page::{Axis, Chart, Section, Series, Table};
use crate::result::{OracleResult, RunResult, StepResult};
use crate::units;

/// The sections of both; nothing when the run had neither.
pub(super) fn sections(result: &RunResult) -> Vec<Section> {
    let mut sections = Vec::new();
    if let Some(rounds) = &result.rounds {
        sections.push(list_consistency(&rounds.after_write, &rounds.after_delete));
    }
    sections.extend(result.oracle.as_ref().map(oracle));
    sections
}

fn oracle(oracle: &OracleResult) -> Section {
    let mut rows: Vec<Vec<String>> = Vec::new();
    if let Some(s) = &oracle.summary {
        let row = |name: &str, n: u64| vec![name.to_owned(), units::count(n)];
        rows.extend([
            row("keys tracked", s.keys),
            vec!["share of all keys".to_owned(), units::percent(s.share)],
            row("writes and deletes", s.mutations),
            row("of unknown outcome", s.unknown),
            row("reads judged", s.reads),
            row("listings judged", s.lists),
            row("answers that could not be judged", s.unjudged),
            row("objects audited", s.audited),
            row("objects that could not be", s.unaudited),
        ]);
    }
    let mut tables = vec![Table {
        rows,
        ..Table::default()
    }];
    if !oracle.is_clean() {
        let found = FindingKind::ALL.into_iter().filter_map(|kind| {
            let count = oracle.found.get(&kind)?;
            Some(vec![
                kind.name().to_owned(),
                units::count(count.findings),
                units::count(count.answers),
                kind.meaning().to_owned(),
            ])
        });
        tables.push(Table {
            title: "Findings".to_owned(),
            head: ["kind", "findings", "answers that showed them", "meaning"]
                .map(str::to_owned)
                .to_vec(),
            rows: found.collect(),
            text: true,
            ..Table::default()
        });
        tables.push(Table {
            title: "Evidence".to_owned(),
            head: [
                "kind",
                "began",
                "operation",
                "key",
                "observed",
                "expected",
                "acknowledged",
                "requests",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: oracle.findings.iter().map(evidence).collect(),
            note: "The first findings of each kind; more stand in oracle.jsonl.".to_owned(),
            text: true,
        });
    }
    Section {
        title: "Consistency".to_owned(),
        intro: match (oracle.is_clean(), &oracle.summary) {
            (false, _) => {
                "INCONSISTENT: the store gave answers that nothing it acknowledged explains."
            }
            (true, Some(_)) => {
                "Every judged answer is explained by what the store had acknowledged."
            }
            (true, None) => "The run did not come to its end; nothing was found until then.",
        }
        .to_owned(),
        tables,
        ..Section::default()
    }
}

fn evidence(finding: &Finding) -> Vec<String> {
    let missed = finding.missed.as_ref();
    let acknowledged = missed.and_then(|m| m.acknowledged_ns);
    let ids = [
        finding.request_id.as_str(),
        missed.map_or("", |m| m.request_id.as_str()),
    ];
    let ids: Vec<&str> = ids.into_iter().filter(|id| !id.is_empty()).collect();
    vec![
        finding.kind.name().to_owned(),
        units::seconds(finding.start_ns as f64 / 1e9),
        if finding.audit {
            "audit".to_owned()
        } else {
            finding.class.to_string()
        },
        finding.key.clone(),
        finding.observed.clone(),
        finding.expected.clone(),
        acknowledged.map_or_else(String::new, |ns| units::seconds(ns as f64 / 1e9)),
        ids.join(", "),
    ]
}

fn list_consistency(write: &StepResult, delete: &StepResult) -> Section {
    let steps = [("after writing", write), ("after deleting", delete)];
    let window = |step: &StepResult, q| {
        step.window_ns(q)
            .map_or_else(|| "-".to_owned(), |ns| units::ns(ns as f64))
    };
    let rows = steps.map(|(name, step)| {
        vec![
            name.to_owned(),
            units::count(step.rounds),
            units::percent(step.share()),
            units::count(step.lists),
            units::count(step.missing),
            units::count(step.ghosts),
            window(step, 0.5),
            window(step, 0.9),
            window(step, 1.0),
            units::count(step.never),
        ]
    });
    let mut chart = Chart::lines(
        "Inconsistency windows",
        Axis::linear("window", "ns"),
        Axis::linear("share of all rounds", "%"),
    );
    chart.note = "Share of the rounds whose listing was right within the time; consistent at the \
                  first listing counts as 0."
        .to_owned();
    for (name, step) in steps
        .into_iter()
        .filter(|(_, step)| !step.windows_ns.is_empty())
    {
        let share = |i: usize| (step.consistent + i as u64) as f64 / step.rounds.max(1) as f64;
        let mut points = vec![(0.0, Some(share(0)))];
        let windows = step.windows_ns.iter().enumerate();
        points.extend(windows.map(|(i, &ns)| (ns as f64, Some(share(i + 1)))));
        chart.series.push(Series {
            name: name.to_owned(),
            points,
            step: true,
            ..Series::default()
        });
    }
    Section {
        title: "List consistency".to_owned(),
        intro: "How soon a listing showed what was written, and no longer what was deleted."
            .to_owned(),
        tables: vec![Table {
            head: [
                "listing",
                "rounds",
                "right at first",
                "listings",
                "lacked at first",
                "deleted but shown at first",
                "window p50",
                "p90",
                "max",
                "never right",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: rows.to_vec(),
            ..Table::default()
        }],
        charts: if chart.series.is_empty() {
            Vec::new()
        } else {
            vec![chart]
        },
    }
}
