//! The directory of a study.
//!
//! ```text
//! DIR/study.toml          the request, resolved
//! DIR/plan.json           the cells in order
//! DIR/journal.jsonl       the events, one per line, synced to disk
//! DIR/targets/NAME.json   facts about each target
//! DIR/conversations.jsonl the trace of cells with a cache of a language model, if they use the study's own
//! DIR/cells/ID/           a cell: an ordinary run directory, and output.log; a further attempt is ID.2
//! DIR/report.html, tables/NAME.{csv,md,tex}, figures/NAME.svg   computed from the above
//! ```

use std::path::{Path, PathBuf};

/// The resolved study.
pub const STUDY: &str = "study.toml";
/// The cells in order.
pub const PLAN: &str = "plan.json";
/// The events.
pub const JOURNAL: &str = "journal.jsonl";
/// Directory of the targets' facts.
pub const TARGETS: &str = "targets";
/// Directory of the cells.
pub const CELLS: &str = "cells";
/// The page.
pub const REPORT: &str = "report.html";
/// Directory of the tables.
pub const TABLES: &str = "tables";
/// Directory of the figures.
pub const FIGURES: &str = "figures";
/// The output of a cell, in its directory.
pub const OUTPUT: &str = "output.log";

/// True if `dir` holds a study.
#[must_use]
pub fn is_study(dir: &Path) -> bool {
    dir.join(STUDY).is_file() && dir.join(PLAN).is_file()
}

/// The file of a target's facts.
#[must_use]
pub fn target(dir: &Path, name: &str) -> PathBuf {
    dir.join(TARGETS).join(format!("{name}.json"))
}
