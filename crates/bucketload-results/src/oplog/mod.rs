//! The operation log: every operation of a run as a row of `ops-*.parquet` or `ops-*.csv.zst`.
//!
//! ```text
//! core::oplog (batches of trails) ── writer ──▶ columns ──▶ parquet │ csv ── rotation ──▶ ops-00000.parquet, …
//! run directory ── read ──▶ rows with the requested columns
//! ```
//!
//! A file has its final name once it is complete; until then its name ends in `.part`. A new file is started after a
//! million rows or a minute, so a killed run loses at most what was logged since. Memory is bounded by one row
//! group.
//!
//! Instants are nanoseconds since the run's epoch; the files state the wall-clock time of the epoch
//! (`bucketload.epoch_unix_ns`, nanoseconds since 1970). Values that do not apply to an operation are null (empty in
//! CSV).

mod columns;
mod csv;
mod files;
mod parquet;
mod read;
mod writer;

use serde::{Deserialize, Serialize};

pub use columns::{COLUMNS, Kind};
pub(crate) use csv::split;
pub use read::{Column, Rows, read};
pub use writer::{OpLogHeader, write};

/// Format of the operation log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpLogFormat {
    /// Apache Parquet, compressed with Zstandard: DuckDB, pandas, Spark and others read it.
    #[default]
    Parquet,
    /// Comma-separated values with a header line, compressed with Zstandard.
    #[serde(rename = "csv.zst")]
    CsvZst,
}

impl OpLogFormat {
    /// The extension of the files.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::CsvZst => "csv.zst",
        }
    }
}

/// Facts about a written operation log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpLogFacts {
    /// Format of the files.
    pub format: OpLogFormat,
    /// Whether the log was written to its end; false for a killed run.
    pub complete: bool,
    /// Operations logged.
    pub rows: u64,
    /// Operations that were not logged because the writer was too slow.
    pub dropped: u64,
    /// Files written.
    pub files: u32,
}

impl OpLogFacts {
    /// Description of the files.
    #[must_use]
    pub fn files(&self) -> String {
        match self.files {
            1 => format!("ops-00000.{}", self.format.extension()),
            n => format!("{n} files ops-*.{}", self.format.extension()),
        }
    }
}
