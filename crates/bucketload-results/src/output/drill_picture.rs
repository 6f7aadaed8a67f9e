//! The picture of a drill in a terminal: rates, response times, faults and marks over time, a column for each span of time.

use std::fmt::{self, Write as _};

use super::live::MARKS;
use crate::drill::{DrillResult, Times};
use crate::units;

/// Columns at most, so that a line with its legend fits into 80 characters.
const COLUMNS: usize = 44;
/// Stands where nothing is.
const NOTHING: char = '·';

/// Appends the picture; nothing if there are too few points.
pub(super) fn write(out: &mut String, drill: &DrillResult) -> fmt::Result {
    let waves = &drill.waves;
    let points = waves.t_s.len();
    let per_column = points.div_ceil(COLUMNS).max(1);
    if points < 2 {
        return Ok(());
    }
    let step_s = (waves.t_s[points - 1] - waves.t_s[0]) / (points - 1) as f64;
    let columns = points.div_ceil(per_column);
    let at = |s: f64| ((s - waves.t_s[0]) / step_s / per_column as f64) as usize;
    let highest = |values: &[f64]| -> Vec<f64> {
        let most = |chunk: &[f64]| chunk.iter().copied().fold(0.0, f64::max);
        values.chunks(per_column).map(most).collect()
    };
    let mut row = |name: &str, cells: String, legend: String| {
        let line = format!("  {name:<9}{cells}  {legend}");
        writeln!(out, "{}", line.trim_end())
    };
    let rates = [&waves.offered_per_s, &waves.ok_per_s].map(|values| highest(values));
    let top = rates.iter().flatten().copied().fold(0.0, f64::max);
    let names = ["offered", "answered"];
    for (name, values) in names.into_iter().zip(&rates) {
        let legend = format!(
            "at most {}/s",
            units::rate(values.iter().copied().fold(0.0, f64::max))
        );
        row(name, bars(values, |v| v / top), legend)?;
    }
    let failed = highest(&waves.failed_per_s);
    let most = failed.iter().copied().fold(0.0, f64::max);
    if most > 0.0 {
        row(
            "failed",
            bars(&failed, |v| v / top),
            format!("at most {}/s", units::rate(most)),
        )?;
    }
    let latencies = [&waves.p50_ns, &waves.p99_ns].map(|values| highest(values));
    let known = || latencies.iter().flatten().copied().filter(|v| *v > 0.0);
    let (low, high) = (
        known().fold(f64::INFINITY, f64::min),
        known().fold(0.0, f64::max),
    );
    for (name, values) in ["p50", "p99"].into_iter().zip(&latencies) {
        // A logarithmic scale: recovery is a matter of orders of magnitude.
        let cells = bars(values, |v| {
            (v / low).ln() / (high / low).ln().max(f64::MIN_POSITIVE)
        });
        let most = values.iter().copied().fold(0.0, f64::max);
        row(name, cells, format!("at most {}, log", units::ns(most)))?;
    }
    let mut faults = vec![NOTHING; columns];
    for fault in &drill.faults {
        let to = at(fault.to_s).min(columns - 1);
        faults[at(fault.from_s).min(to)..=to].fill('━');
    }
    row("faults", faults.into_iter().collect(), String::new())?;
    let from = drill
        .faults
        .iter()
        .map(|fault| fault.from_s)
        .fold(f64::INFINITY, f64::min);
    let to = drill
        .faults
        .iter()
        .map(|fault| fault.to_s)
        .fold(0.0, f64::max);
    let mut marks = vec![NOTHING; columns];
    let mut legend = Vec::new();
    let all: [(f64, Option<Times>, char, &str); 3] = [
        (from, drill.detect, 'n', "noticed"),
        (to, drill.worked_off, 'b', "backlog gone"),
        (to, drill.recover, 'r', "recovered"),
    ];
    for (origin, time, letter, name) in all {
        let Some(time) = time else { continue };
        let place = at(origin + time.s).min(columns - 1);
        // Two of one column stand side by side if there is room.
        let free = (place..columns)
            .find(|i| marks[*i] == NOTHING)
            .unwrap_or(place);
        marks[free] = letter;
        legend.push(format!("{letter} {name}"));
    }
    row("marks", marks.into_iter().collect(), String::new())?;
    row("", legend.join(", "), String::new())
}

/// A column for each value: its height is `share` of the whole, nothing where the value is 0.
fn bars(values: &[f64], share: impl Fn(f64) -> f64) -> String {
    let bar = |v: &f64| match *v > 0.0 {
        true => MARKS[(share(*v).clamp(0.0, 1.0) * 7.0).round() as usize],
        false => NOTHING,
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use crate::drill::{DrillResult, FaultSpan, Times, Waves};

    #[test]
    fn columns_are_spans_of_time_with_faults_and_marks_beneath() {
        let hole = |i: usize| (40..45).contains(&i);
        let each = |value: &dyn Fn(usize) -> f64| (0..88).map(value).collect::<Vec<f64>>();
        let ns = |i: usize| if hole(i) { 0.0 } else { 1e6 };
        let drill = DrillResult {
            faults: vec![FaultSpan {
                name: "hole".to_owned(),
                what: "black-hole".to_owned(),
                from_s: 40.0,
                to_s: 45.0,
            }],
            detect: Some(Times {
                s: 1.0,
                ..Times::default()
            }),
            recover: Some(Times {
                s: 2.0,
                ..Times::default()
            }),
            waves: Waves {
                t_s: each(&|i| i as f64),
                offered_per_s: each(&|_| 200.0),
                ok_per_s: each(&|i| {
                    if hole(i) {
                        0.0
                    } else if i == 45 {
                        400.0
                    } else {
                        200.0
                    }
                }),
                failed_per_s: each(&|_| 0.0),
                p50_ns: each(&ns),
                p99_ns: each(&|i| 10.0 * ns(i)),
                available: each(&|_| 1.0),
            },
            ..DrillResult::default()
        };
        let mut out = String::new();
        super::write(&mut out, &drill).unwrap();
        let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
        let dots = |n: usize| "·".repeat(n);
        let (bar, low) = ("▅".repeat(20), "▁".repeat(20));
        assert_eq!(
            lines[0],
            format!("  offered  {}  at most 200.0/s", "▅".repeat(44))
        );
        assert_eq!(
            lines[1],
            format!("  answered {bar}··█{}  at most 400.0/s", "▅".repeat(21))
        );
        assert_eq!(
            lines[2],
            format!(
                "  p50      {low}··▁{}  at most 1.00 ms, log",
                "▁".repeat(21)
            )
        );
        assert_eq!(lines[4], format!("  faults   {}━━━{}", dots(20), dots(21)));
        assert_eq!(lines[5], format!("  marks    {}n··r{}", dots(20), dots(20)));
        assert_eq!(lines[6], "           n noticed, r recovered");
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    }
}
