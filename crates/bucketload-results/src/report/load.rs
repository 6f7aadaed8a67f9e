//! Load charts of a phase: offered and completed work over time, concurrency, client, and the throughput
//! distribution.

use bucketload_core::stats::steady::State;

use super::latency::warm_up_mark;
use super::time::Drawn;
use crate::kit::svg::Point;
use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::figure::{CLIENT, Figure};
use crate::result::{ClientUse, PhaseResult, ThroughputDistribution};
use crate::units;

/// A chart of `lines` over the time of a phase; of several lines, those that are 0 throughout are left out.
fn chart(phase: &PhaseResult, title: &str, y: Axis, lines: &[(&str, &[f64], bool)]) -> Chart {
    let drawn = Drawn::series(phase);
    let shown = lines
        .iter()
        .filter(|(_, values, _)| lines.len() == 1 || values.iter().any(|&v| v != 0.0));
    let lines = shown.enumerate().map(|(look, &(name, values, dashed))| {
        let point = |i: usize| Point::from((0.0, values.get(i).copied()));
        Series {
            dashed,
            ..Series::line(name, look, drawn.curve(&phase.series.t_s, point))
        }
    });
    Chart {
        marks: warm_up_mark(phase),
        ..Chart::lines(title, drawn.axis(), y, lines)
    }
}

/// Operations over the phase.
pub(super) fn operations(phase: &PhaseResult) -> Chart {
    let (series, drawn) = (&phase.series, Drawn::series(phase));
    let mut chart = chart(
        phase,
        "Operations completed",
        Axis::linear("operations/s", Unit::PerS),
        &[
            ("completed", &series.ops_per_s, false),
            ("offered", offered(phase, &series.offered_ops_per_s), true),
            ("failed", &series.failed_per_s, false),
        ],
    );
    if series.ops_per_s.iter().skip(drawn.count).any(|&v| v > 0.0) {
        let every = drawn.every();
        chart.note = format!("Per {every}. The last interval is incomplete and not drawn.");
    }
    chart
}

/// What fell due, if that has a meaning: a closed loop offers what it completes.
fn offered<'a>(phase: &PhaseResult, values: &'a [f64]) -> &'a [f64] {
    match phase.open_loop {
        true => values,
        false => &[],
    }
}

/// Bytes over the phase; `None` if it moved none.
pub(super) fn bytes(phase: &PhaseResult) -> Option<Chart> {
    let series = &phase.series;
    let (title, offered): (_, &[f64]) = match phase.knows_offered_bytes() {
        true => (
            "Throughput offered and completed",
            &series.offered_bytes_per_s,
        ),
        false => ("Throughput", &[]),
    };
    series.bytes_per_s.iter().any(|&v| v > 0.0).then(|| {
        chart(
            phase,
            title,
            Axis::linear("object bytes", Unit::BytesPerS),
            &[
                ("completed", &series.bytes_per_s, false),
                ("offered", offered, true),
            ],
        )
    })
}

/// The backlog over the phase, and its figures; `None` for phases without arrivals.
pub(super) fn backlog(phase: &PhaseResult) -> Option<Section> {
    let table = super::accounting::backlog(phase)?;
    let chart = chart(
        phase,
        "Backlog",
        Axis::linear("age of the oldest outstanding arrival", Unit::Seconds),
        &[("backlog", &phase.series.backlog_s, false)],
    );
    let section = Section::new("Backlog", "");
    Some(section.tables([table]).charts([chart]).folded())
}

/// The client: its resources, its lag, and the operations that it had in flight.
pub(super) fn believe(phase: &PhaseResult) -> Section {
    let series = &phase.series;
    let mut charts = vec![chart(
        phase,
        "Operations in flight",
        Axis::linear("operations", Unit::Number),
        &[
            ("in flight", &series.in_flight, false),
            ("open sessions", &series.sessions, true),
        ],
    )];
    if series.machine_busy.iter().any(|&v| v > 0.0) {
        charts.push(chart(
            phase,
            "Machine of the client",
            Axis::share("busy share of all cores"),
            &[("busy", &series.machine_busy, false)],
        ));
    }
    charts.extend(lateness(phase));
    Section::new(
        "",
        "What the client needed to offer this load, and whether it kept up.",
    )
    .tables([client(phase)])
    .tables(super::accounting::gates(phase))
    .charts(charts)
}

/// The client's own delay; `None` if most intervals have too few operations for a 99th percentile.
fn lateness(phase: &PhaseResult) -> Option<Chart> {
    let (series, drawn) = (&phase.series, Drawn::series(phase));
    let enough = |i: usize| series.offered_ops_per_s[i] * drawn.step >= 1000.0;
    let known = (0..drawn.count).filter(|&i| enough(i)).count();
    let late = series.late_p99_ms.iter().enumerate();
    let late = late.map(|(i, ms)| if enough(i) { ms * 1e6 } else { f64::NAN });
    let late: Vec<f64> = late.collect();
    let y = Axis::linear("timer lateness and build", Unit::Ns);
    (known > 0 && known * 10 >= drawn.count * 9).then(|| {
        chart(
            phase,
            "Client lag, 99th percentile",
            y,
            &[("p99", &late, false)],
        )
    })
}

fn client(phase: &PhaseResult) -> Table {
    let mut figures: Vec<&Figure<ClientUse>> = CLIENT.iter().collect();
    figures.sort_by_key(|figure| figure.unit);
    let row = |figure: &Figure<ClientUse>| {
        let value = figure.value(&phase.client)?;
        Some([figure.title.to_owned(), figure.unit.show(value)])
    };
    Table::pairs("Client").with(figures.into_iter().filter_map(row))
}

pub(super) fn steadiness(phase: &PhaseResult) -> Table {
    let head = [
        "series",
        "state",
        "warm-up cut",
        "trend over the window",
        "second half over first",
    ];
    let rows = phase.steadiness.iter().map(|s| {
        let checks = s.assessment.checks.as_ref();
        let cut = s.assessment.cut_bins * s.bin_ns;
        [
            s.name.clone(),
            match s.assessment.state {
                State::Steady => "steady",
                State::NonStationary => "drifting",
                State::TooShort => "too short to tell",
            }
            .to_owned(),
            match cut {
                0 => "none".to_owned(),
                cut => units::ns(cut as f64),
            },
            checks.map_or_else(|| "–".into(), |c| units::percent(c.trend)),
            checks.map_or_else(|| "–".into(), |c| units::percent(c.halves)),
        ]
    });
    Table::new(2, head).titled("Steadiness").with(rows)
}

/// The distribution of the throughput per second with the fitted Gaussian.
pub(super) fn distribution(throughput: &ThroughputDistribution) -> Section {
    let bytes = throughput.unit == "bytes/s";
    let unit = if bytes { Unit::BytesPerS } else { Unit::PerS };
    let total: u64 = throughput.histogram.iter().map(|bin| bin.count).sum();
    let width = throughput
        .histogram
        .first()
        .map_or(1.0, |bin| bin.to - bin.from);
    let share = |count: u64| count as f64 / total.max(1) as f64;
    let bins = throughput.histogram.iter();
    let mut lines = vec![Series {
        columns: width,
        ..Series::line("measured", 0, bins.map(|bin| (bin.from, share(bin.count))))
    }];
    let moments = &throughput.moments;
    let pair = |name: &str, value: String| [name.to_owned(), value];
    let mut rows = vec![
        pair("mean", rate(moments.mean, bytes)),
        pair("standard deviation", rate(moments.sd, bytes)),
        pair("skewness", units::number(moments.skewness)),
        pair("excess kurtosis", units::number(moments.excess_kurtosis)),
    ];
    if let (Some(fit), Some(last)) = (&throughput.gaussian, throughput.histogram.last()) {
        let from = throughput.histogram[0].from;
        let curve = (0..=200).map(|i| from + (last.to - from) * f64::from(i) / 200.0);
        let curve = curve.map(|x| (x, width * density(x, fit.mean, fit.sd)));
        lines.push(Series::line("fitted Gaussian", 1, curve).dashed());
        let claim = if !throughput.enough {
            "fewer than 60 bins: too few to judge the shape"
        } else if fit.p_value < 0.01 {
            "rejected at 1 %"
        } else {
            "not rejected at 1 %"
        };
        let text = format!(
            "A² {}, p {}: {claim}",
            units::number(fit.anderson_darling),
            units::number(fit.p_value)
        );
        rows.push(pair("normality (Anderson-Darling)", text));
    }
    for (name, excess) in [
        ("bytes", &throughput.excess_bytes),
        ("operations", &throughput.excess_ops),
    ] {
        if let Some(excess) = excess {
            let ci = excess.ci.map_or_else(String::new, |(lo, hi)| {
                format!(
                    " (95 % interval {} to {})",
                    units::number(lo),
                    units::number(hi)
                )
            });
            rows.push([
                format!("excess dispersion of {name}"),
                format!(
                    "{}{ci}; 1 means the store adds no variation",
                    units::number(excess.ratio)
                ),
            ]);
        }
    }
    for d in &throughput.dispersion {
        let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), units::number);
        rows.push([
            format!("index of dispersion at {} s", units::number(d.window_s)),
            format!(
                "offered {}, completed {}",
                show(d.offered),
                show(d.completed)
            ),
        ]);
    }
    let x = Axis {
        zero: false,
        ..Axis::linear("throughput", unit)
    };
    let y = Axis::linear("share of the time", Unit::Share);
    let intro = format!(
        "Per {} s over the measured window.",
        units::number(throughput.bin_s)
    );
    Section::new("Throughput distribution", intro)
        .tables([Table::pairs("").with(rows)])
        .charts([Chart::lines("Throughput, share of the time", x, y, lines)])
        .folded()
}

fn rate(value: f64, bytes: bool) -> String {
    if bytes {
        format!("{}/s", units::bytes(value))
    } else {
        format!("{}/s", units::number(value))
    }
}

/// Density of the normal distribution.
fn density(x: f64, mean: f64, sd: f64) -> f64 {
    let z = (x - mean) / sd;
    (-0.5 * z * z).exp() / (sd * (2.0 * std::f64::consts::PI).sqrt())
}
