//! The operation log: every operation of a run as a row of `ops-*.parquet` or `ops-*.csv.zst`.
//!
//! ```text
//! core::oplog (batches of trails) ── writer ──▶ columns ──▶ parquet │ csv ── rotation ──▶ ops-00000.parquet, …
//! run directory ── read ──▶ rows of the columns asked for
//! ```
//!
//! A file is complete when it has its name; until then it ends in `.part`. A new file is begun after
//! a million rows or a minute, so a killed run loses at most what was logged since. Memory is
//! bounded by one row group.
//!
//! Instants are nanoseconds since the run's epoch; the files carry the wall-clock time of the epoch
//! (`bucketload.epoch_unix_ns`, nanoseconds since 1970). What does not apply to an operation is
//! null (empty in CSV).

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

/// Form of the operation log.
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
    /// The ending of the files' names.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::CsvZst => "csv.zst",
        }
    }
}

/// How the operation log came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpLogFacts {
    /// Form of the files.
    pub format: OpLogFormat,
    /// Whether the log was written to its end; not so in a run that was killed.
    pub complete: bool,
    /// Operations logged.
    pub rows: u64,
    /// Operations that were not logged because the writer was too slow.
    pub dropped: u64,
    /// Files written.
    pub files: u32,
}

impl OpLogFacts {
    /// The files in words.
    #[must_use]
    pub fn files(&self) -> String {
        match self.files {
            1 => format!("ops-00000.{}", self.format.extension()),
            n => format!("{n} files ops-*.{}", self.format.extension()),
        }
    }
}
