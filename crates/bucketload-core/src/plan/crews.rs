//! Which workers of works on named objects each agent has: COSBench's division over its drivers
//! (cosbench.md section 6.3).
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
use super::{ModelPlan, PhasePlan, Plan, WorkPlan};

/// The agent of each driver that works are pinned to, by the driver's name.
pub type Pins = BTreeMap<String, u32>;

const fn named(work: &WorkPlan) -> Option<&NamedPlan> {
    match &work.model {
        ModelPlan::Named(named) => Some(named),
        _ => None,
    }
}

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
        .filter_map(|work| pin(named(work)?, of, pins))
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
        let Some(plan) = named(plan) else { continue };
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
        let (_, work) = works.find(|(index, work)| named(work).is_some() && missed(*index))?;
        Some((phase.name.as_str(), work.name.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::{Pins, crew, deserted};
    use crate::plan::{ModelPlan, PhasePlan, Plan};
    use crate::resolve::{Overrides, ResolveContext, resolve};
    use crate::spec::WorkloadFile;

    /// A plan with one phase whose works have so many workers and are pinned so.
    fn plan(works: &[(u32, &str)]) -> Plan {
        let file = WorkloadFile::builtin("get").unwrap();
        let resolved = resolve(&file, &Overrides::default(), &ResolveContext::default());
        let mut plan = resolved.unwrap().plan;
        let mut phase = plan.phases.pop().unwrap();
        while phase.works.is_empty() {
            phase = plan.phases.pop().unwrap();
        }
        let work = phase.works[0].clone();
        phase.works.clear();
        for (workers, driver) in works {
            let mut named = crate::plan::named::tests::plan(*workers);
            (*driver).clone_into(&mut named.driver);
            let mut work = work.clone();
            work.model = ModelPlan::Named(named);
            phase.works.push(work);
        }
        plan.phases = vec![phase];
        plan
    }

    fn pins(all: &[(&str, u32)]) -> Pins {
        all.iter()
            .map(|(name, agent)| ((*name).to_owned(), *agent))
            .collect()
    }

    fn crews(phase: &PhasePlan, work: usize, of: u32, pins: &Pins) -> Vec<Range<u32>> {
        (0..of)
            .map(|agent| crew(phase, work, (agent, of), pins))
            .collect()
    }

    #[test]
    fn remainders_go_round_from_work_to_work() {
        let plan = plan(&[(5, ""), (6, ""), (1, "")]);
        let phase = &plan.phases[0];
        let none = Pins::new();
        assert_eq!(crews(phase, 0, 4, &none), [0..2, 2..3, 3..4, 4..5]);
        // Two remain, and agent 1 is next.
        assert_eq!(crews(phase, 1, 4, &none), [0..1, 1..3, 3..5, 5..6]);
        assert_eq!(crews(phase, 2, 4, &none), [0..0, 0..0, 0..0, 0..1]);
    }

    #[test]
    fn a_pinned_work_is_whole_and_its_agent_does_nothing_else() {
        let plan = plan(&[(5, "d2"), (4, ""), (3, "elsewhere")]);
        let (phase, pins) = (&plan.phases[0], pins(&[("d2", 1), ("d9", 0)]));
        assert_eq!(crews(phase, 0, 3, &pins), [0..0, 0..5, 0..0]);
        assert_eq!(crews(phase, 1, 3, &pins), [0..2, 0..0, 2..4]);
        // A name that no agent has pins nothing.
        assert_eq!(crews(phase, 2, 3, &pins), [0..2, 0..0, 2..3]);
        // One agent does everything.
        assert_eq!(crew(phase, 1, (0, 1), &pins), 0..4);
    }

    #[test]
    fn a_work_for_which_nobody_is_left_is_named() {
        let plan = plan(&[(5, "a"), (4, "b"), (3, "")]);
        let both = pins(&[("a", 0), ("b", 1)]);
        assert!(deserted(&plan, 2, &both).is_some());
        assert_eq!(deserted(&plan, 3, &both), None);
        assert_eq!(deserted(&plan, 1, &both), None);
    }

    proptest! {
        #[test]
        fn every_worker_is_on_one_agent(
            workers in prop::collection::vec((1u32..40, 0usize..5), 1..5),
            of in 1u32..9,
        ) {
            let names = ["", "", "a", "b", "nowhere"];
            let works: Vec<_> = workers.iter().map(|(n, pin)| (*n, names[*pin])).collect();
            let plan = plan(&works);
            let pins = pins(&[("a", 0), ("b", 2)]);
            prop_assume!(deserted(&plan, of, &pins).is_none());
            for (index, (n, _)) in works.iter().enumerate() {
                let mut all: Vec<u32> = crews(&plan.phases[0], index, of, &pins).into_iter().flatten().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..*n).collect::<Vec<_>>());
                let most = crews(&plan.phases[0], index, of, &pins).iter().map(ExactSizeIterator::len).max();
                prop_assert!(most.unwrap() as u32 <= *n);
            }
        }
    }
}
