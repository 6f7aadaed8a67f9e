//! What users noticed during a drill: the picture, and the figures.

use crate::drill::{DrillResult, Stage};
use crate::kit::svg::Point;
use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::units;

/// The section of a drill.
pub(super) fn section(drill: &DrillResult) -> Section {
    let intro = match (drill.faults.is_empty(), &drill.detect) {
        (true, _) => format!("Nothing was broken: {}.", drill.why),
        (false, None) => "The faults left no trace outside the baseline's band.".to_owned(),
        (false, Some(_)) => {
            "All other figures of this page describe the baseline; this section describes what came after.".to_owned()
        }
    };
    // A sentence, not a row: the reasons of an accepted verdict are long.
    let baseline = match (drill.faults.is_empty(), drill.why.is_empty()) {
        (false, false) => format!(" The baseline: {}.", drill.why),
        _ => String::new(),
    };
    Section::new("Drill", intro + &baseline)
        .tables([figures(drill), faults(drill), data(drill)])
        .charts([rates(drill), latency(drill)])
}

/// The marks of both charts.
fn marks(drill: &DrillResult) -> Vec<(f64, String)> {
    let (Some(first), Some(end)) = (
        drill
            .faults
            .iter()
            .map(|fault| fault.from_s)
            .reduce(f64::min),
        drill.faults.iter().map(|fault| fault.to_s).reduce(f64::max),
    ) else {
        return Vec::new();
    };
    let after = |origin: f64, time: Option<crate::drill::Times>, text: &str| {
        time.map(|time| (origin + time.s, text.to_owned()))
    };
    [
        after(first, drill.detect, "noticed"),
        after(end, drill.worked_off, "backlog gone"),
        after(end, drill.recover, "recovered"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn curve(drill: &DrillResult, values: &[f64]) -> Vec<Point> {
    drill
        .waves
        .t_s
        .iter()
        .zip(values)
        .map(|(t, value)| Point::from((*t, *value)))
        .collect()
}

fn rates(drill: &DrillResult) -> Chart {
    let waves = &drill.waves;
    let mut lines = vec![
        Series::line("offered", 1, curve(drill, &waves.offered_per_s)).dashed(),
        Series::line("answered", 0, curve(drill, &waves.ok_per_s)),
        Series::line("failed", 2, curve(drill, &waves.failed_per_s)),
    ];
    let top = waves
        .offered_per_s
        .iter()
        .chain(&waves.ok_per_s)
        .copied()
        .fold(1.0, f64::max);
    // The bars of the faults lie beneath the curves, one row for each name.
    let mut names: Vec<&str> = Vec::new();
    for fault in &drill.faults {
        if !names.contains(&fault.name.as_str()) {
            names.push(&fault.name);
        }
    }
    for (row, name) in names.iter().enumerate() {
        let y = -top * 0.06 * (row + 1) as f64;
        let spans = drill.faults.iter().filter(|fault| fault.name == *name);
        let points =
            spans.flat_map(|fault| [(fault.from_s, y), (fault.to_s, y), (fault.to_s, f64::NAN)]);
        lines.push(Series {
            markers: true,
            ..Series::line(format!("fault: {name}"), 3 + row, points)
        });
    }
    Chart {
        marks: marks(drill),
        ..Chart::lines(
            "Offered, answered and failed",
            Axis::linear("time since the load began", Unit::Seconds),
            Axis::linear("operations/s", Unit::PerS),
            lines,
        )
    }
    .noted("The bars beneath 0 show when each fault was on.")
    .wide()
}

fn latency(drill: &DrillResult) -> Chart {
    let waves = &drill.waves;
    let points = (0..waves.t_s.len()).map(|i| match waves.p50_ns[i] > 0.0 {
        true => Point {
            ci: Some((waves.p50_ns[i], waves.p99_ns[i])),
            ..Point::from((waves.t_s[i], waves.p50_ns[i]))
        },
        false => Point::from((waves.t_s[i], f64::NAN)),
    });
    let band = Series {
        band: true,
        ..Series::line("p50 to p99", 0, points)
    };
    Chart {
        marks: marks(drill),
        ..Chart::lines(
            "Response time of successes",
            Axis::linear("time since the load began", Unit::Seconds),
            Axis::log("response time", Unit::Ns),
            [band],
        )
    }
    .noted("From the median to the 99th percentile. A gap means that nothing succeeded.")
    .wide()
}

fn figures(drill: &DrillResult) -> Table {
    let time = |time: Option<crate::drill::Times>, none: &str| {
        time.map_or_else(
            || none.to_owned(),
            |t| format!("{:.2} s ({:.2} to {:.2} s)", t.s, t.from_s, t.to_s),
        )
    };
    let row = |name: &str, value: String| [name.to_owned(), value];
    let times =
        |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |r| format!("{r:.2} times"));
    let mut rows = vec![
        row(
            "throughput of the baseline",
            format!("{} ops/s", units::rate(drill.ops_per_s)),
        ),
        row("in time means within", units::ns(drill.deadline_ns as f64)),
    ];
    if !drill.faults.is_empty() {
        rows.extend([
            row("time to detect", time(drill.detect, "not noticed")),
            row("time to recover", time(drill.recover, "not before the end")),
            row(
                "longest time without a success",
                time(Some(drill.longest_gap), "–"),
            ),
            row(
                "throughput over the baseline",
                times(drill.throughput_ratio),
            ),
            row("p50 over the baseline", times(drill.p50_ratio)),
            row("p99 over the baseline", times(drill.p99_ratio)),
            row(
                "availability before",
                units::percent(drill.available_before.share),
            ),
            row(
                "availability during the faults",
                units::percent(drill.available_during.share),
            ),
            row(
                "availability since the first break",
                units::percent(drill.available_since.share),
            ),
            row("largest backlog", units::count(drill.backlog)),
            row(
                "backlog worked off",
                time(drill.worked_off, "not before the end"),
            ),
            row("retries", units::count(drill.retries)),
            row(
                "error budget of 30 days burnt",
                units::percent(drill.budget_burnt),
            ),
        ]);
    }
    rows.extend(
        drill
            .errors
            .iter()
            .map(|e| row(&format!("failed: {}", e.kind), units::count(e.count))),
    );
    rows.extend(drill.endpoints.iter().map(|e| {
        let shift = format!(
            "{} before, {} during",
            units::percent(e.before),
            units::percent(e.during)
        );
        row(&format!("endpoint {}", e.endpoint + 1), shift)
    }));
    rows.extend(
        drill
            .hooks
            .iter()
            .map(|hook| row("command failed", hook.clone())),
    );
    rows.extend(drill.data.as_ref().map(|data| {
        let found = units::count(data.findings);
        row(
            "wrong answers found by the oracle",
            match data.audited {
                true => found,
                false => format!("{found}, without an audit"),
            },
        )
    }));
    rows.extend(drill.data.as_ref().map(|data| {
        let (unknown, all) = (units::count(data.unknown), units::count(data.mutations));
        row("writes of unknown outcome", format!("{unknown} of {all}"))
    }));
    if let Some(line) = &drill.line {
        rows.extend([
            row(
                "CPU of the fault line per operation",
                format!("{:.1} µs", line.cpu_us_per_op),
            ),
            row(
                "CPU of the fault line per GiB",
                format!("{:.2} s", line.cpu_s_per_gib),
            ),
        ]);
    }
    Table::pairs("Figures").with(rows)
}

/// What became of acknowledged writes, by stage; the evidence is in the section of the oracle.
fn data(drill: &DrillResult) -> Table {
    let staged = drill.data.iter().flat_map(|data| &data.by_stage);
    let rows = staged.map(|row| {
        [
            row.kind.name().to_owned(),
            units::count(row.count),
            row.acknowledged.map_or("–", Stage::words).to_owned(),
            row.shown.words().to_owned(),
        ]
    });
    let head = ["finding", "count", "write acknowledged", "shown"];
    Table::new(2, head)
        .titled("Data")
        .noted("The section Consistency names keys and requests.")
        .with(rows)
}

fn faults(drill: &DrillResult) -> Table {
    let rows = drill.faults.iter().map(|fault| {
        [
            fault.name.clone(),
            fault.what.clone(),
            format!("{:.2} s", fault.from_s),
            format!("{:.2} s", fault.to_s),
        ]
    });
    Table::new(2, ["fault", "what", "from", "to"])
        .titled("Faults")
        .with(rows)
}
