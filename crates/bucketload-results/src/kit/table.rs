//! Tables: one model, five formats (terminal text in `terminal`, HTML, CSV, Markdown, LaTeX).
//!
//! Terminal text, HTML, Markdown and LaTeX show rounded texts for readers. CSV is for programs: it has every number
//! in full and the ends of an interval in columns of their own.

use std::fmt::Write as _;

use super::escape::{csv, latex, markdown, slug, xml};
use super::terminal::Style;
use crate::units;

/// A column.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// Heading; may be empty.
    pub title: String,
    /// Name in CSV, including the unit; empty for tables without files.
    pub key: String,
    /// Whether its figures have intervals, which add two columns in CSV.
    pub interval: bool,
    /// Whether it is right-aligned.
    pub number: bool,
}

impl Column {
    /// A column of texts.
    #[must_use]
    pub fn text(title: &str, key: &str) -> Self {
        Self {
            title: title.to_owned(),
            key: key.to_owned(),
            ..Self::default()
        }
    }

    /// A column of numbers.
    #[must_use]
    pub fn number(title: &str, key: &str) -> Self {
        Self {
            number: true,
            ..Self::text(title, key)
        }
    }

    /// A column of figures with intervals.
    #[must_use]
    pub fn figure(title: &str, key: &str) -> Self {
        Self {
            interval: true,
            ..Self::number(title, key)
        }
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    None,
    /// A text.
    Text(String),
    /// A text with emphasis on terminals.
    Styled(Style, String),
    /// A whole number.
    Count(u64),
    /// A figure and its text.
    Figure {
        /// The figure, in the unit that the column's key names.
        value: f64,
        /// Its interval.
        ci: Option<(f64, f64)>,
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

    /// A figure and its interval, both formatted by `show`; `None` if the figure is not finite.
    #[must_use]
    pub fn figure(value: f64, ci: Option<(f64, f64)>, show: impl Fn(f64) -> String) -> Self {
        if !value.is_finite() {
            return Self::None;
        }
        let interval = ci.map(|(low, high)| interval(&show(low), &show(high)));
        Self::Figure {
            value,
            ci,
            shown: show(value),
            interval: interval.unwrap_or_default(),
        }
    }

    /// The cell with `mark` after its figure; unchanged without a figure or mark.
    #[must_use]
    pub fn marked(mut self, mark: &str) -> Self {
        if let (Self::Figure { shown, .. }, false) = (&mut self, mark.is_empty()) {
            *shown += &format!(" {mark}");
        }
        self
    }

    /// The text that readers see.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::None => "–".to_owned(),
            Self::Text(text) | Self::Styled(_, text) => text.clone(),
            Self::Count(n) => units::count(*n),
            Self::Figure {
                shown, interval, ..
            } if interval.is_empty() => shown.clone(),
            Self::Figure {
                shown, interval, ..
            } => format!("{shown} [{interval}]"),
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl Default for Cell {
    /// An empty text.
    fn default() -> Self {
        Self::text("")
    }
}

/// Text of an interval; a common unit is written once.
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
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Name of its files and anchor; empty for a table that appears only on a page.
    pub name: String,
    /// Caption; empty for none.
    pub title: String,
    /// Note for readers: units, intervals, marks, sources; empty for none.
    pub note: String,
    /// Columns. If no column has a title, the heading row is omitted.
    pub columns: Vec<Column>,
    /// Rows, with as many cells as columns.
    pub rows: Vec<Vec<Cell>>,
    /// Titles of the columns that a narrow terminal leaves out, in this order.
    pub expendable: Vec<&'static str>,
    /// Whether a row of a page is one line, however long its texts; the table scrolls to the side.
    pub dense: bool,
}

impl Table {
    /// An empty table without files: the first `left` columns hold texts, the others numbers.
    pub fn new<T: Into<String>>(left: usize, head: impl IntoIterator<Item = T>) -> Self {
        let column = |(at, title): (usize, T)| Column {
            title: title.into(),
            number: at >= left,
            ..Column::default()
        };
        Self {
            columns: head.into_iter().enumerate().map(column).collect(),
            ..Self::default()
        }
    }

    /// An empty table with files; `name` is turned into a plain file name.
    #[must_use]
    pub fn named(name: &str, title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            name: slug(name),
            title: title.into(),
            columns,
            ..Self::default()
        }
    }

    /// A table of names and values, without a heading row.
    #[must_use]
    pub fn pairs(title: &str) -> Self {
        Self::new(1, ["", ""]).titled(title)
    }

    /// A table of names and texts that may span lines, without a heading row.
    #[must_use]
    pub fn prose(title: &str) -> Self {
        Self::new(2, ["", ""]).titled(title)
    }

    /// The same table with the caption `title`.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// The same table with a note.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// The same table with the columns called `titles` left out, in this order, where a terminal is too narrow.
    #[must_use]
    pub fn expending(mut self, titles: &[&'static str]) -> Self {
        self.expendable = titles.to_vec();
        self
    }

    /// The same table with one line per row on a page.
    #[must_use]
    pub fn dense(self) -> Self {
        Self {
            dense: true,
            ..self
        }
    }

    /// The same table with `rows` appended.
    #[must_use]
    pub fn with<R>(mut self, rows: impl IntoIterator<Item = R>) -> Self
    where
        R: IntoIterator<Item: Into<Cell>>,
    {
        rows.into_iter().for_each(|row| self.texts(row));
        self
    }

    /// The same table with further columns of texts on the right.
    #[must_use]
    pub fn text_columns<const N: usize>(mut self, titles: [&str; N]) -> Self {
        self.columns
            .extend(titles.map(|title| Column::text(title, "")));
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Adds a row of texts.
    pub fn texts(&mut self, cells: impl IntoIterator<Item: Into<Cell>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds a row, filled up with empty cells.
    pub fn short_row(&mut self, mut cells: Vec<Cell>) {
        cells.resize(self.columns.len(), Cell::None);
        self.rows.push(cells);
    }

    /// Removes columns that are empty in every row.
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
        self.keep(&held);
        self
    }

    /// Keeps the columns for which `held` is true.
    pub(super) fn keep(&mut self, held: &[bool]) {
        let mut at = held.iter();
        self.columns.retain(|_| *at.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut at = held.iter();
            row.retain(|_| *at.next().unwrap_or(&true));
        }
    }

    /// The table as CSV (RFC 4180) with a header line; lines end with CR LF.
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
                    Cell::Text(text) | Cell::Styled(_, text) => (csv(text), None),
                    Cell::Count(n) => (n.to_string(), None),
                    Cell::Figure { value, ci, .. } => (plain(*value), *ci),
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

    /// The table in Markdown, with its caption and note.
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

    /// The table as a LaTeX `table` with a plain `tabular`; no package is needed.
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

    /// The table as HTML. Intervals stand below their figures.
    #[must_use]
    pub fn html(&self) -> String {
        let title = xml(&self.title);
        let dense = if self.dense { " dense" } else { "" };
        let mut out = match title.as_str() {
            "" => format!("<div class=\"scroll{dense}\"><table"),
            _ => format!(
                "<div class=\"scroll{dense}\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\"><table"
            ),
        };
        if !self.name.is_empty() {
            let _ = write!(out, " id=\"table-{}\"", self.name);
        }
        out += ">\n";
        if !title.is_empty() {
            let _ = writeln!(out, "<caption>{title}</caption>");
        }
        let class = |column: &Column| if column.number { "" } else { " class=\"t\"" };
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            out += "<thead><tr>";
            for column in &self.columns {
                let (class, title) = (class(column), xml(&column.title));
                let _ = write!(out, "<th scope=\"col\"{class}>{title}</th>");
            }
            out += "</tr></thead>\n";
        }
        out += "<tbody>\n";
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
                let class = class(column);
                let _ = match at {
                    0 => write!(out, "<th scope=\"row\"{class}>{text}</th>"),
                    _ => write!(out, "<td{class}>{text}</td>"),
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

/// A number in full for programs; empty if it is not finite.
fn plain(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value}"),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Column, Table};

    fn sample() -> Table {
        let mut table = Table::named(
            "A/b",
            "50 % & more",
            vec![
                Column::text("target", "target"),
                Column::figure("rate", "ops_per_s"),
                Column::number("n", "n"),
                Column::text("empty", "empty"),
            ],
        );
        let ci = Some((1000.0, 1500.25));
        table.rows = vec![
            vec![
                Cell::text("a|b, \"c\"_1"),
                Cell::figure(1234.5, ci, |v| format!("{v:.0} /s")),
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
