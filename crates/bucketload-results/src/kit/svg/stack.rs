//! Stacked rows: each row divides its own sum into parts.

use std::fmt::Write as _;

use super::legend::{self, Key};
use super::scale::Scale;
use super::{Axis, Entry, LOOKS, Stack, Unit, bars, colour, fitted, px, width};
use crate::kit::escape::xml;

/// Height of a row with its gap, pixels.
const ROW: f64 = 26.0;
/// Height of a bar, pixels.
const THICK: f64 = 18.0;

/// Height and elements of a drawing `across` pixels wide.
pub(super) fn draw(axis: &Axis, across: f64, stack: &Stack) -> (f64, String) {
    let pale = |look: usize| look >= LOOKS;
    let entries = stack.parts.iter().map(|(name, look)| Entry {
        name: name.clone(),
        look: *look,
        key: if pale(*look) { Key::Pale } else { Key::Box },
    });
    let (top, mut out) = legend::draw(&entries.collect::<Vec<_>>(), across);
    let names = stack.rows.iter().map(|(name, _)| width(name));
    let most = bars::name_width(across);
    let left = 14.0 + names.fold(40.0, f64::max).min(most);
    let right = across - 70.0;
    let bottom = top + ROW * stack.rows.len() as f64;
    let scale = Scale::new(axis, [0.0, 1.0].into_iter(), left, right);
    out += &bars::grid(&scale, top, bottom);
    for (i, (name, sizes)) in stack.rows.iter().enumerate() {
        let y = top + ROW * i as f64 + (ROW - THICK) / 2.0;
        let sum: f64 = sizes.iter().sum();
        let text = y + THICK - 4.0;
        let _ = writeln!(
            out,
            "<text text-anchor=\"end\" x=\"{}\" y=\"{text}\">{}</text>\n<text class=\"small\" x=\"{}\" y=\"{text}\">{}</text>",
            px(left - 8.0),
            xml(&fitted(name, most)),
            px(right + 8.0),
            xml(&stack.unit.show(sum)),
            text = px(text),
        );
        let mut from = 0.0;
        for ((part, look), size) in stack.parts.iter().zip(sizes).filter(|(_, s)| **s > 0.0) {
            let share = size / sum;
            let (begin, end) = (scale.at(from), scale.at(from + share));
            from += share;
            let _ = writeln!(
                out,
                "<rect class=\"part {}{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{THICK}\"><title>{}</title></rect>",
                colour(*look),
                if pale(*look) { " pale" } else { "" },
                px(begin),
                px(y),
                px((end - begin).max(0.5)),
                xml(&format!(
                    "{name}: {part} {} ({})",
                    stack.unit.show(*size),
                    Unit::Share.show(share)
                )),
            );
        }
    }
    out += &bars::foot(axis, left, right, top, bottom);
    (bottom + 46.0, out)
}
