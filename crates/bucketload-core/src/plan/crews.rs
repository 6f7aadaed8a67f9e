//! Divides the workers of works on named objects among agents as COSBench divides them among its drivers
//! (docs/spec/cosbench.md section 6.3).
//!
//! ```text
//!  a pinned work      all of its workers run on its agent
//!  any other work     workers div agents run on each agent without a pinned work in the phase; the
//!                     remainder goes round robin, continuing after the previous work's remainder
//! ```
//!
//! An agent's workers have consecutive indices, so the names and slices of sequences that they divide are
//! contiguous, too. A worker's operations depend only on its index: the division determines which agent
//! performs an operation, never which operations there are.

use std::collections::BTreeMap;
use std::ops::Range;

use super::named::NamedPlan;
use super::{PhasePlan, Plan};

/// The agent that each driver name is pinned to.
pub type Pins = BTreeMap<String, u32>;

/// The agent that a work is pinned to. A single agent performs every work, pinned or not.
fn pin(plan: &NamedPlan, agents: u32, pins: &Pins) -> Option<u32> {
    let found = pins.get(&plan.driver).copied();
    found.filter(|agent| agents > 1 && *agent < agents)
}

/// The workers (numbered from 0) of work number `work` in `phase` that agent `index` of `of` runs. Empty if
/// the work is not on named objects.
#[must_use]
pub fn crew(phase: &PhasePlan, work: usize, (index, of): (u32, u32), pins: &Pins) -> Range<u32> {
    let of = of.max(1);
    let mut pinned: Vec<u32> = phase
        .works
        .iter()
        .filter_map(|work| pin(work.model.named()?, of, pins))
        .collect();
    pinned.sort_unstable();
    pinned.dedup();
    let free = of - pinned.len() as u32;
    // This agent's position among those without a pinned work.
    let position = match pinned.binary_search(&index) {
        Ok(_) => None,
        Err(before) => Some(index - before as u32),
    };
    let mut turn = 0;
    for (number, plan) in phase.works.iter().enumerate() {
        let Some(plan) = plan.model.named() else {
            continue;
        };
        if let Some(agent) = pin(plan, of, pins) {
            if number == work {
                return 0..if agent == index { plan.workers } else { 0 };
            }
            continue;
        }
        if free == 0 {
            continue;
        }
        let (base, extra) = (plan.workers / free, plan.workers % free);
        if number == work {
            let Some(position) = position else {
                return 0..0;
            };
            let has_more = |position: u32| (position + free - turn) % free < extra;
            let first = base * position + (0..position).filter(|p| has_more(*p)).count() as u32;
            return first..first + base + u32::from(has_more(position));
        }
        turn = (turn + extra) % free;
    }
    0..0
}

/// The first work that no agent would perform, with its phase. That happens if every agent has another work
/// pinned to it.
#[must_use]
pub fn unassigned_work<'a>(plan: &'a Plan, agents: u32, pins: &Pins) -> Option<(&'a str, &'a str)> {
    plan.phases.iter().find_map(|phase| {
        let unassigned = |index: usize| {
            (0..agents).all(|agent| crew(phase, index, (agent, agents), pins).is_empty())
        };
        let mut works = phase.works.iter().enumerate();
        let (_, work) =
            works.find(|(index, work)| work.model.named().is_some() && unassigned(*index))?;
        Some((phase.name.as_str(), work.name.as_str()))
    })
}
