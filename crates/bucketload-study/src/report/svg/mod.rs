//! Charts as SVG: lines over an axis, and horizontal bars, both with intervals.
//!
//! ```text
//!  Chart ─┬─ lines ─┐
//!         └─ bars  ─┴─► body ─┬─ inline: part of the page, whose style sheet has the colours
//!                             └─ file: with a style of its own, for papers
//! ```
//!
//! Everything is drawn from classes, so that one drawing serves light and dark pages and print. Series
//! differ by colour, marker and dash together, never by colour alone. Legends have rows of their own above
//! the plot: they cannot overlap it.

mod bars;
mod legend;
mod lines;
mod scale;

pub use scale::{Axis, Unit};

use super::escape::xml;
use legend::Entry;

/// Width of a drawing, pixels.
const WIDTH: f64 = 640.0;
/// Different looks of series; further ones repeat the colours with other markers and dashes.
const LOOKS: usize = 8;

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Interval.
    pub ci: Option<(f64, f64)>,
    /// Whether the verdict of its cell is not VALID: drawn hollow.
    pub flawed: bool,
}

/// A line.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, ascending in x.
    pub points: Vec<Point>,
    /// Number of its look; series of one subject in several lines share it.
    pub look: usize,
    /// Drawn dashed: published values, laws, theory.
    pub dashed: bool,
    /// Whether points have markers.
    pub markers: bool,
    /// Drawn as steps.
    pub steps: bool,
    /// Whether points are connected.
    pub alone: bool,
}

/// A bar with its interval.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Number of its look and entry in [`Bars::legend`].
    pub look: usize,
    /// Length.
    pub value: f64,
    /// Interval.
    pub ci: Option<(f64, f64)>,
    /// Text at its end.
    pub text: String,
    /// Whether the verdict of its cell is not VALID: drawn hollow.
    pub flawed: bool,
    /// A published value: drawn hatched.
    pub published: bool,
}

/// Bars in groups.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Groups with their names, from the top.
    pub groups: Vec<(String, Vec<Bar>)>,
    /// Names of the looks; empty for no legend.
    pub legend: Vec<String>,
    /// A value that is marked by a line, such as 1 for ratios.
    pub mark: Option<f64>,
}

/// What a chart shows.
#[derive(Clone, Debug)]
pub enum Body {
    /// Lines.
    Lines(Vec<Series>),
    /// Horizontal bars along the horizontal axis.
    Bars(Bars),
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Name of its file and anchor; a plain name (see `escape::slug`).
    pub name: String,
    /// Heading.
    pub title: String,
    /// What a reader must know to read it; also its text for those who cannot see it.
    pub note: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis; unused by bars.
    pub y: Axis,
    /// What it shows.
    pub body: Body,
}

impl Chart {
    /// Whether it shows nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.body {
            Body::Lines(series) => series.iter().all(|s| s.points.is_empty()),
            Body::Bars(bars) => bars.groups.iter().all(|(_, bars)| bars.is_empty()),
        }
    }

    /// As an element of a page that has [`CSS`] and the colours.
    #[must_use]
    pub fn inline(&self) -> String {
        let (height, body) = self.draw();
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-labelledby=\"fig-{name}-t fig-{name}-d\">\n\
             <title id=\"fig-{name}-t\">{}</title>\n<desc id=\"fig-{name}-d\">{}</desc>\n{body}</svg>\n",
            xml(&self.title),
            xml(&self.description()),
            name = self.name,
        )
    }

    /// As a file of its own, dark on white.
    #[must_use]
    pub fn file(&self) -> String {
        let (height, body) = self.draw();
        // The heading belongs to the file: nobody else tells what it shows.
        let top = 26.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{WIDTH}\" height=\"{h:.0}\" viewBox=\"0 0 {WIDTH} {h:.0}\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{}</desc>\n<style>{LIGHT}{CSS}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text class=\"head\" x=\"12\" y=\"19\">{title}</text>\n<g transform=\"translate(0 {top})\">\n{body}</g>\n</svg>\n",
            xml(&self.description()),
            title = xml(&self.title),
            h = height + top,
        )
    }

    fn description(&self) -> String {
        let axes = match &self.body {
            Body::Lines(_) => format!("Horizontal: {}. Vertical: {}.", self.x.label, self.y.label),
            Body::Bars(_) => format!("Bars along: {}.", self.x.label),
        };
        match self.note.is_empty() {
            true => axes,
            false => format!("{axes} {}", self.note),
        }
    }

    /// Height and elements.
    fn draw(&self) -> (f64, String) {
        match &self.body {
            Body::Lines(series) => lines::draw(&self.x, &self.y, series),
            Body::Bars(bars) => bars::draw(&self.x, bars),
        }
    }
}

/// Colours on white: blue, vermilion, green, purple, amber, teal, grey, brown of about equal contrast, in the
/// order of Okabe and Ito (*Color Universal Design*, 2008), darkened where white needs it.
pub const COLOURS: [&str; LOOKS] = [
    "#0072b2", "#c4500a", "#00805c", "#a8487f", "#9a6a00", "#2a7f9e", "#55606b", "#7a4a2b",
];
/// The same on dark pages.
pub const DARK_COLOURS: [&str; LOOKS] = [
    "#5ab4f0", "#ff9a5c", "#4fd0a5", "#e79ac8", "#f0c04a", "#7fd3ea", "#b4bec8", "#d2a07c",
];

/// The file's colours. Written out, since not every reader of SVG knows custom properties.
const LIGHT: &str = ".chart{font-family:system-ui,'DejaVu Sans',sans-serif}\
.chart text{fill:#333}.chart .head{font-size:14px;font-weight:600;fill:#111}\
.chart .grid{stroke:#dfe3e8}.chart .edge,.chart .mark{stroke:#667}\
.c0{stroke:#0072b2;fill:#0072b2}.c1{stroke:#c4500a;fill:#c4500a}.c2{stroke:#00805c;fill:#00805c}\
.c3{stroke:#a8487f;fill:#a8487f}.c4{stroke:#9a6a00;fill:#9a6a00}.c5{stroke:#2a7f9e;fill:#2a7f9e}\
.c6{stroke:#55606b;fill:#55606b}.c7{stroke:#7a4a2b;fill:#7a4a2b}\
.chart .hollow{fill:#fff}.chart .over{stroke:#222}";

/// What does not depend on the colours.
pub const CSS: &str = ".chart text{font-size:12px}.chart .label{font-size:12.5px}.chart .small{font-size:11px}\
.chart .line{fill:none;stroke-width:2}.chart .ci{stroke-width:1.3;fill:none}.chart .thin{stroke-width:1.4}\
.chart .mk{stroke-width:1.6}.chart .bar{stroke-width:1.2;fill-opacity:.85}.chart .over{fill:none;stroke-width:1.3}\
.chart .pub{fill-opacity:.18;stroke-dasharray:4 2}.chart .bar.hollow{fill-opacity:1;stroke-dasharray:2 2}\
.chart .mark{stroke-dasharray:5 4}";

/// A number as a coordinate.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Class of the colour of look `look`.
fn colour(look: usize) -> String {
    format!("c{}", look % LOOKS)
}

/// Width of a text of the usual size, roughly and rather too much than too little, pixels.
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

/// `text` cut to at most `most` pixels.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(body: Body) -> Chart {
        Chart {
            name: "sample".to_owned(),
            title: "A <title> & more".to_owned(),
            note: "Hollow: not VALID.".to_owned(),
            x: Axis::log("object size", Unit::Bytes),
            y: Axis::linear("throughput", Unit::BytesPerS),
            body,
        }
    }

    fn point(x: f64, y: f64) -> Point {
        Point {
            x,
            y,
            ci: Some((y * 0.9, y * 1.1)),
            flawed: x > 5000.0,
        }
    }

    #[test]
    fn a_file_is_complete_and_escaped() {
        let series = |name: &str, look| Series {
            name: name.to_owned(),
            points: vec![point(1024.0, 1e6), point(4096.0, 2e6), point(65_536.0, 9e6)],
            look,
            markers: true,
            ..Series::default()
        };
        let many = (0..12)
            .map(|i| series(&format!("<target {i}> with a long name"), i))
            .collect();
        let file = chart(Body::Lines(many)).file();
        assert!(file.starts_with("<svg xmlns="));
        assert!(file.contains("A &lt;title&gt; &amp; more"));
        assert!(file.contains("&lt;target 3&gt;"));
        assert!(!file.contains("NaN") && !file.contains("inf"), "{file}");
        // What is opened is closed.
        for tag in ["svg", "g", "text", "title", "desc", "style"] {
            let open = file.matches(&format!("<{tag}>")).count()
                + file.matches(&format!("<{tag} ")).count();
            assert_eq!(open, file.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        // An invalid cell is hollow, and every point has its interval.
        assert_eq!(
            file.matches("hollow").count()
                - CSS.matches("hollow").count()
                - LIGHT.matches("hollow").count(),
            12
        );
        assert_eq!(file.matches("class=\"ci ").count(), 36);
    }

    #[test]
    fn bars_have_texts_and_empty_charts_say_so() {
        let bars = Bars {
            groups: vec![(
                "group".to_owned(),
                vec![Bar {
                    look: 0,
                    value: 3.0,
                    ci: Some((2.0, 4.0)),
                    text: "3×".to_owned(),
                    flawed: false,
                    published: true,
                }],
            )],
            legend: vec!["ours".to_owned()],
            mark: Some(1.0),
        };
        let chart = chart(Body::Bars(bars));
        assert!(!chart.is_empty());
        let inline = chart.inline();
        assert!(
            inline.contains("3×") && inline.contains("pub") && inline.contains("class=\"over\"")
        );
        assert!(
            Chart {
                body: Body::Lines(vec![Series::default()]),
                ..chart
            }
            .is_empty()
        );
    }

    #[test]
    fn colours_of_the_file_are_those_of_the_list() {
        for (i, colour) in COLOURS.iter().enumerate() {
            assert!(LIGHT.contains(&format!(".c{i}{{stroke:{colour};fill:{colour}}}")));
        }
    }
}
