//! The head of the report and the table of operation classes.

use bucketload_core::stats::decide::Better;
use bucketload_core::stats::quantile::Print;
use bucketload_core::verdict::Word;

use super::notes;
use crate::kit::{Page, Section, Table, VerdictBox};
use crate::result::figure::{CLASS, DURATIONS, Figure, Outcome, Unit};
use crate::result::latency::{HEAD, Percentile};
use crate::result::{Latency, PhaseResult, RunHeader, RunResult};
use crate::units;

/// Title, verdict and headline figures.
pub(super) fn head(result: &RunResult) -> Page {
    let run = &result.run;
    let name = if run.profile.is_empty() || run.profile == run.workload {
        run.workload.clone()
    } else {
        format!("{} ({})", run.workload, run.profile)
    };
    let verdict = &result.verdict;
    let mut reasons = notes::reasons(verdict);
    reasons.extend(
        result
            .warnings
            .iter()
            .map(|text| format!("Warning: {text}")),
    );
    Page {
        title: format!("{name} on {}", run.target),
        subtitle: format!(
            "{}Run {}, started {}, Bucketload {}.",
            compat(run),
            run.run_id,
            run.started,
            run.version,
        ),
        verdict: VerdictBox {
            word: verdict.word.name().to_owned(),
            tone: tone(verdict.word),
            meaning: meaning(verdict.word).to_owned(),
            reasons,
            notes: notes::notes(result),
        },
        facts: facts(result),
        ..Page::default()
    }
}

/// The label of a run that reproduces another benchmark's published procedure; empty for other runs.
fn compat(run: &RunHeader) -> String {
    if run.compat.is_empty() {
        return String::new();
    }
    format!(
        "Compat {}: reproduces a published procedure; not comparable with other results. ",
        run.compat
    )
}

fn tone(word: Word) -> &'static str {
    match word {
        Word::Valid => "good",
        Word::Degraded | Word::Unsteady | Word::Overloaded => "warn",
        Word::ClientBound | Word::Incomplete => "bad",
    }
}

fn meaning(word: Word) -> &'static str {
    match word {
        Word::Valid => "The figures are sound and may be compared.",
        Word::Degraded => "Measured properly, but under conditions that rule out a comparison.",
        Word::Unsteady => {
            "The measured window drifts: the figures depend on when it started and ended."
        }
        Word::Overloaded => {
            "The store could not keep up: the throughput shows its limit; latencies depend on the length of the run."
        }
        Word::ClientBound => "The client was the limit: the result says nothing about the store.",
        Word::Incomplete => "The run was cut short or measured nothing.",
    }
}

fn facts(result: &RunResult) -> Vec<(String, String)> {
    let headline = result.headline();
    if !headline.is_empty() {
        let facts = headline.into_iter().map(|fact| (fact.name, fact.text));
        return facts.chain(common(result)).collect();
    }
    let mut facts = Vec::new();
    let several = result.measured().count() > 1;
    if result.measured().count() >= notes::SEVERAL {
        return of_many(result);
    }
    for phase in result.measured() {
        let mut fact = |name: &str, value: String| {
            let name = if several {
                format!("{}: {name}", phase.name)
            } else {
                name.to_owned()
            };
            facts.push((name, value));
        };
        fact(
            "operations per second",
            units::number(phase.rates.ops_per_s.mean),
        );
        if phase.rates.bytes_per_s.mean > 0.0 {
            fact(
                "throughput",
                format!("{}/s", units::bytes(phase.rates.bytes_per_s.mean)),
            );
        }
        for class in phase.classes.iter().take(2) {
            if let Some(p99) = class
                .response
                .percentile(0.99)
                .filter(|p| p.print != Print::Omit)
            {
                fact(
                    &format!("{} response p99", class.class),
                    units::ns(p99.value_ns as f64),
                );
            }
        }
        if let Some(backlog) = phase.backlog.filter(|b| b.period_s.is_some()) {
            fact("largest backlog", units::ns(backlog.max_s * 1e9));
        }
        if let Some(streams) = phase.streams.filter(|s| s.net_bytes_per_s > 0.0) {
            let rate = format!("{}/s", units::bytes(streams.net_bytes_per_s));
            fact("net throughput of the streams", rate);
        }
        let failed: u64 = phase.totals.failed;
        fact("failed operations", units::count(failed));
        if let Some(us) = phase.client.cpu_us_per_op {
            fact("client CPU per operation", units::ns(us * 1e3));
        }
        if let (Some(factor), Some(limit)) =
            (phase.client.headroom_factor, phase.client.headroom_limit)
        {
            let text = format!("{}× ({})", units::number(factor), limit.words());
            fact("client headroom", text);
        }
    }
    facts
}

/// What the phases have in common, under a headline.
fn common(result: &RunResult) -> [(String, String); 1] {
    let failed = result.summary.failed;
    [("failed operations".to_owned(), units::count(failed))]
}

/// The figures of many phases: a throughput each, if there is room for them, and what they have in common. The charts
/// below compare the phases.
fn of_many(result: &RunResult) -> Vec<(String, String)> {
    let phases: Vec<&PhaseResult> = result.measured().collect();
    let rate = |phase: &&PhaseResult| {
        let name = format!("{}: operations per second", phase.name);
        (name, units::number(phase.rates.ops_per_s.mean))
    };
    let mut facts = vec![("phases".to_owned(), phases.len().to_string())];
    if phases.len() <= 4 {
        facts.extend(phases.iter().map(rate));
    }
    facts.extend(common(result));
    facts
}

/// Throughput, latencies and errors per operation class.
pub(super) fn classes(phase: &PhaseResult) -> Section {
    let window = &phase.window;
    let mut latency = latencies("Latency").noted(
        "Response time is measured from the intended start, service time from the actual one. A percentile is \
         shown if at least 10 values lie beyond it.",
    );
    for class in &phase.classes {
        let name = phase.class_name(class);
        for duration in DURATIONS {
            let figures = (duration.of)(class);
            if figures.n > 0 {
                latency.texts(latency_row(&format!("{name} {}", duration.title), figures));
            }
        }
    }
    let intro = format!(
        "{}. Measured over {} s{} ({}).",
        phase.load.join("; "),
        units::number(window.seconds()),
        match window.warmup_ns {
            0 => String::new(),
            ns => format!(" after {} s of warm-up", units::number(ns as f64 / 1e9)),
        },
        if phase.open_loop {
            "open loop: arrivals do not wait for the store"
        } else {
            "closed loop"
        },
    );
    Section::new("", intro).tables([throughput(phase), latency])
}

/// One row per operation of each phase.
pub(super) fn all(phases: &[&PhaseResult]) -> Table {
    let head = [
        "phase",
        "operation",
        "ok",
        "failed",
        "ops/s",
        "bytes/s",
        "p50",
        "p99",
        "max",
    ];
    let mut table = Table::new(2, head).noted(
        "Response times, from the intended start. A percentile is shown if at least 10 values lie beyond it.",
    );
    for phase in phases {
        for class in phase.classes.iter().filter(|c| c.ok + c.failed > 0) {
            let bytes = class.bytes_per_s.mean;
            table.texts([
                phase.name.clone(),
                phase.class_name(class),
                units::count(class.ok),
                units::count(class.failed),
                units::number(class.ops_per_s.mean),
                match bytes > 0.0 {
                    true => units::bytes(bytes),
                    false => String::new(),
                },
                class.response.percentile_text(0.5),
                class.response.percentile_text(0.99),
                units::ns(class.response.max_ns as f64),
            ]);
        }
    }
    table
}

fn throughput(phase: &PhaseResult) -> Table {
    // Successes first, failures last.
    let mut figures: Vec<&Figure<Outcome>> = CLASS.iter().filter(|f| !f.title.is_empty()).collect();
    figures.sort_by_key(|f| match f.better {
        Some(Better::Higher) => 0,
        None => 1,
        Some(Better::Lower) => 2,
    });
    let head = [""]
        .into_iter()
        .chain(figures.iter().map(|figure| figure.title));
    let mut table = Table::new(1, head)
        .titled("Throughput and outcome")
        .noted("± is the half-width of the 95 % confidence interval from batch means.");
    let failures = phase.classes.iter().any(|class| !class.errors.is_empty());
    if failures {
        table = table.text_columns(["errors by kind"]);
    }
    for class in &phase.classes {
        let errors: Vec<String> = class
            .errors
            .iter()
            .map(|e| format!("{} {}", e.kind, units::count(e.count)))
            .collect();
        let outcome = Outcome::from(class);
        let mut row = vec![phase.class_name(class)];
        row.extend(figures.iter().map(|figure| cell(figure, &outcome)));
        row.extend(failures.then(|| errors.join(", ")));
        table.texts(row);
    }
    table
}

/// A figure with its interval. The column heading has the unit of rates.
fn cell(figure: &Figure<Outcome>, of: &Outcome) -> String {
    let show = |value: f64| match figure.unit {
        Unit::PerS => units::number(value),
        Unit::BytesPerS => units::bytes(value),
        unit => unit.show(value),
    };
    let half = figure.estimate(of).and_then(|e| e.half_width);
    match (figure.value(of), half) {
        (Some(value), Some(half)) => format!("{} ± {}", show(value), show(half)),
        (Some(value), None) => show(value),
        (None, _) => String::new(),
    }
}

/// An empty table of latencies.
pub(super) fn latencies(title: &str) -> Table {
    Table::new(1, [""].into_iter().chain(HEAD)).titled(title)
}

/// A row of a table of latencies.
pub(super) fn latency_row(name: &str, figures: &Latency) -> Vec<String> {
    let mut row = vec![
        name.to_owned(),
        units::count(figures.n),
        units::ns(figures.mean_ns),
    ];
    row.extend(figures.percentiles.iter().map(Percentile::text));
    row.push(units::ns(figures.max_ns as f64));
    row
}
