//! The report of a study, computed from its directory alone: a page, tables and figures for a paper.
//!
//! ```text
//!  read ─► groups ─ digest, trials, workbench (a run directory at a time) ─► Measured per experiment
//!                      │
//!                      ├─ figures ─► kit::Chart ─┬─► report.html
//!                      ├─ tables  ─► kit::Table ─┼─► tables/NAME.{csv,md,tex}
//!                      └─ methods ───────────────┴─► figures/NAME.svg
//! ```
//!
//! [`published`] has values published by others, [`estimate`] the statistics over repetitions, [`show`] the metrics with
//! their names. Tables, charts and the frame of the page come from [`bucketload_results::kit`]. Equal files give an equal
//! report, byte for byte: nothing here reads a clock, the environment or an unordered map.

pub mod balance;
mod curves;
pub mod digest;
pub mod estimate;
mod figures;
pub mod groups;
pub mod methods;
mod page;
pub mod published;
pub mod read;
pub mod show;
mod tables;
mod trials;
pub mod workbench;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bucketload_results::ResultsError;

use crate::layout::{FIGURES, REPORT, TABLES};
use page::Part;
use read::Files;

/// An error that prevents the report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] ResultsError),
    /// A file is invalid.
    #[error("{}: {message}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        message: String,
    },
}

/// The report as files: path below the study's directory, and content.
pub type Rendered = BTreeMap<String, String>;

/// Renders the report of the study in `dir`, finished or not. Cells whose directory is unreadable are shown as failed,
/// with the reason.
///
/// # Errors
/// When `study.toml`, `plan.json`, the journal or a target's facts cannot be read.
pub fn render(dir: &Path) -> Result<Rendered, ReportError> {
    let files = Files::read(dir)?;
    let (all, summary) = groups::load(&files);
    let mut out = Rendered::new();
    let mut names = Names::default();
    let mut parts = Vec::new();
    for measured in &all {
        let (mut charts, notes) = figures::of(&files, measured);
        for chart in &mut charts {
            chart.name = names.unique(FIGURES, &chart.name);
            out.insert(format!("{FIGURES}/{}.svg", chart.name), chart.file());
        }
        let mut own = tables::of(&files, &all, measured);
        // Tables over several experiments are requested by each of them but shown once.
        own.retain(|table| {
            let shared = ["ossperf-", "cs597-"]
                .iter()
                .any(|p| table.name.starts_with(p));
            !shared || !out.contains_key(&format!("{TABLES}/{}.csv", table.name))
        });
        let mut verdicts = tables::verdicts(measured);
        for table in own.iter_mut().chain([&mut verdicts]) {
            table.name = names.unique(TABLES, &table.name);
            for (ending, text) in [
                ("csv", table.csv()),
                ("md", table.markdown()),
                ("tex", table.latex()),
            ] {
                out.insert(format!("{TABLES}/{}.{ending}", table.name), text);
            }
        }
        parts.push(Part {
            charts,
            tables: own,
            notes,
            verdicts,
        });
    }
    let cells = tables::cells(&files, &all);
    out.insert(
        format!("{TABLES}/{}.csv", names.unique(TABLES, &cells.name)),
        cells.csv(),
    );
    let methods = methods::methods(&files, &all, &summary);
    out.insert(
        REPORT.to_owned(),
        page::render(&files, &all, &parts, &methods),
    );
    Ok(out)
}

/// Renders the report of the study in `dir` and writes it there. Removes figures and tables of an earlier report that are
/// no longer part of it. Returns the path of the page.
///
/// # Errors
/// As for [`render`], and when a file cannot be written.
pub fn write(dir: &Path) -> Result<PathBuf, ReportError> {
    let rendered = render(dir)?;
    for folder in [FIGURES, TABLES] {
        let path = dir.join(folder);
        std::fs::create_dir_all(&path).map_err(ResultsError::io(&path, "create"))?;
        for entry in std::fs::read_dir(&path).map_err(ResultsError::io(&path, "read"))? {
            let entry = entry.map_err(ResultsError::io(&path, "read"))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = [".svg", ".csv", ".md", ".tex"]
                .iter()
                .any(|end| name.ends_with(end));
            if ours && !rendered.contains_key(&format!("{folder}/{name}")) {
                std::fs::remove_file(entry.path())
                    .map_err(ResultsError::io(&entry.path(), "remove"))?;
            }
        }
    }
    for (name, text) in &rendered {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(ResultsError::io(&path, "write"))?;
    }
    Ok(dir.join(REPORT))
}

/// File names already in use.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// `name`, with a number if the folder already has it.
    fn unique(&mut self, folder: &str, name: &str) -> String {
        let mut number = 1;
        loop {
            let name = match number {
                1 => name.to_owned(),
                n => format!("{name}-{n}"),
            };
            let full = format!("{folder}/{name}");
            if !self.0.contains(&full) {
                self.0.push(full);
                return name;
            }
            number += 1;
        }
    }
}
