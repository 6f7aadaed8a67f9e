//! Findings of the consistency oracle, and the rounds of listings.

use bucketload_core::oracle::{Finding, FindingKind};

use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::{OracleResult, RunResult, StepResult};
use crate::units;

/// The sections of both; empty if the run had neither.
pub(super) fn sections(result: &RunResult) -> Vec<Section> {
    let mut sections = Vec::new();
    if let Some(rounds) = &result.rounds {
        sections.push(list_consistency(&rounds.after_write, &rounds.after_delete));
    }
    sections.extend(result.oracle.as_ref().map(oracle));
    sections
}

fn oracle(oracle: &OracleResult) -> Section {
    let mut facts = Table::pairs("");
    if let Some(s) = &oracle.summary {
        let row = |name: &str, n: u64| [name.to_owned(), units::count(n)];
        facts = facts.with([
            row("keys tracked", s.keys),
            ["share of all keys".to_owned(), units::percent(s.share)],
            row("writes and deletes", s.mutations),
            row("of unknown outcome", s.unknown),
            row("reads judged", s.reads),
            row("listings judged", s.lists),
            row("answers that could not be judged", s.unjudged),
            row("objects audited", s.audited),
            row("objects that could not be read", s.unaudited),
        ]);
        if !s.unaudited_why.is_empty() {
            facts = facts.with([[
                "why they could not be read".to_owned(),
                s.unaudited_reasons(),
            ]]);
        }
    }
    let mut tables = vec![facts];
    if !oracle.is_clean() {
        let found = FindingKind::ALL.into_iter().filter_map(|kind| {
            let count = oracle.found.get(&kind)?;
            Some([
                kind.name().to_owned(),
                units::count(count.findings),
                units::count(count.answers),
                kind.meaning().to_owned(),
            ])
        });
        let head = ["kind", "findings", "answers that showed them", "meaning"];
        tables.push(Table::new(4, head).titled("Findings").with(found));
        let head = [
            "kind",
            "started",
            "operation",
            "key",
            "observed",
            "expected",
            "acknowledged",
            "requests",
        ];
        let evidence = Table::new(head.len(), head)
            .titled("Evidence")
            .noted("The first findings of each kind; oracle.jsonl has more.")
            .with(oracle.findings.iter().map(evidence));
        tables.push(evidence);
    }
    let intro = match (oracle.is_clean(), &oracle.summary) {
        (false, _) => {
            "INCONSISTENT: nothing that the store acknowledged explains some of its answers."
        }
        (true, Some(_)) => {
            "Every judged answer is consistent with what the store had acknowledged."
        }
        (true, None) => "The run did not finish; there were no findings up to that point.",
    };
    Section::new("Consistency", intro).tables(tables)
}

fn evidence(finding: &Finding) -> [String; 8] {
    let missed = finding.missed.as_ref();
    let acknowledged = missed.and_then(|m| m.acknowledged_ns);
    let ids = [
        finding.request_id.as_str(),
        missed.map_or("", |m| m.request_id.as_str()),
    ];
    let ids: Vec<&str> = ids.into_iter().filter(|id| !id.is_empty()).collect();
    [
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
        [
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
    let shown = steps
        .into_iter()
        .filter(|(_, step)| !step.windows_ns.is_empty());
    let lines = shown.enumerate().map(|(look, (name, step))| {
        let share = |i: usize| (step.consistent + i as u64) as f64 / step.rounds.max(1) as f64;
        let windows = step.windows_ns.iter().enumerate();
        let windows = windows.map(|(i, &ns)| (ns as f64, share(i + 1)));
        Series {
            steps: true,
            ..Series::line(name, look, [(0.0, share(0))].into_iter().chain(windows))
        }
    });
    let chart = Chart::lines(
        "Inconsistency windows",
        Axis::linear("window", Unit::Ns),
        Axis::linear("share of all rounds", Unit::Share),
        lines,
    )
    .noted(
        "Share of rounds with a correct listing within this time; rounds that were correct at the first listing count \
         as 0.",
    );
    let head = [
        "listing",
        "rounds",
        "correct at first",
        "listings",
        "missing at first",
        "deleted but shown at first",
        "window p50",
        "p90",
        "max",
        "never correct",
    ];
    let intro = "How soon listings showed written objects and stopped showing deleted ones.";
    Section::new("List consistency", intro)
        .tables([Table::new(1, head).with(rows)])
        .charts(Some(chart).filter(|chart| !chart.is_empty()))
}
