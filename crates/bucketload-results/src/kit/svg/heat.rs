//! Heat maps: counts per cell of two axes, darker for more.

use std::fmt::Write as _;

use super::lines::Plot;
use super::{Canvas, Chart, Heat, px};

/// Number of shades: small, so that all cells of a shade form one path.
const SHADES: usize = 12;

/// Height and elements of the drawing.
pub(super) fn draw(chart: &Chart, canvas: Canvas, heat: &Heat) -> (f64, String) {
    let end = heat.from + heat.columns.len() as f64 * heat.step;
    let xs = [heat.from, end];
    let plot = Plot::new(
        chart,
        canvas,
        &[],
        xs.into_iter(),
        heat.edges.iter().copied(),
    );
    let most = heat
        .columns
        .iter()
        .flatten()
        .copied()
        .max()
        .unwrap_or(1)
        .max(1);
    let mut shades = vec![String::new(); SHADES + 1];
    for (i, counts) in heat.columns.iter().enumerate() {
        let x = heat.from + i as f64 * heat.step;
        let (left, right) = (plot.x.at(x), plot.x.at(x + heat.step));
        for (count, edges) in counts.iter().zip(heat.edges.windows(2)) {
            // Logarithmic: a single operation is visible, and a hundred times as many are darker but not black.
            let shade = (*count as f64).ln_1p() / (most as f64).ln_1p();
            let (low, high) = (plot.y.at(edges[0]), plot.y.at(edges[1]));
            let path = &mut shades[(shade * SHADES as f64).ceil() as usize];
            let _ = write!(
                path,
                "M{} {}H{}V{}H{}z",
                px(left),
                px(low),
                px(right),
                px(high),
                px(left)
            );
        }
    }
    let mut cells = String::new();
    for (shade, path) in shades
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, p)| !p.is_empty())
    {
        let opacity = 0.08 + 0.92 * shade as f64 / SHADES as f64;
        let _ = writeln!(
            cells,
            "<path class=\"cell c0\" fill-opacity=\"{opacity:.2}\" d=\"{path}\"/>"
        );
    }
    plot.finish(chart, &cells)
}
