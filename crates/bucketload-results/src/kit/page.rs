//! The page: a header with the verdict, sections of tables and charts, and the frame that makes it one file.

use std::fmt::Write as _;

use super::escape::xml;
use super::svg::{self, Chart};
use super::table::Table;

const STYLE: &str = include_str!("style.css");
/// Script that shows the values under the pointer; the page is complete without it.
pub const HOVER: &str = include_str!("hover.js");

/// A whole page.
#[derive(Clone, Debug, Default)]
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

/// The verdict box of a page.
#[derive(Clone, Debug, Default)]
pub struct VerdictBox {
    /// The verdict word.
    pub word: String,
    /// `good`, `warn` or `bad`. It only selects the colour; the words carry the meaning.
    pub tone: &'static str,
    /// What the word means, in one sentence.
    pub meaning: String,
    /// Reasons with rule, figures and advice.
    pub reasons: Vec<String>,
}

/// A titled part of the page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Explanation below the heading; empty for none.
    pub intro: String,
    /// Tables, before the charts.
    pub tables: Vec<Table>,
    /// Charts.
    pub charts: Vec<Chart>,
}

impl Section {
    /// A section without tables and charts.
    pub fn new(title: impl Into<String>, intro: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            intro: intro.into(),
            ..Self::default()
        }
    }

    /// The same section with `tables` appended.
    #[must_use]
    pub fn tables(mut self, tables: impl IntoIterator<Item = Table>) -> Self {
        self.tables.extend(tables);
        self
    }

    /// The same section with `charts` appended.
    #[must_use]
    pub fn charts(mut self, charts: impl IntoIterator<Item = Chart>) -> Self {
        self.charts.extend(charts);
        self
    }

    fn html(&self) -> String {
        let mut out = format!("<section>\n<h2>{}</h2>\n", xml(&self.title));
        if !self.intro.is_empty() {
            let _ = writeln!(out, "<p class=\"muted\">{}</p>", xml(&self.intro));
        }
        out.extend(self.tables.iter().map(Table::html));
        out + &figures(&self.charts) + "</section>\n"
    }
}

impl Page {
    /// The page as one HTML file that loads nothing from elsewhere.
    #[must_use]
    pub fn render(mut self) -> String {
        for (section, number) in self.sections.iter_mut().zip(1..) {
            for (chart, i) in section.charts.iter_mut().zip(1..) {
                chart.name = format!("{number}-{i}");
            }
        }
        let verdict = &self.verdict;
        let mut body = format!(
            "<h1>{}</h1>\n<p class=\"muted\">{}</p>\n\
             <div class=\"verdict {}\" role=\"status\"><strong>{}</strong> <span>{}</span>\n",
            xml(&self.title),
            xml(&self.subtitle),
            verdict.tone,
            xml(&verdict.word),
            xml(&verdict.meaning),
        );
        if !verdict.reasons.is_empty() {
            let reason = |text: &String| format!("<li>{}</li>\n", xml(text));
            let reasons: String = verdict.reasons.iter().map(reason).collect();
            let _ = write!(body, "<ul>\n{reasons}</ul>\n");
        }
        body += "</div>\n";
        body += &facts(&self.facts);
        body.extend(self.sections.iter().map(Section::html));
        frame(&self.title, &body, Some(HOVER))
    }
}

/// Headline figures as (name, value); empty without figures.
pub fn facts<N: AsRef<str>, V: AsRef<str>>(facts: &[(N, V)]) -> String {
    let fact = |(name, value): &(N, V)| {
        let (name, value) = (xml(name.as_ref()), xml(value.as_ref()));
        format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n")
    };
    let all: String = facts.iter().map(fact).collect();
    match all.is_empty() {
        true => all,
        false => format!("<dl class=\"facts\">\n{all}</dl>\n"),
    }
}

/// Charts side by side where there is room; empty without charts.
#[must_use]
pub fn figures(charts: &[Chart]) -> String {
    let all: String = charts.iter().map(Chart::figure).collect();
    match all.is_empty() {
        true => all,
        false => format!("<div class=\"figures\">\n{all}</div>\n"),
    }
}

/// One HTML file around `body`, which is markup. It includes the style sheet, loads nothing, and runs only `script`.
#[must_use]
pub fn frame(title: &str, body: &str, script: Option<&str>) -> String {
    let (policy, script) = match script {
        Some(text) => (
            "; script-src 'unsafe-inline'",
            format!("<script>\n{text}</script>\n"),
        ),
        None => ("", String::new()),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"bucketload\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'{policy}\">\n\
         <title>{title}</title>\n<style>\n{colours}{STYLE}{css}\n</style>\n</head>\n<body>\n<main>\n{body}</main>\n{script}</body>\n</html>\n",
        title = xml(title),
        colours = svg::colours(),
        css = svg::CSS,
    )
}

#[cfg(test)]
mod tests {
    use super::{Page, Section, VerdictBox};
    use crate::kit::{Axis, Chart, Series, Table, Unit};

    #[test]
    fn the_page_is_self_contained_and_cannot_be_broken_out_of() {
        let (x, y) = (Axis::linear("t", Unit::Seconds), Axis::log("l", Unit::Ns));
        let line = Series::line("</script><b>%CSS%", 0, [(0.0, 1.0), (1.0, 2.0)]);
        let page = Page {
            title: "a<b&c".into(),
            verdict: VerdictBox {
                word: "<i>".into(),
                ..VerdictBox::default()
            },
            facts: vec![("<u>".into(), "1".into())],
            sections: vec![
                Section::new("s", "")
                    .tables([Table::pairs("<t>").with([["<x>", "y"]])])
                    .charts([Chart::lines("c", x, y, [line])]),
            ],
            ..Page::default()
        };
        let html = page.render();
        assert!(html.contains("<title>a&lt;b&amp;c</title>"));
        assert!(html.contains("&lt;/script&gt;&lt;b&gt;%CSS%"));
        assert_eq!(html.matches("</script>").count(), 1);
        for forbidden in [
            "src=", "href=", "@import", "url(", "http://", "<b>%", "<i>", "<u>", "<t>", "<x>",
        ] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
    }
}
