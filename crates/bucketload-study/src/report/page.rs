//! The page: one file that loads nothing and runs no script.

use std::fmt::Write as _;

use bucketload_core::verdict::Word;
use bucketload_results::kit::escape::xml;
use bucketload_results::kit::{Chart, Table, page};

use super::groups::Measured;
use super::methods::Paragraph;
use super::published;
use super::read::Files;

/// Number of rows above which a table is folded.
const FOLD: usize = 40;

/// The part of the page for one experiment.
pub(super) struct Part {
    /// Charts.
    pub(super) charts: Vec<Chart>,
    /// Tables.
    pub(super) tables: Vec<Table>,
    /// Notes about missing data.
    pub(super) notes: Vec<String>,
    /// Verdicts of its cells.
    pub(super) verdicts: Table,
}

/// The whole page.
pub(super) fn render(
    files: &Files,
    all: &[Measured],
    parts: &[Part],
    methods: &[Paragraph],
) -> String {
    let study = &files.study;
    let mut out = format!("<header>\n<h1>{}</h1>\n", xml(&study.title));
    for text in [&study.description, &study.source] {
        if !text.is_empty() {
            let lead = if std::ptr::eq(text, &study.source) {
                "Repeats: "
            } else {
                ""
            };
            let _ = writeln!(out, "<p>{lead}{}</p>", xml(text));
        }
    }
    out += &facts(files, all);
    out += "</header>\n";
    out += &contents(all);
    for ((measured, part), number) in all.iter().zip(parts).zip(1..) {
        out += &section(measured, part, number);
    }
    out += "<section id=\"methods\">\n<h2>Methods</h2>\n";
    for paragraph in methods {
        let _ = writeln!(
            out,
            "<h3>{}</h3>\n<p>{}</p>",
            xml(paragraph.title),
            xml(&paragraph.text)
        );
    }
    let note = published::note(&study.published);
    if !note.is_empty() {
        let _ = writeln!(out, "<h3>Published values</h3>\n<p>{}</p>", xml(note));
    } else if !study.published.is_empty() {
        out += "<h3>Published values</h3>\n<p>None are quoted: the work shows its results as a figure without numbers.</p>\n";
    }
    let _ = write!(
        out,
        "</section>\n<footer><p class=\"muted\">Study {}, planned by Bucketload {}. Every figure and table of this page is computed from the files next to it; \
         tables are in <code>tables/</code> (CSV, Markdown, LaTeX), figures in <code>figures/</code> (SVG), every run in <code>tables/cells.csv</code>.</p></footer>\n",
        xml(&study.name),
        xml(&files.plan.version),
    );
    page::frame(&study.title, &out, None)
}

fn facts(files: &Files, all: &[Measured]) -> String {
    let planned = files.plan.cells.len();
    let measured = files
        .plan
        .cells
        .iter()
        .filter(|cell| files.measured(cell).is_ok())
        .count();
    let runs = || all.iter().flat_map(|m| &m.groups).flat_map(|g| &g.runs);
    let valid = runs().filter(|run| run.word == Word::Valid).count();
    let skipped = files
        .facts
        .values()
        .filter(|t| !t.skipped.is_empty())
        .count();
    let targets = files.study.targets.len() - skipped.min(files.study.targets.len());
    let mut facts = vec![
        ("cells measured", format!("{measured} of {planned}")),
        ("VALID runs", format!("{valid} of {}", runs().count())),
        (
            "targets",
            format!("{targets} of {}", files.study.targets.len()),
        ),
    ];
    if files.study.quick {
        facts.push(("version", "quick".to_owned()));
    }
    let mut out = page::facts(&facts);
    if measured < planned {
        let _ = writeln!(
            out,
            "<p class=\"warn\"><strong>Not complete.</strong> {} of {planned} cells have no result; the verdict tables give the reasons.</p>",
            planned - measured
        );
    }
    if files.study.quick {
        out += "<p class=\"warn\"><strong>Quick version.</strong> Short runs show that everything works, and orders of magnitude; they are no basis for decisions.</p>\n";
    }
    out
}

fn contents(all: &[Measured]) -> String {
    let mut out = "<nav aria-label=\"Contents\">\n<ol>\n".to_owned();
    for (measured, number) in all.iter().zip(1..) {
        let _ = writeln!(
            out,
            "<li><a href=\"#experiment-{number}\">{}</a></li>",
            xml(measured.experiment.label())
        );
    }
    out + "<li><a href=\"#methods\">Methods</a></li>\n</ol>\n</nav>\n"
}

fn section(measured: &Measured, part: &Part, number: usize) -> String {
    let experiment = &measured.experiment;
    let mut out = format!(
        "<section id=\"experiment-{number}\">\n<h2>{number}. {}</h2>\n",
        xml(experiment.label())
    );
    if !experiment.description.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", xml(&experiment.description));
    }
    for note in &part.notes {
        let _ = writeln!(out, "<p class=\"warn\">{}</p>", xml(note));
    }
    out += &page::figures(&part.charts);
    for table in &part.tables {
        out += &folded(table, table.rows.len() > FOLD);
    }
    out += &folded(&part.verdicts, part.verdicts.rows.len() > 8);
    out + "</section>\n"
}

fn folded(table: &Table, fold: bool) -> String {
    match fold {
        true => format!(
            "<details>\n<summary>{} ({} rows)</summary>\n{}</details>\n",
            xml(&table.title),
            table.rows.len(),
            table.html()
        ),
        false => table.html(),
    }
}
