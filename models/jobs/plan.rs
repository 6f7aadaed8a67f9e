//! The partly open model: jobs arrive, and each is a chain of stages (docs/spec/scenarios.md section 4.1).
//!
//! ```text
//!  job arrives ── W0 ──▶ R1 ──▶ W2 ──▶ R3 ──▶ W4 ── done
//!                 temp   reads  temp   reads  results
//!                        of W0  deletes of W2 deletes
//!                               W0's          W2's
//! ```
//!
//! Jobs arrive independently of the store's answers. The operations inside a job do not, because a stage
//! begins when the previous one has ended.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::generate::arrivals::Schedule;
use crate::generate::fingerprint::{HASHED_JOBS, hash_op};
use crate::generate::jobs::JobGen;
use crate::plan::{ArrivalLaw, Model, Plan};

/// Objects larger than this are written as multipart uploads, bytes (docs/spec/scenarios.md section 4.2).
pub const MULTIPART_ABOVE: u64 = 64 << 20;
/// Smallest part size of these uploads, bytes.
pub const LEAST_PART: u64 = 8 << 20;
/// Maximum number of parts per upload (S3).
pub const MOST_PARTS: u64 = 10_000;

/// Part size for an object of `size` bytes: 8 MiB, or larger if 10 000 parts would not suffice.
#[must_use]
pub const fn part_size(size: u64) -> u64 {
    let needed = size.div_ceil(MOST_PARTS);
    if needed > LEAST_PART {
        needed
    } else {
        LEAST_PART
    }
}

/// Jobs and their stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobsPlan {
    /// When jobs begin.
    pub start: JobStart,
    /// The stages of a job, in order.
    pub stages: Vec<StagePlan>,
    /// When the operations of a stage are due.
    pub pace: StagePace,
    /// Total number of jobs; 0 = as many as start before the phase's time limit.
    pub limit: u64,
    /// Maximum number of concurrent jobs, over all agents. A job that arrives beyond the limit waits, and the
    /// run is marked semi-open.
    pub max_jobs: u32,
    /// A job's results are deleted when the job this many arrivals later arrives; 0 = never.
    pub retain: u32,
    /// Maximum number of operations in flight, over all agents; reaching it marks the run semi-open.
    pub max_in_flight: u32,
    /// Index of the key set that all write stages but the last write to.
    pub temp: u16,
    /// Index of the key set that the last write stage writes to.
    pub results: u16,
}

impl Model for JobsPlan {
    fn max_sessions(&self) -> u32 {
        self.max_in_flight
    }

    fn open_cap(&self) -> Option<u32> {
        self.is_open().then_some(self.max_in_flight)
    }

    fn arrivals(&self) -> Option<(&ArrivalLaw, f64)> {
        match &self.start {
            JobStart::Open { arrival } => Some((arrival, self.mean_job_ops())),
            JobStart::Closed { .. } => None,
        }
    }

    fn ends_by_itself(&self) -> bool {
        self.limit > 0
    }

    fn fingerprint(
        &self,
        plan: &Plan,
        (phase, work): (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        let ops = JobGen::new(plan, phase as u16, work as u16)?;
        if let JobStart::Open { arrival } = &self.start {
            let schedule = Schedule::new(plan.seed, phase as u16, work as u16, arrival)?;
            for arrival in schedule.arrivals().take(HASHED_JOBS as usize) {
                put(arrival.due_ns);
            }
        }
        for job in 0..HASHED_JOBS {
            for stage in 0..ops.stages() {
                for i in 0..ops.ops_in(job, stage) {
                    put(ops.gap_ns(job, stage, i));
                    hash_op(&ops.op(job, stage, i), put);
                }
            }
        }
        Ok(())
    }
}

/// When jobs begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum JobStart {
    /// At absolute instants, independent of the store.
    Open {
        /// The arrival process of jobs.
        arrival: ArrivalLaw,
    },
    /// A fixed number at a time; each job starts as soon as the one before it has ended.
    Closed {
        /// Jobs at the same time, over all agents.
        jobs: u32,
    },
}

/// One stage of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagePlan {
    /// What the stage does.
    pub kind: StageKind,
    /// Minimum number of operations.
    pub min: u32,
    /// Maximum number of operations; the number is uniform between the two.
    pub max: u32,
}

/// What a stage does.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StageKind {
    /// Writes new objects. At its start, the objects of the write stage before the one just read are deleted.
    Write,
    /// Reads objects of the latest write stage, drawn uniformly with replacement.
    Read,
    /// Reads each object of the latest write stage once.
    ReadAll,
}

/// When the operations of a stage are due, counted from the end of the previous stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum StagePace {
    /// With exponential gaps.
    Poisson {
        /// Operations per second.
        rate: f64,
    },
    /// All at once.
    Burst,
    /// One after another, each when the previous one has ended.
    Sequential,
}

impl JobsPlan {
    /// Index of the last write stage, whose objects are the results.
    #[must_use]
    pub fn result_stage(&self) -> Option<usize> {
        let is_write = |stage: &StagePlan| stage.kind == StageKind::Write;
        self.stages.iter().rposition(is_write)
    }

    /// The largest number of operations that any stage can have.
    #[must_use]
    pub fn widest(&self) -> u32 {
        self.stages.iter().map(|stage| stage.max).max().unwrap_or(0)
    }

    /// Expected operations of each stage.
    #[must_use]
    pub fn mean_ops(&self, stage: usize) -> f64 {
        let stages = &self.stages;
        let counted = match stages[stage].kind {
            // The stage reads as many objects as the last write stage wrote.
            StageKind::ReadAll => {
                let is_write = |stage: &StagePlan| stage.kind == StageKind::Write;
                stages[..stage].iter().rposition(is_write).unwrap_or(stage)
            }
            _ => stage,
        };
        0.5 * (f64::from(stages[counted].min) + f64::from(stages[counted].max))
    }

    /// Expected operations of a job, including deletions.
    #[must_use]
    pub fn mean_job_ops(&self) -> f64 {
        let last = self.result_stage();
        let of = |(i, stage): (usize, &StagePlan)| {
            let deleted = stage.kind == StageKind::Write && (Some(i) != last || self.retain > 0);
            self.mean_ops(i) * if deleted { 2.0 } else { 1.0 }
        };
        self.stages.iter().enumerate().map(of).sum()
    }

    /// Whether jobs arrive independently of the store.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.start, JobStart::Open { .. })
    }

    /// Name of a span of a job: `stage 0 (write)`, …, `job`; `None` beyond the last.
    #[must_use]
    pub fn span_name(&self, span: u16) -> Option<String> {
        let span = usize::from(span);
        match self.stages.get(span) {
            Some(stage) => {
                let kind = match stage.kind {
                    StageKind::Write if Some(span) == self.result_stage() => "write results",
                    StageKind::Write => "write",
                    StageKind::Read => "read",
                    StageKind::ReadAll => "read all",
                };
                Some(format!("stage {span} ({kind})"))
            }
            None if span == self.stages.len() => Some("job".to_owned()),
            None => None,
        }
    }
}
