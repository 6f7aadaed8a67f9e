//! Horizontal bars in groups, each bar with its interval and text.

use std::fmt::Write as _;

use super::legend::{self, Key};
use super::scale::Scale;
use super::{Axis, Bars, Entry, colour, fitted, px, width};
use crate::kit::escape::xml;

/// Height of a bar with its gap, pixels.
const ROW: f64 = 19.0;
/// Height of a bar, pixels.
const THICK: f64 = 14.0;
/// Gap between groups, pixels.
const GAP: f64 = 10.0;

/// Most pixels for the names of rows in a drawing `across` pixels wide.
pub(super) fn name_width(across: f64) -> f64 {
    (across * 0.45).min(210.0)
}

/// Height and elements of a drawing `across` pixels wide.
pub(super) fn draw(axis: &Axis, across: f64, bars: &Bars) -> (f64, String) {
    let all = || bars.groups.iter().flat_map(|(_, bars)| bars.iter());
    let entries: Vec<Entry> = bars
        .legend
        .iter()
        .enumerate()
        .filter(|(look, name)| !name.is_empty() && all().any(|bar| bar.look == *look))
        .map(|(look, name)| Entry {
            name: name.clone(),
            look,
            key: Key::Box,
        })
        .collect();
    let (top, mut out) = legend::draw(&entries, across);
    let names = bars.groups.iter().map(|(name, _)| width(name));
    let most = name_width(across);
    let left = 14.0 + names.fold(40.0, f64::max).min(most);
    let texts = all().map(|bar| width(&bar.text));
    let right = across - 14.0 - texts.fold(20.0, f64::max).min(across * 0.3);
    let rows: f64 = bars
        .groups
        .iter()
        .map(|(_, b)| b.len().max(1) as f64 * ROW + GAP)
        .sum();
    let bottom = top + rows;
    let values = all().flat_map(|bar| {
        let (low, high) = bar.ci.unwrap_or((bar.value, bar.value));
        [bar.value, low, high]
    });
    let scale = Scale::new(axis, values.chain(bars.mark), left, right);
    out += &grid(&scale, top, bottom);
    let mut y = top + GAP / 2.0;
    for (name, group) in &bars.groups {
        let middle = y + group.len().max(1) as f64 * ROW / 2.0;
        let _ = writeln!(
            out,
            "<text text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>",
            px(left - 8.0),
            px(middle + 2.0),
            xml(&fitted(name, most))
        );
        for bar in group {
            let (from, to) = (scale.base(), scale.at(bar.value));
            let mut class = format!("bar {}", colour(bar.look));
            class += if bar.flawed { " hollow" } else { "" };
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{THICK}\"/>",
                px(from.min(to)),
                px(y),
                px((to - from).abs().max(0.8))
            );
            let mut end = to.max(from);
            if let Some((low, high)) = bar.ci {
                let (low, high, c) = (scale.at(low), scale.at(high), y + THICK / 2.0);
                let _ = writeln!(
                    out,
                    "<path class=\"over\" d=\"M{l} {a}V{b}M{l} {c}H{h}M{h} {a}V{b}\"/>",
                    l = px(low),
                    h = px(high),
                    a = px(c - 4.0),
                    b = px(c + 4.0),
                    c = px(c)
                );
                end = end.max(high);
            }
            let _ = writeln!(
                out,
                "<text class=\"small\" x=\"{}\" y=\"{}\">{}</text>",
                px(end + 6.0),
                px(y + THICK - 3.0),
                xml(&fitted(&bar.text, across * 0.3))
            );
            y += ROW;
        }
        y += GAP + if group.is_empty() { ROW } else { 0.0 };
    }
    if let Some(mark) = bars.mark {
        let _ = writeln!(
            out,
            "<path class=\"mark\" d=\"M{} {}V{}\"/>",
            px(scale.at(mark)),
            px(top),
            px(bottom)
        );
    }
    out += &foot(axis, left, right, top, bottom);
    (bottom + 46.0, out)
}

/// Grid lines and labels of the ticks.
pub(super) fn grid(scale: &Scale, top: f64, bottom: f64) -> String {
    let mut out = String::new();
    let stride = stride(scale);
    for (n, (value, text)) in scale.ticks.iter().enumerate() {
        let x = scale.at(*value);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{} {}V{}\"/>",
            px(x),
            px(top),
            px(bottom)
        );
        // Where labels would overlap, only every second or third has one; its grid line stays.
        if n % stride != 0 {
            continue;
        }
        let _ = writeln!(
            out,
            "<text text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
            px(x),
            px(bottom + 16.0),
            xml(text)
        );
    }
    out
}

/// The smallest distance, in ticks, at which labels do not overlap.
fn stride(scale: &Scale) -> usize {
    let ends = |(value, text): &(f64, String)| {
        let (x, half) = (scale.at(*value), width(text) / 2.0);
        (x - half, x + half)
    };
    let fits = |stride: &usize| {
        let shown: Vec<(f64, f64)> = scale.ticks.iter().step_by(*stride).map(ends).collect();
        shown.windows(2).all(|pair| pair[0].1 + 6.0 <= pair[1].0)
    };
    let most = scale.ticks.len().max(1);
    (1..most).find(fits).unwrap_or(most)
}

/// The edge where bars start, and the axis label below.
pub(super) fn foot(axis: &Axis, left: f64, right: f64, top: f64, bottom: f64) -> String {
    format!(
        "<path class=\"edge\" fill=\"none\" d=\"M{} {}V{}\"/>\n<text class=\"label\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n",
        px(left),
        px(top),
        px(bottom),
        px(f64::midpoint(left, right)),
        px(bottom + 36.0),
        xml(&axis.caption())
    )
}
