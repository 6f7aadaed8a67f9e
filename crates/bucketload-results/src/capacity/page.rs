//! A capacity search as a page.

use bucketload_core::capacity::{Bound, Limit, Meaning};

use super::{CapacityResult, Load, text::conclusion, value};
use crate::report::page::{Axis, Chart, Mark, Page, Section, Series, Table, VerdictBox};
use crate::units;

/// The page of a search as one self-contained HTML file.
#[must_use]
pub fn html(result: &CapacityResult) -> String {
    page(result).render()
}

fn page(result: &CapacityResult) -> Page {
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
        let mut fact = |name: &str, side: Option<bucketload_core::capacity::Side>| {
            if let Some(side) = side {
                facts.push((name.to_owned(), format!("{}/s", units::rate(side.rate))));
            }
        };
        fact("objectives kept", outcome.low);
        fact("objectives broken", outcome.high);
    }
    facts.push(("trials".to_owned(), result.trials.len().to_string()));
    Page {
        title: format!("Capacity of {} under {}", header.target, header.workload),
        subtitle: format!(
            "Started {}, Bucketload {}. {}",
            header.started,
            header.version,
            header.command_line.join(" ")
        ),
        verdict: VerdictBox {
            word: word.to_owned(),
            tone,
            meaning,
            reasons: lines,
        },
        facts,
        // Axes without a point would show numbers that nobody measured.
        sections: (!result.curve.is_empty())
            .then(|| curve(result))
            .into_iter()
            .chain([trials(result)])
            .collect(),
    }
}

fn curve(result: &CapacityResult) -> Section {
    let primary = result.header.slo.primary();
    let name = primary.map_or("p99".to_owned(), |o| o.metric());
    let x = || Axis::log("offered operations", "/s");
    let points = |y: fn(&Load) -> f64| -> Vec<(f64, Option<f64>)> {
        result.curve.iter().map(|l| (l.rate, Some(y(l)))).collect()
    };
    let mut latency = Chart::lines(
        "Latency against load",
        x(),
        Axis::log("response time", "ns"),
    );
    latency.wide = true;
    latency.note = "Failures count with the timeout. The band spans the trials at a rate, or the 95 % interval of \
                    the percentile where there was one trial."
        .to_owned();
    latency.series.push(Series {
        name: name.clone(),
        points: points(|l| l.primary_ns as f64),
        band: result
            .curve
            .iter()
            .map(|l| (l.rate, l.band_ns.0 as f64, l.band_ns.1 as f64))
            .collect(),
        ..Series::default()
    });
    latency.series.push(Series {
        name: "p50".to_owned(),
        points: points(|l| l.p50_ns as f64),
        ..Series::default()
    });
    if name != "p99" {
        latency.series.push(Series {
            name: "p99".to_owned(),
            points: points(|l| l.p99_ns as f64),
            ..Series::default()
        });
    }
    if let (Some(first), Some(last), Some(Bound::Duration { ns, .. })) = (
        result.curve.first(),
        result.curve.last(),
        primary.map(|o| o.bound),
    ) {
        latency.series.push(Series {
            name: "objective".to_owned(),
            points: vec![(first.rate, Some(ns as f64)), (last.rate, Some(ns as f64))],
            dash: true,
            ..Series::default()
        });
    }
    if let Some(outcome) = &result.outcome {
        for (side, label) in [(outcome.low, "kept"), (outcome.high, "broken")] {
            latency.marks.extend(side.map(|side| Mark {
                x: side.rate,
                label: label.to_owned(),
            }));
        }
    }
    let mut throughput = Chart::lines(
        "Throughput against load",
        x(),
        Axis::linear("operations", "/s"),
    );
    throughput.series.push(Series {
        name: "completed".to_owned(),
        points: points(|l| l.ok_per_s),
        ..Series::default()
    });
    throughput.series.push(Series {
        name: "offered".to_owned(),
        points: points(|l| l.rate),
        dash: true,
        ..Series::default()
    });
    let mut passed = Chart::lines(
        "Trials that kept the objectives",
        x(),
        Axis {
            min: Some(0.0),
            max: Some(1.0),
            ..Axis::linear("share of the trials", "%")
        },
    );
    passed.series.push(Series {
        name: "measured".to_owned(),
        points: points(|l| f64::from(l.passes) / f64::from(l.trials)),
        ..Series::default()
    });
    if let (Some(t), Some(first), Some(last)) =
        (result.threshold, result.curve.first(), result.curve.last())
    {
        let (from, to) = (first.rate.ln(), last.rate.ln());
        passed.series.push(Series {
            name: "logistic regression".to_owned(),
            points: (0..=200)
                .map(|i| (from + (to - from) * f64::from(i) / 200.0).exp())
                .map(|rate| (rate, Some(1.0 / (1.0 + (rate / t.rate).powf(t.steepness)))))
                .collect(),
            dash: true,
            ..Series::default()
        });
    }
    Section {
        title: "Latency against load".to_owned(),
        intro: "Each point is one rate of the search; open-loop load, response times from the intended start."
            .to_owned(),
        tables: Vec::new(),
        charts: vec![latency, throughput, passed],
    }
}

fn trials(result: &CapacityResult) -> Section {
    let rows = result.trials.iter().map(|record| {
        let trial = record.trial;
        let (word, why) = match &record.judgement.meaning {
            _ if trial.purpose.is_reference() => ("reference", ""),
            Meaning::Pass => ("pass", ""),
            Meaning::Fail { reason } => ("fail", reason.as_str()),
            Meaning::Client { reason } => ("client", reason.as_str()),
            Meaning::Broken { reason } => ("broken", reason.as_str()),
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
        row
    });
    let mut head: Vec<String> = ["#", "purpose", "offered/s", "ok/s", "n", "p50", "p99"]
        .map(str::to_owned)
        .to_vec();
    head.extend(result.header.slo.objectives.iter().map(ToString::to_string));
    head.extend(["verdict", "outcome", "why", "directory"].map(str::to_owned));
    Section {
        title: "Trials".to_owned(),
        intro: "In the order in which they were run; references wait for the store to recover."
            .to_owned(),
        tables: vec![Table {
            head,
            rows: rows.collect(),
            ..Table::default()
        }],
        charts: Vec::new(),
    }
}
