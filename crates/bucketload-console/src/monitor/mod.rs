//! Monitors a run for its viewers, in bounded memory.
//!
//! ```text
//! Event, Interval ──RunSink──> RunMonitor ──run()──> RunView      sums, state, warning signs
//!                                │ └──series(phase, from)──> SeriesView   points over time
//!                                └─ per phase: Series (histograms) while it runs, points afterwards
//! ```
//!
//! Bounds: 360 bins of the running phase, 120 points of each of the latest 64 ended phases, sums of the earlier
//! phases, 20 messages.

mod series;
mod sketch;
#[cfg(test)]
mod tests;
pub mod view;

use std::collections::VecDeque;

use bucketload_core::plan::{Limits, PhaseKind};
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_core::tally::{Gauges, Interval};
use bucketload_results::rundir::{Manifest, Status};

use series::Series;
use view::{PhaseState, PhaseView, Point, RunView, SeriesView, View, WarningSign};

/// Maximum number of ended phases with stored points.
const KEPT_PHASES: usize = 64;
/// Maximum number of stored messages.
const MESSAGES: usize = 20;
/// Maximum length of a message, characters.
const MESSAGE_LEN: usize = 300;
/// Share of a core at which a load thread may be the bottleneck; the verdict has its own rule.
const BUSY_THREAD: f64 = 0.9;
/// Age of the oldest operation that causes a warning sign, nanoseconds.
const OLD_NS: u64 = 2_000_000_000;

/// The series of one phase.
#[derive(Debug)]
enum Data {
    None,
    Live(Box<Series>),
    Done {
        width_ns: u64,
        classes: Vec<&'static str>,
        points: Vec<Point>,
    },
}

#[derive(Debug)]
struct Phase {
    view: PhaseView,
    limits: Limits,
    offered: u64,
    capped: u64,
    started_ns: Option<u64>,
    data: Data,
}

/// The state of a run, for its viewers.
#[derive(Debug)]
pub struct RunMonitor {
    run: RunView,
    phases: Vec<Phase>,
    current: usize,
    messages: VecDeque<String>,
    gauges: Gauges,
    busiest_share: Option<f64>,
}

impl RunMonitor {
    /// Makes the monitor of a run that has only a manifest.
    #[must_use]
    pub fn new(manifest: &Manifest) -> Self {
        let phases = manifest
            .plan
            .phases
            .iter()
            .map(|phase| Phase {
                view: PhaseView {
                    name: phase.name.clone(),
                    kind: kind_name(phase.kind).to_owned(),
                    limit_s: phase.limits.duration_ns as f64 / 1e9,
                    ..PhaseView::default()
                },
                limits: phase.limits,
                offered: 0,
                capped: 0,
                started_ns: None,
                data: Data::None,
            })
            .collect();
        let mut monitor = Self {
            run: RunView {
                run_id: manifest.run_id.clone(),
                workload: manifest.plan.workload.clone(),
                target: manifest.target.clone(),
                ..RunView::default()
            },
            phases,
            current: 0,
            messages: VecDeque::new(),
            gauges: Gauges::default(),
            busiest_share: None,
        };
        monitor.status(manifest);
        monitor
    }

    /// Updates status and verdict from the manifest.
    pub fn status(&mut self, manifest: &Manifest) {
        self.run.status = match manifest.status {
            Status::Running => "running",
            Status::Finished => "finished",
            Status::Interrupted => "interrupted",
            Status::Aborted => "aborted",
        }
        .to_owned();
        self.run.verdict = manifest.verdict.as_ref().map(|v| v.word.to_string());
        if let Some(error) = &manifest.error
            && manifest.status != Status::Running
            && self.messages.back() != Some(error)
        {
            self.say(error);
        }
    }

    /// The summary of the run.
    #[must_use]
    pub fn run(&self) -> RunView {
        RunView {
            current: self.current,
            shown: self.shown(),
            phases: self.phases.iter().map(|phase| phase.view.clone()).collect(),
            signs: self.signs(),
            messages: self.messages.iter().cloned().collect(),
            in_flight: self.gauges.in_flight,
            busiest_share: self.busiest_share,
            rss_bytes: self.gauges.rss_bytes,
            ..self.run.clone()
        }
    }

    /// The points of a phase from index `from` on, or all points if the bins are no longer `width_ns` wide.
    #[must_use]
    pub fn series(&self, phase: usize, from: usize, width_ns: u64) -> SeriesView {
        let (width, classes, points, from) = match self.phases.get(phase).map(|p| &p.data) {
            Some(Data::Live(series)) => {
                let from = if series.width_ns() == width_ns {
                    from.min(series.len())
                } else {
                    0
                };
                let classes = series.classes();
                (series.width_ns(), classes, series.points(from), from)
            }
            Some(Data::Done {
                width_ns: width,
                classes,
                points,
            }) => {
                // An ended phase may have fewer points than before, at the same width.
                (*width, classes.clone(), points.clone(), 0)
            }
            _ => (0, Vec::new(), Vec::new(), 0),
        };
        SeriesView {
            phase,
            width_s: width as f64 / 1e9,
            classes: classes.into_iter().map(str::to_owned).collect(),
            from,
            points,
        }
    }

    /// Index of the running phase, or of the last one.
    #[must_use]
    pub const fn current(&self) -> usize {
        self.current
    }

    /// Index of the phase whose figures are shown by default: the current one, but while it measures nothing (audit,
    /// clean-up, a pause) the latest one that does.
    #[must_use]
    pub fn shown(&self) -> usize {
        let loads = |phase: &Phase| matches!(phase.view.kind.as_str(), "run" | "prepare");
        let mut so_far = self.phases.iter().take(self.current + 1).enumerate().rev();
        so_far
            .find(|(i, phase)| loads(phase) && (*i == self.current || phase.view.has_series))
            .map_or(self.current, |(i, _)| i)
    }

    /// Name of the running phase, or of the last one.
    #[must_use]
    pub fn current_name(&self) -> String {
        let phase = self.phases.get(self.current);
        phase.map_or_else(String::new, |phase| phase.view.name.clone())
    }

    /// The run with all points of `phase`, or of the [shown](Self::shown) one.
    #[must_use]
    pub fn view(&self, phase: Option<usize>) -> View {
        View {
            run: self.run(),
            series: self.series(phase.unwrap_or_else(|| self.shown()), 0, 0),
        }
    }

    fn signs(&self) -> Vec<WarningSign> {
        let sign = |name: &str, text: String| WarningSign {
            name: name.to_owned(),
            text,
        };
        let mut signs = Vec::new();
        let measured = |phase: &&Phase| phase.view.kind == kind_name(PhaseKind::Run);
        let (ok, failed) = self
            .phases
            .iter()
            .filter(measured)
            .fold((0, 0), |(ok, failed), phase| {
                (ok + phase.view.ok, failed + phase.view.failed)
            });
        if failed > 0 {
            let share = 100.0 * failed as f64 / (ok + failed) as f64;
            let of = ok + failed;
            signs.push(sign(
                "failures",
                format!("{failed} of {of} operations failed ({share:.2} %)"),
            ));
        }
        let capped: u64 = self
            .phases
            .iter()
            .filter(measured)
            .map(|phase| phase.capped)
            .sum();
        if capped > 0 {
            signs.push(sign(
                "overload",
                format!("{capped} operations came due while all workers were busy and the limit of operations in flight was reached"),
            ));
        }
        if self.gauges.backlog_ns >= OLD_NS {
            signs.push(sign(
                "backlog",
                format!(
                    "the oldest operation in flight came due {:.1} s ago",
                    self.gauges.backlog_ns as f64 / 1e9
                ),
            ));
        }
        if let Some(share) = self.busiest_share.filter(|share| *share >= BUSY_THREAD) {
            signs.push(sign(
                "client",
                format!(
                    "the busiest load thread uses {:.0} % of a core: the client may be the bottleneck",
                    100.0 * share
                ),
            ));
        }
        signs
    }

    fn say(&mut self, message: &str) {
        if self.messages.len() == MESSAGES {
            self.messages.pop_front();
        }
        let message = match message.char_indices().nth(MESSAGE_LEN) {
            Some((end, _)) => format!("{}…", &message[..end]),
            None => message.to_owned(),
        };
        self.messages.push_back(message);
    }

    /// Makes `phase` the current one and ends the phase before it.
    fn enter(&mut self, phase: usize, at_ns: u64) {
        if phase >= self.phases.len() {
            return;
        }
        if phase != self.current {
            let before = self.current;
            self.leave(before);
        }
        self.current = phase;
        let entered = &mut self.phases[phase];
        let started = entered.started_ns.get_or_insert(at_ns);
        *started = (*started).min(at_ns);
        if entered.view.state == PhaseState::Waiting {
            entered.view.state = PhaseState::Running;
        }
        if matches!(entered.data, Data::None) {
            entered.data = Data::Live(Box::default());
        }
    }

    fn leave(&mut self, phase: usize) {
        let Some(left) = self.phases.get_mut(phase) else {
            return;
        };
        if left.view.state == PhaseState::Running {
            left.view.state = PhaseState::Done;
        }
        if let Data::Live(series) = std::mem::replace(&mut left.data, Data::None) {
            let (width_ns, classes, points) = series.freeze();
            left.view.has_series = !points.is_empty();
            left.data = Data::Done {
                width_ns,
                classes,
                points,
            };
        }
        let kept =
            |p: &&mut Phase| matches!(&p.data, Data::Done { points, .. } if !points.is_empty());
        let over = self.phases.iter_mut().filter(kept).count();
        for phase in self
            .phases
            .iter_mut()
            .filter(kept)
            .take(over.saturating_sub(KEPT_PHASES))
        {
            phase.data = Data::None;
            phase.view.has_series = false;
        }
    }
}

impl RunSink for RunMonitor {
    fn event(&mut self, event: &Event) {
        match event {
            Event::PhaseStarted { phase, at_ns } => {
                let known = self.phases.get(usize::from(*phase));
                // If the phase already has intervals, this changes nothing.
                if known.is_some_and(|p| p.view.state == PhaseState::Waiting) {
                    self.enter(usize::from(*phase), *at_ns);
                }
            }
            Event::PhaseEnded {
                phase,
                end,
                drained_ns,
                ..
            } => {
                let index = usize::from(*phase);
                if let Some(ended) = self.phases.get_mut(index) {
                    ended.view.state = PhaseState::Done;
                    ended.view.end = end_name(*end).to_owned();
                    if let Some(started) = ended.started_ns {
                        ended.view.elapsed_s = drained_ns.saturating_sub(started) as f64 / 1e9;
                    }
                    if *end == PhaseEnd::Complete || *end == PhaseEnd::TimeLimit {
                        ended.view.share = ended.view.share.map(|_| 1.0);
                    }
                }
                self.leave(index);
            }
            Event::Warning { message } => self.say(message),
            Event::Failure {
                class, key, error, ..
            } => self.say(&format!("{class} {key}: {error}")),
            Event::Finding(finding) => self.say(&format!("oracle: {}", finding.kind)),
            Event::Calibrated(_)
            | Event::Streams { .. }
            | Event::Round(_)
            | Event::Rows(_)
            | Event::Ranks(_)
            | Event::Train(_)
            | Event::Oracle(_) => {}
        }
    }

    fn interval(&mut self, interval: &Interval) {
        let index = usize::from(interval.phase);
        self.enter(index, interval.start_ns);
        let length = interval.end_ns.saturating_sub(interval.start_ns).max(1);
        let busiest = interval.gauges.busiest_thread_cpu_ns;
        let before = self.gauges.busiest_thread_cpu_ns;
        self.busiest_share =
            (before > 0 && busiest >= before).then(|| (busiest - before) as f64 / length as f64);
        self.gauges = interval.gauges;
        let Some(phase) = self.phases.get_mut(index) else {
            return;
        };
        let tally = &interval.tally;
        phase.offered += tally.offered;
        phase.capped += tally.capped;
        for cell in &tally.cells {
            phase.view.ok += cell.ok;
            phase.view.failed += cell.failures();
            phase.view.bytes += cell.bytes;
        }
        let started = phase.started_ns.unwrap_or(interval.start_ns);
        let elapsed = interval.end_ns.saturating_sub(started);
        phase.view.elapsed_s = elapsed as f64 / 1e9;
        phase.view.share = [
            (elapsed, phase.limits.duration_ns),
            (phase.view.ok + phase.view.failed, phase.limits.ops),
            (phase.view.bytes, phase.limits.bytes),
        ]
        .into_iter()
        .filter(|&(_, limit)| limit > 0)
        .map(|(value, limit)| (value as f64 / limit as f64).min(1.0))
        .reduce(f64::max);
        if let Data::Live(series) = &mut phase.data {
            series.add(interval);
            phase.view.has_series = true;
        }
    }
}

const fn kind_name(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Init => "init",
        PhaseKind::Prepare => "prepare",
        PhaseKind::Run => "run",
        PhaseKind::Audit => "audit",
        PhaseKind::Cleanup => "cleanup",
        PhaseKind::Pause => "pause",
    }
}

const fn end_name(end: PhaseEnd) -> &'static str {
    match end {
        PhaseEnd::Complete => "complete",
        PhaseEnd::TimeLimit => "time limit",
        PhaseEnd::ByteLimit => "byte limit",
        PhaseEnd::Converged => "converged",
        PhaseEnd::Failing => "nearly all failed",
        PhaseEnd::Interrupted => "interrupted",
        PhaseEnd::Aborted => "aborted",
    }
}
