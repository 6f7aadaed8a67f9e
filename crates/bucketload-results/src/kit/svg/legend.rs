//! The legend: rows above the plot, as many as its texts need.

use super::{colour, fitted, px, width};
use crate::kit::escape::xml;

/// Height of a row, pixels.
const ROW: f64 = 19.0;
/// Width of a key, pixels.
const KEY: f64 = 30.0;

/// An entry of the legend.
pub(super) struct Entry {
    pub(super) name: String,
    /// Number of its look.
    pub(super) look: usize,
    pub(super) key: Key,
}

/// How the key of an entry is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// A line, optionally dashed, optionally with a marker.
    Line { dashed: bool, marker: bool },
    /// A marker alone.
    Marker,
    /// A box.
    Box,
    /// A paler box.
    Pale,
}

/// Height and elements of the legend of a drawing `across` pixels wide; without entries only a small gap.
pub(super) fn draw(entries: &[Entry], across: f64) -> (f64, String) {
    let (mut x, mut y) = (12.0, 16.0);
    let mut out = String::new();
    if entries.is_empty() {
        return (8.0, out);
    }
    for entry in entries {
        let name = fitted(&entry.name, across - 24.0 - KEY);
        let wide = KEY + width(&name) + 14.0;
        if x > 12.0 && x + wide > across {
            (x, y) = (12.0, y + ROW);
        }
        let class = colour(entry.look);
        let middle = y - 4.0;
        out += &match entry.key {
            Key::Line { dashed, marker } => {
                let line = format!(
                    "<path class=\"line {class}\"{} d=\"M{} {}H{}\"/>\n",
                    super::lines::dash(entry.look, dashed),
                    px(x),
                    px(middle),
                    px(x + 24.0)
                );
                match marker {
                    true => line + &super::lines::marker(entry.look, x + 12.0, middle, false),
                    false => line,
                }
            }
            Key::Marker => super::lines::marker(entry.look, x + 12.0, middle, false),
            box_ => format!(
                "<rect class=\"{} {class}\" x=\"{}\" y=\"{}\" width=\"18\" height=\"10\"/>\n",
                if box_ == Key::Pale {
                    "part pale"
                } else {
                    "bar"
                },
                px(x + 3.0),
                px(middle - 5.0)
            ),
        };
        out += &format!(
            "<text class=\"small\" x=\"{}\" y=\"{}\">{}</text>\n",
            px(x + KEY),
            px(y),
            xml(&name)
        );
        x += wide;
    }
    (y + 10.0, out)
}
