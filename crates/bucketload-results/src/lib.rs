//! What a run leaves behind and what it means: run directory, analysis, and every form of output.
//!
//! ```text
//! Interval, Event ──RunDirSink──> run directory ──analyze──> RunResult ──output──> text, json, jsonl, csv
//!        │                                                       └──────report──> HTML
//!        └──output::{live, prometheus}──> terminal, metrics page
//! ```
//!
//! [`rundir`] writes and reads the directory, [`mod@analyze`] turns one into a [`result::RunResult`]
//! in bounded memory, [`mod@compare`] sets two sets of runs against each other, [`oplog`] writes
//! and reads every single operation, [`converge`] tells during a run when it may stop, [`output`]
//! renders results and live figures by pure functions, pages and tables with the [`kit`].
//! Several runs together make a [`study`]: the search of [`capacity`], the curve of [`sweep`], the cells of
//! a [`grid`], the rows of [`hpc`].
//! [`bundle`] packs a directory into one file and unpacks it; [`io500`] and [`mdworkbench`] make the figures and files of these benchmarks of a run.

pub mod analyze;
pub mod bundle;
pub mod capacity;
pub mod compare;
pub mod converge;
pub mod error;
pub mod grid;
pub mod hpc;
pub mod io500;
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
