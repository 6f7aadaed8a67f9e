//! Lines with markers and intervals over two axes.

use std::fmt::Write as _;

use super::legend::{self, Key};
use super::scale::Scale;
use super::{Axis, Entry, LOOKS, Point, Series, WIDTH, colour, fitted, px, width};
use crate::report::escape::xml;

/// Height of the plot, pixels.
const PLOT: f64 = 270.0;
/// Free space on the right, pixels.
const RIGHT: f64 = 18.0;

/// Height and elements of the drawing.
pub(super) fn draw(x: &Axis, y: &Axis, series: &[Series]) -> (f64, String) {
    let entries: Vec<Entry> = series
        .iter()
        .filter(|s| !s.points.is_empty() && !s.name.is_empty())
        .map(|s| Entry {
            name: s.name.clone(),
            look: s.look,
            key: Key::Line {
                dashed: s.dashed,
                marker: s.markers,
            },
        })
        .collect();
    let (top, mut out) = legend::draw(&entries);
    let top = top + 6.0;
    let bottom = top + PLOT;
    let points = || series.iter().flat_map(|s| s.points.iter());
    let ys = points().flat_map(|p| {
        let (low, high) = p.ci.unwrap_or((p.y, p.y));
        [p.y, low, high]
    });
    let vertical = Scale::new(y, ys, bottom, top);
    let ticks = vertical.ticks.iter().map(|(_, text)| width(text));
    let left = 34.0 + ticks.fold(24.0, f64::max);
    let horizontal = Scale::new(x, points().map(|p| p.x), left, WIDTH - RIGHT);
    out += &vertical_axis(y, &vertical, left, top, bottom);
    let (below, axis) = horizontal_axis(x, &horizontal, left, top, bottom);
    out += &axis;
    for s in series {
        line(&mut out, s, &horizontal, &vertical);
    }
    (bottom + below, out)
}

fn vertical_axis(axis: &Axis, scale: &Scale, left: f64, top: f64, bottom: f64) -> String {
    let mut out = String::new();
    for (value, text) in &scale.ticks {
        let y = scale.at(*value);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{} {y}H{}\"/>\n<text text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
            px(left),
            px(WIDTH - RIGHT),
            px(left - 6.0),
            px(y + 4.0),
            xml(text),
            y = px(y),
        );
    }
    let middle = f64::midpoint(top, bottom);
    let _ = writeln!(
        out,
        "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(15 {}) rotate(-90)\">{}</text>",
        px(middle),
        xml(&fitted(&axis.label, bottom - top + 20.0))
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
fn horizontal_axis(axis: &Axis, scale: &Scale, left: f64, top: f64, bottom: f64) -> (f64, String) {
    let mut out = String::new();
    let places: Vec<f64> = scale
        .ticks
        .iter()
        .map(|(value, _)| scale.at(*value))
        .collect();
    let gap = places
        .windows(2)
        .map(|w| (w[1] - w[0]).abs())
        .fold(WIDTH, f64::min);
    let widest = scale
        .ticks
        .iter()
        .map(|(_, text)| width(text))
        .fold(0.0, f64::max);
    // Texts that do not fit side by side hang down.
    let hang = widest + 6.0 > gap;
    let deep = if hang {
        (widest * 0.72).min(110.0) + 12.0
    } else {
        20.0
    };
    for ((_, text), x) in scale.ticks.iter().zip(&places) {
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x} {}V{}\"/>",
            px(top),
            px(bottom + 4.0),
            x = px(*x)
        );
        let _ = match hang {
            true => writeln!(
                out,
                "<text text-anchor=\"end\" transform=\"translate({} {}) rotate(-45)\">{}</text>",
                px(x + 4.0),
                px(bottom + 14.0),
                xml(&fitted(text, 150.0))
            ),
            false => writeln!(
                out,
                "<text text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
                px(*x),
                px(bottom + 17.0),
                xml(text)
            ),
        };
    }
    let _ = writeln!(
        out,
        "<path class=\"edge\" fill=\"none\" d=\"M{} {}H{}\"/>",
        px(left),
        px(bottom),
        px(WIDTH - RIGHT)
    );
    let _ = writeln!(
        out,
        "<text class=\"label\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
        px(f64::midpoint(left, WIDTH - RIGHT)),
        px(bottom + deep + 17.0),
        xml(&axis.label)
    );
    (deep + 28.0, out)
}

fn line(out: &mut String, series: &Series, x: &Scale, y: &Scale) {
    let class = colour(series.look);
    let at = |p: &Point| (x.at(p.x), y.at(p.y));
    if !series.alone && series.points.len() > 1 {
        let mut path = String::new();
        for (i, p) in series.points.iter().enumerate() {
            let (px_, py_) = at(p);
            let _ = match (i, series.steps) {
                (0, _) => write!(path, "M{} {}", px(px_), px(py_)),
                (_, true) => write!(path, "H{}V{}", px(px_), px(py_)),
                (_, false) => write!(path, "L{} {}", px(px_), px(py_)),
            };
        }
        let thin = if series.dashed { " thin" } else { "" };
        let _ = writeln!(
            out,
            "<path class=\"line{thin} {class}\"{} d=\"{path}\"/>",
            dash(series.look, series.dashed)
        );
    }
    for p in &series.points {
        let (cx, cy) = at(p);
        if let Some((low, high)) = p.ci {
            let (low, high) = (y.at(low), y.at(high));
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
        if series.markers {
            *out += &marker(series.look, cx, cy, p.flawed);
        }
    }
}

/// The attribute of a dashed line. Looks that repeat a colour have short dashes of their own.
pub(super) fn dash(look: usize, dashed: bool) -> &'static str {
    match (dashed, look / LOOKS) {
        (true, _) => " stroke-dasharray=\"6 4\"",
        (false, 0) => "",
        (false, _) => " stroke-dasharray=\"2 3\"",
    }
}

/// A marker of look `look`; hollow where the cell is not valid.
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
