//! The files of COSBench's archive, as its tools read them (specification section 5).
//!
//! ```text
//!  Record (what happened) ─ report ─► wN-NAME.csv, workloads.csv, run-history.csv
//!                         ─ timeline ─► sI-STAGE.csv
//!                         ─ histogram ─► wN-NAME-rt-histogram.csv
//!                         ─ drivers ─► DRIVER.csv, all-drivers.csv, sI-STAGE-worker.csv
//!                         ─ log ─► workload.log
//! ```
//!
//! Everything here is text made of figures; nothing is read or written.

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
/// Buckets of the response time histogram: 50000 of 10 ms, and one for what takes longer.
pub const BUCKETS: usize = 50_001;

/// A state and when it began, milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Lower-case name.
    pub name: &'static str,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

/// What happened in a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Number in the archive.
    pub number: u64,
    /// Name of the workload.
    pub name: String,
    /// Its states in order; the last one is final.
    pub states: Vec<State>,
    /// Offset of local time from UTC, seconds.
    pub utc_offset_s: i64,
    /// Its stages.
    pub stages: Vec<StageRecord>,
    /// Its drivers: this machine, or the agents that carried it out.
    pub drivers: Vec<DriverRecord>,
}

/// What a driver did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriverRecord {
    /// Its name.
    pub name: String,
    /// Where it was reached.
    pub url: String,
    /// Its part of each operation, in the order of the file.
    pub lines: Vec<OperationLine>,
}

/// What happened in a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageRecord {
    /// Name of the stage.
    pub name: String,
    /// Its states in order; the last one is final.
    pub states: Vec<State>,
    /// A row per operation, in the order of the file; none for a delay.
    pub rows: Vec<Row>,
    /// Figures over time.
    pub snapshots: Vec<Snapshot>,
    /// Figures per worker.
    pub workers: Vec<OperationLine>,
    /// Indices of the drivers that had a part in it; empty where that is not known.
    pub missions: Vec<usize>,
    /// Lines of the log.
    pub log: Vec<LogLine>,
}

/// A line of the log of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLine {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// Index of the driver that it is about.
    pub driver: usize,
    /// What happened.
    pub text: String,
}

/// Figures of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Successes.
    pub ops: u64,
    /// Bytes of the successes.
    pub bytes: u64,
    /// Mean response time of the successes, ms.
    pub response_ms: f64,
    /// Mean time without the transfer of the body, ms.
    pub processing_ms: f64,
    /// Operations per second.
    pub throughput: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Successes of all operations; `None` when there was none.
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
    /// Workers that performed it.
    pub workers: u32,
    /// Figures.
    pub figures: Figures,
    /// Response times at 60, 80, 90, 95, 99 and 100 %, ms; `None` without successes, or where none are
    /// wanted.
    pub percentiles: Option<[f64; 6]>,
    /// Successes by bucket of the histogram; empty where none is wanted.
    pub histogram: Vec<(u32, u64)>,
    /// Per cent of the work's operations.
    pub ratio: u32,
    /// Config of the operation, without secrets.
    pub config: String,
}

impl Row {
    /// The name in reports: that of the samples is added where it differs.
    #[must_use]
    pub fn title(&self) -> String {
        match self.name == self.sample {
            true => self.name.clone(),
            false => format!("{}-{}", self.name, self.sample),
        }
    }
}

/// The figures of all rows at an instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// Figures of each column.
    pub figures: Vec<Figures>,
    /// Names of the columns; the same in all snapshots of a stage.
    pub names: Vec<String>,
}

/// An operation of a worker or of a driver.
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

/// What stands in a cell: no quoting is ever applied, so that commas and line ends cannot stay
/// (specification section 7, B17).
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
