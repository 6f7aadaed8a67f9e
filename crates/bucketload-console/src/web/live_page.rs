//! What the pages show of a running workload: tiles, warning signs, charts, a table, rendered on the server with the
//! drawings of the reports.

use bucketload_results::kit::{Axis, Chart, Series, Unit, page};
use bucketload_results::units;
use minijinja::{Value, context};
use serde::Serialize;

use super::Console;
use super::pages::v;
use crate::monitor::view::{ClassPoint, Point, RunView, SeriesView};

/// Number of the grey look, for lines that belong to no operation class.
const GREY: usize = 6;

/// How a page shows a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    /// Whether to leave out phases, table and messages: the overview.
    pub(super) compact: bool,
}

/// A row of the table of operation classes.
#[derive(Debug, Serialize)]
struct ClassRow {
    name: String,
    figures: Vec<String>,
}

impl Console {
    /// Renders the run with the points of one phase.
    pub(super) fn live_part(
        &self,
        job: &str,
        run: &RunView,
        series: &SeriesView,
        layout: Layout,
    ) -> Result<String, String> {
        let shown = run.phases.get(series.phase);
        let phases: Vec<Value> = run
            .phases
            .iter()
            .enumerate()
            .map(|(i, phase)| {
                context! {
                    name => phase.name.as_str(),
                    state => v(&phase.state),
                    about => if phase.elapsed_s > 0.0 { clock(phase.elapsed_s) } else { String::new() },
                    end => phase.end.as_str(),
                    pressed => i == series.phase,
                    current => i == run.current,
                    enabled => phase.has_series || i == run.current,
                }
            })
            .collect();
        let content = context! {
            job,
            compact => layout.compact,
            run => v(run),
            phase => v(&run.phases.get(run.current)),
            elapsed => run.phases.get(run.current).map(|phase| clock(phase.elapsed_s)),
            limit => run.phases.get(run.current).filter(|phase| phase.limit_s > 0.0).map(|phase| clock(phase.limit_s)),
            // Audit and clean-up measure nothing; the figures are then those of the phase before.
            of_phase => shown.filter(|_| series.phase != run.current).map(|phase| phase.name.clone()),
            phases,
            facts => v(&facts(run, series)),
            rows => v(&rows(series)),
            charts => Value::from_safe_string(figures(series, layout)),
        };
        self.templates.text("live.html", content)
    }
}

/// A time as a clock shows it: `1:05` or `24:00:00`.
fn clock(seconds: f64) -> String {
    let s = seconds as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        hours => format!("{hours}:{:02}:{:02}", s % 3600 / 60, s % 60),
    }
}

/// The tiles, as value and name.
fn facts(run: &RunView, series: &SeriesView) -> Vec<(String, &'static str)> {
    // The last point may still grow, but its rates are per measured second. Once the phase is over, the last seconds in
    // which operations ended count, because the very last may have none.
    let over = series.phase != run.current;
    let mut points = series.points.iter().rev();
    let classes: Vec<ClassPoint> = points
        .find(|point| !over || point.classes.iter().any(Option::is_some))
        .map(|point| point.classes.iter().flatten().copied().collect())
        .unwrap_or_default();
    let sum = |pick: fn(&ClassPoint) -> f64| classes.iter().map(pick).sum::<f64>();
    let known = |text: String| match classes.is_empty() {
        true => "–".to_owned(),
        false => text,
    };
    let slowest = classes.iter().map(|class| class.p99_ns).max();
    let failed = run.phases.get(series.phase).map(|phase| phase.failed);
    vec![
        (
            known(format!("{}/s", units::number(sum(|c| c.ops_per_s)))),
            "operations",
        ),
        (
            known(format!("{}/s", units::bytes(sum(|c| c.bytes_per_s)))),
            "bytes",
        ),
        (
            slowest.map_or_else(|| "–".to_owned(), |p99| units::ns(p99 as f64)),
            "p99, slowest class",
        ),
        (
            failed.map_or_else(|| "–".to_owned(), units::count),
            "failed in the phase",
        ),
        (units::count(run.in_flight), "in flight"),
        (
            run.busiest_share
                .map_or_else(|| "–".to_owned(), units::percent),
            "busiest load thread",
        ),
    ]
}

/// The classes that occur in the phase, by index. Others belong to another phase of the run.
fn occurring(series: &SeriesView) -> impl Iterator<Item = (usize, &String)> {
    let occurs = |i: usize| {
        let mut points = series.points.iter();
        points.any(|point| point.classes.get(i).is_some_and(Option::is_some))
    };
    let classes = series.classes.iter().enumerate();
    classes.filter(move |(i, _)| occurs(*i))
}

/// The latest figures of each class.
fn rows(series: &SeriesView) -> Vec<ClassRow> {
    let last = series.points.last();
    occurring(series)
        .map(|(i, name)| {
            let point = last.and_then(|point| *point.classes.get(i)?);
            let figures = match point {
                None => vec!["–".to_owned(); 7],
                Some(c) => vec![
                    format!("{}/s", units::number(c.ops_per_s)),
                    format!("{}/s", units::bytes(c.bytes_per_s)),
                    format!("{}/s", units::number(c.failed_per_s)),
                    units::ns(c.p50_ns as f64),
                    units::ns(c.p95_ns as f64),
                    units::ns(c.p99_ns as f64),
                    units::ns(c.max_ns as f64),
                ],
            };
            ClassRow {
                name: name.clone(),
                figures,
            }
        })
        .collect()
}

/// The charts, as markup.
fn figures(series: &SeriesView, layout: Layout) -> String {
    let mut charts = charts(series);
    charts.truncate(if layout.compact { 2 } else { 4 });
    for (chart, i) in charts.iter_mut().zip(1..) {
        chart.name = format!("live-{i}");
    }
    page::figures(&charts)
}

/// Throughput, response times, bytes, failures; without those that have nothing to show.
fn charts(series: &SeriesView) -> Vec<Chart> {
    let (Some(last), false) = (series.points.last(), series.classes.is_empty()) else {
        return Vec::new();
    };
    let (factor, unit, name) = match last.t_s + series.width_s {
        end if end > 10_800.0 => (3600.0, Unit::Number, "time in the phase, hours"),
        end if end > 300.0 => (60.0, Unit::Number, "time in the phase, minutes"),
        _ => (1.0, Unit::Seconds, "time in the phase"),
    };
    let time = Axis {
        // Up to the newest point, so that it is at the edge.
        ends: Some((0.0, last.t_s.max(series.width_s) / factor)),
        ..Axis::linear(name, unit)
    };
    let line = |name: String, look: usize, value: &dyn Fn(&Point) -> f64| {
        let points = series
            .points
            .iter()
            .map(|p| (p.t_s / factor, value(p)))
            .collect::<Vec<(f64, f64)>>();
        Series::line(name, look, points)
    };
    let each = |suffix: &str, pick: fn(&ClassPoint) -> f64| -> Vec<Series> {
        occurring(series)
            .map(|(i, name)| {
                let value = |p: &Point| {
                    let class = p.classes.get(i).copied().flatten();
                    class.as_ref().map_or(f64::NAN, pick)
                };
                line(format!("{name}{suffix}"), i, &value)
            })
            .collect()
    };
    let chart =
        |title: &str, y: Axis, lines: Vec<Series>| Chart::lines(title, time.clone(), y, lines);
    let mut operations = each("", |c| c.ops_per_s);
    operations.push(line("offered".to_owned(), GREY, &|p| p.offered_per_s).dashed());
    let positive = |value: u64| if value == 0 { f64::NAN } else { value as f64 };
    let mut latencies = each(" p99", |c| c.p99_ns as f64);
    latencies.extend(
        each(" p50", |c| c.p50_ns as f64)
            .into_iter()
            .map(Series::dashed),
    );
    for point in latencies.iter_mut().flat_map(|line| &mut line.points) {
        point.y = positive(point.y as u64);
    }
    let mut trouble = each(" failed per second", |c| c.failed_per_s);
    trouble.retain(|line| line.points.iter().any(|point| point.y > 0.0));
    trouble.push(line("in flight".to_owned(), GREY, &|p| p.in_flight as f64).dashed());
    let all = [
        chart(
            "Throughput",
            Axis::linear("operations per second", Unit::PerS),
            operations,
        ),
        chart(
            "Response time, p50 and p99",
            Axis::log("response time", Unit::Ns),
            latencies,
        ),
        chart(
            "Failures and operations in flight",
            Axis::linear("operations", Unit::Number),
            trouble,
        ),
        chart(
            "Bytes",
            Axis::linear("object bytes per second", Unit::BytesPerS),
            each("", |c| c.bytes_per_s),
        ),
    ];
    all.into_iter().filter(has_values).collect()
}

/// Whether any value of a chart is above zero.
fn has_values(chart: &Chart) -> bool {
    let bucketload_results::kit::svg::Body::Lines(lines) = &chart.body else {
        return false;
    };
    lines
        .iter()
        .flat_map(|line| &line.points)
        .any(|point| point.y > 0.0)
}

#[cfg(test)]
mod tests {
    use super::{Layout, clock, facts, figures, rows};
    use crate::monitor::view::{ClassPoint, Point, RunView, SeriesView};

    fn series(points: usize) -> SeriesView {
        let class = ClassPoint {
            ops_per_s: 100.0,
            bytes_per_s: 0.0,
            failed_per_s: 0.0,
            p50_ns: 200_000,
            p95_ns: 500_000,
            p99_ns: 900_000,
            max_ns: 1_000_000,
        };
        let point = |i| Point {
            t_s: i as f64,
            offered_per_s: 100.0,
            in_flight: 3,
            classes: vec![Some(class)],
        };
        SeriesView {
            width_s: 1.0,
            classes: vec!["<get>".to_owned()],
            points: (0..points).map(point).collect(),
            ..SeriesView::default()
        }
    }

    #[test]
    fn charts_reach_the_newest_point_and_have_no_empty_ones() {
        let html = figures(&series(40), Layout::default());
        // Nothing transfers bytes.
        assert_eq!(html.matches("<figure").count(), 3, "{html}");
        assert!(html.contains("&lt;get&gt; p99") && !html.contains("<get>"));
        assert!(html.contains("(log scale)"));
        let ticks = ["200 µs", "500 µs", "700 µs"];
        assert!(ticks.iter().all(|tick| html.contains(tick)), "{html}");
        // The last point of every line is at the right edge of the plot: of the drawing for a desktop, and of that
        // for a phone.
        let edge = |right: &str| html.matches(&format!("L{right} ")).count();
        assert_eq!((edge("542"), edge("294")), (5, 5), "{html}");
        let compact = figures(&series(40), Layout { compact: true });
        assert_eq!(compact.matches("<figure").count(), 2);
        assert_eq!(figures(&series(0), Layout::default()), "");
    }

    #[test]
    fn classes_of_other_phases_are_left_out_and_an_ended_phase_keeps_its_figures() {
        let mut shown = series(5);
        shown.classes.insert(0, "put".to_owned());
        for point in &mut shown.points {
            point.classes.insert(0, None);
        }
        let names: Vec<String> = rows(&shown).into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["<get>"]);
        assert!(!figures(&shown, Layout::default()).contains("put p99"));
        shown.points.last_mut().unwrap().classes = vec![None, None];
        let mut run = RunView {
            current: shown.phase,
            ..RunView::default()
        };
        assert_eq!(facts(&run, &shown)[0].0, "–");
        run.current += 1;
        assert_eq!(facts(&run, &shown)[0].0, "100/s");
    }

    #[test]
    fn times_are_shown_as_clocks_show_them() {
        assert_eq!(clock(65.9), "1:05");
        assert_eq!(clock(86_400.0), "24:00:00");
    }
}
