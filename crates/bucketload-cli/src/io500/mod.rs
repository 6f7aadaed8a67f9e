//! IO500 on the ordinary runner (docs/io500.md).
//!
//! ```text
//!  io500.ini ─ config ─► Config ─┬─ location ─► target, names of files
//!                                └─ plan ─────► Plan: a phase of ranks per phase of IO500 ─► the runner
//!  run directory ─ results::io500 ─► files ─► result.txt, result_summary.txt, …
//! ```

mod config;
mod files;
mod location;
pub(crate) mod pause;
mod plan;
pub(crate) mod room;
mod workbench;

pub(crate) use config::{Config, redact};
pub(crate) use files::{files, is_io500, scored, write};
pub(crate) use location::locate;

pub(crate) use plan::{PROFILE, plan};
