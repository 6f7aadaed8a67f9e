//! Studies: matrices of runs, from what a user writes to a report.
//!
//! ```text
//! TOML ─ spec ─► Study ─ plan ─► Plan (cells in order) ─ the program executes ─► cells/ID
//!                                          journal: which cells are finished, by whatever end
//! study.toml, plan.json, journal.jsonl, targets/, cells/ ─ report ─► report.html, tables/, figures/
//! ```
//!
//! [`model`] holds the types that all parts share, [`layout`] the names of the files, [`report`]
//! what is made of them. This crate starts no
//! process and reads no clock: the program does.

pub mod journal;
pub mod layout;
pub mod model;
pub mod plan;
pub mod report;
pub mod spec;
