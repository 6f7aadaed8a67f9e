//! What an accelerator did in an epoch, and the figures that DLIO computes from it (docs/spec/ai-training.md
//! section 5).

use serde::{Deserialize, Serialize};

/// Steps at the beginning of an epoch that do not count: in the first one the pipeline is empty.
pub const EXCLUDED_STEPS: u64 = 1;

/// The times of one step, nanoseconds: waiting for the batch, computing, waiting for the other accelerators.
pub type StepTimes = [u64; 3];

/// One accelerator in one epoch. Instants are nanoseconds since the run's epoch, durations nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TrainEpoch {
    /// Index of the phase.
    pub phase: u16,
    /// Index of the work within the phase.
    pub work: u16,
    /// Number of the epoch, from 0.
    pub epoch: u32,
    /// Number of the accelerator, from 0, over all agents.
    pub accelerator: u32,
    /// When the epoch began.
    pub began_ns: u64,
    /// When the last step was over for all accelerators.
    pub ended_ns: u64,
    /// Steps that the epoch has.
    pub planned: u64,
    /// Steps that were completed; fewer if the phase ended first.
    pub steps: u64,
    /// Time spent waiting for batches.
    pub wait_ns: u64,
    /// Time spent computing, as measured.
    pub compute_ns: u64,
    /// Time spent waiting for the other accelerators.
    pub barrier_ns: u64,
    /// The part of `wait_ns` and of `compute_ns` in the steps that do not count.
    pub excluded_ns: [u64; 2],
    /// By how much computations lasted longer than planned, in total.
    pub overshoot_ns: u64,
    /// The largest such excess.
    pub overshoot_max_ns: u64,
    /// Read requests that ended.
    pub reads: u64,
    /// Of these, the number that failed.
    pub failed: u64,
    /// Bytes that the requests were to read.
    pub wanted_bytes: u64,
    /// Bytes received.
    pub bytes: u64,
    /// The times of the first steps, as many as the plan records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<StepTimes>,
}

crate::serde_once!(TrainEpoch);

impl TrainEpoch {
    /// Adds a step. Its times are kept while there is room for them without growing.
    pub fn step(&mut self, times: StepTimes, planned_ns: u64) {
        let [wait, compute, barrier] = times;
        if self.steps < EXCLUDED_STEPS {
            self.excluded_ns[0] += wait;
            self.excluded_ns[1] += compute;
        }
        self.steps += 1;
        self.wait_ns += wait;
        self.compute_ns += compute;
        self.barrier_ns += barrier;
        let overshoot = compute.saturating_sub(planned_ns);
        self.overshoot_ns += overshoot;
        self.overshoot_max_ns = self.overshoot_max_ns.max(overshoot);
        if self.times.len() < self.times.capacity() {
            self.times.push(times);
        }
    }

    /// Length of the epoch, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.ended_ns.saturating_sub(self.began_ns) as f64 / 1e9
    }

    /// Time that counts, seconds: the epoch without the excluded steps' waiting and computing.
    fn counted_s(&self) -> f64 {
        let excluded: u64 = self.excluded_ns.iter().sum();
        self.seconds() - excluded as f64 / 1e9
    }

    /// Accelerator utilisation as DLIO computes it, percent; `None` if no step counts.
    #[must_use]
    pub fn au(&self) -> Option<f64> {
        if self.steps <= EXCLUDED_STEPS || self.counted_s() <= 0.0 {
            return None;
        }
        let compute = self.compute_ns.saturating_sub(self.excluded_ns[1]) as f64 / 1e9;
        Some(100.0 * compute / self.counted_s())
    }

    /// Samples per second as DLIO computes it, which takes 2 from the number of steps whatever is excluded.
    #[must_use]
    pub fn samples_per_s(&self, batch: u64) -> Option<f64> {
        self.au()?;
        Some(self.steps.saturating_sub(2) as f64 / self.counted_s() * batch as f64)
    }

    /// Utilisation by the bytes that arrived, percent: each step counts with its planned computation, and as far as
    /// its bytes were received, over the whole epoch.
    #[must_use]
    pub fn au_by_bytes(&self, computation_ns: u64) -> Option<f64> {
        if self.steps == 0 || self.ended_ns <= self.began_ns || self.wanted_bytes == 0 {
            return None;
        }
        let compute = self.steps as f64 * computation_ns as f64 / 1e9;
        let received = self.bytes as f64 / self.wanted_bytes as f64;
        Some(100.0 * compute / self.seconds() * received)
    }

    /// Moves every instant by `shift`.
    pub fn shift(&mut self, shift: impl Fn(u64) -> u64) {
        self.began_ns = shift(self.began_ns);
        self.ended_ns = shift(self.ended_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::TrainEpoch;

    const MS: u64 = 1_000_000;

    #[test]
    fn utilisation_leaves_out_the_first_step() {
        let mut epoch = TrainEpoch {
            ended_ns: 1_180 * MS,
            planned: 4,
            wanted_bytes: 400,
            bytes: 300,
            times: Vec::with_capacity(2),
            ..TrainEpoch::default()
        };
        assert_eq!(epoch.au(), None);
        epoch.step([500 * MS, 100 * MS, 20 * MS], 100 * MS);
        for _ in 0..3 {
            epoch.step([60 * MS, 101 * MS, 20 * MS], 100 * MS);
        }
        // T = 1180 - 600 ms; 3 · 101 ms of computation; (4 - 2) steps of 7 samples.
        assert!((epoch.au().unwrap() - 100.0 * 303.0 / 580.0).abs() < 1e-9);
        assert!((epoch.samples_per_s(7).unwrap() - 14.0 / 0.58).abs() < 1e-9);
        // 4 · 100 ms of 1180 ms, three quarters of the bytes.
        let by_bytes = epoch.au_by_bytes(100 * MS).unwrap();
        assert!((by_bytes - 100.0 * 0.4 / 1.18 * 0.75).abs() < 1e-9);
        assert_eq!((epoch.times.len(), epoch.overshoot_ns), (2, 3 * MS));
    }
}
