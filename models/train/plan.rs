//! Training: accelerators that compute on batches of samples, as DLIO emulates them (docs/spec/ai-training.md).
//!
//! ```text
//!  reader 0   batch 0 ──────┬──────── batch 2 ──┬────
//!  reader 1   ── batch 1 ───┼───┬───────────────┼─ batch 3
//!                           ▼   ▼               ▼
//!  accelerator  waits ▒▒▒▒▒ compute ┤ compute ┤▒ compute ┤     ┤ = barrier of all accelerators
//! ```
//!
//! Accelerator `a` of `A` takes part `a` of the epoch's order of samples. Its readers divide that part among them;
//! batch `k` comes from reader `k mod R`.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::generate::fingerprint::{HASHED_JOBS, HASHED_OPS};
use crate::generate::ops::OpGen;
use crate::generate::train::TrainGen;
use crate::plan::{Model, Plan, is_default};

/// Steps whose times are recorded one by one in a phase, over all accelerators and epochs.
const RECORDED_STEPS: u64 = 1 << 20;

/// Accelerators with their readers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainPlan {
    /// Accelerators, over all agents.
    pub accelerators: u32,
    /// Readers per accelerator; each has its own session.
    pub readers: u32,
    /// Batches that a reader may have begun and the accelerator not yet taken.
    pub ahead: u32,
    /// Samples per batch.
    pub batch: u64,
    /// Time of computation per batch, nanoseconds.
    pub computation_ns: u64,
    /// Passes over the data set.
    pub epochs: u32,
    /// Most steps of an epoch; 0 = as many as the data set has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub steps: u64,
    /// Objects of the data set.
    pub objects: u64,
    /// Samples per object.
    pub samples: u64,
    /// Nominal bytes of a sample.
    pub record: f64,
    /// How objects are read.
    pub read: TrainRead,
    /// Accelerator utilisation to reach, 0 to 1.
    pub mark: f64,
}

/// How readers read objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TrainRead {
    /// One request per object.
    Whole,
    /// Consecutive ranges, as far as the next batch needs them.
    Ranges {
        /// Bytes per range, at least 1.
        bytes: u64,
    },
    /// One range per column chunk, row group by row group. A sample is a row.
    Columns {
        /// Bytes of a row with all its columns.
        row: u64,
        /// Rows of a row group, at least 1.
        group: u64,
        /// Bytes of each column that is read. The other columns lie between them, evenly spread.
        widths: Vec<u64>,
    },
}

impl TrainPlan {
    /// Steps of an epoch: each accelerator makes as many, and the samples beyond them are left out.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let samples = u128::from(self.samples) * u128::from(self.objects);
        let per_step = u128::from(self.batch.max(1)) * u128::from(self.accelerators.max(1));
        let all = u64::try_from(samples / per_step).unwrap_or(u64::MAX);
        match self.steps {
            0 => all,
            most => all.min(most),
        }
    }

    /// Bytes that an accelerator needs per sample: those of the columns that are read, or the whole record.
    #[must_use]
    pub fn needed(&self) -> f64 {
        match &self.read {
            TrainRead::Columns { widths, .. } => widths.iter().sum::<u64>() as f64,
            TrainRead::Whole | TrainRead::Ranges { .. } => self.record,
        }
    }

    /// Bytes per second that one accelerator takes if it never waits.
    #[must_use]
    pub fn demand(&self) -> f64 {
        self.needed() * self.batch as f64 / (self.computation_ns.max(1) as f64 / 1e9)
    }

    /// Batches of reader `reader` in an epoch, and the number of batches of the readers before it.
    #[must_use]
    pub fn batches(&self, reader: u32) -> (u64, u64) {
        let (steps, readers, reader) = (
            self.steps(),
            u64::from(self.readers.max(1)),
            u64::from(reader),
        );
        let (each, more) = (steps / readers, steps % readers);
        (
            each + u64::from(reader < more),
            each * reader + reader.min(more),
        )
    }

    /// First sample of reader `reader` of accelerator `accelerator` in the order of an epoch, and the number of its
    /// samples.
    #[must_use]
    pub fn part(&self, accelerator: u32, reader: u32) -> (u64, u64) {
        let (batches, before) = self.batches(reader);
        let first = u64::from(accelerator) * self.steps() + before;
        (first * self.batch, batches * self.batch)
    }

    /// Steps of an accelerator's epoch whose times are recorded one by one; the sums have all of them.
    #[must_use]
    pub fn recorded_steps(&self) -> u64 {
        let epochs = u64::from(self.accelerators.max(1)) * u64::from(self.epochs.max(1));
        (RECORDED_STEPS / epochs).max(16).min(self.steps())
    }

    /// Expected number of requests of the whole training, for objects of `size` bytes.
    #[must_use]
    pub fn requests(&self, size: f64) -> f64 {
        let mut sum = 0.0;
        for accelerator in 0..self.accelerators {
            for reader in 0..self.readers {
                let (first, len) = self.part(accelerator, reader);
                let touched = |unit: u64| match len {
                    0 => 0.0,
                    len => ((first + len - 1) / unit - first / unit + 1) as f64,
                };
                sum += match &self.read {
                    TrainRead::Whole => touched(self.samples),
                    TrainRead::Ranges { bytes } => {
                        let per_object = (size / *bytes as f64).ceil();
                        len as f64 / self.samples as f64 * per_object
                    }
                    TrainRead::Columns { group, widths, .. } => {
                        touched(*group) * widths.len() as f64
                    }
                };
            }
        }
        sum * f64::from(self.epochs)
    }
}

impl Model for TrainPlan {
    fn max_sessions(&self) -> u32 {
        self.accelerators.saturating_mul(self.readers)
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn fingerprint(
        &self,
        plan: &Plan,
        (phase, work): (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        let ops = OpGen::new(plan, phase, work)?;
        let keyset = plan.phases[phase].works[work].mix[0].keyset;
        let train = TrainGen::new(self.clone(), plan.seed, keyset);
        for word in [
            u64::from(self.accelerators),
            u64::from(self.readers),
            u64::from(self.ahead),
            self.batch,
            self.computation_ns,
            u64::from(self.epochs),
        ] {
            put(word);
        }
        let mut left = HASHED_OPS;
        for accelerator in 0..self.accelerators.min(HASHED_JOBS as u32) {
            let mut reads = train.reads(0, accelerator, 0);
            while left > 0 && reads.batch() {
                while let Some(read) = reads.next(|object| ops.op_on(0, 0, object).size) {
                    let range = read.range.map_or((0, 0), |range| (range.offset, range.len));
                    [read.object, range.0, range.1]
                        .into_iter()
                        .for_each(&mut *put);
                    left = left.saturating_sub(1);
                }
            }
        }
        Ok(())
    }
}
