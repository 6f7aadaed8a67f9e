//! A run in progress: one line for logs, several for terminals.
//!
//! A [`LiveView`] consumes the events and intervals of a run and renders the latest state. The caller writes the
//! text and, on a terminal, moves the cursor. Memory is bounded.

use bucketload_core::histogram::Histogram;
use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::sink::Event;
use bucketload_core::tally::{Interval, Tally};

use crate::units;

/// Number of intervals in the small chart.
const CHART: usize = 40;
/// Marks of the small chart, from low to high.
pub(super) const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Length of the progress bar in characters.
const BAR: usize = 24;

/// The state of a run for display.
#[derive(Clone, Debug)]
pub struct LiveView {
    phases: Vec<PhaseGoal>,
    phase: usize,
    started_ns: u64,
    now_ns: u64,
    latest: Option<Latest>,
    /// Operations and bytes of the phase so far.
    offered: u64,
    ok: u64,
    failed: u64,
    bytes: u64,
    chart: Vec<f64>,
}

/// The limits of a phase.
#[derive(Clone, Debug)]
struct PhaseGoal {
    name: String,
    kind: PhaseKind,
    duration_ns: u64,
    ops: u64,
    bytes: u64,
    cap: u64,
    open_loop: bool,
}

/// Figures of the latest interval.
#[derive(Clone, Debug)]
struct Latest {
    ops_per_s: f64,
    offered_per_s: f64,
    bytes_per_s: f64,
    in_flight: u64,
    p50_ns: u64,
    p99_ns: u64,
    classes: Vec<LatestClass>,
}

#[derive(Clone, Debug)]
struct LatestClass {
    name: &'static str,
    ops_per_s: f64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl LiveView {
    /// A view of a run of `plan` that has not started.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let goal = |p: &bucketload_core::plan::PhasePlan| {
            let caps = p
                .works
                .iter()
                .filter_map(|w| w.model.open_cap().map(u64::from));
            let cap = caps.clone().sum();
            PhaseGoal {
                name: p.name.clone(),
                kind: p.kind,
                duration_ns: p.limits.duration_ns,
                ops: p.limits.ops,
                bytes: p.limits.bytes,
                cap,
                open_loop: caps.count() > 0,
            }
        };
        Self {
            phases: plan.phases.iter().map(goal).collect(),
            phase: 0,
            started_ns: 0,
            now_ns: 0,
            latest: None,
            offered: 0,
            ok: 0,
            failed: 0,
            bytes: 0,
            chart: Vec::new(),
        }
    }

    /// Consumes an event.
    pub fn event(&mut self, event: &Event) {
        if let Event::PhaseStarted { phase, at_ns } = *event {
            self.begin(phase, at_ns);
        }
    }

    fn begin(&mut self, phase: u16, at_ns: u64) {
        self.phase = usize::from(phase);
        self.started_ns = at_ns;
        self.now_ns = at_ns;
        self.latest = None;
        (self.offered, self.ok, self.failed, self.bytes) = (0, 0, 0, 0);
        self.chart.clear();
    }

    /// Consumes an interval.
    pub fn interval(&mut self, interval: &Interval) {
        if usize::from(interval.phase) != self.phase {
            self.begin(interval.phase, interval.start_ns);
        }
        let tally = &interval.tally;
        let seconds = interval.end_ns.saturating_sub(interval.start_ns).max(1) as f64 / 1e9;
        self.now_ns = interval.end_ns;
        self.offered += tally.offered;
        self.ok += tally.ok();
        self.failed += tally.failures();
        self.bytes += tally.bytes();
        let ops_per_s = tally.ok() as f64 / seconds;
        if self.chart.len() == CHART {
            self.chart.remove(0);
        }
        self.chart.push(ops_per_s);
        let all = merged(tally, None);
        self.latest = Some(Latest {
            ops_per_s,
            offered_per_s: tally.offered as f64 / seconds,
            bytes_per_s: tally.bytes() as f64 / seconds,
            in_flight: interval.gauges.in_flight,
            p50_ns: all.quantile_ns(0.5),
            p99_ns: all.quantile_ns(0.99),
            classes: classes(tally, seconds),
        });
    }

    /// The state as one line, for logs and pipes.
    #[must_use]
    pub fn line(&self) -> String {
        let Some(goal) = self.phases.get(self.phase) else {
            return String::new();
        };
        let mut parts = vec![format!("{} {}", goal.name, self.progress(goal))];
        if let Some(l) = &self.latest {
            parts.push(self.rates(goal, l));
            parts.push(format!(
                "p50 {}  p99 {}",
                units::ns(l.p50_ns as f64),
                units::ns(l.p99_ns as f64)
            ));
            parts.push(format!("in flight {}", units::count(l.in_flight)));
        }
        if self.failed > 0 {
            parts.push(format!("failed {}", units::count(self.failed)));
        }
        parts.join("  ")
    }

    /// The state as lines of at most `width` characters, for terminals.
    #[must_use]
    pub fn lines(&self, width: usize) -> Vec<String> {
        let Some(goal) = self.phases.get(self.phase) else {
            return Vec::new();
        };
        let bar = self.share(goal).map_or_else(String::new, |share| {
            let full = ((share * BAR as f64) as usize).min(BAR);
            format!("[{}{}] ", "#".repeat(full), "-".repeat(BAR - full))
        });
        let mut lines = vec![format!(
            "{} {bar}{}  (phase {} of {})",
            goal.name,
            self.progress(goal),
            self.phase + 1,
            self.phases.len()
        )];
        if let Some(l) = &self.latest {
            let cap = if goal.cap > 0 {
                format!(" of {}", units::count(goal.cap))
            } else {
                String::new()
            };
            lines.push(format!(
                "  {}  in flight {}{cap}  failed {}",
                self.rates(goal, l),
                units::count(l.in_flight),
                units::count(self.failed)
            ));
            for class in &l.classes {
                lines.push(format!(
                    "  {:<14} {:>9} ops/s  p50 {:>8}  p99 {:>8}  max {:>8}",
                    class.name,
                    units::rate(class.ops_per_s),
                    units::ns(class.p50_ns as f64),
                    units::ns(class.p99_ns as f64),
                    units::ns(class.max_ns as f64)
                ));
            }
            if goal.kind == PhaseKind::Run && self.chart.len() > 1 {
                lines.push(format!("  ops/s {}", self.chart()));
            }
        }
        for line in &mut lines {
            if let Some((end, _)) = line.char_indices().nth(width) {
                line.truncate(end);
            }
        }
        lines
    }

    fn rates(&self, goal: &PhaseGoal, l: &Latest) -> String {
        let mut text = format!("{} ops/s", units::rate(l.ops_per_s));
        if goal.open_loop {
            text += &format!(" (offered {})", units::rate(l.offered_per_s));
        }
        if l.bytes_per_s > 0.0 {
            text += &format!("  {}/s", units::bytes(l.bytes_per_s));
        }
        text
    }

    /// Progress of the phase towards the limit that it is closest to.
    fn share(&self, goal: &PhaseGoal) -> Option<f64> {
        let elapsed = self.now_ns.saturating_sub(self.started_ns);
        let done = self.ok + self.failed;
        [
            (elapsed, goal.duration_ns),
            (done, goal.ops),
            (self.bytes, goal.bytes),
        ]
        .into_iter()
        .filter(|&(_, limit)| limit > 0)
        .map(|(value, limit)| value as f64 / limit as f64)
        .reduce(f64::max)
        .map(|share| share.min(1.0))
    }

    fn progress(&self, goal: &PhaseGoal) -> String {
        let elapsed = self.now_ns.saturating_sub(self.started_ns) as f64 / 1e9;
        let mut text = units::seconds(elapsed);
        if goal.duration_ns > 0 {
            text += &format!(" of {}", units::seconds(goal.duration_ns as f64 / 1e9));
        }
        if goal.ops > 0 {
            let done = units::count(self.ok + self.failed);
            text += &format!(", {done} of {} operations", units::count(goal.ops));
        }
        if goal.bytes > 0 {
            let (done, all) = (self.bytes as f64, goal.bytes as f64);
            text += &format!(", {} of {}", units::bytes(done), units::bytes(all));
        }
        text
    }

    fn chart(&self) -> String {
        let top = self.chart.iter().copied().fold(0.0, f64::max);
        self.chart
            .iter()
            .map(|v| {
                let level = if top > 0.0 { v / top * 7.0 } else { 0.0 };
                MARKS[(level.round() as usize).min(7)]
            })
            .collect()
    }
}

/// Response times of one class, or of all.
fn merged(tally: &Tally, class: Option<bucketload_core::op::OpClass>) -> Histogram {
    let mut all = Histogram::new();
    for cell in &tally.cells {
        if class.is_none_or(|class| class == cell.class) {
            all.merge(&cell.response);
        }
    }
    all
}

/// The classes with successes in the interval, in the order of reports.
fn classes(tally: &Tally, seconds: f64) -> Vec<LatestClass> {
    bucketload_core::op::OpClass::ALL
        .into_iter()
        .filter_map(|class| {
            let h = merged(tally, Some(class));
            (!h.is_empty()).then(|| LatestClass {
                name: class.name(),
                ops_per_s: h.count() as f64 / seconds,
                p50_ns: h.quantile_ns(0.5),
                p99_ns: h.quantile_ns(0.99),
                max_ns: h.max_ns(),
            })
        })
        .collect()
}
