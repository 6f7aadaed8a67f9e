//! Lines with markers and intervals over two axes.

use std::fmt::Write as _;

use super::legend::{self, Key};
use super::scale::Scale;
use super::{Axis, Canvas, Chart, Entry, LOOKS, Point, Series, colour, fitted, px, width};
use crate::kit::escape::xml;

/// Margin on the right, pixels.
const RIGHT: f64 = 18.0;

/// Two axes with the legend above them.
pub(super) struct Plot {
    /// Horizontal scale.
    pub(super) x: Scale,
    /// Vertical scale.
    pub(super) y: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    legend: String,
}

impl Plot {
    /// Axes that span the values `xs` and `ys`, below a legend of `entries`.
    pub(super) fn new(
        chart: &Chart,
        canvas: Canvas,
        entries: &[Entry],
        xs: impl Iterator<Item = f64>,
        ys: impl Iterator<Item = f64>,
    ) -> Self {
        let (top, legend) = legend::draw(entries, canvas.width);
        let top = top + 6.0;
        let bottom = top + canvas.plot;
        let y = Scale::new(&chart.y, ys, bottom, top);
        let ticks = y.ticks.iter().map(|(_, text)| width(text));
        let left = 34.0 + ticks.fold(24.0, f64::max);
        let right = canvas.width - RIGHT;
        let x = Scale::new(&chart.x, xs, left, right);
        Self {
            x,
            y,
            left,
            right,
            top,
            bottom,
            legend,
        }
    }

    /// Height and elements of the drawing: axes, then `body`, then marks.
    pub(super) fn finish(self, chart: &Chart, body: &str) -> (f64, String) {
        let (top, bottom) = (self.top, self.bottom);
        let (below, horizontal) = self.horizontal_axis(&chart.x);
        let scales = format!(
            "<g class=\"scales\" data-x=\"{}\" data-y=\"{}\"></g>\n",
            self.x.encoded(),
            self.y.encoded()
        );
        let mut out = self.legend.clone() + &scales + &self.vertical_axis(&chart.y);
        out += &horizontal;
        out += body;
        for (i, (value, text)) in chart.marks.iter().enumerate() {
            let x = self.x.at(*value);
            // To the left of the line where the text would leave the drawing.
            let (at, anchor) = match x + 8.0 + width(text) < self.right + RIGHT {
                true => (x + 4.0, "start"),
                false => (x - 4.0, "end"),
            };
            let _ = writeln!(
                out,
                "<path class=\"mark\" d=\"M{} {}V{}\"/>\n<text class=\"small\" text-anchor=\"{anchor}\" x=\"{}\" y=\"{}\">{}</text>",
                px(x),
                px(top),
                px(bottom),
                px(at),
                px(top + 11.0 + 14.0 * i as f64),
                xml(text)
            );
        }
        (bottom + below, out)
    }
}

/// Height and elements of the drawing.
pub(super) fn draw(chart: &Chart, canvas: Canvas, series: &[Series]) -> (f64, String) {
    let named = series
        .iter()
        .filter(|s| !s.points.is_empty() && !s.name.is_empty());
    let entries: Vec<Entry> = named
        .map(|s| Entry {
            name: s.name.clone(),
            look: s.look,
            key: match s.columns > 0.0 {
                true => Key::Box,
                false if s.loose => Key::Marker,
                false => Key::Line {
                    dashed: s.dashed,
                    marker: s.markers,
                },
            },
        })
        .collect();
    let points = || {
        series
            .iter()
            .flat_map(|s| s.points.iter().map(move |p| (s, p)))
    };
    let xs = points().flat_map(|(s, p)| [p.x, p.x + s.columns]);
    let ys = points().flat_map(|(_, p)| {
        let (low, high) = p.ci.unwrap_or((p.y, p.y));
        [p.y, low, high]
    });
    let plot = Plot::new(chart, canvas, &entries, xs, ys);
    let mut body = String::new();
    for s in series {
        line(&mut body, s, &plot);
    }
    plot.finish(chart, &body)
}

impl Plot {
    fn vertical_axis(&self, axis: &Axis) -> String {
        let (left, top, bottom) = (self.left, self.top, self.bottom);
        let mut out = String::new();
        for (value, text) in &self.y.ticks {
            let y = self.y.at(*value);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{} {y}H{}\"/>\n<text text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
                px(left),
                px(self.right),
                px(left - 6.0),
                px(y + 4.0),
                xml(text),
                y = px(y),
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(15 {}) rotate(-90)\">{}</text>",
            px(f64::midpoint(top, bottom)),
            xml(&fitted(&axis.caption(), bottom - top + 20.0))
        );
        let _ = writeln!(
            out,
            "<path class=\"edge\" fill=\"none\" d=\"M{} {}V{}\"/>",
            px(left),
            px(top),
            px(bottom)
        );
        out
    }

    /// Height below the plot, and elements.
    fn horizontal_axis(&self, axis: &Axis) -> (f64, String) {
        let (left, top, bottom) = (self.left, self.top, self.bottom);
        let ticks = || self.x.ticks.iter().map(|(v, text)| (self.x.at(*v), text));
        let widest = ticks().map(|(_, text)| width(text)).fold(0.0, f64::max);
        let places: Vec<f64> = ticks().map(|(x, _)| x).collect();
        let gaps = places.windows(2).map(|w| (w[1] - w[0]).abs());
        // Names that do not fit side by side are rotated; numbers that would touch are thinned out.
        let rotated = !axis.names.is_empty() && widest + 6.0 > gaps.fold(self.right, f64::min);
        let deep = match rotated {
            true => (widest * 0.72).min(110.0) + 12.0,
            false => 20.0,
        };
        // Every second label, every third, …: as many as do not touch their neighbours.
        let room = |stride: usize| {
            let mut labels = ticks()
                .step_by(stride)
                .map(|(x, text)| (x, width(text) / 2.0));
            let mut end = f64::NEG_INFINITY;
            labels.all(|(x, half)| {
                let fits = x - half >= end;
                end = x + half + 4.0;
                fits
            })
        };
        let stride = (1..).find(|&stride| room(stride)).unwrap_or(1);
        let mut out = String::new();
        for (i, (x, text)) in ticks().enumerate() {
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{x} {}V{}\"/>",
                px(top),
                px(bottom + 4.0),
                x = px(x)
            );
            if rotated {
                let _ = writeln!(
                    out,
                    "<text text-anchor=\"end\" transform=\"translate({} {}) rotate(-45)\">{}</text>",
                    px(x + 4.0),
                    px(bottom + 14.0),
                    xml(&fitted(text, 150.0))
                );
                continue;
            }
            if i % stride != 0 {
                continue;
            }
            let _ = writeln!(
                out,
                "<text text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
                px(x),
                px(bottom + 17.0),
                xml(text)
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"edge\" fill=\"none\" d=\"M{} {}H{}\"/>",
            px(left),
            px(bottom),
            px(self.right)
        );
        let _ = writeln!(
            out,
            "<text class=\"label\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
            px(f64::midpoint(left, self.right)),
            px(bottom + deep + 17.0),
            xml(&fitted(&axis.caption(), self.right - left + 20.0))
        );
        (deep + 28.0, out)
    }
}

fn line(out: &mut String, series: &Series, plot: &Plot) {
    let class = colour(series.look);
    let at = |p: &Point| (plot.x.at(p.x), plot.y.at(p.y));
    if series.band {
        let bands = runs(&series.points, |p| p.ci.is_some() && p.y.is_finite());
        let _ = writeln!(
            out,
            "<path class=\"band {class}\" d=\"{}\"/>",
            bands.map(|points| band(points, plot)).collect::<String>()
        );
    }
    if series.columns > 0.0 {
        let mut path = String::new();
        for p in series.points.iter().filter(|p| p.y > 0.0) {
            let ((left, top), right) = (at(p), plot.x.at(p.x + series.columns));
            let (left, bottom) = (px(left), px(plot.bottom));
            let _ = write!(
                path,
                "M{left} {bottom}V{}H{}V{bottom}z",
                px(top),
                px(right - 0.5)
            );
        }
        let _ = writeln!(out, "<path class=\"column {class}\" d=\"{path}\"/>");
        return;
    }
    let mut path = String::new();
    for points in runs(&series.points, |p| p.y.is_finite()) {
        let mut drawn = (f64::NAN, f64::NAN);
        for (i, p) in points.iter().enumerate() {
            let (x, y) = at(p);
            // A vertex closer than this to the one before cannot be seen, but costs as much as any other.
            let near = (x - drawn.0).abs() < 0.3 && (y - drawn.1).abs() < 0.3;
            if near && i + 1 < points.len() {
                continue;
            }
            drawn = (x, y);
            let _ = match (i, series.steps) {
                // The round line ends turn a zero-length line into a dot.
                (0, _) => write!(path, "M{} {}h0", px(x), px(y)),
                (_, true) => write!(path, "H{}V{}", px(x), px(y)),
                (_, false) => write!(path, "L{} {}", px(x), px(y)),
            };
        }
    }
    if series.loose {
        path.clear();
    }
    let thin = if series.dashed { " thin" } else { "" };
    let _ = writeln!(
        out,
        "<path class=\"line{thin} {class}\" data-name=\"{}\"{} d=\"{path}\"/>",
        xml(&series.name),
        dash(series.look, series.dashed)
    );
    for p in series.points.iter().filter(|p| p.y.is_finite()) {
        let (cx, cy) = at(p);
        if let (Some((low, high)), false) = (p.ci, series.band) {
            let (low, high) = (plot.y.at(low), plot.y.at(high));
            let _ = writeln!(
                out,
                "<path class=\"ci {class}\" d=\"M{a} {l}H{b}M{c} {l}V{h}M{a} {h}H{b}\"/>",
                a = px(cx - 4.0),
                b = px(cx + 4.0),
                c = px(cx),
                l = px(low),
                h = px(high)
            );
        }
        if series.markers || series.loose {
            *out += &marker(series.look, cx, cy, p.flawed);
        }
    }
}

/// Maximal runs of consecutive points that are `drawn`.
fn runs(points: &[Point], drawn: fn(&Point) -> bool) -> impl Iterator<Item = &[Point]> {
    let parts = points.split(move |p| !drawn(p));
    parts.filter(|part| !part.is_empty())
}

/// Outline of the area between the interval ends of consecutive points.
fn band(points: &[Point], plot: &Plot) -> String {
    let edge = |p: &Point, upper: bool| {
        let (low, high) = p.ci.unwrap_or((p.y, p.y));
        let y = plot.y.at(if upper { high } else { low });
        format!("{} {}", px(plot.x.at(p.x)), px(y))
    };
    let upper = points.iter().map(|p| edge(p, true));
    let lower = points.iter().rev().map(|p| edge(p, false));
    let around: Vec<String> = upper.chain(lower).collect();
    format!("M{}Z", around.join("L"))
}

/// The dash attribute of a line. Looks that repeat a colour have short dashes.
pub(super) fn dash(look: usize, dashed: bool) -> &'static str {
    match (dashed, look / LOOKS) {
        (true, _) => " stroke-dasharray=\"6 4\"",
        (false, 0) => "",
        (false, _) => " stroke-dasharray=\"2 3\"",
    }
}

/// A marker of look `look`; hollow if the point is flawed.
pub(super) fn marker(look: usize, x: f64, y: f64, hollow: bool) -> String {
    let class = format!("mk {}{}", colour(look), if hollow { " hollow" } else { "" });
    let path = match (look + look / LOOKS) % 6 {
        0 => {
            return format!(
                "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"3.6\"/>\n",
                px(x),
                px(y)
            );
        }
        1 => "m-3.4-3.4h6.8v6.8h-6.8z",
        2 => "m0-4.4l4.2 7.4h-8.4z",
        3 => "m0-4.6l4.4 4.6l-4.4 4.6l-4.4-4.6z",
        4 => "m0 4.4l4.2-7.4h-8.4z",
        _ => "m-4.4-1.4h3v-3h2.8v3h3v2.8h-3v3h-2.8v-3h-3z",
    };
    format!(
        "<path class=\"{class}\" d=\"M{} {}{path}\"/>\n",
        px(x),
        px(y)
    )
}
