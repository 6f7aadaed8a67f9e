//! The files of COSBench's archive, in the format its tools read (specification section 5).
//!
//! ```text
//!  Record (the results) ─ report ─► wN-NAME.csv, workloads.csv, run-history.csv
//!                         ─ timeline ─► sI-STAGE.csv
//!                         ─ histogram ─► wN-NAME-rt-histogram.csv
//!                         ─ drivers ─► DRIVER.csv, all-drivers.csv, sI-STAGE-worker.csv
//!                         ─ log ─► workload.log
//! ```
//!
//! This module only formats text; it reads and writes no files.

mod drivers;
mod histogram;
mod log;
mod report;
mod text;
mod timeline;

pub use self::text::{date, number, ratio};

/// Header of `run-history.csv`.
pub const HISTORY_HEADER: &str =
    "Id,Name,Submitted-At,Started-At,Stopped-At,Op-Info,State,Detailed State\n";
/// Header of `workloads.csv`.
pub const WORKLOADS_HEADER: &str = "Id,Op-Name,Op-Count,Byte-Count,Worker-Count,Avg-ResTime,\
Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,\
Bandwidth,Succ-Ratio,Config-Info\n";
/// Buckets of the response time histogram: 50000 of 10 ms, and one for longer times.
pub const BUCKETS: usize = 50_001;

/// A state with its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Lower-case name.
    pub name: &'static str,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

/// The results of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Number in the archive.
    pub number: u64,
    /// Name of the workload.
    pub name: String,
    /// States in order; the last one is final.
    pub states: Vec<State>,
    /// Offset of local time from UTC, seconds.
    pub utc_offset_s: i64,
    /// The stages.
    pub stages: Vec<StageRecord>,
    /// The drivers: this machine, or the agents that ran the workload.
    pub drivers: Vec<DriverRecord>,
}

/// The results of one driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriverRecord {
    /// Its name.
    pub name: String,
    /// The address at which it was reached.
    pub url: String,
    /// Its part of each operation, in file order.
    pub lines: Vec<OperationLine>,
}

/// The results of one stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageRecord {
    /// Name of the stage.
    pub name: String,
    /// States in order; the last one is final.
    pub states: Vec<State>,
    /// One row per operation, in file order; none for a delay.
    pub rows: Vec<Row>,
    /// Figures over time.
    pub snapshots: Vec<Snapshot>,
    /// Figures per worker.
    pub workers: Vec<OperationLine>,
    /// Indices of the drivers that took part; empty if unknown.
    pub missions: Vec<usize>,
    /// Lines of the log.
    pub log: Vec<LogLine>,
}

/// A line of a stage's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLine {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// Index of the driver that it concerns.
    pub driver: usize,
    /// The event.
    pub text: String,
}

/// Figures of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Number of successes.
    pub ops: u64,
    /// Bytes of the successful operations.
    pub bytes: u64,
    /// Mean response time of the successful operations, ms.
    pub response_ms: f64,
    /// Mean time without body transfer, ms.
    pub processing_ms: f64,
    /// Operations per second.
    pub throughput: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Share of successful operations; `None` if there were no operations.
    pub success: Option<f64>,
}

/// A row of the reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Index of the work in the stage, from 0.
    pub work: usize,
    /// Name of the work.
    pub work_name: String,
    /// Display name of the operation.
    pub name: String,
    /// Type of the operation.
    pub kind: &'static str,
    /// Type of its samples.
    pub sample: &'static str,
    /// Number of workers that performed it.
    pub workers: u32,
    /// Figures.
    pub figures: Figures,
    /// Response times at 60, 80, 90, 95, 99 and 100 %, ms; `None` if there are no successes or percentiles
    /// are turned off.
    pub percentiles: Option<[f64; 6]>,
    /// Successes per histogram bucket; empty if the histogram is turned off.
    pub histogram: Vec<(u32, u64)>,
    /// Percentage of the work's operations.
    pub ratio: u32,
    /// Config of the operation, without secrets.
    pub config: String,
}

impl Row {
    /// The name in reports; the sample type is appended if it differs.
    #[must_use]
    pub fn title(&self) -> String {
        match self.name == self.sample {
            true => self.name.clone(),
            false => format!("{}-{}", self.name, self.sample),
        }
    }
}

/// The figures of all rows at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// Figures per column.
    pub figures: Vec<Figures>,
    /// Names of the columns; the same in all snapshots of a stage.
    pub names: Vec<String>,
}

/// One operation of a worker or driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationLine {
    /// Type of the operation.
    pub kind: &'static str,
    /// Type of its samples.
    pub sample: &'static str,
    /// Figures.
    pub figures: Figures,
}

/// The files of one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Line of `run-history.csv`.
    pub history: String,
    /// Lines of `workloads.csv`.
    pub workloads: String,
    /// Name of the workload's directory.
    pub directory: String,
    /// Files of that directory: names and contents.
    pub files: Vec<(String, String)>,
}

/// The text of a cell. Cells are never quoted, so commas and line ends are replaced (specification section 7,
/// B17).
pub(crate) fn cell(text: &str) -> String {
    text.replace([',', '\n', '\r'], "-")
}

impl Record {
    /// `wN-NAME`.
    #[must_use]
    pub fn directory(&self) -> String {
        let plain = self.name.replace(['/', '\0', '\n', '\r'], "-");
        format!("w{}-{plain}", self.number)
    }

    /// All files; `config` is the content of `workload-config.xml`.
    #[must_use]
    pub fn files(&self, config: String) -> Files {
        let directory = self.directory();
        let mut files = vec![
            (format!("{directory}.csv"), report::workload(self)),
            (
                format!("{directory}-rt-histogram.csv"),
                histogram::histogram(self),
            ),
            ("workload-config.xml".to_owned(), config),
            ("workload.log".to_owned(), log::log(self)),
        ];
        for driver in &self.drivers {
            let name = format!("{}.csv", file_name(&driver.name));
            files.push((name, drivers::driver(driver)));
        }
        if self.drivers.len() > 1 {
            files.push(("all-drivers.csv".to_owned(), drivers::all(&self.drivers)));
        }
        for (index, stage) in self.stages.iter().enumerate() {
            let id = file_name(&stage.id(index));
            files.push((format!("{id}.csv"), timeline::timeline(self, stage)));
            files.push((format!("{id}-worker.csv"), drivers::workers(stage)));
        }
        Files {
            history: report::history(self),
            workloads: report::workloads(self),
            directory,
            files,
        }
    }
}

impl StageRecord {
    /// `sI-NAME`, for stage number `index` from 0.
    #[must_use]
    pub fn id(&self, index: usize) -> String {
        format!("s{}-{}", index + 1, self.name)
    }
}

fn file_name(text: &str) -> String {
    text.replace(['/', '\0'], "-")
}
