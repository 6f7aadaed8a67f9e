//! Which agent runs which workers of a work.

use std::ops::Range;

use proptest::prelude::*;

use bucketload_core::plan::crews::{Pins, crew, unassigned_work};
use bucketload_core::plan::{ModelPlan, NamedPlan, PhasePlan, Plan};
use bucketload_workload::resolve::{Overrides, ResolveContext, resolve};
use bucketload_workload::spec::WorkloadFile;

/// A plan with one phase whose works have these numbers of workers and pins.
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
        let named = NamedPlan {
            workers: *workers,
            driver: (*driver).to_owned(),
            entries: Vec::new(),
            walk: false,
            buckets_too: false,
            rampup_ns: 0,
            runtime_ns: 0,
            rampdown_ns: 0,
            ops: 0,
            bytes: 0,
            max_ops_per_s: 0,
            max_bytes_per_s: 0,
            max_failed_ppm: 0,
            legacy_sequences: false,
        };
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
fn remainders_continue_round_robin_from_work_to_work() {
    let plan = plan(&[(5, ""), (6, ""), (1, "")]);
    let phase = &plan.phases[0];
    let none = Pins::new();
    assert_eq!(crews(phase, 0, 4, &none), [0..2, 2..3, 3..4, 4..5]);
    // Two remain, and agent 1 is next.
    assert_eq!(crews(phase, 1, 4, &none), [0..1, 1..3, 3..5, 5..6]);
    assert_eq!(crews(phase, 2, 4, &none), [0..0, 0..0, 0..0, 0..1]);
}

#[test]
fn a_pinned_work_stays_whole_and_its_agent_does_nothing_else() {
    let plan = plan(&[(5, "d2"), (4, ""), (3, "elsewhere")]);
    let (phase, pins) = (&plan.phases[0], pins(&[("d2", 1), ("d9", 0)]));
    assert_eq!(crews(phase, 0, 3, &pins), [0..0, 0..5, 0..0]);
    assert_eq!(crews(phase, 1, 3, &pins), [0..2, 0..0, 2..4]);
    // A driver name that no agent has pins nothing.
    assert_eq!(crews(phase, 2, 3, &pins), [0..2, 0..0, 2..3]);
    // One agent does everything.
    assert_eq!(crew(phase, 1, (0, 1), &pins), 0..4);
}

#[test]
fn a_work_without_remaining_agents_is_named() {
    let plan = plan(&[(5, "a"), (4, "b"), (3, "")]);
    let both = pins(&[("a", 0), ("b", 1)]);
    assert!(unassigned_work(&plan, 2, &both).is_some());
    assert_eq!(unassigned_work(&plan, 3, &both), None);
    assert_eq!(unassigned_work(&plan, 1, &both), None);
}

proptest! {
    #[test]
    fn every_worker_runs_on_exactly_one_agent(
        workers in prop::collection::vec((1u32..40, 0usize..5), 1..5),
        of in 1u32..9,
    ) {
        let names = ["", "", "a", "b", "nowhere"];
        let works: Vec<_> = workers.iter().map(|(n, pin)| (*n, names[*pin])).collect();
        let plan = plan(&works);
        let pins = pins(&[("a", 0), ("b", 2)]);
        prop_assume!(unassigned_work(&plan, of, &pins).is_none());
        for (index, (n, _)) in works.iter().enumerate() {
            let mut all: Vec<u32> = crews(&plan.phases[0], index, of, &pins).into_iter().flatten().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..*n).collect::<Vec<_>>());
            let most = crews(&plan.phases[0], index, of, &pins).iter().map(ExactSizeIterator::len).max();
            prop_assert!(most.unwrap() as u32 <= *n);
        }
    }
}
