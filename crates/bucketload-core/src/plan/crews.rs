//! Which workers of works on named objects each agent has: COSBench's division over its drivers
//! (docs/spec/cosbench.md section 6.3).
//!
//! ```text
//!  a pinned work      all of its workers on its agent
//!  any other work     workers div agents for each agent without a pinned work in the phase; the
//!                     remainder one by one, from where that of the work before ended
//! ```
//!
//! An agent's workers follow one another, so that what they divide (names, slices of sequences) lies
//! together, too. What a worker does depends on its index alone: the division changes who performs an
//! operation, never which operations there are.

use std::collections::BTreeMap;
use std::ops::Range;

use super::named::NamedPlan;
use super::{PhasePlan, Plan};

/// The agent of each driver that works are pinned to, by the driver's name.
pub type Pins = BTreeMap<String, u32>;

/// The agent that a work is pinned to. A single agent has every work, pinned or not.
fn pin(plan: &NamedPlan, agents: u32, pins: &Pins) -> Option<u32> {
    let found = pins.get(&plan.driver).copied();
    found.filter(|agent| agents > 1 && *agent < agents)
}

/// The workers (from 0) of work number `work` of `phase` that agent `index` of `of` has; none where the
/// work is not on named objects.
#[must_use]
pub fn crew(phase: &PhasePlan, work: usize, (index, of): (u32, u32), pins: &Pins) -> Range<u32> {
    let of = of.max(1);
    let mut taken: Vec<u32> = phase
        .works
        .iter()
        .filter_map(|work| pin(work.model.named()?, of, pins))
        .collect();
    taken.sort_unstable();
    taken.dedup();
    let free = of - taken.len() as u32;
    // Place of this agent among those without a pinned work.
    let place = match taken.binary_search(&index) {
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
            let Some(place) = place else { return 0..0 };
            let has_more = |place: u32| (place + free - turn) % free < extra;
            let first = base * place + (0..place).filter(|p| has_more(*p)).count() as u32;
            return first..first + base + u32::from(has_more(place));
        }
        turn = (turn + extra) % free;
    }
    0..0
}

/// The first work that nobody would perform, with its phase: every agent has a pinned work there.
#[must_use]
pub fn deserted<'a>(plan: &'a Plan, agents: u32, pins: &Pins) -> Option<(&'a str, &'a str)> {
    plan.phases.iter().find_map(|phase| {
        let missed = |index: usize| {
            (0..agents).all(|agent| crew(phase, index, (agent, agents), pins).is_empty())
        };
        let mut works = phase.works.iter().enumerate();
        let (_, work) =
            works.find(|(index, work)| work.model.named().is_some() && missed(*index))?;
        Some((phase.name.as_str(), work.name.as_str()))
    })
}
