//! Densities and distribution functions: throughput per second, and response times.

use bucketload_core::stats::moments::Moments;
use bucketload_core::stats::normality::GaussianFit;

use super::super::curves::Curve;
use super::super::groups::Group;
use super::super::show;
use super::super::svg::{Axis, Body, Chart, Point, Series, Unit};
use super::{Context, line_name, processes};
use crate::model::Figure;

/// Bins of the histogram of throughput.
const BINS: usize = 40;
/// Points of the fitted Gaussian.
const GAUSS_POINTS: usize = 80;
/// Fewest seconds for a statement about the shape (docs/spec/statistics.md section 9).
const ENOUGH: usize = 60;

/// The values that groups have, in order.
fn values(groups: &[Group]) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for group in groups {
        if !out.contains(&&*group.value) {
            out.push(&group.value);
        }
    }
    out
}

fn plain(x: f64, y: f64) -> Point {
    Point {
        x,
        y,
        ci: None,
        flawed: false,
    }
}

/// Histogram of the throughput per second with the fitted Gaussian; a chart per phase and value.
pub(super) fn throughput(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let groups = context.groups();
    let mut charts = Vec::new();
    let mut phases: Vec<&str> = Vec::new();
    for phase in groups.iter().flat_map(|g| g.extra.per_second.keys()) {
        let asked = show::like(&figure.phase, phase);
        if asked && !phases.contains(&phase.as_str()) {
            phases.push(phase);
        }
    }
    for phase in &phases {
        for value in values(groups) {
            let shown = if phases.len() > 1 { *phase } else { "" };
            charts.extend(seconds(context, figure, phase, shown, value));
        }
    }
    charts
}

fn seconds(
    context: &Context<'_>,
    figure: &Figure,
    phase: &str,
    shown: &str,
    value: &str,
) -> Option<Chart> {
    let groups: Vec<&Group> = context
        .groups()
        .iter()
        .filter(|g| g.value == value)
        .collect();
    let of = |group: &Group| group.extra.per_second.get(phase).cloned();
    let moved = groups
        .iter()
        .filter_map(|g| of(g))
        .any(|s| s.bytes.iter().any(|b| *b > 0.0));
    let samples: Vec<(&Group, Vec<f64>, Vec<f64>)> = groups
        .iter()
        .filter_map(|group| {
            let seconds = of(group)?;
            let values = if moved { seconds.bytes } else { seconds.ops };
            (!values.is_empty()).then_some((*group, values, seconds.excess))
        })
        .collect();
    let most = samples
        .iter()
        .flat_map(|(_, v, _)| v.iter().copied())
        .fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let width = most * 1.0001 / BINS as f64;
    let several = processes(context.groups()).len() > 1;
    let (mut series, mut notes) = (Vec::new(), Vec::new());
    for (group, values, excess) in &samples {
        let mut counts = [0u32; BINS];
        for v in values {
            counts[((v / width) as usize).min(BINS - 1)] += 1;
        }
        // Shares, so that targets of different lengths of run compare; trailing zeros are left out.
        let share = |count: u32| f64::from(count) / values.len() as f64;
        let used = counts.iter().rposition(|c| *c > 0).map_or(0, |at| at + 1);
        let from = counts.iter().position(|c| *c > 0).unwrap_or(0);
        let mut points = vec![plain(from as f64 * width, 0.0)];
        for (i, count) in counts.iter().enumerate().take(used).skip(from) {
            points.push(plain(i as f64 * width, share(*count)));
        }
        points.push(plain(used as f64 * width, 0.0));
        let mut name = line_name(&group.label, group.processes, several);
        let mark = group.word().map_or("", show::mark);
        if !mark.is_empty() {
            name += &format!(" ({mark})");
        }
        series.push(Series {
            name: name.clone(),
            points,
            look: group.look,
            steps: true,
            ..Series::default()
        });
        let moments = Moments::of(values);
        let mut note = format!("{name}: {} s", values.len());
        if let Some(cv) = moments.cv() {
            note += &format!(", CV {}", Unit::Share.show(cv));
        }
        if let Some(fit) = GaussianFit::of(values) {
            note += match (values.len() >= ENOUGH, fit.is_plausible()) {
                (false, _) => ", too few seconds to judge the shape",
                (true, true) => ", Gaussian not rejected at 1 %",
                (true, false) => ", not Gaussian (Anderson-Darling, 1 %)",
            };
            series.push(gaussian(&fit, width, group.look, most));
        }
        if let Some(excess) = super::super::estimate::Over::median(excess) {
            note += &format!(
                ", fluctuation {} that of the offered bytes",
                Unit::Times.show(excess.value)
            );
        }
        notes.push(note);
    }
    let unit = if moved { Unit::BytesPerS } else { Unit::PerS };
    let mut chart = context.chart(
        figure,
        &[shown, value],
        show::titled("throughput per second", shown, value),
        (
            Axis::linear("throughput in a second", unit),
            Axis::linear("share of seconds", Unit::Share),
        ),
        Body::Lines(series),
    );
    chart.note = format!(
        "All seconds inside the measured windows of all repetitions. Dashed: fitted Gaussians. {}. {}",
        notes.join("; "),
        if context.groups().iter().any(Group::flawed) {
            show::LETTERS
        } else {
            ""
        }
    );
    Some(chart)
}

fn gaussian(fit: &GaussianFit, width: f64, look: usize, most: f64) -> Series {
    let (low, high) = (
        (fit.mean - 4.0 * fit.sd).max(0.0),
        (fit.mean + 4.0 * fit.sd).min(most * 1.05),
    );
    let points = (0..=GAUSS_POINTS).map(|i| {
        let x = low + (high - low) * i as f64 / GAUSS_POINTS as f64;
        let z = (x - fit.mean) / fit.sd;
        let density = (-z * z / 2.0).exp() / (fit.sd * std::f64::consts::TAU.sqrt());
        plain(x, density * width)
    });
    Series {
        points: points.collect(),
        look,
        dashed: true,
        ..Series::default()
    }
}

/// Distribution functions of the response time; a chart per phase, class and value.
pub(super) fn cdf(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let y = Axis::linear("share of operations", Unit::Share);
    times(context, figure, "response time", &y, |curve| {
        curve.points.clone()
    })
}

/// Densities of the response time; a chart per phase, class and value.
pub(super) fn density(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let y = Axis::linear("share of operations per decade", Unit::Number);
    times(
        context,
        figure,
        "density of the response time",
        &y,
        Curve::density,
    )
}

fn times(
    context: &Context<'_>,
    figure: &Figure,
    title: &str,
    y: &Axis,
    points: impl Fn(&Curve) -> Vec<(f64, f64)>,
) -> Vec<Chart> {
    let groups = context.groups();
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for (phase, class) in groups.iter().flat_map(|g| g.extra.curves.keys()) {
        let asked = show::like(&figure.phase, phase)
            && match figure.class.as_str() {
                "" => !class.is_empty(),
                asked => asked == class,
            };
        if asked && !keys.contains(&(phase, class)) {
            keys.push((phase, class));
        }
    }
    // As they were carried out.
    let order = show::phases(groups, "");
    keys.sort_by_key(|(phase, _)| order.iter().position(|known| known == phase));
    let phases = {
        let mut phases: Vec<&str> = keys.iter().map(|(phase, _)| *phase).collect();
        phases.dedup();
        phases.len()
    };
    let several = processes(groups).len() > 1;
    let mut charts = Vec::new();
    for (phase, class) in keys {
        for value in values(groups) {
            let own = groups.iter().filter(|g| g.value == value);
            let series: Vec<Series> = own
                .filter_map(|group| {
                    let curve = group
                        .extra
                        .curves
                        .get(&(phase.to_owned(), class.to_owned()))?;
                    let points: Vec<Point> = points(curve)
                        .into_iter()
                        .map(|(x, y)| plain(x, y))
                        .collect();
                    let mut name = line_name(&group.label, group.processes, several);
                    let mark = group.word().map_or("", show::mark);
                    if !mark.is_empty() {
                        name += &format!(" ({mark})");
                    }
                    Some(Series {
                        name,
                        points,
                        look: group.look,
                        ..Series::default()
                    })
                })
                .collect();
            let phase = if phases > 1 { phase } else { "" };
            let mut chart = context.chart(
                figure,
                &[class, phase, value],
                match value.is_empty() {
                    true => show::titled(title, phase, class),
                    false => show::titled(title, format!("{phase} {value}").trim(), class),
                },
                (Axis::log("response time", Unit::Ns), y.clone()),
                Body::Lines(series),
            );
            chart.note = "Operations of all repetitions together (merged histograms).".to_owned();
            if groups.iter().any(Group::flawed) {
                chart.note += " ";
                chart.note += show::LETTERS;
            }
            charts.push(chart);
        }
    }
    charts
}
