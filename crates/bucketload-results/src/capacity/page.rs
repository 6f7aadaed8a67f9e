//! A capacity search as a page.

use bucketload_core::ai::AiFigure;
use bucketload_core::capacity::{Bound, Limit, TrialMeaning};

use super::{CapacityResult, LoadPoint, Record, text::conclusion, value};
use crate::kit::svg::{Point, log_spaced};
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
    let mut facts = vec![(
        "objectives".to_owned(),
        header.slo.to_string().replace(',', ", "),
    )];
    if let Some(outcome) = &result.outcome {
        let mut fact = |name: &str, side: Option<bucketload_core::capacity::BracketEnd>| {
            if let Some(side) = side {
                facts.push((name.to_owned(), header.load(side.rate)));
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
            ..VerdictBox::default()
        },
        facts,
        first: curve(result),
        sections: vec![trials(result)],
    }
    .render()
}

/// Name of the trials beside the curve.
const BESIDE: &str = "beside the curve";

/// The trials that the client limited and the references: they are no part of the curve.
fn others(result: &CapacityResult, name: &str, look: usize, y: fn(&Record) -> f64) -> Series {
    let client = |r: &&Record| {
        let limited = matches!(r.judgement.meaning, TrialMeaning::Client { .. });
        limited || r.trial.purpose.is_reference()
    };
    let points = result.trials.iter().filter(client).map(|r| Point {
        flawed: matches!(r.judgement.meaning, TrialMeaning::Client { .. }),
        ..Point::from((r.trial.rate, y(r)))
    });
    Series {
        loose: true,
        ..Series::line(name, look, points)
    }
}

fn curve(result: &CapacityResult) -> Vec<Chart> {
    let primary = result.header.slo.primary();
    let name = primary.map_or("p99".to_owned(), |o| o.metric());
    let whole = result.header.settings.whole;
    let x = || match whole {
        true => Axis::log(result.header.unit(), Unit::Number),
        false => Axis::log("offered operations/s", Unit::PerS),
    };
    let line = |name: &str, look: usize, y: fn(&LoadPoint) -> f64| Series {
        markers: true,
        ..Series::line(name, look, result.curve.iter().map(|l| (l.rate, y(l))))
    };
    let rates = || result.trials.iter().map(|r| r.trial.rate);
    let (first, last) = rates().fold((f64::INFINITY, 0.0f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    if first > last {
        return Vec::new();
    }
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
        let level = [first, last].map(|rate| (rate, ns as f64));
        lines.push(Series::line("objective", lines.len(), level).dashed());
    }
    lines.push(others(result, BESIDE, 7, |r| r.primary.ns as f64));
    let mut latency = Chart::lines(
        "Latency against load",
        x(),
        Axis::log("response time", Unit::Ns),
        lines,
    )
    .noted(
        "One point per rate; response times count from the intended start, those of failed operations with the \
         timeout. The band spans the trials at a rate; for a single trial it is the 95 % interval. Beside the curve: \
         references, and trials limited by the client (hollow).",
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
            match whole {
                true => Series::default(),
                false => {
                    Series::line("offered", 1, [first, last].map(|rate| (rate, rate))).dashed()
                }
            },
            others(result, BESIDE, 7, |r| r.ok_per_s),
        ],
    );
    let share = line("measured", 0, |l| f64::from(l.passes) / f64::from(l.trials));
    let law = result.threshold.map(|t| {
        let kept = |rate: f64| (rate, 1.0 / (1.0 + (rate / t.rate).powf(t.steepness)));
        let rates = log_spaced(first, last);
        Series::line("logistic regression", 1, rates.map(kept)).dashed()
    });
    let passed = Chart::lines(
        "Trials that met the objectives",
        x(),
        Axis::share("share of the trials"),
        [share].into_iter().chain(law),
    );
    let busy = Series {
        markers: true,
        ..Series::line(
            "AU",
            0,
            result
                .curve
                .iter()
                .map(|load| (load.rate, load.utilisation)),
        )
    };
    let wanted = result
        .header
        .slo
        .objectives
        .iter()
        .find_map(|o| match o.bound {
            Bound::Ai {
                figure: AiFigure::Au,
                value,
            } => Some([first, last].map(|rate| (rate, value))),
            _ => None,
        });
    let wanted = wanted.map(|level| Series::line("objective", 1, level).dashed());
    let utilisation = Chart::lines(
        "Utilisation of the accelerators",
        x(),
        Axis::linear("AU", Unit::Share),
        [busy].into_iter().chain(wanted),
    );
    if whole {
        let charts = [utilisation, latency, throughput, passed];
        return charts.into_iter().filter(|c| !c.is_empty()).collect();
    }
    let charts = [latency, throughput, passed];
    charts.into_iter().filter(|c| !c.is_empty()).collect()
}

fn trials(result: &CapacityResult) -> Section {
    let offered = match result.header.settings.whole {
        true => result.header.unit(),
        false => "offered/s",
    };
    let head = ["#", "purpose", offered, "ok/s", "p50", "p99"];
    let mut head = head.map(str::to_owned).to_vec();
    head.extend(result.header.slo.objectives.iter().map(ToString::to_string));
    let mut table = Table::new(2, head).text_columns(["outcome", "verdict"]);
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
            match result.header.settings.whole {
                true => units::number(trial.rate),
                false => units::rate(trial.rate),
            },
            units::rate(record.ok_per_s),
            units::ns(record.p50.ns as f64),
            units::ns(record.p99.ns as f64),
        ];
        row.extend(record.judgement.checked.iter().map(value));
        let outcome = match why {
            "" => word.to_owned(),
            why => format!("{word}: {why}"),
        };
        let verdict = format!("{} {}", record.verdict, record.rules.join(" "));
        row.extend([outcome, verdict]);
        table.texts(row);
    }
    let intro = "In the order of execution; references wait for the store to recover. trials.jsonl has the directory of \
                 each.";
    Section::new("Trials", intro).tables([table])
}
