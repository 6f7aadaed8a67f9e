//! The charts of an experiment, as its figures request them, computed from its groups.
//!
//! [`lines`] has metrics over swept values, [`bars`] metrics per target, [`distributions`] densities and distribution
//! functions, [`spread`] load per node, [`capacity`] searches. A figure without data yields a sentence instead of a
//! chart.

mod bars;
mod capacity;
mod distributions;
mod efficiency;
mod lines;
mod spread;

pub(super) use bars::rows as multiples_of;
pub(super) use capacity::ends;
pub(super) use lines::fit;
pub(super) use spread::phases as balance_phases;

use bucketload_results::kit::escape::slug;
use bucketload_results::kit::svg::Body;
use bucketload_results::kit::{Axis, Chart, Unit};

use super::groups::{Group, Measured};
use super::read::Files;
use super::show::{self, Ops, distinct};
use crate::model::{Figure, FigureKind, Metric};

/// Limit on the charts of one figure, which may have one per value, class or phase.
const MAX_CHARTS: usize = 24;

/// A requested figure with its data.
pub(super) struct Context<'a> {
    /// The study.
    pub(super) files: &'a Files,
    /// The experiment.
    pub(super) measured: &'a Measured,
    /// The figure.
    pub(super) figure: &'a Figure,
}

/// The charts of an experiment, and notes about figures without charts.
pub(super) fn of(files: &Files, measured: &Measured) -> (Vec<Chart>, Vec<String>) {
    let (mut charts, mut notes) = (Vec::new(), Vec::new());
    for figure in &measured.experiment.figures {
        let context = Context {
            files,
            measured,
            figure,
        };
        let mut made = one(&context);
        made.retain(|chart| !chart.is_empty());
        if figure.kind == FigureKind::LoadBalance {
            let remarks = spread::remarks(&context);
            notes.extend(
                remarks
                    .iter()
                    .map(|remark| format!("Load balance: {remark}")),
            );
        }
        // Several charts of one figure need distinct titles; a single one gets the given title.
        if let ([chart], false) = (&mut made[..], figure.title.is_empty()) {
            chart.title.clone_from(&figure.title);
        }
        if made.is_empty() {
            notes.push(format!(
                "Figure \"{}\" has no data: {}.",
                figure.kind.name(),
                why(&measured.groups, figure)
            ));
        }
        if made.len() > MAX_CHARTS {
            notes.push(format!(
                "Figure \"{}\" has {} charts; the first {MAX_CHARTS} are shown.",
                figure.kind.name(),
                made.len()
            ));
            made.truncate(MAX_CHARTS);
        }
        charts.extend(made);
        notes.dedup();
    }
    (charts, notes)
}

fn one(context: &Context<'_>) -> Vec<Chart> {
    match context.figure.kind {
        FigureKind::Curve => lines::curve(context),
        FigureKind::Scaling => lines::scaling(context),
        FigureKind::Efficiency => efficiency::efficiency(context),
        FigureKind::Bars => bars::bars(context),
        FigureKind::Multiples => bars::multiples(context),
        FigureKind::Hotspot => bars::hotspot(context),
        FigureKind::ThroughputPdf => distributions::throughput(context),
        FigureKind::LatencyCdf => distributions::cdf(context),
        FigureKind::LatencyDensity => distributions::density(context),
        FigureKind::LoadBalance => spread::balance(context),
        FigureKind::Capacity => capacity::capacity(context),
    }
}

fn why(groups: &[Group], figure: &Figure) -> &'static str {
    let measured = groups.iter().filter(|group| !group.runs.is_empty()).count();
    match figure.kind {
        _ if measured == 0 => "no cell was measured",
        FigureKind::Multiples if measured == 1 => "multiples need a second target",
        FigureKind::Efficiency => "two numbers of processes or workers are needed",
        FigureKind::Capacity => "no search ended",
        _ => "the runs lack this data or have too few operations for it",
    }
}

impl<'a> Context<'a> {
    fn groups(&self) -> &'a [Group] {
        &self.measured.groups
    }

    /// The phases of the figure, with its class.
    fn selections(&self) -> Vec<Ops<'a>> {
        let metric = self.figure.metric.unwrap_or(Metric::Throughput);
        let phases = show::phases_of(self.groups(), &self.figure.phase, metric);
        let ops = |phase| Ops {
            phase,
            class: &self.figure.class,
        };
        phases.into_iter().map(ops).collect()
    }

    /// A chart of this experiment; `parts` distinguish it from its other charts.
    fn chart(&self, parts: &[&str], title: &str, axes: (Axis, Axis), body: Body) -> Chart {
        let experiment = &self.measured.experiment;
        let mut name = vec![experiment.name.as_str(), self.figure.kind.name()];
        name.extend(parts.iter().copied().filter(|part| !part.is_empty()));
        let of = match self.figure.title.as_str() {
            "" => experiment.label(),
            given => given,
        };
        let chart = Chart::new(format!("{of}: {title}"), axes.0, axes.1, body);
        Chart {
            name: slug(&name.join("-")),
            ..chart
        }
    }

    /// Explains error bars and hollow marks of a metric.
    fn note(&self, metric: Metric) -> String {
        let groups = self.groups();
        let what = match show::is_percentile(metric) {
            true => "Median of the repetitions' percentiles",
            false => "Geometric mean of the repetitions",
        };
        let most = groups.iter().map(|g| g.counted().count()).max();
        let bars = match most.unwrap_or(0) {
            0 | 1 => "One run per cell: no interval.".to_owned(),
            n => format!("{what} (up to {n}) with 95 % interval."),
        };
        bars + hollow(groups)
    }

    /// The axis of the swept values, and the position of each group on it.
    fn values_axis(&self) -> (Axis, Vec<f64>) {
        let groups = self.groups();
        let experiment = &self.measured.experiment;
        let names = self.measured.values();
        let size = super::groups::is_size(&experiment.field, &names)
            || matches!(experiment.command, crate::model::Command::S3Hpc);
        let label = match experiment.field.as_str() {
            _ if size => "object size".to_owned(),
            "" => "value".to_owned(),
            field => {
                let last = field.rsplit('.').next().unwrap_or(field);
                last.replace(['-', '_'], " ")
            }
        };
        let numbers = groups.iter().map(|g| g.number.filter(|n| *n > 0.0));
        let numbers: Option<Vec<f64>> = numbers.collect();
        let unit = if size { Unit::Bytes } else { Unit::Number };
        let different = |numbers: &Vec<f64>| distinct(numbers.iter().copied()).len();
        match numbers.filter(|numbers| different(numbers) == names.len() && names.len() > 1) {
            Some(numbers) => (numbered(&label, unit, &numbers), numbers),
            None => {
                let at = |g: &Group| names.iter().position(|n| *n == g.value);
                let at = groups.iter().map(|g| at(g).unwrap_or(0) as f64).collect();
                let names = names.iter().map(|n| (*n).to_owned()).collect();
                (Axis::named(&label, names), at)
            }
        }
    }
}

/// An axis for these numbers; if they are few, each is a tick.
fn numbered(label: &str, unit: Unit, numbers: &[f64]) -> Axis {
    let mut at = numbers.to_vec();
    at.sort_by(f64::total_cmp);
    at.dedup();
    if at.len() > 12 {
        at.clear();
    }
    let axis = Axis::fitting(label, unit, numbers.iter().copied());
    Axis {
        zero: false,
        ..axis.ticks_at(&at)
    }
}

/// Numbers of processes of the groups, ascending; just 0 if commands sweep none.
pub(super) fn processes(groups: &[Group]) -> Vec<u32> {
    let mut out: Vec<u32> = groups.iter().map(|group| group.processes).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Targets of groups, in order: name, display name, look.
pub(super) fn targets(groups: &[Group]) -> Vec<(&str, &str, usize)> {
    let mut out: Vec<(&str, &str, usize)> = Vec::new();
    for group in groups {
        if !out.iter().any(|(name, _, _)| *name == group.target) {
            out.push((&group.target, &group.label, group.look));
        }
    }
    out
}

/// Name of a line: target, with the number of processes if there are several.
pub(super) fn line_name(label: &str, processes: u32, several: bool) -> String {
    match (several, processes) {
        (true, 1) => format!("{label}, 1 process"),
        (true, n) => format!("{label}, {n} processes"),
        (false, _) => label.to_owned(),
    }
}

/// Explains hollow marks; empty without any.
pub(super) fn hollow(groups: &[Group]) -> &'static str {
    match groups.iter().any(Group::flawed) {
        true => " Hollow: a run of the cell is not VALID (see the verdict table).",
        false => "",
    }
}
