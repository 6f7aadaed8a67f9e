//! A capacity search as a page.

use bucketload_core::capacity::{Bound, Limit, TrialMeaning};

use super::{CapacityResult, LoadPoint, text::conclusion, value};
use crate::kit::svg::log_spaced;
use crate::kit::{Axis, Chart, Page, Section, Series, Table, Unit, VerdictBox};
use crate::{study, units};

/// The page of a search as one self-contained HTML file.
#[must_use]
pub fn html(result: &CapacityResult) -> String {
    let header = &result.header;
    let limit = result.outcome.as_ref().map(|o| o.limit);
    let (word, tone) = match limit {
        Some(Limit::Store) => ("CAPACITY", "good"),
        Some(Limit::MaxRate) => ("AT LEAST", "good"),
        Some(Limit::Client) => ("CLIENT LIMIT", "warn"),
        Some(Limit::Unconfirmed) => ("UNCONFIRMED", "warn"),
        Some(Limit::NotMet) => ("NOT MET", "bad"),
        None => ("INTERRUPTED", "bad"),
    };
    let mut lines = conclusion(result);
    let meaning = lines.remove(0);
    let mut facts = vec![("objectives".to_owned(), header.slo.to_string())];
    if let Some(outcome) = &result.outcome {
        let mut fact = |name: &str, side: Option<bucketload_core::capacity::BracketEnd>| {
            if let Some(side) = side {
                facts.push((name.to_owned(), format!("{}/s", units::rate(side.rate))));
            }
        };
        fact("objectives met", outcome.low);
        fact("objectives missed", outcome.high);
    }
    facts.push(("trials".to_owned(), result.trials.len().to_string()));
    Page {
        title: format!("Capacity of {} under {}", header.target, header.workload),
        subtitle: study::origin(&header.started, &header.version, &header.command_line),
        verdict: VerdictBox {
            word: word.to_owned(),
            tone,
            meaning,
            reasons: lines,
        },
        facts,
        sections: curve(result).into_iter().chain([trials(result)]).collect(),
    }
    .render()
}

fn curve(result: &CapacityResult) -> Option<Section> {
    // Without points, the axes would show invented numbers.
    let (first, last) = result.curve.first().zip(result.curve.last())?;
    let primary = result.header.slo.primary();
    let name = primary.map_or("p99".to_owned(), |o| o.metric());
    let x = || Axis::log("offered operations/s", Unit::PerS);
    let line = |name: &str, look: usize, y: fn(&LoadPoint) -> f64| {
        Series::line(name, look, result.curve.iter().map(|l| (l.rate, y(l))))
    };
    let mut primary_line = line(&name, 0, |l| l.primary_ns as f64);
    primary_line.band = true;
    for (point, load) in primary_line.points.iter_mut().zip(&result.curve) {
        point.ci = Some((load.band_ns.0 as f64, load.band_ns.1 as f64));
    }
    let mut lines = vec![primary_line, line("p50", 1, |l| l.p50_ns as f64)];
    if name != "p99" {
        lines.push(line("p99", 2, |l| l.p99_ns as f64));
    }
    if let Some(Bound::Duration { ns, .. }) = primary.map(|o| o.bound) {
        let level = [first.rate, last.rate].map(|rate| (rate, ns as f64));
        lines.push(Series::line("objective", lines.len(), level).dashed());
    }
    let mut latency = Chart::lines(
        "Latency against load",
        x(),
        Axis::log("response time", Unit::Ns),
        lines,
    )
    .wide()
    .noted(
        "A failed operation counts with the timeout as its response time. The band spans the trials at a \
         rate; for a single trial it is the 95 % interval of the percentile.",
    );
    if let Some(outcome) = &result.outcome {
        for (side, label) in [(outcome.low, "met"), (outcome.high, "missed")] {
            let mark = side.map(|side| (side.rate, label.to_owned()));
            latency.marks.extend(mark);
        }
    }
    let throughput = Chart::lines(
        "Throughput against load",
        x(),
        Axis::linear("operations/s", Unit::PerS),
        [
            line("completed", 0, |l| l.ok_per_s),
            line("offered", 1, |l| l.rate).dashed(),
        ],
    );
    let share = line("measured", 0, |l| f64::from(l.passes) / f64::from(l.trials));
    let law = result.threshold.map(|t| {
        let kept = |rate: f64| (rate, 1.0 / (1.0 + (rate / t.rate).powf(t.steepness)));
        let rates = log_spaced(first.rate, last.rate);
        Series::line("logistic regression", 1, rates.map(kept)).dashed()
    });
    let passed = Chart::lines(
        "Trials that met the objectives",
        x(),
        Axis::share("share of the trials"),
        [share].into_iter().chain(law),
    );
    let intro = "Each point is one rate of the search; open-loop load, response times from the intended start.";
    Some(Section::new("Latency against load", intro).charts([latency, throughput, passed]))
}

fn trials(result: &CapacityResult) -> Section {
    let head = ["#", "purpose", "offered/s", "ok/s", "n", "p50", "p99"];
    let mut head = head.map(str::to_owned).to_vec();
    head.extend(result.header.slo.objectives.iter().map(ToString::to_string));
    let mut table = Table::new(2, head).text_columns(["verdict", "outcome", "reason", "directory"]);
    for record in &result.trials {
        let trial = record.trial;
        let (word, why) = match &record.judgement.meaning {
            _ if trial.purpose.is_reference() => ("reference", ""),
            TrialMeaning::Pass => ("pass", ""),
            TrialMeaning::Fail { reason } => ("fail", reason.as_str()),
            TrialMeaning::Client { reason } => ("client", reason.as_str()),
            TrialMeaning::Broken { reason } => ("broken", reason.as_str()),
        };
        let mut row = vec![
            (trial.number + 1).to_string(),
            trial.purpose.name().to_owned(),
            units::rate(trial.rate),
            units::rate(record.ok_per_s),
            units::count(record.n),
            units::ns(record.p50.ns as f64),
            units::ns(record.p99.ns as f64),
        ];
        row.extend(record.judgement.checked.iter().map(value));
        row.extend([
            format!("{} {}", record.verdict, record.rules.join(" ")),
            word.to_owned(),
            why.to_owned(),
            record.dir.clone(),
        ]);
        table.texts(row);
    }
    let intro = "In the order of execution; references wait for the store to recover.";
    Section::new("Trials", intro).tables([table])
}
