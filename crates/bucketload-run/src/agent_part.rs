//! An agent's part of a run: load phases one by one, on the controller's orders.
//!
//! ```text
//!  Orders ── next: a phase or a calibration ──▶ run_phase with this agent's share ──▶ RunSink
//!    ▲                                              │ starts when the StartGate says
//!    └──────────────── outcome ◀────────────────────┘
//! ```
//!
//! Agents do no preflight, ownership, audit or clean-up: [`crate::run`] does them in the controller.

use std::sync::Arc;

use bucketload_core::driver::AnyDriver;
use bucketload_core::plan::Plan;
use bucketload_core::sink::{Calibration, Event, RunSink};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Interval;

use crate::affinity;
use crate::calibrate::calibrate;
use crate::check::{
    check_agreement, check_capabilities, check_divisible, check_existing, check_generators,
    check_plan, most_sessions,
};
use crate::error::RunError;
use crate::files;
use crate::options::RunOptions;
use crate::phase::{PhaseSummary, RunContext, run_phase};
use crate::prepared::{Known as _, Part, Progress, Range};
use crate::run::prepared;
use crate::stop::StopHandle;

/// A load phase that an agent is to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseOrder {
    /// Index of the phase in the plan.
    pub phase: usize,
    /// Number of the measurement on the same data set, as [`RunOptions::generation`].
    pub generation: u32,
    /// The objects of a kept data set that this agent is to write, if the phase fills one.
    pub part: Option<Part>,
}

/// An order to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Measure what this process can do without a store, with the schedule of the phase with this index.
    Calibrate(usize),
    /// Carry out a load phase.
    Phase(PhaseOrder),
}

/// The source of an agent's orders, which also takes their outcomes.
pub trait Orders: Send {
    /// Waits for the next order; `None` after the last.
    fn next(&mut self) -> Option<Order>;

    /// Takes the outcome of a calibration.
    fn calibrated(&mut self, outcome: Result<Calibration, RunError>);

    /// Takes the objects of the part in a [`PhaseOrder`] that the store has acknowledged so far, as ranges.
    fn filled(&mut self, phase: usize, ranges: Vec<Range>);

    /// Takes the outcome of a phase. The sink has received everything that belongs to the phase.
    fn phase_done(&mut self, phase: usize, outcome: Result<PhaseSummary, RunError>);
}

/// Carries out `orders` against `driver` with this process's share of the load. `null` is a driver whose operations do
/// nothing. Returns when there are no more orders.
///
/// # Errors
/// When the options or the plan cannot be carried out. No request has been sent then.
pub fn serve(
    driver: &AnyDriver,
    null: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
    sink: &mut dyn RunSink,
    stop: &StopHandle,
    orders: &mut dyn Orders,
) -> Result<(), RunError> {
    options.check()?;
    check_plan(plan, options)?;
    check_divisible(plan)?;
    check_agreement(plan, options)?;
    check_capabilities(plan, &driver.capabilities(), &driver.facts().driver)?;
    check_existing(plan, options)?;
    check_generators(plan, options)?;
    let layout = affinity::layout(options)?;
    let mut context = RunContext::new(plan, options, stop, layout);
    if let Some(message) = files::allow(most_sessions(plan, options)) {
        sink.event(&Event::Warning { message });
    }
    while let Some(order) = orders.next() {
        match order {
            Order::Calibrate(phase) => {
                orders.calibrated(calibrate(null, plan, phase, options, stop));
            }
            Order::Phase(order) => {
                let phase = order.phase;
                let outcome = match plan.phases.get(phase).filter(|p| !p.works.is_empty()) {
                    Some(one) => prepared(one.kind, options)
                        .and_then(|()| carry_out(driver, &mut context, &order, sink, orders)),
                    None => Err(RunError::Options(format!(
                        "phase {phase} of the plan offers no load"
                    ))),
                };
                orders.phase_done(phase, outcome);
            }
        }
    }
    Ok(())
}

/// Carries out a phase. If it fills a data set, says once an interval what is there, and once more at the end.
fn carry_out(
    driver: &AnyDriver,
    context: &mut RunContext<'_>,
    order: &PhaseOrder,
    sink: &mut dyn RunSink,
    orders: &mut dyn Orders,
) -> Result<PhaseSummary, RunError> {
    context.generation = order.generation;
    let Some(part) = &order.part else {
        return run_phase(driver, context, order.phase, sink);
    };
    let progress = Arc::new(Progress::new(part));
    context.progress = Some(Arc::clone(&progress));
    let mut filling = FillingSink {
        sink,
        orders,
        phase: order.phase,
        progress,
        said: Vec::new(),
    };
    let outcome = run_phase(driver, context, order.phase, &mut filling);
    filling.progress.settle();
    filling.tell();
    context.progress = None;
    outcome
}

/// Passes everything on, and reports progress beside each interval.
struct FillingSink<'a> {
    sink: &'a mut dyn RunSink,
    orders: &'a mut dyn Orders,
    phase: usize,
    progress: Arc<Progress>,
    said: Vec<Range>,
}

impl FillingSink<'_> {
    fn tell(&mut self) {
        let ranges = self.progress.filled();
        if ranges != self.said {
            self.said.clone_from(&ranges);
            self.orders.filled(self.phase, ranges);
        }
    }
}

impl RunSink for FillingSink<'_> {
    fn event(&mut self, event: &Event) {
        self.sink.event(event);
    }

    fn interval(&mut self, interval: &Interval) {
        self.sink.interval(interval);
        self.tell();
    }

    fn slow_requests(&mut self, requests: &[SlowRequest]) {
        self.sink.slow_requests(requests);
    }
}
