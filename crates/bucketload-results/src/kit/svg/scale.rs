//! Axes: positions of values, and the choice of ticks.

use serde::Serialize;

use super::px;
use crate::units;

/// Unit of a figure or of an axis. The order is that of tables sorted by unit: costs before shares, sizes last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Unit {
    /// A plain number.
    #[default]
    #[serde(rename = "count")]
    Number,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Microseconds per operation.
    #[serde(rename = "us")]
    UsPerOp,
    /// Operations per second.
    #[serde(rename = "ops/s")]
    PerS,
    /// 10^6 bits per second.
    #[serde(rename = "Mbit/s")]
    MbitPerS,
    /// Bytes per second.
    #[serde(rename = "bytes/s")]
    BytesPerS,
    /// A multiple of something else.
    #[serde(rename = "x")]
    Times,
    /// A share of 1, shown in percent.
    #[serde(rename = "1")]
    Share,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
}

impl Unit {
    /// `value` with its unit, to about three digits.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Number => grouped(value),
            Self::Ns => units::ns(value),
            Self::Seconds => units::seconds(value),
            Self::UsPerOp => units::ns(value * 1e3),
            Self::PerS => format!("{}/s", units::rate(value)),
            Self::MbitPerS => format!("{} Mbit/s", grouped(value)),
            Self::BytesPerS => format!("{}/s", units::bytes(value)),
            Self::Times => format!("{}×", grouped(value)),
            Self::Share => units::percent(value),
            Self::Bytes => units::bytes(value),
        }
    }

    /// `value` as the text of a tick: short, and without the unit if the axis label states it.
    fn tick(self, value: f64) -> String {
        let short = |text: String| {
            let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
            let number = match number.contains('.') {
                true => number.trim_end_matches('0').trim_end_matches('.'),
                false => number,
            };
            match unit {
                "" => number.to_owned(),
                unit => format!("{number} {unit}"),
            }
        };
        match self {
            Self::Number | Self::PerS | Self::MbitPerS | Self::UsPerOp => thousands(value),
            Self::Times => format!("{}×", thousands(value)),
            Self::Ns | Self::Bytes | Self::Share if value == 0.0 => "0".to_owned(),
            Self::BytesPerS if value == 0.0 => "0".to_owned(),
            Self::Ns => short(units::ns(value)),
            Self::Seconds => format!("{} s", thousands(value)),
            Self::Bytes => short(units::bytes(value)),
            Self::BytesPerS => format!("{}/s", short(units::bytes(value))),
            Self::Share => short(units::percent(value)),
        }
    }

    /// Its symbol, as the page's script expects it.
    const fn symbol(self) -> &'static str {
        match self {
            Self::Number | Self::MbitPerS | Self::UsPerOp | Self::Times => "",
            Self::Ns => "ns",
            Self::Seconds => "s",
            Self::Bytes => "B",
            Self::BytesPerS => "B/s",
            Self::PerS => "/s",
            Self::Share => "%",
        }
    }

    /// True if ticks at powers of two are rounder than powers of ten.
    const fn is_binary(self) -> bool {
        matches!(self, Self::Bytes | Self::BytesPerS)
    }
}

/// A number with three digits, or with separated thousands.
fn grouped(value: f64) -> String {
    match value.abs() {
        a if a >= 1000.0 => units::count(value.round().max(0.0) as u64),
        _ => units::number(value),
    }
}

/// The number of a tick: thousands as `k`, millions as `M`.
fn thousands(value: f64) -> String {
    match value.abs() {
        a if a >= 1e9 => format!("{}G", units::number(value / 1e9)),
        a if a >= 1e6 => format!("{}M", units::number(value / 1e6)),
        a if a >= 1e4 => format!("{}k", units::number(value / 1e3)),
        a if a > 0.0 && a < 0.001 => format!("{value:.0e}"),
        _ => units::number(value),
    }
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Label.
    pub label: String,
    /// Unit of its numbers.
    pub unit: Unit,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Names at the positions 0, 1, 2, …; empty for numbers.
    pub names: Vec<String>,
    /// Whether a linear axis begins at 0.
    pub zero: bool,
    /// Its ends; `None` to derive them from the values.
    pub ends: Option<(f64, f64)>,
    /// Positions of the ticks with their texts, such as the values that were measured; empty to choose round values.
    pub at: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis that starts at 0.
    #[must_use]
    pub fn linear(label: &str, unit: Unit) -> Self {
        Self {
            label: label.to_owned(),
            unit,
            log: false,
            names: Vec::new(),
            zero: true,
            ends: None,
            at: Vec::new(),
        }
    }

    /// A linear axis of shares, from 0 to 100 %.
    #[must_use]
    pub fn share(label: &str) -> Self {
        Self {
            ends: Some((0.0, 1.0)),
            ..Self::linear(label, Unit::Share)
        }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(label: &str, unit: Unit) -> Self {
        Self {
            log: true,
            ..Self::linear(label, unit)
        }
    }

    /// Logarithmic if the positive values span a factor of 20 or more, else linear from 0.
    #[must_use]
    pub fn fitting(label: &str, unit: Unit, values: impl Iterator<Item = f64>) -> Self {
        let positive = values.filter(|v| *v > 0.0 && v.is_finite());
        let (low, high) = positive.fold((f64::INFINITY, 0.0f64), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        Self {
            log: high / low >= 20.0,
            ..Self::linear(label, unit)
        }
    }

    /// The same axis with ticks at `values`; without values it keeps its round ones.
    #[must_use]
    pub fn ticks_at(self, values: &[f64]) -> Self {
        let tick = |&value: &f64| (value, self.unit.tick(value));
        Self {
            at: values.iter().map(tick).collect(),
            ..self
        }
    }

    /// The label; a logarithmic axis says so.
    pub(super) fn caption(&self) -> String {
        match self.log && self.names.is_empty() {
            true => format!("{} (log scale)", self.label),
            false => self.label.clone(),
        }
    }

    /// An axis with named positions.
    #[must_use]
    pub fn named(label: &str, names: Vec<String>) -> Self {
        Self {
            names,
            zero: false,
            ..Self::linear(label, Unit::Number)
        }
    }
}

/// `values` for a smooth curve from `from` to `to`, evenly spaced on a logarithmic axis.
pub(crate) fn log_spaced(from: f64, to: f64) -> impl Iterator<Item = f64> {
    let (from, to) = (from.ln(), to.ln());
    (0..=200).map(move |i| (from + (to - from) * f64::from(i) / 200.0).exp())
}

/// An axis fitted to its values, mapped to the pixels `from..to`.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    log: bool,
    unit: Unit,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    /// Value and text of each tick.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// A scale that spans `values`; a logarithmic one ignores values that are not positive.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let held = values.filter(|v| v.is_finite() && (!axis.log || *v > 0.0));
        let (mut low, mut high) = held.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        if let Some(ends) = axis.ends {
            (low, high) = ends;
        } else if !axis.names.is_empty() {
            (low, high) = (-0.5, axis.names.len() as f64 - 0.5);
        } else if low > high {
            (low, high) = if axis.log { (1.0, 10.0) } else { (0.0, 1.0) };
        } else if axis.log {
            let margin = (high / low).powf(0.04).max(1.05);
            (low, high) = (low / margin, high * margin);
        } else {
            if axis.zero {
                low = low.min(0.0);
            }
            let span = if high > low {
                high - low
            } else {
                high.abs().max(1.0)
            };
            high += span * 0.05;
            if low < 0.0 || !axis.zero {
                low -= span * 0.05;
            }
        }
        let mut scale = Self {
            log: axis.log && axis.names.is_empty(),
            unit: axis.unit,
            low,
            high,
            from,
            to,
            ticks: Vec::new(),
        };
        scale.ticks = scale.make_ticks(axis);
        scale
    }

    /// Position of `value` in pixels, clamped to the ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.log {
            true if value <= 0.0 => 0.0,
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The scale encoded for the page's script: kind, ends, ends in pixels, unit.
    pub(super) fn encoded(&self) -> String {
        let kind = if self.log { "log" } else { "linear" };
        let (from, to) = (px(self.from), px(self.to));
        format!(
            "{kind} {} {} {from} {to} {}",
            self.low,
            self.high,
            self.unit.symbol()
        )
    }

    /// Position where bars start.
    pub(super) fn base(&self) -> f64 {
        self.at(if self.log { self.low } else { 0.0 })
    }

    fn make_ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        if !axis.names.is_empty() {
            let names = axis.names.iter().enumerate();
            return names.map(|(i, name)| (i as f64, name.clone())).collect();
        }
        if !axis.at.is_empty() {
            return axis.at.clone();
        }
        let inside = |v: &f64| *v >= self.low * 0.999_999 - 1e-12 && *v <= self.high * 1.000_001;
        let ticks = |values: Vec<f64>| {
            let kept = values.into_iter().filter(inside);
            kept.map(|v| (v, axis.unit.tick(v))).collect::<Vec<_>>()
        };
        let ticks_of_log = match axis.log {
            true => ticks(self.log_values(axis.unit.is_binary())),
            false => Vec::new(),
        };
        match ticks_of_log.len() {
            // A short piece of a logarithmic axis may hold no power at all.
            0..=2 => ticks(self.linear_values(axis.unit)),
            _ => ticks_of_log,
        }
    }

    fn log_values(&self, binary: bool) -> Vec<f64> {
        let most = 9.0;
        if binary {
            let octaves = (self.high / self.low).log2();
            let step = [1.0, 2.0, 4.0, 5.0, 10.0, 20.0];
            let step = step
                .into_iter()
                .find(|s| octaves / s <= most)
                .unwrap_or(40.0);
            let first = (self.low.log2() / step).ceil() as i64;
            let last = (self.high.log2() / step).floor() as i64;
            return (first..=last).map(|i| 2f64.powf(i as f64 * step)).collect();
        }
        let decades = (self.high / self.low).log10();
        let factors: &[f64] = match decades {
            d if d <= 1.2 => &[1.0, 2.0, 3.0, 5.0, 7.0],
            d if d <= 3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let step = (decades / most).ceil().max(1.0) as usize;
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        (first..=last)
            .step_by(step)
            .flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e)))
            .collect()
    }

    fn linear_values(&self, unit: Unit) -> Vec<f64> {
        let span = self.high - self.low;
        // Round in the unit shown: 1, 2 or 5 times it, or powers of two for bytes.
        let within = match unit.is_binary() {
            true => 1024f64.powf((self.high.max(1.0).log2() / 10.0).floor()),
            false => 1.0,
        };
        let raw = span / within / 6.0;
        let power = 10f64.powf(raw.log10().floor());
        let factors = [1.0, 2.0, 5.0, 10.0].into_iter();
        let step = factors
            .map(|f| f * power)
            .find(|s| *s >= raw)
            .unwrap_or(power)
            * within;
        let (first, last) = (
            (self.low / step).ceil() as i64,
            (self.high / step).floor() as i64,
        );
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Scale, Unit};

    fn texts(axis: &Axis, values: &[f64]) -> Vec<String> {
        let scale = Scale::new(axis, values.iter().copied(), 0.0, 100.0);
        scale.ticks.iter().map(|(_, text)| text.clone()).collect()
    }

    #[test]
    fn ticks_are_round_in_the_unit_shown() {
        let linear = Axis::linear("rate", Unit::PerS);
        assert_eq!(
            texts(&linear, &[12.0, 55_000.0]),
            ["0", "10k", "20k", "30k", "40k", "50k"]
        );
        let sizes = Axis::log("size", Unit::Bytes);
        assert_eq!(
            texts(&sizes, &[1024.0, 64.0 * 1024.0 * 1024.0]),
            [
                "1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB",
                "64 MiB"
            ]
        );
        let times = Axis::log("latency", Unit::Ns);
        assert_eq!(
            texts(&times, &[1e5, 2e6]),
            ["100 µs", "200 µs", "500 µs", "1 ms", "2 ms"]
        );
        let bytes = Axis::linear("throughput", Unit::BytesPerS);
        let mib = 1024.0 * 1024.0;
        assert_eq!(
            texts(&bytes, &[0.0, 55.0 * mib]),
            [
                "0", "10 MiB/s", "20 MiB/s", "30 MiB/s", "40 MiB/s", "50 MiB/s"
            ]
        );
    }

    #[test]
    fn a_short_logarithmic_axis_has_ticks_too() {
        let rates = Axis::log("rate", Unit::PerS);
        assert_eq!(texts(&rates, &[7.5]), ["7.2", "7.4", "7.6", "7.8"]);
        let times = Axis::log("latency", Unit::Ns);
        assert_eq!(texts(&times, &[8.3e7, 2e8]), ["100 ms", "150 ms", "200 ms"]);
    }

    #[test]
    fn positions_are_inside_and_ordered() {
        let axis = Axis::log("latency", Unit::Ns);
        let scale = Scale::new(&axis, [1e3, 1e6].into_iter(), 10.0, 210.0);
        assert!(scale.at(1e3) > 10.0 && scale.at(1e6) < 210.0);
        assert!((scale.at(1e3f64.mul_add(1e6, 0.0).sqrt()) - 110.0).abs() < 1e-9);
        assert!(scale.at(0.0) <= 10.0);
        // No values, a single value and equal values still give a valid scale.
        for values in [vec![], vec![5.0], vec![5.0, 5.0], vec![0.0], vec![f64::NAN]] {
            for axis in [
                Axis::log("x", Unit::Number),
                Axis::linear("x", Unit::Number),
            ] {
                let scale = Scale::new(&axis, values.iter().copied(), 0.0, 100.0);
                assert!(scale.at(5.0).is_finite() && scale.base().is_finite());
                assert!(scale.ticks.len() < 20);
            }
        }
    }

    #[test]
    fn a_wide_range_makes_the_axis_logarithmic() {
        let axis = |values: &[f64]| Axis::fitting("x", Unit::Number, values.iter().copied()).log;
        assert!(axis(&[1.0, 20.0]));
        assert!(!axis(&[1.0, 19.0]));
        assert!(axis(&[0.0, 1.0, 100.0]));
        assert!(!axis(&[]));
    }
}
