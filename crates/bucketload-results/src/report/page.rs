//! The page: a generic model of sections, tables and charts, rendered to one self-contained HTML
//! file. Everything the page shows is in the embedded JSON; the scripts only draw it.

use serde::Serialize;

const TEMPLATE: &str = include_str!("assets/page.html");
const CSS: &str = include_str!("assets/report.css");
/// The functions that draw charts, for other pages of ours: they need the colours of the style sheet as
/// custom properties, and add nothing to a page by themselves.
pub const CHARTS: &str = include_str!("assets/charts.js");
const SCRIPT: &str = include_str!("assets/report.js");

/// A whole report page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Page {
    /// Heading and document title.
    pub title: String,
    /// One line below it.
    pub subtitle: String,
    /// The verdict box.
    pub verdict: VerdictBox,
    /// Headline figures as (name, value).
    pub facts: Vec<(String, String)>,
    /// The body.
    pub sections: Vec<Section>,
}

/// The verdict as shown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerdictBox {
    /// The verdict word.
    pub word: String,
    /// `good`, `warn` or `bad`: never the only carrier of meaning.
    pub tone: &'static str,
    /// What the word means, in one sentence.
    pub meaning: String,
    /// Reasons with rule, figures and advice.
    pub reasons: Vec<String>,
}

/// A titled part of the page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Explanation below the heading.
    pub intro: String,
    /// Tables, before the charts.
    pub tables: Vec<Table>,
    /// Charts.
    pub charts: Vec<Chart>,
}

/// A table of ready-made texts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Caption; empty for none.
    pub title: String,
    /// Column headings; empty for none.
    pub head: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// Remark below the table; empty for none.
    pub note: String,
    /// Whether cells are running text rather than numbers.
    pub text: bool,
}

/// What a chart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartKind {
    /// Lines, bands and bars over a common x axis.
    Lines,
    /// Counts per cell of time and value.
    Heat,
    /// Horizontal bars, one per row, possibly stacked.
    Bars,
}

/// A chart.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// What it is.
    pub kind: ChartKind,
    /// Heading.
    pub title: String,
    /// Remark below the heading; empty for none.
    pub note: String,
    /// Whether it takes the whole width of the page.
    pub wide: bool,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The curves of [`ChartKind::Lines`].
    pub series: Vec<Series>,
    /// Vertical marks, such as the end of the warm-up.
    pub marks: Vec<Mark>,
    /// The cells of [`ChartKind::Heat`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heat: Option<Heat>,
    /// The rows of [`ChartKind::Bars`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bars: Option<Bars>,
}

impl Chart {
    /// A chart of lines without content yet.
    #[must_use]
    pub fn lines(title: &str, x: Axis, y: Axis) -> Self {
        Self {
            kind: ChartKind::Lines,
            title: title.to_owned(),
            note: String::new(),
            wide: false,
            x,
            y,
            series: Vec::new(),
            marks: Vec::new(),
            heat: None,
            bars: None,
        }
    }

    /// A chart of horizontal bars along the axis `x`.
    #[must_use]
    pub fn bars(title: &str, x: Axis, bars: Bars) -> Self {
        Self {
            kind: ChartKind::Bars,
            bars: Some(bars),
            ..Self::lines(title, x, Axis::default())
        }
    }
}

/// An axis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Axis {
    /// Label.
    pub label: String,
    /// `ns`, `s`, `B`, `B/s`, `/s`, `%` (of a share) or empty.
    pub unit: &'static str,
    /// Logarithmic.
    pub log: bool,
    /// Fixed lower end; `None` = from the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Fixed upper end; `None` = from the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

impl Axis {
    /// A linear axis.
    #[must_use]
    pub fn linear(label: &str, unit: &'static str) -> Self {
        Self {
            label: label.to_owned(),
            unit,
            ..Self::default()
        }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(label: &str, unit: &'static str) -> Self {
        Self {
            log: true,
            ..Self::linear(label, unit)
        }
    }
}

/// A curve.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, ascending in x; a `None` value is a gap.
    pub points: Vec<(f64, Option<f64>)>,
    /// Band as (x, low, high), ascending in x.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub band: Vec<(f64, f64, f64)>,
    /// Drawn dashed: theory, offered load.
    pub dash: bool,
    /// Drawn as steps.
    pub step: bool,
    /// Width of a bar in x units; 0 = a line.
    pub bars: f64,
    /// Index of the colour; `None` = by position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<u8>,
}

/// A vertical mark.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// What.
    pub label: String,
}

/// Counts per cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Heat {
    /// Start of the first column.
    pub x0: f64,
    /// Width of a column.
    pub dx: f64,
    /// Edges of the rows, ascending; one more than rows.
    pub edges: Vec<f64>,
    /// Counts: per column, one per row.
    pub rows: Vec<Vec<u64>>,
}

/// Horizontal bars.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bars {
    /// Name of each row, from the top.
    pub rows: Vec<String>,
    /// What is stacked in each row, from the left.
    pub series: Vec<BarSeries>,
    /// Text behind each row; empty for none.
    pub notes: Vec<String>,
    /// Whether each row is drawn as shares of its own sum.
    pub shares: bool,
    /// Unit of the values, as of [`Axis::unit`].
    pub unit: &'static str,
}

/// One segment of each row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// Length of the segment, per row.
    pub values: Vec<f64>,
    /// Index of the colour; from 6 on the same colours again, paler.
    pub color: u8,
}

impl Page {
    /// Renders the page as one HTML file that loads nothing from elsewhere.
    #[must_use]
    pub fn render(&self) -> String {
        // `<` must not occur inside the script element that carries the data: `</script>` would
        // end it. In JSON it only occurs inside strings, where the escape means the same.
        let data = serde_json::to_string(self)
            .unwrap_or_default()
            .replace('<', "\\u003c");
        let title = self.title.replace('&', "&amp;").replace('<', "&lt;");
        // The data goes in last, so that nothing in it is taken for a placeholder.
        TEMPLATE
            .replace("%TITLE%", &title)
            .replace("%CSS%", CSS)
            .replace("%CHARTS%", CHARTS)
            .replace("%SCRIPT%", SCRIPT)
            .replacen("%DATA%", &data, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Chart, Page, Section, Series};

    #[test]
    fn the_page_is_self_contained_and_cannot_be_broken_out_of() {
        let mut chart = Chart::lines("c", Axis::linear("t", "s"), Axis::log("l", "ns"));
        chart.series.push(Series {
            name: "</script><b>%CSS%".into(),
            ..Series::default()
        });
        let page = Page {
            title: "a<b&c".into(),
            sections: vec![Section {
                charts: vec![chart],
                ..Section::default()
            }],
            ..Page::default()
        };
        let html = page.render();
        assert!(html.contains("<title>a&lt;b&amp;c</title>"));
        assert!(html.contains("\\u003c/script>\\u003cb>%CSS%"));
        assert_eq!(html.matches("</script>").count(), 2);
        for forbidden in ["src=", "href=", "@import", "url("] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        let http = html.matches("http://").count();
        assert_eq!(
            http,
            html.matches("http://www.w3.org/2000/svg").count(),
            "only the SVG name"
        );
    }
}
