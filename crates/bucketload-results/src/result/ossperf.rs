//! The six steps of OSSperf (docs/spec/ossperf.md): times, bandwidths and the line of `results.csv`.
//!
//! The line is computed as the original does, with the fixed-point arithmetic of `bc` at three decimals: every
//! division truncates, and zero is written `0`. A step's time is from the start of its phase to the end of its
//! last operation; anything between phases (verification, barriers) belongs to no step.

use std::io::Write as _;
use std::path::Path;

use bucketload_core::plan::{PhasePlan, Plan, SizeKind};
use bucketload_core::sink::PhaseEnd;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::PhaseResult;
use crate::error::ResultsError;

/// Names of the phases that identify an OSSperf workload, in order.
pub const STEPS: [&str; 6] = [
    "create-bucket",
    "upload",
    "list",
    "download",
    "erase-objects",
    "erase-bucket",
];

/// The first line of `results.csv`: 13 columns, separated by spaces.
pub const HEADER: &str = "DATE TIME NUM_FILES SIZE_FILES TIME_CREATE_BUCKET TIME_OBJECTS_UPLOAD \
TIME_OBJECTS_LIST TIME_OBJECTS_DOWNLOAD TIME_ERASE_OBJECTS TIME_ERASE_BUCKET TIME_SUM \
BANDWIDTH_OBJECTS_UPLOAD BANDWIDTH_OBJECTS_DOWNLOAD";

/// The steps of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ossperf {
    /// Number of files.
    pub files: u64,
    /// Size of each, bytes.
    pub size_bytes: u64,
    /// The six steps, in order.
    pub steps: Vec<OssperfStep>,
    /// Why there is no line for `results.csv` (the original writes none either); empty if there is one.
    pub incomplete: String,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OssperfStep {
    /// Name of its phase.
    pub name: String,
    /// From its start to the end of its last operation, nanoseconds; 0 if it did not run.
    pub time_ns: u64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
}

/// Thousandths of a unit, truncated as `bc` does with `scale=3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milli(pub u128);

impl std::fmt::Display for Milli {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            thousandths => write!(f, "{}.{:03}", thousandths / 1000, thousandths % 1000),
        }
    }
}

impl Ossperf {
    /// The steps of a run of `plan`; `None` if its phases are not those of OSSperf.
    pub(crate) fn of(plan: &Plan, phases: &[PhaseResult], finished: bool) -> Option<Self> {
        let planned: Vec<&PhasePlan> = plan
            .phases
            .iter()
            .filter(|phase| phase.kind == bucketload_core::plan::PhaseKind::Run)
            .collect();
        let names = planned.iter().map(|phase| phase.name.as_str());
        if !names.eq(STEPS) {
            return None;
        }
        let uploaded = planned[1].works.first()?.mix.first()?;
        let set = plan.keysets.get(usize::from(uploaded.keyset))?;
        let mut incomplete = String::new();
        let mut refuse = |why: String| {
            if incomplete.is_empty() {
                incomplete = why;
            }
        };
        let size_bytes = match (&set.size.law, &uploaded.size) {
            (SizeKind::Const { bytes }, None) => *bytes,
            _ => {
                refuse("the files are not all of one size".to_owned());
                0
            }
        };
        let steps: Vec<OssperfStep> = planned
            .iter()
            .map(|plan| {
                let found = phases.iter().find(|phase| phase.name == plan.name);
                let step = found.map_or_else(
                    || OssperfStep {
                        name: plan.name.clone(),
                        time_ns: 0,
                        ok: 0,
                        failed: 0,
                    },
                    |phase| OssperfStep {
                        name: plan.name.clone(),
                        time_ns: phase.drained_ns.saturating_sub(phase.started_ns),
                        ok: phase.totals.ok,
                        failed: phase.totals.failed,
                    },
                );
                let complete = found.is_some_and(|phase| phase.end == Some(PhaseEnd::Complete));
                if step.failed > 0 || !complete || step.ok != plan.limits.ops {
                    refuse(format!(
                        "step {} did {} of {} operations, {} failed",
                        step.name, step.ok, plan.limits.ops, step.failed
                    ));
                }
                step
            })
            .collect();
        if !finished {
            refuse("the run did not finish".to_owned());
        }
        Some(Self {
            files: set.count,
            size_bytes,
            steps,
            incomplete,
        })
    }

    /// Time of step `step` in seconds, truncated to milliseconds.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn time_s(&self, step: usize) -> Milli {
        Milli(u128::from(self.steps[step].time_ns / 1_000_000))
    }

    /// Sum of the times, seconds.
    #[must_use]
    pub fn sum_s(&self) -> Milli {
        Milli((0..self.steps.len()).map(|step| self.time_s(step).0).sum())
    }

    /// Bandwidth of step `step`, 10^6 bits per second: `((size · files · 8 / T) / 1000) / 1000`, truncated at each
    /// division. `None` if the step took less than a millisecond but moved data: the original cannot get there,
    /// as it would divide by zero.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn bandwidth_mbit_s(&self, step: usize) -> Option<Milli> {
        let bits = u128::from(self.size_bytes) * u128::from(self.files) * 8;
        match (bits, self.time_s(step).0) {
            (0, _) => Some(Milli(0)),
            (_, 0) => None,
            // Thousandths of bits per second, then of kilobits, then of megabits.
            (bits, time_ms) => Some(Milli(bits * 1_000_000 / time_ms / 1000 / 1000)),
        }
    }

    /// Bandwidth of a step, 10^6 bits per second: size times files times 8 over its exact time. `None` for a step
    /// that did not run.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn exact_mbit_s(&self, step: usize) -> Option<f64> {
        let bits = self.size_bytes as f64 * self.files as f64 * 8.0;
        let time_ns = self.steps[step].time_ns;
        (time_ns > 0).then(|| bits * 1e3 / time_ns as f64)
    }

    /// The line of `results.csv` for a run that ended at `at` (local time), without a line break; `None` for a run
    /// that has none ([`Ossperf::incomplete`]).
    #[must_use]
    pub fn line(&self, at: OffsetDateTime) -> Option<String> {
        if !self.incomplete.is_empty() {
            return None;
        }
        let (date, time) = (at.date(), at.time());
        let mut columns = vec![
            format!(
                "{:04}-{:02}-{:02}",
                date.year(),
                u8::from(date.month()),
                date.day()
            ),
            format!(
                "{:02}:{:02}:{:02}",
                time.hour(),
                time.minute(),
                time.second()
            ),
            self.files.to_string(),
            self.size_bytes.to_string(),
        ];
        columns.extend((0..self.steps.len()).map(|step| self.time_s(step).to_string()));
        columns.push(self.sum_s().to_string());
        columns.extend([1, 3].map(|step| self.bandwidth_text(step)));
        Some(columns.join(" "))
    }

    /// The bandwidth as in the line; `inf` where it cannot be computed.
    pub(crate) fn bandwidth_text(&self, step: usize) -> String {
        self.bandwidth_mbit_s(step)
            .map_or_else(|| "inf".to_owned(), |bandwidth| bandwidth.to_string())
    }
}

/// Appends `line` to the file, preceded by the header if the file is new.
///
/// # Errors
/// When the file cannot be written.
pub fn append(path: &Path, line: &str) -> Result<(), ResultsError> {
    let text = match path.exists() {
        true => format!("{line}\n"),
        false => format!("{HEADER}\n{line}\n"),
    };
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(ResultsError::io(path, "write"))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::{HEADER, Milli, Ossperf, OssperfStep, STEPS, append};

    fn run(files: u64, size_bytes: u64, times_ns: [u64; 6]) -> Ossperf {
        Ossperf {
            files,
            size_bytes,
            steps: STEPS
                .iter()
                .zip(times_ns)
                .map(|(name, time_ns)| OssperfStep {
                    name: (*name).to_owned(),
                    time_ns,
                    ok: 1,
                    failed: 0,
                })
                .collect(),
            incomplete: String::new(),
        }
    }

    /// Golden lines, each computed by `bc` with the expressions of docs/spec/ossperf.md section 4. The first is
    /// that of Fig. 1 of the paper (its formula); the others cover corner cases of `bc`'s arithmetic.
    #[test]
    fn lines_are_those_of_ossperf() {
        let at = datetime!(2017-08-01 09:05:07 +2);
        let ms = 1_000_000;
        let cases = [
            run(
                10,
                8_388_608,
                [1_312, 151_014, 812, 31_137, 2_204, 1_405].map(|t| t * ms),
            ),
            // Truncated, never rounded; values below one have a leading zero.
            run(
                10,
                4096,
                [
                    999_999,
                    334_999_999,
                    1_000_000,
                    12_999_999,
                    500_000_000,
                    7_999_999,
                ],
            ),
            // Empty files move nothing, whatever the time.
            run(3, 0, [0, 0, 0, 0, 0, 0]),
            // Not a multiple of 4096.
            run(7, 1_000_001, [2, 1_000, 3, 250, 40, 5].map(|t| t * ms)),
        ];
        let golden = include_str!("../../tests/golden/ossperf-results.csv");
        let mut text = format!("{HEADER}\n");
        for case in cases {
            text += &case.line(at).unwrap();
            text.push('\n');
        }
        assert_eq!(text, golden);
        for line in golden.lines() {
            assert_eq!(line.split(' ').count(), 13, "{line}");
        }
    }

    #[test]
    fn a_step_below_a_millisecond_has_no_bandwidth() {
        let fast = run(10, 4096, [900_000; 6]);
        assert_eq!(fast.bandwidth_mbit_s(1), None);
        let exact = fast.exact_mbit_s(1).unwrap();
        assert!((exact - 327_680.0 / 900.0).abs() < 1e-9, "{exact}");
        let line = fast.line(datetime!(2026-01-02 03:04:05 UTC)).unwrap();
        assert_eq!(line, "2026-01-02 03:04:05 10 4096 0 0 0 0 0 0 0 inf inf");
    }

    #[test]
    fn zero_is_written_as_bc_writes_it() {
        let texts = [0, 1, 999, 1000, 12_345].map(|n| Milli(n).to_string());
        assert_eq!(texts, ["0", "0.001", "0.999", "1.000", "12.345"]);
    }

    #[test]
    fn the_header_is_written_once_and_lines_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.csv");
        append(&path, "one").unwrap();
        append(&path, "two").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{HEADER}\none\ntwo\n"));
        let error = append(&dir.path().join("absent/results.csv"), "x").unwrap_err();
        assert!(error.to_string().contains("results.csv"), "{error}");
    }

    #[test]
    fn a_run_with_failures_has_no_line() {
        let mut run = run(1, 1, [1; 6]);
        run.incomplete = "step list failed".to_owned();
        assert_eq!(run.line(datetime!(2026-01-02 03:04:05 UTC)), None);
    }
}
