//! A sweep as a page.

use super::text::{coefficient, conclusion, fitted, with_error};
use super::{Axis, Over, Point, SweepResult};
use crate::report::page::{Axis as ChartAxis, Chart, Page, Section, Series, Table, VerdictBox};
use crate::units;

/// The page of a sweep as one self-contained HTML file.
#[must_use]
pub fn html(result: &SweepResult) -> String {
    page(result).render()
}

fn page(result: &SweepResult) -> Page {
    let header = &result.header;
    let wanted = header.values.len() * header.repetitions as usize;
    let complete = result.trials.len() >= wanted;
    Page {
        title: format!(
            "{} of {} under {}",
            header.field, header.target, header.workload
        ),
        subtitle: format!(
            "Started {}, Bucketload {}. {}",
            header.started,
            header.version,
            header.command_line.join(" ")
        ),
        verdict: VerdictBox {
            word: if complete { "SWEEP" } else { "INTERRUPTED" }.to_owned(),
            tone: if complete { "good" } else { "bad" },
            meaning: format!(
                "{} runs: {} values of {}, {} runs each, in random order.",
                result.trials.len(),
                header.values.len(),
                header.field,
                header.repetitions
            ),
            reasons: conclusion(result),
        },
        facts: Vec::new(),
        sections: vec![curves(result), scaling(result), trials(result)]
            .into_iter()
            .flatten()
            .collect(),
    }
}

/// Position of a point: its number, or its place among the values.
fn at(result: &SweepResult, index: usize, point: &Point) -> f64 {
    match (result.header.axis, point.number) {
        (Axis::Category, _) | (_, None) => index as f64 + 1.0,
        (_, Some(number)) => number,
    }
}

fn series(name: &str, result: &SweepResult, figure: fn(&Point) -> Over) -> Series {
    let mut points: Vec<(f64, Over)> = result
        .points
        .iter()
        .enumerate()
        .map(|(i, p)| (at(result, i, p), figure(p)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Series {
        name: name.to_owned(),
        points: points.iter().map(|(x, o)| (*x, Some(o.mean))).collect(),
        band: points
            .iter()
            .map(|(x, o)| (*x, o.interval().0, o.interval().1))
            .collect(),
        ..Series::default()
    }
}

fn curves(result: &SweepResult) -> Option<Section> {
    if result.points.is_empty() {
        return None;
    }
    let header = &result.header;
    let x = || match header.axis {
        Axis::Category => ChartAxis::linear(&format!("{} (by position)", header.field), ""),
        Axis::Rate => ChartAxis::log(&header.field, "/s"),
        _ => ChartAxis::log(&header.field, ""),
    };
    let mut ops = Chart::lines("Throughput", x(), ChartAxis::linear("operations", "/s"));
    ops.note = "Mean of the runs; the band is its 95 % interval.".to_owned();
    ops.series.push(series("measured", result, |p| p.ok_per_s));
    if let Some(fit) = &result.usl {
        let (from, to) = (1f64.ln(), fit.largest_n.ln());
        ops.series.push(Series {
            name: "Universal Scalability Law".to_owned(),
            points: (0..=200)
                .map(|i| (from + (to - from) * f64::from(i) / 200.0).exp())
                .map(|n| (n, fit.at(n)))
                .collect(),
            dash: true,
            ..Series::default()
        });
    }
    let mut charts = vec![ops];
    if result.points.iter().any(|p| p.bytes_per_s.mean > 0.0) {
        let mut bytes = Chart::lines("Object bytes", x(), ChartAxis::linear("bytes", "B/s"));
        bytes
            .series
            .push(series("measured", result, |p| p.bytes_per_s));
        charts.push(bytes);
    }
    let mut latency = Chart::lines("Response time", x(), ChartAxis::log("response time", "ns"));
    latency.series.push(series("p50", result, |p| p.p50_ns));
    latency.series.push(series("p99", result, |p| p.p99_ns));
    charts.push(latency);
    Some(Section {
        title: "Curves".to_owned(),
        intro: "Bands are intervals over runs, not over operations.".to_owned(),
        tables: vec![table(result)],
        charts,
    })
}

fn table(result: &SweepResult) -> Table {
    Table {
        head: [
            result.header.field.as_str(),
            "runs",
            "ok/s",
            "bytes/s",
            "p50",
            "p99",
            "verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: result
            .points
            .iter()
            .map(|p| {
                vec![
                    p.value.clone(),
                    p.runs.to_string(),
                    with_error(&p.ok_per_s, units::rate),
                    with_error(&p.bytes_per_s, units::bytes),
                    with_error(&p.p50_ns, units::ns),
                    with_error(&p.p99_ns, units::ns),
                    p.verdict.to_string(),
                ]
            })
            .collect(),
        ..Table::default()
    }
}

fn scaling(result: &SweepResult) -> Option<Section> {
    if result.header.axis != Axis::Concurrency {
        return None;
    }
    let mut tables = Vec::new();
    if let Some(fit) = &result.usl {
        let mut rows = vec![vec![
            "gamma, throughput of one".to_owned(),
            fitted(&fit.gamma, units::rate),
        ]];
        for (name, f) in [
            ("alpha, contention", &fit.alpha),
            ("beta, coherency", &fit.beta),
        ] {
            let shown = if f.is_distinct() {
                fitted(f, coefficient)
            } else {
                format!("not distinct from 0 (up to {})", coefficient(f.ci.1))
            };
            rows.push(vec![name.to_owned(), shown]);
        }
        if let Some((n, x)) = fit.peak() {
            rows.push(vec!["N of the peak".to_owned(), fitted(&n, units::number)]);
            rows.push(vec![
                "highest throughput".to_owned(),
                fitted(&x, units::rate),
            ]);
        }
        tables.push(Table {
            title: "Universal Scalability Law with 95 % intervals".to_owned(),
            rows,
            ..Table::default()
        });
    }
    tables.push(Table {
        title: "Efficiency".to_owned(),
        head: [
            result.header.field.as_str(),
            "throughput/s",
            "per unit against the smallest",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: result
            .efficiency
            .iter()
            .map(|e| {
                vec![
                    units::number(e.n),
                    units::rate(e.x),
                    units::percent(e.efficiency),
                ]
            })
            .collect(),
        ..Table::default()
    });
    Some(Section {
        title: "Scaling".to_owned(),
        intro: "X(N) = gamma N / (1 + alpha (N-1) + beta N (N-1)), fitted to the runs by least squares of relative \
                residuals; intervals by parametric bootstrap."
            .to_owned(),
        tables,
        charts: Vec::new(),
    })
}

fn trials(result: &SweepResult) -> Option<Section> {
    let rows = result.trials.iter().map(|t| {
        vec![
            t.value.clone(),
            (t.repetition + 1).to_string(),
            units::rate(t.ok_per_s),
            units::ns(t.p50_ns as f64),
            units::ns(t.p99_ns as f64),
            units::count(t.failed),
            t.verdict.to_string(),
            t.dir.clone(),
        ]
    });
    Some(Section {
        title: "Runs".to_owned(),
        intro: "In the order in which they were run.".to_owned(),
        tables: vec![Table {
            head: [
                result.header.field.as_str(),
                "run",
                "ok/s",
                "p50",
                "p99",
                "failed",
                "verdict",
                "directory",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: rows.collect(),
            ..Table::default()
        }],
        charts: Vec::new(),
    })
}
