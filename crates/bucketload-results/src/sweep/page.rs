//! A sweep as a page.

use super::text::{coefficient, conclusion, fitted, values_of, with_error};
use super::{Axis, MeanOverRuns, Point, Record, SweepResult};
use crate::kit::svg::{Point as ChartPoint, log_spaced};
use crate::kit::{Axis as ChartAxis, Chart, Page, Section, Series, Table, Unit, VerdictBox};
use crate::result::ai;
use crate::result::metric::Metric;
use crate::{study, units};
use bucketload_core::verdict::Word;

/// The page of a sweep as one self-contained HTML file.
#[must_use]
pub fn html(result: &SweepResult) -> String {
    let header = &result.header;
    let complete = result.trials.len() >= result.wanted();
    let (word, tone) = match (complete, result.is_client_bound(), result.client_bound()) {
        (false, ..) => ("INTERRUPTED", "bad"),
        (true, true, _) => ("CLIENT-BOUND", "bad"),
        (true, false, 0) => ("SWEEP", "good"),
        (true, false, _) => ("SWEEP", "warn"),
    };
    Page {
        title: format!(
            "{} over {} on {}",
            header.workload, header.field, header.target
        ),
        subtitle: study::origin(&header.started, &header.version, &header.command_line),
        verdict: VerdictBox {
            word: word.to_owned(),
            tone,
            meaning: format!(
                "{} runs: {} values of {}, {} runs each, in random order.",
                result.trials.len(),
                header.values.len(),
                header.field,
                header.repetitions
            ),
            reasons: conclusion(result),
            ..VerdictBox::default()
        },
        facts: facts(result),
        first: curves(result),
        sections: [values(result), scaling(result), Some(trials(result))]
            .into_iter()
            .flatten()
            .collect(),
    }
    .render()
}

/// The best value, if the client did not decide which one it is.
fn facts(result: &SweepResult) -> Vec<(String, String)> {
    let usable = || {
        result
            .points
            .iter()
            .filter(|p| p.verdict != Word::ClientBound)
    };
    let best = usable().max_by(|a, b| a.ok_per_s.mean.total_cmp(&b.ok_per_s.mean));
    let fastest = usable().min_by(|a, b| a.p99_ns.mean.total_cmp(&b.p99_ns.mean));
    let field = &result.header.field;
    let mut facts = Vec::new();
    if let Some(p) = best {
        let name = format!("highest throughput, at {field} {}", p.value);
        facts.push((name, format!("{}/s", units::rate(p.ok_per_s.mean))));
    }
    if let Some(p) = fastest {
        let name = format!("lowest p99, at {field} {}", p.value);
        facts.push((name, units::ns(p.p99_ns.mean)));
    }
    facts
}

/// Horizontal position of a point: its number, or its rank among the values.
fn at(result: &SweepResult, index: usize, number: Option<f64>) -> f64 {
    match (result.header.axis, number) {
        (Axis::Category, _) | (_, None) => index as f64,
        (_, Some(number)) => number,
    }
}

/// The means over the runs as a line with their intervals, and each run as a point of its own: hollow if it is not
/// VALID.
fn series(
    name: &str,
    look: usize,
    result: &SweepResult,
    figure: impl Fn(&Point) -> Option<MeanOverRuns>,
    of_run: impl Fn(&Record) -> Option<f64>,
) -> [Series; 2] {
    let means = result.points.iter().enumerate().filter_map(|(i, p)| {
        let mean = figure(p)?;
        Some(ChartPoint {
            ci: mean.interval(),
            ..ChartPoint::from((at(result, i, p.number), mean.mean))
        })
    });
    let mut line = Series::line(format!("{name}, mean"), look, means);
    line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let runs = result.trials.iter().filter_map(|t| {
        let i = result.points.iter().position(|p| p.value == t.value)?;
        Some(ChartPoint {
            flawed: t.verdict != Word::Valid,
            ..ChartPoint::from((at(result, i, t.number), of_run(t)?))
        })
    });
    let runs = Series {
        loose: true,
        ..Series::line(format!("{name}, each run"), look, runs)
    };
    [line, runs]
}

/// The horizontal axis: the measured values are its ticks.
fn axis(result: &SweepResult) -> ChartAxis {
    let (field, points) = (&result.header.field, &result.points);
    let numbers: Option<Vec<f64>> = points.iter().map(|p| p.number).collect();
    let Some(numbers) = numbers.filter(|_| result.header.axis != Axis::Category) else {
        return ChartAxis::named(field, points.iter().map(|p| p.value.clone()).collect());
    };
    let positive = numbers.iter().all(|n| *n > 0.0);
    let ticks = numbers
        .iter()
        .zip(points)
        .map(|(n, p)| (*n, p.value.clone()));
    let mut at: Vec<(f64, String)> = ticks.collect();
    at.sort_by(|a, b| a.0.total_cmp(&b.0));
    let axis = match positive {
        true => ChartAxis::fitting(field, Unit::Number, numbers.into_iter()),
        false => ChartAxis::linear(field, Unit::Number),
    };
    ChartAxis { at, ..axis }
}

fn curves(result: &SweepResult) -> Vec<Chart> {
    if result.points.is_empty() {
        return Vec::new();
    }
    let law = result.usl.as_ref().map(|fit| {
        let points = log_spaced(1.0, fit.largest_n).map(|n| (n, fit.at(n)));
        Series::line("Universal Scalability Law", 1, points).dashed()
    });
    let ops = series(
        "measured",
        0,
        result,
        |p| Some(p.ok_per_s),
        |t| Some(t.ok_per_s),
    );
    let ops = Chart::lines(
        "Throughput",
        axis(result),
        ChartAxis::linear("operations/s", Unit::PerS),
        ops.into_iter().chain(law),
    )
    .noted("Bars: 95 % interval over the runs, where there are enough. Hollow: not VALID.");
    let moved = result.points.iter().any(|p| p.bytes_per_s.mean > 0.0);
    let bytes = moved.then(|| {
        let lines = series(
            "measured",
            0,
            result,
            |p| Some(p.bytes_per_s),
            |t| Some(t.bytes_per_s),
        );
        let y = ChartAxis::linear("bytes", Unit::BytesPerS);
        Chart::lines("Object bytes", axis(result), y, lines)
    });
    let [p50, p50_runs] = series(
        "p50",
        0,
        result,
        |p| Some(p.p50_ns),
        |t| Some(t.p50_ns as f64),
    );
    let [p99, p99_runs] = series(
        "p99",
        1,
        result,
        |p| Some(p.p99_ns),
        |t| Some(t.p99_ns as f64),
    );
    let latency = Chart::lines(
        "Response time",
        axis(result),
        ChartAxis::log("response time", Unit::Ns),
        [p50, p50_runs, p99, p99_runs],
    );
    // What a training, checkpoint or cache is about comes first.
    let figures = result.ai_figures().into_iter().map(|figure| {
        let title = Metric::of_ai(figure).title;
        let of_point = |p: &Point| p.ai.get(&figure).copied();
        let of_run = |t: &Record| t.ai.get(&figure).copied();
        let y = ChartAxis::linear(title, ai::unit(figure));
        let lines = series("measured", 0, result, of_point, of_run);
        Chart::lines(capital(title), axis(result), y, lines)
    });
    figures.chain([ops, latency]).chain(bytes).collect()
}

/// `text` with a capital first letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn values(result: &SweepResult) -> Option<Section> {
    let intro = "Means with the half-width of their 95 % intervals over runs, not over operations.";
    let figures = result.ai_figures();
    let own = (!figures.is_empty()).then(|| values_of(result, &figures));
    let table = table(result);
    (!table.rows.is_empty())
        .then(|| Section::new("Values", intro).tables(own.into_iter().chain([table])))
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
    let efficiency = Table::new(1, head).titled("Efficiency").with(rows);
    tables.extend(Some(efficiency).filter(|table| !table.rows.is_empty()));
    if tables.is_empty() {
        return None;
    }
    let intro = "X(N) = gamma N / (1 + alpha (N-1) + beta N (N-1)), fitted to the runs by least squares of relative \
                 residuals; intervals by parametric bootstrap.";
    Some(Section::new("Scaling", intro).tables(tables))
}

fn trials(result: &SweepResult) -> Section {
    let field = result.header.field.as_str();
    let table = Table::new(1, [field, "run", "ok/s", "p50", "p99", "failed"])
        .dense()
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
    Section::new("Runs", "In the order of execution.")
        .tables([table])
        .folded()
}
