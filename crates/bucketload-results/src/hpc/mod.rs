//! A comparison of access paths to the same objects: files, an S3 library in the process, a gateway, HTTP, and floors.
//!
//! ```text
//!  Header (rows, sizes, processes) ─┐
//!  Record per trial (steps) ────────┴─► HpcResult: cells ─► text, page
//! ```
//!
//! Everything is computed from the request ([`Header`]) and the trials ([`Record`]), so an interrupted
//! comparison is reported by the same code. Each figure is the median of its trials.

pub mod page;
pub mod text;

use serde::{Deserialize, Serialize};

use crate::result::RunResult;
use crate::study::{Study, StudyFiles};

/// Version of the JSON format.
pub const SCHEMA: u32 = 1;

/// The steps, in order.
pub const STEPS: [&str; 5] = ["write", "read", "stat", "list", "delete"];

/// The kind of study that compares access paths.
#[derive(Debug)]
pub struct HpcStudy;

impl Study for HpcStudy {
    const HEADER: &'static str = "s3-hpc.json";
    type Header = Header;
    type Record = Record;
}

/// An access path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its description.
    pub meaning: String,
    /// Whether it is a floor: the cost of the transport alone.
    pub floor: bool,
}

/// The request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of this format, [`SCHEMA`].
    pub schema: u32,
    /// Version of the tool.
    pub version: String,
    /// The directory that holds the objects.
    pub root: String,
    /// Wall-clock start, RFC 3339 in UTC.
    pub started: String,
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Object sizes in bytes.
    pub sizes: Vec<u64>,
    /// Objects of each size.
    pub objects: Vec<u64>,
    /// Numbers of processes.
    pub processes: Vec<u32>,
    /// Trials of each cell.
    pub repetitions: u32,
    /// The command line.
    pub command_line: Vec<String>,
}

/// The measurements of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the row.
    pub row: String,
    /// Size of the objects in bytes.
    pub size_bytes: u64,
    /// Number of processes.
    pub processes: u32,
    /// Number of the trial, from 0.
    pub repetition: u32,
    /// The run's directory below the study's; empty for a floor that is not a run.
    pub dir: String,
    /// The steps.
    pub steps: Vec<StepRecord>,
}

/// One step of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// One of [`STEPS`].
    pub step: String,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed or were cut off.
    pub failed: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first operation's start to the last one's end, in seconds.
    pub seconds: f64,
    /// Median response time in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile of the response time in nanoseconds.
    pub p99_ns: u64,
}

impl StepRecord {
    /// The steps of a run.
    #[must_use]
    pub fn of_run(result: &RunResult) -> Vec<Self> {
        let steps = result
            .measured()
            .filter(|phase| STEPS.contains(&&*phase.name));
        steps
            .map(|phase| {
                let totals = &phase.totals;
                let at = |q| {
                    let class = phase.classes.first();
                    class
                        .and_then(|class| class.response.percentile(q))
                        .map_or(0, |p| p.value_ns)
                };
                Self {
                    step: phase.name.clone(),
                    ok: totals.ok,
                    failed: totals.failed + totals.cancelled,
                    bytes: totals.bytes,
                    seconds: phase.drained_ns.saturating_sub(phase.started_ns) as f64 / 1e9,
                    p50_ns: at(0.5),
                    p99_ns: at(0.99),
                }
            })
            .collect()
    }

    /// `amount` of this step per second.
    #[must_use]
    pub fn rate(&self, amount: u64) -> f64 {
        match self.seconds > 0.0 {
            true => amount as f64 / self.seconds,
            false => 0.0,
        }
    }
}

/// One step of a cell over its trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// One of [`STEPS`].
    pub step: String,
    /// Trials.
    pub runs: usize,
    /// Operations that failed in all trials.
    pub failed: u64,
    /// Operations per second, median of the trials.
    pub ops_per_s: f64,
    /// Bytes per second, median of the trials; 0 where no bytes are moved.
    pub bytes_per_s: f64,
    /// Median response time in nanoseconds, median of the trials.
    pub p50_ns: f64,
    /// 99th percentile of the response time in nanoseconds, median of the trials.
    pub p99_ns: f64,
}

/// A row at a size with a number of processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Name of the row.
    pub row: String,
    /// Size of the objects in bytes.
    pub size_bytes: u64,
    /// Number of processes.
    pub processes: u32,
    /// The steps.
    pub figures: Vec<Figure>,
}

impl Cell {
    /// The figure of a step.
    #[must_use]
    pub fn figure(&self, step: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.step == step)
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HpcResult {
    /// The request.
    pub header: Header,
    /// The measured cells, by size, processes, row.
    pub cells: Vec<Cell>,
    /// Trials that ended.
    pub trials: usize,
    /// Unreadable lines of the file of trials.
    pub damaged: u64,
}

/// The median; of an even number the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn figure(step: &str, trials: &[&StepRecord]) -> Option<Figure> {
    let of = |value: &dyn Fn(&StepRecord) -> f64| median(trials.iter().map(|t| value(t)).collect());
    (!trials.is_empty()).then(|| Figure {
        step: step.to_owned(),
        runs: trials.len(),
        failed: trials.iter().map(|t| t.failed).sum(),
        ops_per_s: of(&|t| t.rate(t.ok)),
        bytes_per_s: of(&|t| t.rate(t.bytes)),
        p50_ns: of(&|t| t.p50_ns as f64),
        p99_ns: of(&|t| t.p99_ns as f64),
    })
}

impl HpcResult {
    /// Computes the result of a study.
    #[must_use]
    pub fn new(files: StudyFiles<HpcStudy>) -> Self {
        let StudyFiles {
            header,
            trials,
            damaged,
        } = files;
        let mut cells = Vec::new();
        for &size_bytes in &header.sizes {
            for &processes in &header.processes {
                for row in &header.rows {
                    let of_cell = |t: &&Record| {
                        (&t.row, t.size_bytes, t.processes) == (&row.name, size_bytes, processes)
                    };
                    let records: Vec<&Record> = trials.iter().filter(of_cell).collect();
                    let figures = STEPS.iter().filter_map(|step| {
                        let steps = records.iter().flat_map(|r| r.steps.iter());
                        let steps: Vec<_> = steps.filter(|s| s.step == *step).collect();
                        figure(step, &steps)
                    });
                    let figures: Vec<Figure> = figures.collect();
                    if !figures.is_empty() {
                        cells.push(Cell {
                            row: row.name.clone(),
                            size_bytes,
                            processes,
                            figures,
                        });
                    }
                }
            }
        }
        Self {
            cells,
            trials: trials.len(),
            damaged,
            header,
        }
    }

    /// Number of trials that the request has.
    #[must_use]
    pub fn wanted(&self) -> usize {
        let header = &self.header;
        header.rows.len()
            * header.sizes.len()
            * header.processes.len()
            * header.repetitions as usize
    }

    /// The cell of a row.
    #[must_use]
    pub fn cell(&self, row: &str, size_bytes: u64, processes: u32) -> Option<&Cell> {
        let wanted = (row, size_bytes, processes);
        self.cells
            .iter()
            .find(|c| (&*c.row, c.size_bytes, c.processes) == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step: &str, ok: u64, seconds: f64, failed: u64) -> StepRecord {
        StepRecord {
            step: step.to_owned(),
            ok,
            failed,
            bytes: ok * 1024,
            seconds,
            p50_ns: 1000,
            p99_ns: 2000,
        }
    }

    fn study(trials: Vec<Record>) -> HpcResult {
        let row = |name: &str, floor| Row {
            name: name.to_owned(),
            meaning: format!("what {name} is"),
            floor,
        };
        HpcResult::new(StudyFiles {
            header: Header {
                schema: SCHEMA,
                version: "0".to_owned(),
                root: "/d".to_owned(),
                started: "now".to_owned(),
                rows: vec![row("posix", false), row("remote", false), row("tcp", true)],
                sizes: vec![1024],
                objects: vec![100],
                processes: vec![1],
                repetitions: 3,
                command_line: Vec::new(),
            },
            trials,
            damaged: 0,
        })
    }

    #[test]
    fn figures_are_medians_and_missing_cells_stay_missing() {
        let record = |row: &str, repetition, seconds| Record {
            row: row.to_owned(),
            size_bytes: 1024,
            processes: 1,
            repetition,
            dir: String::new(),
            steps: vec![step("write", 100, seconds, u64::from(repetition == 1))],
        };
        let result = study(vec![
            record("posix", 0, 1.0),
            record("posix", 1, 2.0),
            record("posix", 2, 4.0),
            record("remote", 0, 4.0),
        ]);
        let posix = result
            .cell("posix", 1024, 1)
            .unwrap()
            .figure("write")
            .unwrap();
        assert_eq!((posix.runs, posix.failed), (3, 1));
        assert!((posix.ops_per_s - 50.0).abs() < 1e-9);
        assert!((posix.bytes_per_s - 51_200.0).abs() < 1e-9);
        assert!(result.cell("tcp", 1024, 1).is_none());
        assert_eq!((result.trials, result.wanted()), (4, 9));
        let text = text::text(&result);
        assert!(text.contains("posix") && text.contains("0.50"), "{text}");
        assert!(text.contains("4 of 9"), "{text}");
        let page = page::html(&result);
        assert!(page.contains("what remote is"));
    }
}
