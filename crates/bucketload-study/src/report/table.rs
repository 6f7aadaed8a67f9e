//! Tables: one model, four forms (HTML, CSV, Markdown, LaTeX).
//!
//! HTML, Markdown and LaTeX show texts for readers; CSV has every number in full and the ends of an interval
//! in columns of their own, so that it is what programs read.

use std::fmt::Write as _;

use super::escape::{csv, latex, markdown, slug, xml};
use super::estimate::Over;

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Heading for readers.
    pub title: String,
    /// Name in CSV, with the unit in it.
    pub key: String,
    /// Whether its figures have intervals, which are two further columns of CSV.
    pub interval: bool,
    /// Whether it is right-aligned.
    pub number: bool,
}

impl Column {
    /// Of texts.
    #[must_use]
    pub fn text(title: &str, key: &str) -> Self {
        Self {
            title: title.to_owned(),
            key: key.to_owned(),
            interval: false,
            number: false,
        }
    }

    /// Of numbers.
    #[must_use]
    pub fn number(title: &str, key: &str) -> Self {
        Self {
            number: true,
            ..Self::text(title, key)
        }
    }

    /// Of figures with intervals.
    #[must_use]
    pub fn figure(title: &str, key: &str) -> Self {
        Self {
            interval: true,
            ..Self::number(title, key)
        }
    }
}

/// A cell.
#[derive(Clone, Debug)]
pub enum Cell {
    /// Nothing was measured.
    None,
    /// A text.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A figure and how readers see it.
    Figure {
        /// The figure in the unit of the column's key.
        over: Over,
        /// Its text, without the interval.
        shown: String,
        /// The text of its interval; empty for none.
        interval: String,
    },
}

impl Cell {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A figure shown by `show`; nothing for `None`.
    #[must_use]
    pub fn figure(over: Option<Over>, show: impl Fn(f64) -> String) -> Self {
        let Some(over) = over.filter(|over| over.value.is_finite()) else {
            return Self::None;
        };
        let interval = over
            .ci
            .map_or_else(String::new, |(low, high)| interval(&show(low), &show(high)));
        Self::Figure {
            over,
            shown: show(over.value),
            interval,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::None => "–".to_owned(),
            Self::Text(text) => text.clone(),
            Self::Count(n) => bucketload_results::units::count(*n),
            Self::Figure {
                shown, interval, ..
            } if interval.is_empty() => shown.clone(),
            Self::Figure {
                shown, interval, ..
            } => format!("{shown} [{interval}]"),
        }
    }
}

/// The ends of an interval; a common unit is written once.
fn interval(low: &str, high: &str) -> String {
    let split = |text: &'_ str| {
        text.rfind(|c: char| c.is_ascii_digit())
            .map_or(0, |at| at + 1)
    };
    let (number, unit) = low.split_at(split(low));
    match unit == &high[split(high)..] {
        true => format!("{number}–{high}"),
        false => format!("{low}–{high}"),
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of its files and anchor.
    pub name: String,
    /// Caption.
    pub title: String,
    /// What a reader must know: units, intervals, marks, sources.
    pub note: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, as many cells as columns.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows yet; `name` becomes a plain file name.
    #[must_use]
    pub fn new(name: &str, title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            name: slug(name),
            title: title.into(),
            note: String::new(),
            columns,
            rows: Vec::new(),
        }
    }

    /// Leaves out columns that hold nothing in any row.
    #[must_use]
    pub fn compact(mut self) -> Self {
        let held: Vec<bool> = (0..self.columns.len())
            .map(|at| {
                self.rows.iter().any(|row| match &row[at] {
                    Cell::None => false,
                    Cell::Text(text) => !text.is_empty(),
                    _ => true,
                })
            })
            .collect();
        let mut at = held.iter();
        self.columns.retain(|_| *at.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut at = held.iter();
            row.retain(|_| *at.next().unwrap_or(&true));
        }
        self
    }

    /// As CSV (RFC 4180) with a header line; lines end with CR LF.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut head = Vec::new();
        for column in &self.columns {
            head.push(csv(&column.key));
            if column.interval {
                head.extend(["low", "high"].map(|end| csv(&format!("{}_{end}", column.key))));
            }
        }
        let mut out = format!("{}\r\n", head.join(","));
        for row in &self.rows {
            let mut fields = Vec::new();
            for (cell, column) in row.iter().zip(&self.columns) {
                let (value, ci) = match cell {
                    Cell::None => (String::new(), None),
                    Cell::Text(text) => (csv(text), None),
                    Cell::Count(n) => (n.to_string(), None),
                    Cell::Figure { over, .. } => (plain(over.value), over.ci),
                };
                fields.push(value);
                if column.interval {
                    let ends = ci.map(|(low, high)| [plain(low), plain(high)]);
                    fields.extend(ends.unwrap_or_default());
                }
            }
            let _ = write!(out, "{}\r\n", fields.join(","));
        }
        out
    }

    /// As a Markdown table with its caption and note.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", markdown(&self.title));
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        out += &row(self.columns.iter().map(|c| markdown(&c.title)).collect());
        let rule = |c: &Column| if c.number { "---:" } else { "---" }.to_owned();
        out += &row(self.columns.iter().map(rule).collect());
        for cells in &self.rows {
            out += &row(cells.iter().map(|cell| markdown(&cell.shown())).collect());
        }
        if !self.note.is_empty() {
            let _ = write!(out, "\n{}\n", markdown(&self.note));
        }
        out
    }

    /// As a LaTeX `table` with a plain `tabular`: no package is needed.
    #[must_use]
    pub fn latex(&self) -> String {
        let align: String = self
            .columns
            .iter()
            .map(|c| if c.number { 'r' } else { 'l' })
            .collect();
        let row = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        let mut out = format!(
            "\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\label{{tab:{}}}\n\\begin{{tabular}}{{{align}}}\n\\hline\n",
            latex(&self.title),
            self.name
        );
        out += &row(self.columns.iter().map(|c| latex(&c.title)).collect());
        out += "\\hline\n";
        for cells in &self.rows {
            out += &row(cells.iter().map(|cell| latex(&cell.shown())).collect());
        }
        out += "\\hline\n\\end{tabular}\n";
        if !self.note.is_empty() {
            let _ = write!(
                out,
                "\\par\\smallskip\n{{\\footnotesize {}}}\n",
                latex(&self.note)
            );
        }
        out + "\\end{table}\n"
    }

    /// As HTML. Intervals stand below their figures.
    #[must_use]
    pub fn html(&self) -> String {
        let mut out = format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\"><table id=\"table-{}\">\n<caption>{title}</caption>\n<thead><tr>",
            self.name,
            title = xml(&self.title)
        );
        let class = |column: &Column| if column.number { "" } else { " class=\"t\"" };
        for column in &self.columns {
            let _ = write!(
                out,
                "<th scope=\"col\"{}>{}</th>",
                class(column),
                xml(&column.title)
            );
        }
        out += "</tr></thead>\n<tbody>\n";
        for cells in &self.rows {
            out += "<tr>";
            for (at, (cell, column)) in cells.iter().zip(&self.columns).enumerate() {
                let text = match cell {
                    Cell::Figure {
                        shown, interval, ..
                    } if !interval.is_empty() => {
                        format!("{} <small>{}</small>", xml(shown), xml(interval))
                    }
                    _ => xml(&cell.shown()),
                };
                let _ = match at {
                    0 => write!(out, "<th scope=\"row\"{}>{text}</th>", class(column)),
                    _ => write!(out, "<td{}>{text}</td>", class(column)),
                };
            }
            out += "</tr>\n";
        }
        out += "</tbody></table></div>\n";
        if !self.note.is_empty() {
            let _ = writeln!(out, "<p class=\"muted\">{}</p>", xml(&self.note));
        }
        out
    }
}

/// A number in full for programs; nothing for what is none.
fn plain(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value}"),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Column, Table};
    use crate::report::estimate::Over;

    fn sample() -> Table {
        let mut table = Table::new(
            "A/b",
            "50 % & more",
            vec![
                Column::text("target", "target"),
                Column::figure("rate", "ops_per_s"),
                Column::number("n", "n"),
                Column::text("empty", "empty"),
            ],
        );
        let over = Over {
            value: 1234.5,
            ci: Some((1000.0, 1500.25)),
            runs: 3,
        };
        table.rows = vec![
            vec![
                Cell::text("a|b, \"c\"_1"),
                Cell::figure(Some(over), |v| format!("{v:.0} /s")),
                Cell::Count(12_345),
                Cell::None,
            ],
            vec![Cell::text("<b>"), Cell::None, Cell::Count(0), Cell::None],
        ];
        table.note = "95 % intervals".to_owned();
        table.compact()
    }

    #[test]
    fn csv_has_numbers_in_full_and_intervals_in_columns() {
        assert_eq!(
            sample().csv(),
            "target,ops_per_s,ops_per_s_low,ops_per_s_high,n\r\n\
             \"a|b, \"\"c\"\"_1\",1234.5,1000,1500.25,12345\r\n<b>,,,,0\r\n"
        );
    }

    #[test]
    fn markdown_escapes_what_would_be_markup() {
        assert_eq!(
            sample().markdown(),
            "**50 % & more**\n\n| target | rate | n |\n| --- | ---: | ---: |\n\
             | a\\|b, \"c\"\\_1 | 1234 /s \\[1000–1500 /s\\] | 12,345 |\n| &lt;b> | – | 0 |\n\n95 % intervals\n"
                .replace("50 % & more", "50 % &amp; more")
        );
    }

    #[test]
    fn latex_needs_no_package() {
        let latex = sample().latex();
        assert!(latex.contains("\\begin{tabular}{lrr}"), "{latex}");
        assert!(latex.contains("\\caption{50 \\% \\& more}"), "{latex}");
        assert!(
            latex.contains("1234 /s {[}1000--1500 /s{]} & 12,345 \\\\\n"),
            "{latex}"
        );
        assert!(latex.contains("\\label{tab:a-b}"), "{latex}");
        assert!(latex.is_ascii());
    }

    #[test]
    fn html_has_a_caption_and_headings_for_readers() {
        let html = sample().html();
        assert!(
            html.contains("<caption>50 % &amp; more</caption>"),
            "{html}"
        );
        assert!(
            html.contains("<th scope=\"row\" class=\"t\">&lt;b&gt;</th>"),
            "{html}"
        );
        assert!(
            html.contains("<td>1234 /s <small>1000–1500 /s</small></td>"),
            "{html}"
        );
    }
}
