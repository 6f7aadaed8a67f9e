//! What a run leaves on disk and what it means: the run directory, its analysis, and all output formats.
//!
//! ```text
//! Interval, Event ──RunDirSink──> run directory ──analyze──> RunResult ──output──> text, json, jsonl, csv
//!        │                                                       └──────report──> HTML
//!        └──output::{live, prometheus}──> terminal, metrics page
//! ```
//!
//! [`rundir`] writes and reads the run directory. [`mod@analyze`] turns one into a [`result::RunResult`]
//! in bounded memory. [`mod@compare`] compares two sets of runs. [`oplog`] writes and reads the log of
//! single operations. [`converge`] and [`failing`] decide during a run when it may stop. [`output`] renders results and
//! live figures with pure functions; pages and tables are built with the [`kit`].
//! Several related runs form a [`study`]: the [`capacity`] search, the curve of a [`sweep`], the cells of
//! a [`grid`], the rows of [`hpc`].
//! [`bundle`] packs a directory into one file and unpacks it. [`io500`] and [`mdworkbench`] derive the
//! figures and files of those benchmarks from a run.

pub mod analyze;
pub mod bundle;
pub mod capacity;
pub mod compare;
pub mod converge;
pub mod drill;
pub mod error;
pub mod failing;
pub mod grid;
pub mod hpc;
pub mod io500;
pub mod journal;
pub mod kit;
pub mod mdworkbench;
pub mod oplog;
pub mod output;
pub mod report;
pub mod result;
pub mod rundir;
pub mod study;
pub mod sweep;
pub mod units;

pub use analyze::analyze;
pub use error::ResultsError;
pub use result::RunResult;
pub use rundir::RunDirSink;
