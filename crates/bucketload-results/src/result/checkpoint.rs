//! Checkpoints of a language model: how long each took, by which rank, and what training loses by them
//! (docs/spec/ai-checkpoints.md section "Checkpoints").
//!
//! ```text
//!  common barrier ├──────── rank 0 ──────┤                       DLIO, reporting rank: bytes of all / time of rank 0
//!                 ├──────── rank 1 ──────────────┤               DLIO, v2.0 rule: slowest rank
//!                 ├─ rank 2 begins late ─────────────────┤       ours: from the barrier to the last byte of all
//! ```
//!
//! A checkpoint from which bytes are missing is none: it is listed with its ranks and enters no mean.

use std::collections::BTreeMap;

use bucketload_core::plan::checkpoint::{CheckpointAction, CheckpointPlan};
use bucketload_core::plan::{PhaseKind, PhasePlan, Plan};
use bucketload_core::ranks::{PhaseRanks, RankSum};
use bucketload_core::stats::moments::mean;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const GIB: f64 = 1_073_741_824.0;

/// All checkpoints of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointResult {
    /// Name of the model.
    pub model: String,
    /// Ranks that took part.
    pub ranks: u32,
    /// Ranks of the whole job.
    pub job_ranks: u64,
    /// Factor on the elements of every tensor, as numerator and denominator.
    pub scale: (u64, u64),
    /// Objects of a checkpoint.
    pub objects: u64,
    /// Bytes of a checkpoint.
    pub bytes: u64,
    /// Training between two checkpoints, seconds.
    pub interval_s: f64,
    /// The measured checkpoints, in order.
    pub checkpoints: Vec<CheckpointTime>,
    /// The complete writes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<CheckpointMean>,
    /// The complete reads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<CheckpointMean>,
    /// Mean time of writing the marker `latest`, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_s: Option<f64>,
    /// Numbers of the checkpoints whose marker was not written, because somebody else had changed it or was changing it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub races: Vec<u32>,
    /// What training loses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<TrainingLoss>,
}

/// One checkpoint, written or read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointTime {
    /// Name of the phase.
    pub phase: String,
    /// What was done.
    pub action: CheckpointAction,
    /// From the common barrier to the last byte of the last rank, seconds.
    pub seconds: f64,
    /// Bytes of all ranks over these seconds, GiB/s.
    pub gib_per_s: f64,
    /// Time of the reporting rank, number 0, seconds.
    pub rank0_s: f64,
    /// Longest time of a rank since its own start, seconds.
    pub slowest_s: f64,
    /// The rank that was last.
    pub last_rank: u32,
    /// Seconds from the barrier to the last byte of a rank: the shortest, the median and the longest.
    pub ranks_s: [f64; 3],
    /// Own throughput of a rank, GiB/s: the lowest, the median and the highest.
    pub ranks_gib_per_s: [f64; 3],
    /// Ranks from which bytes are missing; empty for a complete checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteRank>,
}

/// A rank from which bytes are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncompleteRank {
    /// The rank.
    pub rank: u32,
    /// Bytes that it should have transferred.
    pub planned: u64,
    /// Bytes that it transferred.
    pub done: u64,
    /// Its failed operations.
    pub failed: u64,
    /// Whether its process reported at all; a killed one does not.
    pub reported: bool,
}

/// The complete checkpoints of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointMean {
    /// How many were complete.
    pub complete: u32,
    /// How many were begun.
    pub begun: u32,
    /// From barrier to last byte, seconds: mean and population standard deviation.
    pub seconds: (f64, f64),
    /// GiB/s over these seconds: mean and population standard deviation.
    pub gib_per_s: (f64, f64),
    /// DLIO: time of the slowest rank, seconds; mean and population standard deviation.
    pub dlio_seconds: (f64, f64),
    /// DLIO: throughput of the slowest rank, GiB/s; mean and population standard deviation.
    pub dlio_gib_per_s: (f64, f64),
    /// DLIO: throughput by the reporting rank, GiB/s; mean and population standard deviation.
    pub dlio_rank0_gib_per_s: (f64, f64),
}

/// What training loses at the stated interval, if it waits for its checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingLoss {
    /// Per checkpoint, seconds: writing it, and the marker if there is one.
    pub per_checkpoint_s: f64,
    /// Share of all time.
    pub share: f64,
    /// From a failure until training goes on, seconds: reading the last checkpoint; `None` without reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_s: Option<f64>,
    /// Mean loss per failure, seconds: the restart, and half an interval whose training is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_failure_s: Option<f64>,
}

impl CheckpointResult {
    /// The checkpoints of a run of `plan`; `None` if it has none. `ranks` and `started_ns` are those of each phase, by its
    /// index.
    #[must_use]
    pub fn of(
        plan: &Plan,
        ranks: &BTreeMap<u16, PhaseRanks>,
        started_ns: impl Fn(u16) -> Option<u64>,
    ) -> Option<Self> {
        let phases = plan.phases.iter().enumerate().filter_map(|(index, phase)| {
            let checkpoint = phase.works.first()?.model.checkpoint()?;
            Some((u16::try_from(index).ok()?, phase, checkpoint))
        });
        let phases: Vec<_> = phases.collect();
        let (_, _, first) = phases.first()?;
        let (objects, bytes) = first.total();
        let (mut checkpoints, mut markers, mut races) = (Vec::new(), Vec::new(), Vec::new());
        for (index, phase, checkpoint) in &phases {
            let Some(start_ns) = started_ns(*index).filter(|_| phase.kind == PhaseKind::Run) else {
                continue;
            };
            let none = PhaseRanks::default();
            let sums = &ranks.get(index).unwrap_or(&none).ranks;
            match checkpoint.action {
                CheckpointAction::Commit => {
                    for sum in sums.iter().filter(|sum| sum.ops > 0) {
                        // A condition that does not hold is no failure, but nothing is written.
                        match sum.bytes {
                            0 => races.push(checkpoint.number),
                            _ => markers.push(seconds(start_ns, sum.last_ns)),
                        }
                    }
                }
                _ => checkpoints.push(CheckpointTime::new(&phase.name, checkpoint, sums, start_ns)),
            }
        }
        let interval_s = first.interval_ns as f64 / 1e9;
        let write = CheckpointMean::of(&checkpoints, CheckpointAction::Write);
        let read = CheckpointMean::of(&checkpoints, CheckpointAction::Read);
        let latest_s = (!markers.is_empty()).then(|| mean(&markers));
        let restart_s = read.map(|read| read.seconds.0);
        let loss = write.filter(|_| interval_s > 0.0).map(|write| {
            let per_checkpoint_s = write.seconds.0 + latest_s.unwrap_or(0.0);
            TrainingLoss {
                per_checkpoint_s,
                share: per_checkpoint_s / (interval_s + per_checkpoint_s),
                restart_s,
                per_failure_s: restart_s.map(|restart| restart + interval_s / 2.0),
            }
        });
        Some(Self {
            model: first.model.name.clone(),
            ranks: first.ranks,
            job_ranks: first.model.ranks(),
            scale: (first.scale.parts, first.scale.of),
            objects,
            bytes,
            interval_s,
            checkpoints,
            write,
            read,
            latest_s,
            races,
            loss,
        })
    }

    /// The one checkpoint of `phase`, written or read, with its figures.
    #[must_use]
    pub(crate) fn of_phase(
        phase: &PhasePlan,
        plan: &CheckpointPlan,
        ranks: Option<&PhaseRanks>,
        started_ns: u64,
    ) -> Self {
        let sums = ranks.map_or(&[][..], |ranks| &ranks.ranks);
        let checkpoints = vec![CheckpointTime::new(&phase.name, plan, sums, started_ns)];
        let (objects, bytes) = plan.total();
        Self {
            model: plan.model.name.clone(),
            ranks: plan.ranks,
            job_ranks: plan.model.ranks(),
            scale: (plan.scale.parts, plan.scale.of),
            objects,
            bytes,
            interval_s: plan.interval_ns as f64 / 1e9,
            write: CheckpointMean::of(&checkpoints, CheckpointAction::Write),
            read: CheckpointMean::of(&checkpoints, CheckpointAction::Read),
            checkpoints,
            latest_s: None,
            races: Vec::new(),
            loss: None,
        }
    }

    /// The figures under the names of DLIO's `summary.json`, in which `GB` is GiB.
    #[must_use]
    pub fn dlio_summary(&self) -> Value {
        let mut metric = json!({ "checkpoint_size_GB": self.bytes as f64 / GIB });
        for (name, mean) in [("save", self.write), ("load", self.read)] {
            let Some(mean) = mean else { continue };
            for (figure, (mean, stdev)) in
                [("duration", mean.dlio_seconds), ("io", mean.dlio_gib_per_s)]
            {
                let unit = match figure {
                    "io" => "GB_per_second",
                    _ => "seconds",
                };
                metric[format!("{name}_checkpoint_{figure}_mean_{unit}")] = mean.into();
                metric[format!("{name}_checkpoint_{figure}_stdev_{unit}")] = stdev.into();
            }
        }
        json!({ "num_accelerators": self.ranks, "metric": metric })
    }
}

/// Seconds between two instants.
fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

/// `bytes` over `seconds`, GiB/s; 0 if no time passed.
fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 / GIB / seconds
    } else {
        0.0
    }
}

/// The lowest, the median (the lower one of two) and the highest value; zeros without values.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => [0.0; 3],
        all => [all[0], all[(all.len() - 1) / 2], all[all.len() - 1]],
    }
}

/// Mean and population standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let center = mean(values);
    let squares: Vec<f64> = values.iter().map(|x| (x - center).powi(2)).collect();
    (center, mean(&squares).sqrt())
}

impl CheckpointTime {
    fn new(phase: &str, plan: &CheckpointPlan, sums: &[RankSum], start_ns: u64) -> Self {
        let sum_of = |rank: u32| {
            let found = sums.binary_search_by_key(&rank, |sum| sum.rank);
            found.ok().map(|at| sums[at])
        };
        let total = plan.total().1;
        let worked: Vec<RankSum> = sums
            .iter()
            .filter(|sum| sum.ops + sum.failed > 0)
            .copied()
            .collect();
        let done: u64 = worked.iter().map(|sum| sum.bytes).sum();
        let last = worked.iter().max_by_key(|sum| sum.last_ns);
        let time = last.map_or(0.0, |sum| seconds(start_ns, sum.last_ns));
        let incomplete = (0..plan.ranks).filter_map(|rank| {
            let (planned, sum) = (plan.transfers(rank), sum_of(rank));
            let done = sum.map_or(0, |sum| sum.bytes);
            (done != planned).then(|| IncompleteRank {
                rank,
                planned,
                done,
                failed: sum.map_or(0, |sum| sum.failed),
                reported: sum.is_some(),
            })
        });
        let since_barrier = |sum: &RankSum| seconds(start_ns, sum.last_ns);
        Self {
            phase: phase.to_owned(),
            action: plan.action,
            seconds: time,
            gib_per_s: rate(done.min(total), time),
            rank0_s: sum_of(0).map_or(0.0, |sum| seconds(sum.first_ns, sum.last_ns)),
            slowest_s: worked
                .iter()
                .map(|sum| seconds(sum.first_ns, sum.last_ns))
                .fold(0.0, f64::max),
            last_rank: last.map_or(0, |sum| sum.rank),
            ranks_s: spread(worked.iter().map(since_barrier).collect()),
            ranks_gib_per_s: spread(
                worked
                    .iter()
                    .map(|sum| rate(sum.bytes, since_barrier(sum)))
                    .collect(),
            ),
            incomplete: incomplete.collect(),
        }
    }
}

impl CheckpointMean {
    fn of(all: &[CheckpointTime], action: CheckpointAction) -> Option<Self> {
        let begun = all.iter().filter(|one| one.action == action).count() as u32;
        let complete: Vec<&CheckpointTime> = all
            .iter()
            .filter(|one| one.action == action && one.incomplete.is_empty() && one.seconds > 0.0)
            .collect();
        if complete.is_empty() {
            return None;
        }
        let of = |figure: &dyn Fn(&CheckpointTime) -> f64| {
            moments(&complete.iter().map(|one| figure(one)).collect::<Vec<_>>())
        };
        // All bytes of the checkpoint, over a time that is not that of all ranks.
        let over = |one: &CheckpointTime, time: f64| match time > 0.0 {
            true => one.gib_per_s * one.seconds / time,
            false => 0.0,
        };
        Some(Self {
            complete: complete.len() as u32,
            begun,
            seconds: of(&|one| one.seconds),
            gib_per_s: of(&|one| one.gib_per_s),
            dlio_seconds: of(&|one| one.slowest_s),
            dlio_gib_per_s: of(&|one| over(one, one.slowest_s)),
            dlio_rank0_gib_per_s: of(&|one| over(one, one.rank0_s)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bucketload_core::op::OpClass;
    use bucketload_core::payload::PayloadKind;
    use bucketload_core::plan::checkpoint::{CheckpointAction, CheckpointPlan, LanguageModel};
    use bucketload_core::plan::ranks::Fraction;
    use bucketload_core::plan::{
        KeyLaw, Limits, MixEntry, PhaseKind, PhasePlan, Plan, RetryPlan, WorkPlan,
    };
    use bucketload_core::ranks::{PhaseRanks, RankSum};

    use super::CheckpointResult;

    fn checkpoint(action: CheckpointAction, number: u32) -> CheckpointPlan {
        CheckpointPlan {
            model: LanguageModel {
                name: "tiny".to_owned(),
                layers: 2,
                hidden: 64,
                ffn: 128,
                heads: 4,
                kv_heads: 4,
                vocabulary: 1000,
                tensor: 1,
                pipeline: 1,
                data: 2,
                zero: 3,
                weight_bytes: 2,
                optimizer_bytes: 4,
            },
            action,
            number,
            ranks: 2,
            scale: Fraction { parts: 1, of: 1 },
            extension: "pt".to_owned(),
            piece_bytes: 0,
            lanes: 1,
            shift: 0,
            interval_ns: 90_000_000_000,
        }
    }

    fn plan() -> Plan {
        let phase = |plan: CheckpointPlan| {
            let work = WorkPlan {
                name: "w".to_owned(),
                mix: vec![MixEntry::new(OpClass::Put, 0, KeyLaw::Sequential)],
                model: plan.into(),
            };
            PhasePlan::new("p", PhaseKind::Run, vec![work], Limits::default())
        };
        Plan {
            workload: "checkpoint".to_owned(),
            profile: String::new(),
            compat: String::new(),
            seed: 1,
            scale: 1.0,
            size_scale: 1.0,
            payload: PayloadKind::Random,
            verify: true,
            timeout_ns: 1,
            retry: RetryPlan::NONE,
            not_found_is_failure: true,
            keysets: Vec::new(),
            phases: vec![
                phase(checkpoint(CheckpointAction::Write, 1)),
                phase(checkpoint(CheckpointAction::Write, 2)),
                phase(checkpoint(CheckpointAction::Read, 1)),
            ],
        }
    }

    /// Two ranks that begin and end at these seconds after the barrier, at second 100.
    fn ranks(times: [(u64, u64); 2], share: [u64; 2]) -> PhaseRanks {
        let bytes = checkpoint(CheckpointAction::Write, 1).transfers(0);
        let at = |second: u64| (100 + second) * 1_000_000_000;
        let of = |rank: usize| RankSum {
            rank: rank as u32,
            ops: 2,
            failed: 1 - share[rank],
            bytes: bytes * share[rank],
            first_ns: at(times[rank].0),
            last_ns: at(times[rank].1),
            ..RankSum::default()
        };
        PhaseRanks {
            ranks: vec![of(0), of(1)],
            ..PhaseRanks::default()
        }
    }

    #[test]
    fn both_definitions_of_a_checkpoint_s_time() {
        let all = BTreeMap::from([
            (0, ranks([(0, 4), (2, 10)], [1, 1])),
            (1, ranks([(0, 5), (0, 6)], [1, 1])),
            (2, ranks([(0, 2), (0, 5)], [1, 1])),
        ]);
        let result = CheckpointResult::of(&plan(), &all, |_| Some(100_000_000_000)).unwrap();
        let one = &result.checkpoints[0];
        assert_eq!((one.seconds, one.slowest_s, one.rank0_s), (10.0, 8.0, 4.0));
        assert_eq!((one.last_rank, one.ranks_s), (1, [4.0, 4.0, 10.0]));
        let gib = result.bytes as f64 / 1_073_741_824.0;
        assert!((one.gib_per_s - gib / 10.0).abs() < 1e-12);
        let write = result.write.unwrap();
        assert_eq!((write.complete, write.seconds), (2, (8.0, 2.0)));
        assert_eq!(write.dlio_seconds, (7.0, 1.0));
        assert!((write.dlio_gib_per_s.0 - gib * (1.0 / 8.0 + 1.0 / 6.0) / 2.0).abs() < 1e-12);
        assert!((write.dlio_rank0_gib_per_s.0 - gib * (1.0 / 4.0 + 1.0 / 5.0) / 2.0).abs() < 1e-12);
        let loss = result.loss.unwrap();
        assert_eq!(loss.per_checkpoint_s, 8.0);
        assert!((loss.share - 8.0 / 98.0).abs() < 1e-12);
        assert_eq!(
            (loss.restart_s, loss.per_failure_s),
            (Some(5.0), Some(50.0))
        );
        let dlio = result.dlio_summary();
        assert_eq!(dlio["metric"]["save_checkpoint_duration_mean_seconds"], 7.0);
        assert_eq!(
            dlio["metric"]["load_checkpoint_duration_stdev_seconds"],
            0.0
        );
        assert_eq!(dlio["metric"]["checkpoint_size_GB"], gib);
    }

    #[test]
    fn a_checkpoint_without_a_rank_is_labelled_and_enters_no_mean() {
        let mut killed = ranks([(0, 5), (0, 6)], [1, 1]);
        killed.ranks.pop();
        let all = BTreeMap::from([(0, ranks([(0, 4), (0, 9)], [1, 0])), (1, killed)]);
        let result = CheckpointResult::of(&plan(), &all, |_| Some(100_000_000_000)).unwrap();
        assert_eq!((result.write, result.loss), (None, None));
        let failed = &result.checkpoints[0].incomplete[0];
        assert_eq!(
            (failed.rank, failed.done, failed.failed, failed.reported),
            (1, 0, 1, true)
        );
        let gone = &result.checkpoints[1].incomplete[0];
        assert_eq!((gone.rank, gone.reported), (1, false));
        assert_eq!(
            gone.planned,
            checkpoint(CheckpointAction::Write, 1).transfers(1)
        );
    }
}
