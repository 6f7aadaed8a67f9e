//! Charts as SVG: lines over two axes, horizontal bars, and heat maps over time and value.
//!
//! ```text
//!  Chart ─┬─ lines (marks, bands, steps, columns) ─┐
//!         ├─ bars  (groups, intervals)             │
//!         ├─ stack (shares of a whole)             ├─► body ─┬─ figure: part of a page, coloured by its style sheet
//!         └─ heat                                  ┘         └─ file: with its own style sheet, for papers
//! ```
//!
//! Drawings use CSS classes, so one drawing serves light pages, dark pages and print. Series differ by colour,
//! marker and dash together, never by colour alone. Legends have rows of their own above the plot and cannot
//! overlap it.

mod bars;
mod heat;
mod legend;
mod lines;
mod scale;
mod stack;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

pub(crate) use scale::log_spaced;
pub use scale::{Axis, Unit};

use super::escape::xml;
use legend::Entry;

/// The size a chart is drawn for, pixels. Texts have one size whatever the canvas: nothing is scaled.
#[derive(Clone, Copy, Debug)]
struct Canvas {
    /// Width of the drawing.
    width: f64,
    /// Height of the plot area of charts with two axes.
    plot: f64,
}

/// A file of its own.
const FILE: Canvas = Canvas {
    width: 640.0,
    plot: 270.0,
};
/// A figure of a page: half the width of a desktop, or the whole width of a tablet.
const PAGE: Canvas = Canvas {
    width: 560.0,
    plot: 210.0,
};
/// The same figure on a phone.
const PHONE: Canvas = Canvas {
    width: 312.0,
    plot: 190.0,
};
/// One of three figures side by side on a desktop.
const THIRD: Canvas = Canvas {
    width: 364.0,
    plot: 200.0,
};
/// A wide figure on a desktop.
const BROAD: Canvas = Canvas {
    width: 1160.0,
    plot: 230.0,
};
/// Number of distinct looks of series. Further series repeat the colours with other markers and dashes.
pub const LOOKS: usize = 8;

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Value; NaN is a gap in the line.
    pub y: f64,
    /// Interval.
    pub ci: Option<(f64, f64)>,
    /// Whether its verdict is not VALID; then it is drawn hollow.
    pub flawed: bool,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self {
            x,
            y,
            ci: None,
            flawed: false,
        }
    }
}

impl From<(f64, Option<f64>)> for Point {
    fn from((x, y): (f64, Option<f64>)) -> Self {
        Self::from((x, y.unwrap_or(f64::NAN)))
    }
}

/// A line.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, ascending in x.
    pub points: Vec<Point>,
    /// Number of its look; several lines of one subject share a look.
    pub look: usize,
    /// Whether it is dashed: published values, laws, theory.
    pub dashed: bool,
    /// Whether points have markers.
    pub markers: bool,
    /// Whether its points are drawn without a line between them; then they have markers.
    pub loose: bool,
    /// Whether it is drawn as steps.
    pub steps: bool,
    /// Whether the intervals of the points are drawn as a band around the line.
    pub band: bool,
    /// Width of columns that start at the points, in units of the horizontal axis; 0 for a line.
    pub columns: f64,
}

impl Series {
    /// A solid line without markers.
    pub fn line(
        name: impl Into<String>,
        look: usize,
        points: impl IntoIterator<Item: Into<Point>>,
    ) -> Self {
        Self {
            name: name.into(),
            points: points.into_iter().map(Into::into).collect(),
            look,
            ..Self::default()
        }
    }

    /// The same line, dashed.
    #[must_use]
    pub fn dashed(self) -> Self {
        Self {
            dashed: true,
            ..self
        }
    }
}

/// A bar with its interval.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Number of its look and entry in [`Bars::legend`].
    pub look: usize,
    /// Length.
    pub value: f64,
    /// Interval.
    pub ci: Option<(f64, f64)>,
    /// Text next to its end.
    pub text: String,
    /// Whether its verdict is not VALID; then it is drawn hollow.
    pub flawed: bool,
}

/// Bars in groups.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Groups with their names, from top to bottom.
    pub groups: Vec<(String, Vec<Bar>)>,
    /// Names of the looks; empty for no legend.
    pub legend: Vec<String>,
    /// A value marked by a line, such as 1 for ratios.
    pub mark: Option<f64>,
}

impl Bars {
    /// Adds a bar to the group called `name`; creates the group if necessary.
    pub fn add(&mut self, name: &str, bar: Bar) {
        match self.groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, bars)) => bars.push(bar),
            None => self.groups.push((name.to_owned(), vec![bar])),
        }
    }

    /// The lengths of all bars.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        let bars = self.groups.iter().flat_map(|(_, bars)| bars);
        bars.map(|bar| bar.value)
    }
}

/// Rows of bars that divide a whole into parts.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Names of the parts, with the numbers of their looks.
    pub parts: Vec<(String, usize)>,
    /// Rows with their names and the size of each part, from top to bottom.
    pub rows: Vec<(String, Vec<f64>)>,
    /// Unit of the sizes.
    pub unit: Unit,
}

/// A heat map: counts per cell.
#[derive(Clone, Debug, Default)]
pub struct Heat {
    /// Start of the first column.
    pub from: f64,
    /// Width of a column.
    pub step: f64,
    /// Edges of the rows, ascending; one more than rows.
    pub edges: Vec<f64>,
    /// Counts: for each column, one per row.
    pub columns: Vec<Vec<u64>>,
}

/// The content of a chart.
#[derive(Clone, Debug)]
pub enum Body {
    /// Lines.
    Lines(Vec<Series>),
    /// Horizontal bars.
    Bars(Bars),
    /// Horizontal bars of shares.
    Stack(Stack),
    /// A heat map; darker cells have higher counts.
    Heat(Heat),
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Name of its file and anchor; a plain name (see `escape::slug`).
    pub name: String,
    /// Heading.
    pub title: String,
    /// Note for readers; also part of the description for those who cannot see the chart.
    pub note: String,
    /// Whether it spans the whole width of a page.
    pub wide: bool,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis; unused by bars.
    pub y: Axis,
    /// Values on the horizontal axis that a labelled line marks.
    pub marks: Vec<(f64, String)>,
    /// The content.
    pub body: Body,
}

impl Chart {
    /// A chart without a name.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis, body: Body) -> Self {
        Self {
            name: String::new(),
            title: title.into(),
            note: String::new(),
            wide: false,
            x,
            y,
            marks: Vec::new(),
            body,
        }
    }

    /// A chart of lines; lines without points are dropped.
    pub fn lines(
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        lines: impl IntoIterator<Item = Series>,
    ) -> Self {
        let lines = lines.into_iter().filter(|line| !line.points.is_empty());
        Self::new(title, x, y, Body::Lines(lines.collect()))
    }

    /// The same chart with a note.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// The same chart across the whole width of a page.
    #[must_use]
    pub fn wide(mut self) -> Self {
        self.wide = true;
        self
    }

    /// True if the chart has nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.body {
            Body::Lines(series) => series.iter().all(|s| s.points.is_empty()),
            Body::Bars(bars) => bars.groups.iter().all(|(_, bars)| bars.is_empty()),
            Body::Stack(stack) => stack.rows.is_empty(),
            Body::Heat(heat) => heat.columns.is_empty(),
        }
    }

    /// The chart as a figure of a page that includes [`CSS`] and [`colours`].
    #[must_use]
    pub fn figure(&self) -> String {
        match self.wide {
            true => self.drawn(&[("chart", PAGE), ("broad chart", BROAD)]),
            false => self.drawn(&[("chart", PAGE)]),
        }
    }

    /// The chart as a figure of which three stand side by side on a desktop.
    pub(super) fn third(&self) -> String {
        self.drawn(&[("chart", THIRD)])
    }

    fn drawn(&self, canvases: &[(&str, Canvas)]) -> String {
        let (name, title) = (&self.name, xml(&self.title));
        let mut out = format!(
            "<figure id=\"figure-{name}\"{}>\n<figcaption><b>{title}</b></figcaption>\n",
            if self.wide { " class=\"wide\"" } else { "" },
        );
        // The style sheet shows the drawing that fits the window; scaling one drawing would scale its texts.
        for (class, canvas) in canvases.iter().chain(&[("narrow chart", PHONE)]) {
            let (height, body) = self.draw(*canvas);
            let _ = write!(
                out,
                "<svg class=\"{class}\" width=\"{w}\" height=\"{height:.0}\" viewBox=\"0 0 {w} {height:.0}\" role=\"img\" \
                 aria-label=\"{title}\">\n<desc>{}</desc>\n{body}</svg>\n",
                xml(&self.description()),
                w = canvas.width,
            );
        }
        if !self.note.is_empty() {
            let _ = writeln!(out, "<p class=\"muted\">{}</p>", xml(&self.note));
        }
        out + "</figure>\n"
    }

    /// The chart as a file of its own, dark on white.
    #[must_use]
    pub fn file(&self) -> String {
        let (height, body) = self.draw(FILE);
        // A stand-alone file has no caption around it, so it includes the heading.
        let top = 26.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{w}\" height=\"{h:.0}\" viewBox=\"0 0 {w} {h:.0}\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{}</desc>\n<style>{LIGHT}{CSS}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text class=\"head\" x=\"12\" y=\"19\">{title}</text>\n<g transform=\"translate(0 {top})\">\n{body}</g>\n</svg>\n",
            xml(&self.description()),
            title = xml(&self.title),
            w = FILE.width,
            h = height + top,
        )
    }

    fn description(&self) -> String {
        let axes = match &self.body {
            Body::Lines(_) | Body::Heat(_) => {
                format!("Horizontal: {}. Vertical: {}.", self.x.label, self.y.label)
            }
            Body::Bars(_) | Body::Stack(_) => format!("Bars along: {}.", self.x.label),
        };
        match self.note.is_empty() {
            true => axes,
            false => format!("{axes} {}", self.note),
        }
    }

    /// Height and SVG elements.
    fn draw(&self, canvas: Canvas) -> (f64, String) {
        match &self.body {
            Body::Lines(series) => lines::draw(self, canvas, series),
            Body::Bars(bars) => bars::draw(&self.x, canvas.width, bars),
            Body::Stack(stack) => stack::draw(&self.x, canvas.width, stack),
            Body::Heat(heat) => heat::draw(self, canvas, heat),
        }
    }
}

/// Colours on white: blue, vermilion, green, purple, amber, teal, grey, brown, of about equal contrast. They are
/// those of Okabe and Ito (*Color Universal Design*, 2008) in order, darkened where white needs it.
pub const COLOURS: [&str; LOOKS] = [
    "#0072b2", "#c4500a", "#00805c", "#a8487f", "#9a6a00", "#2a7f9e", "#55606b", "#7a4a2b",
];
/// The same on dark pages.
pub const DARK_COLOURS: [&str; LOOKS] = [
    "#5ab4f0", "#ff9a5c", "#4fd0a5", "#e79ac8", "#f0c04a", "#7fd3ea", "#b4bec8", "#d2a07c",
];

/// Style sheet of the series' colours on light pages, dark pages and paper.
#[must_use]
pub fn colours() -> String {
    let set = |colours: &[&str]| {
        let mut out = String::new();
        for (i, colour) in colours.iter().enumerate() {
            let _ = write!(out, "--s{i}:{colour};");
        }
        out
    };
    let (light, dark) = (set(&COLOURS), set(&DARK_COLOURS));
    let mut out = format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    );
    for i in 0..LOOKS {
        let _ = writeln!(out, ".c{i}{{stroke:var(--s{i});fill:var(--s{i})}}");
    }
    out
}

/// Colours of stand-alone files. Written out because not every SVG reader supports custom properties.
const LIGHT: &str = ".chart{font-family:system-ui,'DejaVu Sans',sans-serif}\
.chart text{fill:#333}.chart .head{font-size:14px;font-weight:600;fill:#111}\
.chart .grid{stroke:#dfe3e8}.chart .edge,.chart .mark{stroke:#667}\
.c0{stroke:#0072b2;fill:#0072b2}.c1{stroke:#c4500a;fill:#c4500a}.c2{stroke:#00805c;fill:#00805c}\
.c3{stroke:#a8487f;fill:#a8487f}.c4{stroke:#9a6a00;fill:#9a6a00}.c5{stroke:#2a7f9e;fill:#2a7f9e}\
.c6{stroke:#55606b;fill:#55606b}.c7{stroke:#7a4a2b;fill:#7a4a2b}\
.chart .hollow{fill:#fff}.chart .over{stroke:#222}";

/// The part of the style sheet that does not depend on colours.
pub const CSS: &str = ".chart text{font-size:12px}\
.chart .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.chart .ci{stroke-width:1.3;fill:none}.chart .thin{stroke-width:1.4}\
.chart .mk{stroke-width:1.6}.chart .bar{stroke-width:1.2;fill-opacity:.85}.chart .over{fill:none;stroke-width:1.3}\
.chart .band{stroke-width:3;stroke-opacity:.18;fill-opacity:.18}.chart .column{stroke:none;fill-opacity:.45}\
.chart .part{stroke:none;fill-opacity:.85}.chart .part.pale{fill-opacity:.4}.chart .cell{stroke:none}.chart .bar.hollow{fill-opacity:1;stroke-dasharray:2 2}\
.chart .mark{stroke-dasharray:5 4}";

/// A number formatted as a coordinate.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// CSS class of the colour of `look`.
fn colour(look: usize) -> String {
    format!("c{}", look % LOOKS)
}

/// Approximate width of a text in the usual size, in pixels; errs on the wide side.
fn width(text: &str) -> f64 {
    text.chars()
        .map(|c| match c {
            'i' | 'l' | 'j' | '.' | ',' | ':' | ' ' | '|' | '\'' | '(' | ')' | '[' | ']' => 4.4,
            'm' | 'w' | 'M' | 'W' | '—' | '%' => 11.0,
            'A'..='Z' => 8.8,
            _ => 7.2,
        })
        .sum()
}

/// `text` truncated to at most `most` pixels.
fn fitted(text: &str, most: f64) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if width(&out) > most - 8.0 {
            break;
        }
    }
    out.pop();
    format!("{}…", out.trim_end())
}
