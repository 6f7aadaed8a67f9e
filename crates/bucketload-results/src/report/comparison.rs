//! The page of a comparison: words, the table of quantities, then the report's tables with a column
//! per side and its charts with both sides drawn over each other.

use bucketload_core::stats::decide::Decision;

use super::overlay;
use super::page::{Page, Section, Table, VerdictBox};
use super::summary::class_name;
use crate::compare::{Comparison, Run, Side};
use crate::output::comparison::{self as words, comparison_sentence};
use crate::result::{ClassResult, Latency, PhaseResult};
use crate::units;

pub(super) fn page(c: &Comparison, a: &[Run], b: &[Run]) -> Page {
    let mut page = Page {
        title: format!("Comparison: {}", title(c)),
        subtitle: format!(
            "A: {}. B: {}. {}.",
            c.a.target,
            c.b.target,
            words::method(c)
        ),
        verdict: VerdictBox {
            word: c.decision.name().to_uppercase(),
            tone: match c.decision {
                Decision::Faster | Decision::Equivalent => "good",
                Decision::Inconclusive => "warn",
                Decision::Slower => "bad",
            },
            meaning: format!("{}.", comparison_sentence(c)),
            reasons: c.notes.clone(),
        },
        facts: c
            .quantities
            .iter()
            .filter(|q| q.sample.quantity.primary)
            .map(|q| (q.sample.quantity.name.clone(), words::effect(q)))
            .collect(),
        sections: vec![quantities(c)],
    };
    let phases = a[0].result.measured().map(|phase| phase.name.as_str());
    for name in phases {
        let (x, y) = (of_phase(a, name), of_phase(b, name));
        if x.len() == a.len() && y.len() == b.len() {
            page.sections.push(figures(name, &x, &y));
            page.sections.push(overlay::section(name, &x, &y));
        }
    }
    if !c.shifts.is_empty() {
        page.sections.push(overlay::shifts(c));
    }
    page.sections.push(runs(c));
    page
}

fn title(c: &Comparison) -> String {
    if c.a.workload == c.b.workload {
        c.a.workload.clone()
    } else {
        format!("{} and {}", c.a.workload, c.b.workload)
    }
}

fn of_phase<'a>(runs: &'a [Run], name: &str) -> Vec<&'a PhaseResult> {
    let phase = |run: &'a Run| run.result.measured().find(|p| p.name == name);
    runs.iter().filter_map(phase).collect()
}

fn texts<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn quantities(c: &Comparison) -> Section {
    let rows = c.quantities.iter().map(|q| {
        let quantity = &q.sample.quantity;
        let name = if quantity.primary {
            format!("{} (primary)", quantity.name)
        } else {
            quantity.name.clone()
        };
        let word = if quantity.gate {
            q.decision.name().to_owned()
        } else {
            format!("({})", q.decision.name())
        };
        let superiority = q.ranks.map_or(f64::NAN, |ranks| ranks.superiority);
        vec![
            name,
            words::mean(q, false),
            words::mean(q, true),
            words::effect(q),
            words::interval(q),
            words::p_value(q),
            units::number(superiority),
            word,
        ]
    });
    Section {
        title: "Quantities".to_owned(),
        intro: "One value per run. A word needs an interval that excludes no change, after the \
                correction for the number of quantities, and a change beyond the margin; equivalent \
                needs the whole interval within the margin."
            .to_owned(),
        tables: vec![Table {
            head: texts([
                "",
                "A",
                "B",
                "B against A",
                "95 % interval",
                "p",
                "P(B > A)",
                "verdict",
            ]),
            rows: rows.collect(),
            note: "CV is the variation from run to run. P(B > A) is the share of pairs of runs in \
                   which B's value is the larger one. What stands in brackets is the client's own \
                   cost and has no influence on the verdict."
                .to_owned(),
            ..Table::default()
        }],
        ..Section::default()
    }
}

/// A figure of a phase in one run.
type Figure<'a> = &'a dyn Fn(&PhaseResult) -> f64;

/// A duration of a class.
type Duration = fn(&ClassResult) -> &Latency;

/// Throughput and latencies of a phase, a column (or row) per side; means over the runs.
fn figures(name: &str, a: &[&PhaseResult], b: &[&PhaseResult]) -> Section {
    let mut outcome = Table {
        title: "Throughput and outcome (means over the runs)".to_owned(),
        head: texts(["", "A", "B"]),
        ..Table::default()
    };
    let mut row = |name: String, show: &dyn Fn(f64) -> String, value: Figure<'_>| {
        let cell = |runs: &[&PhaseResult]| {
            show(runs.iter().map(|p| value(p)).sum::<f64>() / runs.len() as f64)
        };
        outcome.rows.push(vec![name, cell(a), cell(b)]);
    };
    let per_s = |value: f64| format!("{}/s", units::rate(value));
    row("operations offered".into(), &per_s, &|p| {
        p.rates.offered_ops_per_s
    });
    row("operations completed".into(), &per_s, &|p| {
        p.rates.ops_per_s.mean
    });
    row(
        "throughput".into(),
        &|v| format!("{}/s", units::bytes(v)),
        &|p| p.rates.bytes_per_s.mean,
    );
    row("failed operations".into(), &units::number, &|p| {
        p.totals.failed as f64
    });
    row("measured".into(), &units::seconds, &|p| p.window.seconds());
    row("client CPU per operation".into(), &units::ns, &|p| {
        p.client.cpu_us_per_op.unwrap_or(f64::NAN) * 1e3
    });
    let mut latency = Table {
        title: "Latency (medians over the runs)".to_owned(),
        head: texts(["", "n", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"]),
        note: "A percentile is shown when at least 10 values lie beyond it in every run."
            .to_owned(),
        ..Table::default()
    };
    for class in &a[0].classes {
        let kinds: [(&str, Duration); 3] = [
            ("response", |c| &c.response),
            ("service", |c| &c.service),
            ("first byte", |c| &c.ttfb),
        ];
        for (kind, pick) in kinds {
            for (label, phases) in [("A", a), ("B", b)] {
                let found: Vec<&Latency> = phases
                    .iter()
                    .filter_map(|p| {
                        let same = |c: &&ClassResult| {
                            c.class == class.class && c.work_name == class.work_name
                        };
                        p.classes.iter().find(same).map(pick)
                    })
                    .filter(|latency| latency.n > 0)
                    .collect();
                if found.len() == phases.len() {
                    let name = format!("{} {kind} {label}", class_name(a[0], class));
                    latency.rows.push(latency_row(name, &found));
                }
            }
        }
    }
    Section {
        title: format!("Phase {name}"),
        intro: format!("A: {}. B: {}.", a[0].load.join("; "), b[0].load.join("; ")),
        tables: vec![outcome, latency],
        ..Section::default()
    }
}

fn latency_row(name: String, runs: &[&Latency]) -> Vec<String> {
    use bucketload_core::stats::quantile::Print;
    let median = |mut values: Vec<f64>| -> f64 {
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let of = |pick: &dyn Fn(&Latency) -> f64| median(runs.iter().map(|l| pick(l)).collect());
    let mut row = vec![
        name,
        units::count(of(&|l| l.n as f64) as u64),
        units::ns(of(&|l| l.mean_ns)),
    ];
    for i in 0..runs[0].percentiles.len() {
        let values: Option<Vec<f64>> = runs
            .iter()
            .map(|l| {
                let p = l.percentiles.get(i)?;
                (p.print != Print::Omit).then_some(p.value_ns as f64)
            })
            .collect();
        row.push(values.map_or_else(|| "–".to_owned(), |v| units::ns(median(v))));
    }
    row.push(units::ns(of(&|l| l.max_ns as f64)));
    row
}

/// What was set against what: the runs, and the fields that differ by request.
fn runs(c: &Comparison) -> Section {
    let mut sides = Table {
        title: "Sides".to_owned(),
        head: texts(["", "A", "B"]),
        text: true,
        ..Table::default()
    };
    let mut row = |name: &str, value: &dyn Fn(&Side) -> String| {
        let (a, b) = (value(&c.a), value(&c.b));
        if !(a.is_empty() && b.is_empty()) {
            sides.rows.push(vec![name.to_owned(), a, b]);
        }
    };
    row("target", &|s| s.target.clone());
    row("workload", &|s| s.workload.clone());
    row("profile", &|s| s.profile.clone());
    row("scenario", &|s| s.scenario_hash.clone());
    row("driver", &|s| s.driver.clone());
    row("version", &|s| s.version.clone());
    let semantics = Table {
        title: "What operations mean".to_owned(),
        head: texts(["", "A", "B"]),
        rows: c
            .semantics
            .iter()
            .map(|row| texts([row.topic, row.a, row.b]))
            .collect(),
        text: true,
        note: "The sides speak different APIs: the same workload is not the same work. What is equal on \
               both is left out."
            .to_owned(),
    };
    let differences = Table {
        title: "Differences by request".to_owned(),
        head: texts(["field", "A", "B"]),
        rows: c
            .differences
            .iter()
            .map(|d| vec![d.field.clone(), d.a.clone(), d.b.clone()])
            .collect(),
        text: true,
        ..Table::default()
    };
    let list = [&c.a, &c.b].into_iter().flat_map(|side| {
        side.runs.iter().map(|run| {
            vec![
                side.label.to_owned(),
                run.directory.clone(),
                run.started.clone(),
                format!("{} {}", run.verdict, run.rules.join(", ")),
            ]
        })
    });
    let list = Table {
        title: "Runs".to_owned(),
        head: texts(["side", "directory", "start", "verdict"]),
        rows: list.collect(),
        text: true,
        ..Table::default()
    };
    let mut tables = vec![sides];
    if !c.semantics.is_empty() {
        tables.push(semantics);
    }
    if !c.differences.is_empty() {
        tables.push(differences);
    }
    tables.push(list);
    Section {
        title: "What was compared".to_owned(),
        intro: match c.schedule.as_str() {
            "" => String::new(),
            order => format!("Order of the runs: {order}."),
        },
        tables,
        ..Section::default()
    }
}
