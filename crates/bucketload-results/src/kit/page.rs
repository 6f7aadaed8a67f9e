//! The page: a header with the verdict, sections of tables and charts, and the frame that makes it one file.

use std::fmt::Write as _;

use super::escape::{slug, xml};
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
    /// The charts that answer first, above all sections.
    pub first: Vec<Chart>,
    /// The body; a page of several sections begins with a list of them.
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
    /// What a reader needs to know besides, behind a fold.
    pub notes: Vec<String>,
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
    /// A text to copy, such as the source of a workload; empty for none.
    pub source: String,
    /// Titled parts below the charts.
    pub parts: Vec<Section>,
    /// Whether only the title shows until a reader opens it: evidence, not the answer.
    pub folded: bool,
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

    /// The same section with `tables` appended; a table without rows is left out.
    #[must_use]
    pub fn tables(mut self, tables: impl IntoIterator<Item = Table>) -> Self {
        let held = tables.into_iter().filter(|table| !table.rows.is_empty());
        self.tables.extend(held);
        self
    }

    /// The same section with `charts` appended; an empty chart is left out.
    #[must_use]
    pub fn charts(mut self, charts: impl IntoIterator<Item = Chart>) -> Self {
        let held = charts.into_iter().filter(|chart| !chart.is_empty());
        self.charts.extend(held);
        self
    }

    /// The same section with `parts` appended; a part that holds nothing is left out.
    #[must_use]
    pub fn parts(mut self, parts: impl IntoIterator<Item = Self>) -> Self {
        let held = parts.into_iter().filter(|part| !part.is_empty());
        self.parts.extend(held);
        self
    }

    /// The same section, folded.
    #[must_use]
    pub fn folded(mut self) -> Self {
        self.folded = true;
        self
    }

    /// True if there is nothing below the title.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
            && self.charts.is_empty()
            && self.source.is_empty()
            && self.parts.iter().all(Self::is_empty)
    }

    /// The section and all parts below it, in the order of the page.
    pub fn each<'a>(&'a self, look: &mut dyn FnMut(&'a Self)) {
        look(self);
        for part in &self.parts {
            part.each(look);
        }
    }

    /// The section and all parts below it, in the order of the page.
    pub(crate) fn each_mut(&mut self, look: &mut dyn FnMut(&mut Self)) {
        look(self);
        for part in &mut self.parts {
            part.each_mut(look);
        }
    }

    /// Name of its anchor.
    fn anchor(&self) -> String {
        format!("s-{}", slug(&self.title))
    }

    fn html(&self, top: bool) -> String {
        let title = xml(&self.title);
        let mut out = match top {
            true => format!("<section id=\"{}\">\n", self.anchor()),
            false => String::new(),
        };
        out += &match (self.folded, top) {
            (true, _) => format!("<details>\n<summary>{title}</summary>\n"),
            (false, true) => format!("<h2>{title}</h2>\n"),
            (false, false) => format!("<h3>{title}</h3>\n"),
        };
        if !self.intro.is_empty() {
            let _ = writeln!(out, "<p class=\"muted\">{}</p>", xml(&self.intro));
        }
        out.extend(self.tables.iter().map(Table::html));
        if !self.source.is_empty() {
            let source = xml(&self.source);
            let _ = writeln!(
                out,
                "<div class=\"source\"><pre tabindex=\"0\">{source}</pre></div>"
            );
        }
        out += &figures(&self.charts);
        out.extend(self.parts.iter().map(|part| part.html(false)));
        out += if self.folded { "</details>\n" } else { "" };
        out + if top { "</section>\n" } else { "" }
    }
}

/// Number of sections from which on a page begins with a list of them.
const CONTENTS: usize = 3;

impl Page {
    /// The page as one HTML file that loads nothing from elsewhere.
    #[must_use]
    pub fn render(mut self) -> String {
        let mut number = 0;
        let mut name = |charts: &mut [Chart]| {
            for chart in charts {
                number += 1;
                chart.name = number.to_string();
            }
        };
        name(&mut self.first);
        for section in &mut self.sections {
            section.each_mut(&mut |section| name(&mut section.charts));
        }
        let verdict = &self.verdict;
        let mut body = format!(
            "<h1>{}</h1>\n<p class=\"muted\">{}</p>\n\
             <div class=\"verdict {}\" role=\"status\"><strong>{}</strong> <span>{}</span>\n",
            xml(&self.title),
            prose(&self.subtitle),
            verdict.tone,
            xml(&verdict.word),
            prose(&verdict.meaning),
        );
        body += &list(&verdict.reasons);
        if !verdict.notes.is_empty() {
            let n = verdict.notes.len();
            let _ = write!(
                body,
                "<details><summary>{n} note{}</summary>\n{}</details>\n",
                if n == 1 { "" } else { "s" },
                list(&verdict.notes)
            );
        }
        body += "</div>\n";
        body += &facts(&self.facts);
        body += &contents(&self.sections);
        let first: String = match &self.first[..] {
            // A single chart may be as wide as the page.
            [one] => one.clone().wide().figure(),
            all => all.iter().map(Chart::third).collect(),
        };
        if !first.is_empty() {
            let _ = write!(body, "<div class=\"figures first\">\n{first}</div>\n");
        }
        body.extend(self.sections.iter().map(|section| section.html(true)));
        frame(&self.title, &body, Some(HOVER))
    }
}

/// A text in which browsers do not break flags, such as `--ca-bundle`, at their hyphens.
fn prose(text: &str) -> String {
    let word = |word: &str| match word.starts_with("--") {
        true => format!("<span class=\"flag\">{}</span>", xml(word)),
        false => xml(word),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Texts as a list; empty without texts.
fn list(texts: &[String]) -> String {
    let item = |text: &String| format!("<li>{}</li>\n", prose(text));
    let all: String = texts.iter().map(item).collect();
    match all.is_empty() {
        true => all,
        false => format!("<ul>\n{all}</ul>\n"),
    }
}

/// Links to the sections; empty for a short page.
fn contents(sections: &[Section]) -> String {
    if sections.len() < CONTENTS {
        return String::new();
    }
    let link = |s: &Section| {
        format!(
            "<li><a href=\"#{}\">{}</a></li>\n",
            s.anchor(),
            xml(&s.title)
        )
    };
    let all: String = sections.iter().map(link).collect();
    format!("<nav class=\"contents\" aria-label=\"Contents\"><ul>\n{all}</ul></nav>\n")
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
        assert!(!html.replace("href=\"#", "").contains("href="));
        for forbidden in [
            "src=", "@import", "url(", "http://", "<b>%", "<i>", "<u>", "<t>", "<x>",
        ] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
    }
}
