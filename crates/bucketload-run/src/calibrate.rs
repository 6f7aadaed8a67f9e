//! Calibration: what this client could do if the store took no time (docs/spec/statistics.md section 2, V5).
//!
//! Runs the phase's schedule at twice its rate or more, and then its operations as fast as possible, both against a
//! driver that does nothing. The first shows the lateness that the client itself adds, the second how much faster than
//! offered the client can go. For the replay of a trace, the trace's busiest second is repeated.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use bucketload_core::driver::AnyDriver;
use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::plan::{
    ArrivalLaw, KeysetPlan, Limits, MixEntry, ModelPlan, PhaseKind, PhasePlan, Plan,
};
use bucketload_core::sink::{Calibration, Event, RunSink};
use bucketload_core::tally::{Interval, Tally};

use crate::affinity;
use crate::check::check_plan;
use crate::error::RunError;
use crate::feed::Stretch;
use crate::leftover::Leftovers;
use crate::models;
use crate::options::RunOptions;
use crate::phase::{RunContext, run_phase};
use crate::stop::StopHandle;

/// Duration of the schedule against the null driver, nanoseconds.
const SCHEDULE_NS: u64 = 750_000_000;
/// Duration of the saturating loop, nanoseconds.
const CEILING_NS: u64 = 500_000_000;
/// Length of the intervals.
const INTERVAL: Duration = Duration::from_millis(50);
/// Lowest rate, arrivals per second, that gives a 99th percentile within `SCHEDULE_NS`.
pub(crate) const LEAST_RATE: f64 = 1_000.0;
/// Workers per load thread in the saturating loop.
const WORKERS_PER_THREAD: u32 = 8;

/// Drives phase `phase` of `plan` for about a second and a half against `null`, a driver whose operations end at once
/// or whose server does nothing, with the threads and the pacing of `options`. The figures cover this process's share
/// of the load. The 99th percentile is measured at twice the offered rate, or at 1 000 arrivals per second if that is
/// more; it is an upper bound for the one at the offered rate.
///
/// # Errors
/// When the plan or the options cannot be carried out, a load thread fails, or operations do. A stop is no error: the
/// figures then cover what was done.
pub fn calibrate(
    null: &AnyDriver,
    plan: &Plan,
    phase: usize,
    options: &RunOptions,
    stop: &StopHandle,
) -> Result<Calibration, RunError> {
    let is_load = |p: &PhasePlan| matches!(p.kind, PhaseKind::Prepare | PhaseKind::Run);
    if !plan.phases.get(phase).is_some_and(is_load) {
        let text = format!("phase {phase} of the plan offers no load to calibrate");
        return Err(RunError::Options(text));
    }
    options.check()?;
    check_plan(plan, options)?;
    let stretch = stretch(plan, phase, options, stop)?;
    let load = Load {
        plan,
        phase,
        options,
        stop,
        stretch: &stretch,
    };
    let offered_ops_per_s = (offered(plan, phase)? + stretch.rate) / f64::from(options.share.of);
    let is_open = offered_ops_per_s > 0.0;
    let paced = match is_open {
        true => Some(drive(
            null,
            &load,
            |model| models::of(model).faster(&stretch),
            SCHEDULE_NS,
        )?),
        false => None,
    };
    let threads = affinity::layout(options)?.len();
    let workers = WORKERS_PER_THREAD * u32::try_from(threads).unwrap_or(1) * options.share.of;
    let saturate = |model: &ModelPlan| models::of(model).saturating(workers);
    let ceiling = drive(null, &load, saturate, CEILING_NS)?;
    if ceiling.total.failures() > 0 {
        let (failed, all) = (ceiling.total.failures(), ceiling.total.ended());
        let text =
            format!("{failed} of {all} operations failed, so the client's own limit is not known");
        return Err(RunError::Options(text));
    }
    let mut null_ops_per_s = ceiling.ops_per_s();
    if let Some(paced) = &paced
        && paced.total.ended() * 100 < paced.total.offered * 99
    {
        null_ops_per_s = null_ops_per_s.min(paced.ops_per_s());
    }
    let response = paced.as_ref().unwrap_or(&ceiling).response_p99_ns();
    Ok(Calibration {
        offered_ops_per_s,
        null_ops_per_s,
        null_p99_ns: response,
        null_cpu_ns_per_op: ceiling.cpu_ns_per_op(),
        age_s: None,
    })
}

/// The busiest stretch of the trace that the phase replays; empty if it replays none.
fn stretch(
    plan: &Plan,
    phase: usize,
    options: &RunOptions,
    stop: &StopHandle,
) -> Result<Stretch, RunError> {
    let phase_plan = &plan.phases[phase];
    let replays = phase_plan.works.iter().find_map(|work| work.model.replay());
    match (replays, &options.trace) {
        (Some(replay), Some(trace)) => Ok(Stretch::find(&**trace, replay, phase_plan, stop)?),
        _ => Ok(Stretch::default()),
    }
}

/// Mean arrivals per second of the phase's open works, over all agents. Excludes replays, whose rates are not known
/// here.
fn offered(plan: &Plan, phase: usize) -> Result<f64, RunError> {
    let phase_plan = &plan.phases[phase];
    let duration_ns = match phase_plan.limits.duration_ns {
        0 => 60_000_000_000,
        duration => duration,
    };
    let mut rate = 0.0;
    for (work, work_plan) in phase_plan.works.iter().enumerate() {
        if let Some((arrival, each)) = work_plan.model.arrivals() {
            let number = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            let schedule = Schedule::new(plan.seed, number(phase), number(work), arrival)
                .map_err(|error| RunError::Options(format!("the plan's {error}")))?;
            rate += each * schedule.mean_rate(duration_ns);
        }
    }
    Ok(rate)
}

/// Twice `rate`, but at least [`LEAST_RATE`].
pub(crate) fn twice(rate: f64) -> f64 {
    (2.0 * rate).max(LEAST_RATE)
}

/// Arrivals at twice their rate or more.
pub(crate) fn faster_arrivals(law: &ArrivalLaw) -> ArrivalLaw {
    match law {
        ArrivalLaw::Constant { rate } => ArrivalLaw::Constant { rate: twice(*rate) },
        ArrivalLaw::Poisson { rate } => ArrivalLaw::Poisson { rate: twice(*rate) },
        ArrivalLaw::LognormalGaps { rate, cv } => ArrivalLaw::LognormalGaps {
            rate: twice(*rate),
            cv: *cv,
        },
        ArrivalLaw::LognormalRate { rate, cv, slot_ns } => ArrivalLaw::LognormalRate {
            rate: twice(*rate),
            cv: *cv,
            // Several slots must fit into the short window.
            slot_ns: (*slot_ns).min(SCHEDULE_NS / 8),
        },
        ArrivalLaw::PeriodicBatch {
            clients,
            period_ns,
            min,
            max,
            spread_ns,
            gap_ns,
        } => {
            // Several batches of the same size must fit into the short window.
            let period_ns = (period_ns / 2).clamp(1, SCHEDULE_NS / 4);
            ArrivalLaw::PeriodicBatch {
                clients: *clients,
                period_ns,
                min: *min,
                max: *max,
                spread_ns: (spread_ns / 2).min(period_ns),
                gap_ns: (gap_ns / 2).min(period_ns / u64::from((*max).max(1))),
            }
        }
        ArrivalLaw::Ramp { from, to, .. } => ArrivalLaw::Poisson {
            rate: twice(from.max(*to)),
        },
        ArrivalLaw::Steps { rates, .. } => ArrivalLaw::Poisson {
            rate: twice(rates.iter().copied().fold(0.0, f64::max)),
        },
    }
}

/// The phase to calibrate.
struct Load<'a> {
    plan: &'a Plan,
    phase: usize,
    options: &'a RunOptions,
    stop: &'a StopHandle,
    /// Replayed instead of the trace.
    stretch: &'a Stretch,
}

/// Runs the phase for `duration_ns` with each work's model replaced by `model`.
fn drive(
    null: &AnyDriver,
    load: &Load<'_>,
    model: impl Fn(&ModelPlan) -> ModelPlan,
    duration_ns: u64,
) -> Result<Readings, RunError> {
    let &Load {
        phase,
        options,
        stop,
        ..
    } = load;
    let mut plan = load.plan.clone();
    plan.verify = false;
    let phase_plan = &mut plan.phases[phase];
    phase_plan.stop = None;
    phase_plan.limits = Limits {
        duration_ns,
        drain_ns: duration_ns / 4,
        ..Limits::default()
    };
    for work in &mut phase_plan.works {
        if work.model.named().is_some() {
            unnamed(&mut work.mix, &mut plan.keysets);
        }
        work.model = model(&work.model);
    }
    let options = RunOptions {
        interval: INTERVAL,
        gate: None,
        agreement: None,
        remote: None,
        leftovers: Leftovers::Vanish,
        left: RefCell::default(),
        incomplete: RefCell::default(),
        check_writes: false,
        refused: Vec::new(),
        before_measuring: None,
        at_edges: None,
        converged: None,
        op_log: None,
        trace: Some(Arc::new(load.stretch.clone())),
        run_id: String::new(),
        pins: options.pins.clone(),
        data: options.data.clone(),
        data_set: None,
        bucket: options.bucket.clone(),
        prefix: options.prefix.clone(),
        cores: options.cores.clone(),
        phases: None,
        ..*options
    };
    let mut context = RunContext::new(&plan, &options, stop, affinity::layout(&options)?);
    if let Some(buckets) = context.workload_buckets.as_mut().and_then(Arc::get_mut) {
        buckets.assume_made();
    }
    let mut readings = Readings::default();
    run_phase(null, &mut context, phase, &mut readings)?;
    Ok(readings)
}

/// Turns the mix of a work on named objects into an ordinary one. A named mix states the size of reads in its entries,
/// an ordinary one in the key set.
fn unnamed(mix: &mut [MixEntry], keysets: &mut [KeysetPlan]) {
    for entry in mix {
        let Some(set) = keysets.get_mut(usize::from(entry.keyset)) else {
            continue;
        };
        set.count = set.count.max(1);
        if !entry.class.writes_body()
            && let Some(size) = entry.size.take()
        {
            set.size = size;
        }
    }
}

/// Readings of a run against the null driver.
#[derive(Default)]
struct Readings {
    total: Tally,
    /// End of the first interval, and the CPU time of the load threads by then.
    first: Option<(u64, u64)>,
    /// The same of the last complete interval, and the number of operations that ended in between.
    last: Option<(u64, u64, u64)>,
}

impl RunSink for Readings {
    fn event(&mut self, _: &Event) {}

    fn interval(&mut self, interval: &Interval) {
        self.total.merge(&interval.tally);
        let (end, cpu) = (interval.end_ns, interval.gauges.load_cpu_ns);
        if self.first.is_none() {
            self.first = Some((end, cpu));
        } else if end - interval.start_ns == INTERVAL.as_nanos() as u64 {
            let before = self.last.map_or(0, |(_, _, ops)| ops);
            self.last = Some((end, cpu, before + interval.tally.ended()));
        }
    }
}

impl Readings {
    /// Operations per second, without the first interval, in which the threads warm up.
    fn ops_per_s(&self) -> f64 {
        match (self.first, self.last) {
            (Some((from, _)), Some((to, _, ops))) if to > from => {
                ops as f64 * 1e9 / (to - from) as f64
            }
            _ => 0.0,
        }
    }

    fn cpu_ns_per_op(&self) -> f64 {
        match (self.first, self.last) {
            (Some((_, from)), Some((_, to, ops))) if ops > 0 => {
                to.saturating_sub(from) as f64 / ops as f64
            }
            _ => 0.0,
        }
    }

    fn response_p99_ns(&self) -> u64 {
        let mut all = bucketload_core::histogram::Histogram::new();
        for cell in &self.total.cells {
            all.merge(&cell.response);
        }
        all.quantile_ns(0.99)
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::generate::arrivals::Schedule;
    use bucketload_core::plan::ArrivalLaw;

    use super::{SCHEDULE_NS, faster_arrivals};

    #[test]
    fn every_law_becomes_at_least_twice_as_fast_within_the_window() {
        let laws = [
            ArrivalLaw::Constant { rate: 3.0 },
            ArrivalLaw::Poisson { rate: 5_000.0 },
            ArrivalLaw::LognormalGaps {
                rate: 700.0,
                cv: 2.0,
            },
            ArrivalLaw::LognormalRate {
                rate: 800.0,
                cv: 0.5,
                slot_ns: 1_000_000_000,
            },
            ArrivalLaw::PeriodicBatch {
                clients: 1,
                period_ns: 5_000_000_000,
                min: 10,
                max: 100,
                spread_ns: 1_000_000_000,
                gap_ns: 0,
            },
            ArrivalLaw::Ramp {
                from: 10.0,
                to: 2_000.0,
                over_ns: 1_000_000_000,
            },
            ArrivalLaw::Steps {
                rates: vec![1.0, 900.0],
                step_ns: 1_000_000_000,
            },
        ];
        for law in laws {
            let rate = |law: &ArrivalLaw| {
                let schedule = Schedule::new(1, 0, 0, law).unwrap();
                schedule.expected_between(0, SCHEDULE_NS)
            };
            let faster = faster_arrivals(&law);
            assert!(rate(&faster) >= 1.99 * rate(&law), "{law:?} {faster:?}");
            assert!(rate(&faster) >= 100.0, "{law:?} {faster:?}");
        }
    }
}
