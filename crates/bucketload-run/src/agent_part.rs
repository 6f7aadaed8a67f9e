//! An agent's part of a run: load phases one by one, on the controller's orders.
//!
//! ```text
//!  Orders ── next: a phase or a calibration ──▶ run_phase with this agent's share ──▶ RunSink
//!    ▲                                              │ starts when the StartGate says
//!    └──────────────── outcome ◀────────────────────┘
//! ```
//!
//! Agents do no preflight, ownership, audit or clean-up: [`crate::run`] does them in the controller.

use bucketload_core::driver::AnyDriver;
use bucketload_core::plan::Plan;
use bucketload_core::sink::{Calibration, Event, RunSink};

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
use crate::run::prepared;
use crate::stop::StopHandle;

/// An order to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Measure what this process can do without a store, with the schedule of the phase with this index.
    Calibrate(usize),
    /// Carry out the load phase with this index.
    Phase(usize),
}

/// The source of an agent's orders, which also takes their outcomes.
pub trait Orders {
    /// Waits for the next order; `None` after the last.
    fn next(&mut self) -> Option<Order>;

    /// Takes the outcome of a calibration.
    fn calibrated(&mut self, outcome: Result<Calibration, RunError>);

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
            Order::Phase(phase) if plan.phases.get(phase).is_none_or(|p| p.works.is_empty()) => {
                let text = format!("phase {phase} of the plan offers no load");
                orders.phase_done(phase, Err(RunError::Options(text)));
            }
            Order::Phase(phase) => {
                let outcome = prepared(plan.phases[phase].kind, options)
                    .and_then(|()| run_phase(driver, &mut context, phase, sink));
                orders.phase_done(phase, outcome);
            }
        }
    }
    Ok(())
}
