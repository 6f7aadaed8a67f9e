//! A sweep as a page.

use super::text::{coefficient, conclusion, fitted, with_error};
use super::{Axis, MeanOverRuns, Point, SweepResult};
use crate::kit::svg::{Point as ChartPoint, log_spaced};
use crate::kit::{Axis as ChartAxis, Chart, Page, Section, Series, Table, Unit, VerdictBox};
use crate::{study, units};

/// The page of a sweep as one self-contained HTML file.
#[must_use]
pub fn html(result: &SweepResult) -> String {
    let header = &result.header;
    let complete = result.trials.len() >= result.wanted();
    Page {
        title: format!(
            "{} of {} under {}",
            header.field, header.target, header.workload
        ),
        subtitle: study::origin(&header.started, &header.version, &header.command_line),
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
        sections: [curves(result), scaling(result), Some(trials(result))]
            .into_iter()
            .flatten()
            .collect(),
    }
    .render()
}

/// Horizontal position of a point: its number, or its rank among the values.
fn at(result: &SweepResult, index: usize, point: &Point) -> f64 {
    match (result.header.axis, point.number) {
        (Axis::Category, _) | (_, None) => index as f64 + 1.0,
        (_, Some(number)) => number,
    }
}

fn series(
    name: &str,
    look: usize,
    result: &SweepResult,
    figure: fn(&Point) -> MeanOverRuns,
) -> Series {
    let points = result.points.iter().enumerate().map(|(i, p)| {
        let mean = figure(p);
        ChartPoint {
            ci: Some(mean.interval()),
            ..ChartPoint::from((at(result, i, p), mean.mean))
        }
    });
    let mut line = Series::line(name, look, points);
    line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    line.band = true;
    line
}

fn curves(result: &SweepResult) -> Option<Section> {
    if result.points.is_empty() {
        return None;
    }
    let header = &result.header;
    let x = || match header.axis {
        Axis::Category => {
            ChartAxis::linear(&format!("{} (by position)", header.field), Unit::Number)
        }
        Axis::Rate => ChartAxis::log(&header.field, Unit::PerS),
        _ => ChartAxis {
            // The swept values as ticks, if there is room for them.
            at: match result.points.len() {
                ..=12 => result.points.iter().filter_map(|p| p.number).collect(),
                _ => Vec::new(),
            },
            ..ChartAxis::log(&header.field, Unit::Number)
        },
    };
    let law = result.usl.as_ref().map(|fit| {
        let points = log_spaced(1.0, fit.largest_n).map(|n| (n, fit.at(n)));
        Series::line("Universal Scalability Law", 1, points).dashed()
    });
    let measured = series("measured", 0, result, |p| p.ok_per_s);
    let ops = Chart::lines(
        "Throughput",
        x(),
        ChartAxis::linear("operations/s", Unit::PerS),
        [measured].into_iter().chain(law),
    )
    .noted("Mean of the runs with its 95 % interval as a band.");
    let moved = result.points.iter().any(|p| p.bytes_per_s.mean > 0.0);
    let bytes = moved.then(|| {
        let y = ChartAxis::linear("bytes", Unit::BytesPerS);
        let line = series("measured", 0, result, |p| p.bytes_per_s);
        Chart::lines("Object bytes", x(), y, [line])
    });
    let latency = Chart::lines(
        "Response time",
        x(),
        ChartAxis::log("response time", Unit::Ns),
        [
            series("p50", 0, result, |p| p.p50_ns),
            series("p99", 1, result, |p| p.p99_ns),
        ],
    );
    Some(
        Section::new(
            "Curves",
            "Bands are 95 % intervals over runs, not over operations.",
        )
        .tables([table(result)])
        .charts([ops].into_iter().chain(bytes).chain([latency])),
    )
}

fn table(result: &SweepResult) -> Table {
    let field = result.header.field.as_str();
    let head = [field, "runs", "ok/s", "bytes/s", "p50", "p99"];
    let table = Table::new(1, head).text_columns(["verdict"]);
    table.with(result.points.iter().map(|p| {
        [
            p.value.clone(),
            p.runs.to_string(),
            with_error(&p.ok_per_s, units::rate),
            with_error(&p.bytes_per_s, units::bytes),
            with_error(&p.p50_ns, units::ns),
            with_error(&p.p99_ns, units::ns),
            p.verdict.to_string(),
        ]
    }))
}

fn scaling(result: &SweepResult) -> Option<Section> {
    if result.header.axis != Axis::Concurrency {
        return None;
    }
    let mut tables = Vec::new();
    if let Some(fit) = &result.usl {
        let gamma = fitted(&fit.gamma, units::rate);
        let mut table = Table::pairs("Universal Scalability Law with 95 % intervals")
            .with([["gamma, throughput of one".to_owned(), gamma]]);
        for (name, f) in [
            ("alpha, contention", &fit.alpha),
            ("beta, coherency", &fit.beta),
        ] {
            let shown = if f.is_distinct() {
                fitted(f, coefficient)
            } else {
                format!(
                    "indistinguishable from 0 (upper bound {})",
                    coefficient(f.ci.1)
                )
            };
            table.texts([name.to_owned(), shown]);
        }
        if let Some((n, x)) = fit.peak() {
            table.texts(["N at the peak".to_owned(), fitted(&n, units::number)]);
            table.texts(["highest throughput".to_owned(), fitted(&x, units::rate)]);
        }
        tables.push(table);
    }
    let head = [
        result.header.field.as_str(),
        "throughput/s",
        "per unit, relative to the smallest",
    ];
    let rows = result.efficiency.iter().map(|e| {
        let share = units::percent(e.efficiency);
        [units::number(e.n), units::rate(e.x), share]
    });
    tables.push(Table::new(1, head).titled("Efficiency").with(rows));
    let intro = "X(N) = gamma N / (1 + alpha (N-1) + beta N (N-1)), fitted to the runs by least squares of relative \
                 residuals; intervals by parametric bootstrap.";
    Some(Section::new("Scaling", intro).tables(tables))
}

fn trials(result: &SweepResult) -> Section {
    let field = result.header.field.as_str();
    let table = Table::new(1, [field, "run", "ok/s", "p50", "p99", "failed"])
        .text_columns(["verdict", "directory"]);
    let table = table.with(result.trials.iter().map(|t| {
        [
            t.value.clone(),
            (t.repetition + 1).to_string(),
            units::rate(t.ok_per_s),
            units::ns(t.p50_ns as f64),
            units::ns(t.p99_ns as f64),
            units::count(t.failed),
            t.verdict.to_string(),
            t.dir.clone(),
        ]
    }));
    Section::new("Runs", "In the order of execution.").tables([table])
}
