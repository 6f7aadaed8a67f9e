//! Formats figures for the screen.

use super::source::Snapshot;
use crate::monitor::view::{PhaseState, PhaseView, Point};

/// Formats a value with three significant digits and the fitting unit.
fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    let (factor, unit) = steps
        .iter()
        .rev()
        .find(|(factor, _)| value.abs() >= *factor)
        .or(steps.first())
        .copied()
        .unwrap_or((1.0, ""));
    let value = value / factor;
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{unit}")
}

/// A duration.
pub(super) fn ns(value: u64) -> String {
    let steps = [(1.0, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s")];
    scaled(value as f64, &steps)
}

/// A rate.
pub(super) fn rate(value: f64) -> String {
    scaled(value, &[(1.0, ""), (1e3, "k"), (1e6, "M")])
}

/// Bytes.
pub(crate) fn bytes(value: f64) -> String {
    let k = 1024.0;
    let steps = [
        (1.0, " B"),
        (k, " KiB"),
        (k * k, " MiB"),
        (k * k * k, " GiB"),
    ];
    scaled(value, &steps)
}

/// Formats a duration as h:mm:ss or m:ss.
pub(super) fn clock(seconds: f64) -> String {
    let s = seconds as u64;
    if s >= 3600 {
        format!("{}:{:02}:{:02}", s / 3600, s % 3600 / 60, s % 60)
    } else {
        format!("{}:{:02}", s / 60, s % 60)
    }
}

/// The elapsed time of a phase, and its limit.
pub(super) fn progress(phase: &PhaseView) -> String {
    let mut text = clock(phase.elapsed_s);
    if phase.limit_s > 0.0 {
        text += &format!(" of {}", clock(phase.limit_s));
    }
    text
}

/// A symbol for the state of a phase.
pub(super) const fn mark(state: PhaseState) -> &'static str {
    match state {
        PhaseState::Waiting => "○",
        PhaseState::Running => "▶",
        PhaseState::Done => "✓",
    }
}

/// Operations per second of all classes.
pub(super) fn total_rate(point: &Point) -> f64 {
    point
        .classes
        .iter()
        .flatten()
        .map(|class| class.ops_per_s)
        .sum()
}

/// The whole state in one line.
pub(super) fn line(shown: &Snapshot) -> String {
    let Some(view) = &shown.view else {
        return format!("{}: no run; {} waiting", shown.title, shown.waiting);
    };
    let run = &view.run;
    let mut text = format!("{}: {} {}", shown.title, run.workload, run.status);
    if let Some(phase) = run.phases.get(run.current) {
        text += &format!(", phase {} {}", phase.name, progress(phase));
        if let Some(point) = view.series.points.last() {
            text += &format!(", {} ops/s", rate(total_rate(point)));
            let worst = point.classes.iter().flatten().map(|class| class.p99_ns);
            if let Some(p99) = worst.max() {
                text += &format!(", p99 {}", ns(p99));
            }
        }
        text += &format!(", {} failed", phase.failed);
    }
    if let Some(verdict) = &run.verdict {
        text += &format!(", {verdict}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{bytes, clock, ns, rate};

    #[test]
    fn figures_are_short() {
        assert_eq!(ns(0), "0 ns");
        assert_eq!(ns(1_234_567), "1.23 ms");
        assert_eq!(ns(123_456_789), "123 ms");
        assert_eq!(rate(0.5), "0.50");
        assert_eq!(rate(12_345.0), "12.3k");
        assert_eq!(bytes(1_572_864.0), "1.50 MiB");
        assert_eq!(clock(59.9), "0:59");
        assert_eq!(clock(86_400.0), "24:00:00");
    }
}
