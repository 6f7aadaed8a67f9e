//! Studies: matrices of runs, from a specification to a report.
//!
//! ```text
//! TOML ─ spec ─► Study ─ plan ─► Plan (cells in order) ─ the program executes ─► cells/ID
//!                                          journal: which cells are done, however they ended
//! study.toml, plan.json, journal.jsonl, targets/, cells/ ─ report ─► report.html, tables/, figures/
//! ```
//!
//! [`model`] has the types that all parts share, [`layout`] the names of the files, [`report`] the report. This
//! crate starts no processes and reads no clock: the program does.

pub mod conversations;
pub mod journal;
pub mod layout;
pub mod model;
pub mod plan;
pub mod report;
pub mod spec;
