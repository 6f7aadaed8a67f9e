//! Training: how busy the store kept the accelerators (docs/spec/ai-training.md section 5).

use std::collections::{BTreeMap, BTreeSet};

use bucketload_core::plan::{PhasePlan, TrainPlan};
use bucketload_core::train::TrainEpoch;
use serde::{Deserialize, Serialize};

/// Columns of a timeline.
const COLUMNS: usize = 120;
/// Most accelerators with a timeline.
pub const TIMELINES: usize = 8;

/// The training of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TrainResult {
    /// Name of the phase.
    pub phase: String,
    /// Accelerators.
    pub accelerators: u32,
    /// Samples per batch.
    pub batch: u64,
    /// Planned computation per batch, seconds.
    pub computation_s: f64,
    /// Nominal bytes of a sample.
    pub record_bytes: f64,
    /// Objects of the data set.
    pub objects: u64,
    /// Samples per object.
    pub samples_per_object: u64,
    /// Steps of an epoch that the plan asks for.
    pub steps: u64,
    /// Utilisation to reach, percent.
    pub mark_percent: f64,
    /// Accelerator utilisation as DLIO computes it, percent: mean over the epochs.
    pub au: MeanAndStdev,
    /// Samples per second as DLIO computes them: mean over the epochs.
    pub samples_per_s: MeanAndStdev,
    /// Input in MiB/s as DLIO computes it, from nominal record sizes.
    pub io_mib_per_s: MeanAndStdev,
    /// Utilisation of the rule book: planned computation by the time from the first to the last step, percent.
    pub au_ideal_percent: Option<f64>,
    /// Utilisation by the bytes that arrived, percent.
    pub au_bytes_percent: Option<f64>,
    /// Whether the mark was reached: the mean utilisation is high enough, every epoch was completed, and no read
    /// failed.
    pub passed: bool,
    /// The epochs, in order.
    pub epochs: Vec<EpochResult>,
    /// The accelerators, in order.
    pub each: Vec<AcceleratorResult>,
    /// Read requests that ended.
    pub reads: u64,
    /// Of these, the number that failed.
    pub failed_reads: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes received by bytes of all samples used; above 1 if readers read what they did not need.
    pub amplification: f64,
    /// By how much computations lasted longer than planned: mean and largest, nanoseconds.
    pub overshoot_ns: (f64, u64),
    /// Steps whose times were not recorded one by one; the figures contain them, the timelines do not.
    pub unrecorded_steps: u64,
}

bucketload_core::serde_once!(TrainResult);

/// A mean with its population standard deviation; `None` if there is nothing to average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanAndStdev {
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub stdev: Option<f64>,
}

impl MeanAndStdev {
    fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        Self {
            mean: Some(mean),
            stdev: Some(variance.sqrt()),
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            mean: self.mean.map(|x| x * factor),
            stdev: self.stdev.map(|x| x * factor),
        }
    }
}

/// One epoch, over all accelerators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochResult {
    /// Number, from 1.
    pub epoch: u32,
    /// Length, seconds: from the first accelerator's start to the last one's end.
    pub seconds: f64,
    /// Fewest steps that an accelerator completed.
    pub steps: u64,
    /// Whether every accelerator completed all steps.
    pub complete: bool,
    /// Mean utilisation of the accelerators, percent; `None` if too few steps count.
    pub au_percent: Option<f64>,
    /// Samples per second of all accelerators.
    pub samples_per_s: Option<f64>,
}

/// One accelerator, over all epochs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AcceleratorResult {
    /// Number, from 0.
    pub accelerator: u32,
    /// Mean utilisation over the epochs, percent.
    pub au_percent: Option<f64>,
    /// Seconds spent waiting for batches.
    pub wait_s: f64,
    /// Seconds spent computing.
    pub compute_s: f64,
    /// Seconds spent waiting for other accelerators.
    pub barrier_s: f64,
    /// Over time, for the first accelerators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineColumn>,
}

/// A stretch of time of one accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineColumn {
    /// Start, seconds since the first epoch began.
    pub t_s: f64,
    /// Share of the recorded time spent waiting for batches.
    pub waiting: Option<f64>,
    /// Share of the recorded time spent computing.
    pub computing: Option<f64>,
}

impl TrainResult {
    /// The training of phase number `index`; `None` if it does not train or made no step. A phase has at most one
    /// training that is reported.
    #[must_use]
    pub fn of(phase: &PhasePlan, index: u16, epochs: &[TrainEpoch]) -> Option<Self> {
        let (work, plan) = phase
            .works
            .iter()
            .zip(0u16..)
            .find_map(|(work, number)| Some((number, work.model.train()?)))?;
        let mut own: Vec<&TrainEpoch> = epochs
            .iter()
            .filter(|epoch| (epoch.phase, epoch.work) == (index, work))
            .collect();
        own.sort_by_key(|epoch| (epoch.epoch, epoch.accelerator));
        (!own.is_empty()).then(|| Self::new(phase, plan, &own))
    }

    fn new(phase: &PhasePlan, plan: &TrainPlan, all: &[&TrainEpoch]) -> Self {
        let epochs: Vec<EpochResult> = all
            .chunk_by(|a, b| a.epoch == b.epoch)
            .map(|group| epoch(plan, group))
            .collect();
        // An epoch that the end of the phase cut short counts only if there is no other.
        let any_complete = epochs.iter().any(|epoch| epoch.complete);
        let counted = || epochs.iter().filter(|e| e.complete || !any_complete);
        let of = |figure: fn(&EpochResult) -> Option<f64>| {
            MeanAndStdev::of(&counted().filter_map(figure).collect::<Vec<_>>())
        };
        let (au, samples_per_s) = (of(|e| e.au_percent), of(|e| e.samples_per_s));
        let sum = |of: fn(&TrainEpoch) -> u64| all.iter().map(|e| of(e)).sum::<u64>();
        let (steps, failed_reads, bytes) = (sum(|e| e.steps), sum(|e| e.failed), sum(|e| e.bytes));
        let complete = epochs.len() == plan.epochs as usize && epochs.iter().all(|e| e.complete);
        let mark_percent = 100.0 * plan.mark;
        let began_ns = all.iter().map(|e| e.began_ns).min().unwrap_or(0);
        let ended_ns = all.iter().map(|e| e.ended_ns).max().unwrap_or(0);
        let running_s = ended_ns.saturating_sub(began_ns) as f64 / 1e9;
        let compute_s = steps as f64 * plan.computation_ns as f64 / 1e9;
        let ideal = 100.0 * compute_s / f64::from(plan.accelerators.max(1)) / running_s;
        let by_bytes: Vec<f64> = all
            .iter()
            .filter_map(|e| e.au_by_bytes(plan.computation_ns))
            .collect();
        let used = steps as f64 * plan.batch as f64 * plan.needed();
        let recorded: u64 = all.iter().map(|e| e.times.len() as u64).sum();
        Self {
            phase: phase.name.clone(),
            accelerators: plan.accelerators,
            batch: plan.batch,
            computation_s: plan.computation_ns as f64 / 1e9,
            record_bytes: plan.record,
            objects: plan.objects,
            samples_per_object: plan.samples,
            steps: plan.steps(),
            mark_percent,
            passed: complete && failed_reads == 0 && au.mean.is_some_and(|au| au >= mark_percent),
            io_mib_per_s: samples_per_s.times(plan.record / f64::from(1 << 20)),
            au,
            samples_per_s,
            au_ideal_percent: (running_s > 0.0).then_some(ideal),
            au_bytes_percent: MeanAndStdev::of(&by_bytes).mean,
            epochs,
            each: each(all, (began_ns, ended_ns)),
            reads: sum(|e| e.reads),
            failed_reads,
            bytes,
            amplification: if used > 0.0 { bytes as f64 / used } else { 0.0 },
            overshoot_ns: (
                sum(|e| e.overshoot_ns) as f64 / steps.max(1) as f64,
                all.iter().map(|e| e.overshoot_max_ns).max().unwrap_or(0),
            ),
            unrecorded_steps: steps - recorded.min(steps),
        }
    }
}

fn epoch(plan: &TrainPlan, group: &[&TrainEpoch]) -> EpochResult {
    let all = group.len() == plan.accelerators as usize;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let began = group.iter().map(|e| e.began_ns).min().unwrap_or(0);
    let ended = group.iter().map(|e| e.ended_ns).max().unwrap_or(0);
    let every = |figure: &dyn Fn(&TrainEpoch) -> Option<f64>| {
        let values = group.iter().map(|e| figure(e));
        values.collect::<Option<Vec<f64>>>().filter(|_| all)
    };
    EpochResult {
        epoch: group[0].epoch + 1,
        seconds: seconds(ended.saturating_sub(began)),
        steps: group.iter().map(|e| e.steps).min().unwrap_or(0),
        complete: all && group.iter().all(|e| e.steps == e.planned),
        au_percent: every(&|e| e.au()).and_then(|values| MeanAndStdev::of(&values).mean),
        samples_per_s: every(&|e| e.samples_per_s(plan.batch)).map(|values| values.iter().sum()),
    }
}

fn each(all: &[&TrainEpoch], (began_ns, ended_ns): (u64, u64)) -> Vec<AcceleratorResult> {
    let numbers: BTreeSet<u32> = all.iter().map(|e| e.accelerator).collect();
    let mut by_accelerator: BTreeMap<u32, Vec<&TrainEpoch>> = BTreeMap::new();
    for epoch in all {
        by_accelerator
            .entry(epoch.accelerator)
            .or_default()
            .push(epoch);
    }
    let timed: BTreeSet<u32> = numbers.into_iter().take(TIMELINES).collect();
    by_accelerator
        .into_iter()
        .map(|(accelerator, own)| {
            let seconds =
                |of: fn(&TrainEpoch) -> u64| own.iter().map(|e| of(e)).sum::<u64>() as f64 / 1e9;
            let au: Vec<f64> = own.iter().filter_map(|e| e.au()).collect();
            AcceleratorResult {
                accelerator,
                au_percent: MeanAndStdev::of(&au).mean,
                wait_s: seconds(|e| e.wait_ns),
                compute_s: seconds(|e| e.compute_ns),
                barrier_s: seconds(|e| e.barrier_ns),
                timeline: match timed.contains(&accelerator) {
                    true => timeline(&own, began_ns, ended_ns),
                    false => Vec::new(),
                },
            }
        })
        .collect()
}

/// The recorded steps of an accelerator, divided over columns of equal length.
fn timeline(epochs: &[&TrainEpoch], began_ns: u64, ended_ns: u64) -> Vec<TimelineColumn> {
    let width = ended_ns
        .saturating_sub(began_ns)
        .div_ceil(COLUMNS as u64)
        .max(1);
    // Waiting, computing and all recorded time, nanoseconds.
    let mut columns = [[0u64; 3]; COLUMNS];
    for epoch in epochs {
        let mut at = epoch.began_ns.saturating_sub(began_ns);
        for times in &epoch.times {
            for (part, ns) in times.iter().enumerate() {
                let end = at + ns;
                while at < end {
                    let column = ((at / width) as usize).min(COLUMNS - 1);
                    let edge = if column == COLUMNS - 1 {
                        end
                    } else {
                        (column as u64 + 1) * width
                    };
                    let piece = end.min(edge) - at;
                    if part < 2 {
                        columns[column][part] += piece;
                    }
                    columns[column][2] += piece;
                    at += piece;
                }
            }
        }
    }
    let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
    columns
        .iter()
        .enumerate()
        .map(|(i, [wait, compute, all])| TimelineColumn {
            t_s: i as f64 * width as f64 / 1e9,
            waiting: share(*wait, *all),
            computing: share(*compute, *all),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::train::TrainRead;
    use bucketload_core::plan::{Limits, PhaseKind, PhasePlan, TrainPlan, WorkPlan};
    use bucketload_core::train::TrainEpoch;

    use super::TrainResult;

    const MS: u64 = 1_000_000;

    fn phase(epochs: u32) -> PhasePlan {
        let train = TrainPlan {
            accelerators: 2,
            readers: 1,
            ahead: 1,
            batch: 4,
            computation_ns: 100 * MS,
            epochs,
            steps: 0,
            objects: 24,
            samples: 1,
            record: 1_048_576.0,
            read: TrainRead::Whole,
            mark: 0.6,
        };
        let work = WorkPlan {
            name: "train".into(),
            model: train.into(),
            mix: Vec::new(),
        };
        PhasePlan::new("train", PhaseKind::Run, vec![work], Limits::default())
    }

    fn recorded(accelerator: u32, epoch: u32, wait_ms: u64) -> TrainEpoch {
        let mut record = TrainEpoch {
            epoch,
            accelerator,
            began_ns: u64::from(epoch) * 1000 * MS,
            planned: 3,
            reads: 12,
            bytes: 12 << 20,
            wanted_bytes: 12 << 20,
            times: Vec::with_capacity(3),
            ..TrainEpoch::default()
        };
        for _ in 0..3 {
            record.step([wait_ms * MS, 100 * MS, (100 - wait_ms) * MS], 100 * MS);
        }
        record.ended_ns = record.began_ns + 600 * MS;
        record
    }

    #[test]
    fn a_job_is_the_mean_of_its_accelerators_and_epochs() {
        let all = [
            recorded(0, 0, 40),
            recorded(1, 0, 60),
            recorded(0, 1, 40),
            recorded(1, 1, 40),
        ];
        let result = TrainResult::of(&phase(2), 0, &all).unwrap();
        // T is 600 ms less the first step's 140 or 160 ms; 200 ms of computation count.
        let (a, b) = (20_000.0 / 460.0, 20_000.0 / 440.0);
        let epochs: Vec<f64> = result.epochs.iter().filter_map(|e| e.au_percent).collect();
        assert!((epochs[0] - (a + b) / 2.0).abs() < 1e-9);
        assert!((epochs[1] - a).abs() < 1e-9);
        let mean = (epochs[0] + epochs[1]) / 2.0;
        assert!((result.au.mean.unwrap() - mean).abs() < 1e-9);
        assert!((result.au.stdev.unwrap() - (epochs[0] - mean).abs()).abs() < 1e-9);
        assert!(!result.passed && result.epochs.iter().all(|e| e.complete));
        // (3 - 2) · 4 samples, summed over the accelerators.
        let samples = result.epochs[1].samples_per_s.unwrap();
        assert!((samples - 2.0 * 4.0 / 0.46).abs() < 1e-9);
        assert_eq!(result.io_mib_per_s, result.samples_per_s);
        // 12 steps of 100 ms over two accelerators, in 1.6 s.
        assert!((result.au_ideal_percent.unwrap() - 37.5).abs() < 1e-9);
        assert!((result.au_bytes_percent.unwrap() - 50.0).abs() < 1e-9);
        assert!((result.amplification - 1.0).abs() < 1e-9);
        let first = result.each[0].timeline[0];
        assert_eq!((first.waiting, first.computing), (Some(1.0), Some(0.0)));
        // Between the epochs nothing is recorded.
        assert_eq!(result.each[0].timeline[60].waiting, None);
    }

    #[test]
    fn a_failed_read_or_a_missing_epoch_does_not_pass() {
        let all = [recorded(0, 0, 1), recorded(1, 0, 1)];
        let of = |epochs, all: &[TrainEpoch]| {
            let mut phase = phase(epochs);
            let plan = phase.works[0].model.get_mut::<TrainPlan>().unwrap();
            plan.mark = 0.4;
            TrainResult::of(&phase, 0, all).unwrap()
        };
        assert!(of(1, &all).passed);
        assert!(!of(2, &all).passed, "an epoch is missing");
        let mut failed = all.clone();
        failed[1].failed = 1;
        assert!(!of(1, &failed).passed);
        let mut cut = all.clone();
        cut[1].planned = 4;
        assert!(!of(1, &cut).passed && of(1, &cut).au.mean.is_some());
        assert_eq!(TrainResult::of(&phase(1), 1, &all), None);
    }
}
