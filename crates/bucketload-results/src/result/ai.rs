//! The figures of training, checkpoints and caches of a run, under the names of [`AiFigure`].

use bucketload_core::ai::{AiFigure, AiFigures, AiKind};
use bucketload_core::plan::PhasePlan;
use bucketload_core::plan::checkpoint::CheckpointAction;
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::stats::quantile::Print;

use super::checkpoint::CheckpointMean;
use super::{CheckpointResult, KvcacheResult, Latency, RunResult, TrainResult};
use crate::kit::Unit;

const GIB: f64 = 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;

/// A figure's unit in tables and charts.
#[must_use]
pub const fn unit(figure: AiFigure) -> Unit {
    match figure.kind() {
        AiKind::Share => Unit::Share,
        AiKind::PerSecond => Unit::PerS,
        AiKind::BytesPerSecond => Unit::BytesPerS,
        AiKind::Time => Unit::Ns,
    }
}

fn some<const N: usize>(figures: [(AiFigure, Option<f64>); N]) -> AiFigures {
    let known = figures.into_iter();
    known
        .filter_map(|(figure, value)| Some((figure, value?)))
        .collect()
}

fn of_training(train: &TrainResult) -> AiFigures {
    some([
        (AiFigure::Au, train.au.mean.map(|percent| percent / 100.0)),
        (AiFigure::Samples, train.samples_per_s.mean),
        (
            AiFigure::InputRate,
            train.io_mib_per_s.mean.map(|mib| mib * MIB),
        ),
    ])
}

fn of_checkpoints(checkpoint: &CheckpointResult) -> AiFigures {
    let rate = |mean: Option<CheckpointMean>, of: fn(&CheckpointMean) -> (f64, f64)| {
        mean.map(|mean| of(&mean).0 * GIB)
    };
    let time = |mean: Option<CheckpointMean>, of: fn(&CheckpointMean) -> (f64, f64)| {
        mean.map(|mean| of(&mean).0 * 1e9)
    };
    let (write, read) = (checkpoint.write, checkpoint.read);
    some([
        (AiFigure::CheckpointWrite, rate(write, |m| m.gib_per_s)),
        (AiFigure::CheckpointWriteTime, time(write, |m| m.seconds)),
        (AiFigure::CheckpointRead, rate(read, |m| m.gib_per_s)),
        (AiFigure::CheckpointReadTime, time(read, |m| m.seconds)),
        (AiFigure::DlioWrite, rate(write, |m| m.dlio_gib_per_s)),
        (AiFigure::DlioWriteTime, time(write, |m| m.dlio_seconds)),
        (AiFigure::DlioRead, rate(read, |m| m.dlio_gib_per_s)),
        (AiFigure::DlioReadTime, time(read, |m| m.dlio_seconds)),
    ])
}

/// The figures of a cache.
pub(super) fn of_cache(cache: &KvcacheResult) -> AiFigures {
    let load = cache.durations.iter().find(|d| d.name == "load");
    let quantile = |q| load.and_then(|load| quantile(&load.time, q));
    let classes = || cache.classes.iter().map(|c| (c.within, c.time.n as f64));
    let requests: f64 = classes().map(|(_, n)| n).sum();
    let within: f64 = classes().map(|(share, n)| share * n).sum();
    let looked_up = cache.counts.blocks > 0;
    some([
        (
            AiFigure::HitRatio,
            looked_up.then_some(cache.block_hit_ratio),
        ),
        (
            AiFigure::TokenHitRatio,
            looked_up.then_some(cache.token_hit_ratio),
        ),
        (AiFigure::LoadP50, quantile(0.5)),
        (AiFigure::LoadP99, quantile(0.99)),
        (
            AiFigure::Attainment,
            (requests > 0.0).then(|| within / requests),
        ),
    ])
}

/// A percentile, nanoseconds; `None` with too few values beyond it. A median is always shown.
fn quantile(latency: &Latency, q: f64) -> Option<f64> {
    let mut all = latency.percentiles.iter();
    let found = all.find(|p| p.q == q && (q == 0.5 || p.print != Print::Omit));
    found.map(|p| p.value_ns as f64)
}

/// The figures of one phase, for objectives on it. A checkpoint that is incomplete has none.
pub(crate) fn of_phase(
    phase: &PhasePlan,
    train: Option<&TrainResult>,
    cache: Option<&KvcacheResult>,
    ranks: Option<&PhaseRanks>,
    started_ns: Option<u64>,
) -> AiFigures {
    let mut figures = AiFigures::new();
    figures.extend(train.map(of_training).into_iter().flatten());
    figures.extend(cache.map(of_cache).into_iter().flatten());
    let mut works = phase.works.iter();
    let plan = works.find_map(|work| work.model.checkpoint());
    if let Some((plan, started_ns)) = plan.zip(started_ns)
        && plan.action != CheckpointAction::Commit
    {
        let one = CheckpointResult::of_phase(phase, plan, ranks, started_ns);
        figures.extend(of_checkpoints(&one));
    }
    figures
}

impl RunResult {
    /// The figures of training, checkpoints and caches, with the phase to which they belong. Those of checkpoints
    /// belong to several phases; they come under an empty name.
    #[must_use]
    pub fn ai_by_phase(&self) -> Vec<(&str, AiFigures)> {
        let trainings = self.train.iter().filter(|train| {
            let mut measured = self.measured();
            measured.any(|phase| phase.name == train.phase)
        });
        let trainings = trainings.map(|train| (train.phase.as_str(), of_training(train)));
        let caches = self.measured().filter_map(|phase| {
            let figures = of_cache(phase.kvcache.as_ref()?);
            Some((phase.name.as_str(), figures))
        });
        let checkpoints = self.checkpoint.iter().map(|c| ("", of_checkpoints(c)));
        let all = trainings.chain(caches).chain(checkpoints);
        all.filter(|(_, figures)| !figures.is_empty()).collect()
    }

    /// The same of the whole run, without figures that several phases have.
    #[must_use]
    pub fn ai(&self) -> AiFigures {
        let all = self.ai_by_phase();
        let times = |figure| {
            let having = all.iter().filter(|(_, own)| own.contains_key(figure));
            having.count()
        };
        let known = all.iter().flat_map(|(_, own)| own);
        let once = known.filter(|(figure, _)| times(figure) == 1);
        once.map(|(figure, value)| (*figure, *value)).collect()
    }
}
