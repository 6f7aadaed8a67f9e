//! Tests of [`super`].

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::NamedGen;
use crate::op::{Op, OpClass};
use crate::payload::PayloadKind;
use crate::plan::named::{NamePattern, NamedEntry, NamedPlan, NamedSizes, Numbers};
use crate::plan::{
    KeyLaw, Limits, MixEntry, ModelPlan, PhaseKind, PhasePlan, Plan, RetryPlan, WorkPlan,
};

fn pattern(prefix: &str, numbers: Numbers, divided: bool) -> NamePattern {
    NamePattern {
        prefix: prefix.into(),
        suffix: String::new(),
        numbers,
        divided,
    }
}

fn entry(bucket: NamePattern, object: NamePattern) -> NamedEntry {
    NamedEntry {
        id: "op1".into(),
        title: "write".into(),
        bucket,
        object: Some(object),
        sizes: Some(NamedSizes {
            numbers: Numbers::Constant { n: 64 },
            unit_bytes: 1000,
            by_name: false,
        }),
        range: None,
        trailer: false,
        files: Vec::new(),
    }
}

fn generator(workers: u32, walk: bool, parts: Vec<(OpClass, f64, NamedEntry)>) -> NamedGen {
    let mix = |class, weight| MixEntry {
        weight,
        ..MixEntry::new(class, 0, KeyLaw::Uniform)
    };
    let work = WorkPlan {
        name: "w".into(),
        mix: parts
            .iter()
            .map(|(class, weight, _)| mix(*class, *weight))
            .collect(),
        model: ModelPlan::Named(NamedPlan {
            workers,
            driver: String::new(),
            buckets_too: walk && parts.len() > 1,
            entries: parts.into_iter().map(|part| part.2).collect(),
            walk,
            rampup_ns: 0,
            runtime_ns: 0,
            rampdown_ns: 0,
            ops: 0,
            bytes: 0,
            max_ops_per_s: 0,
            max_bytes_per_s: 0,
            max_failed_ppm: 0,
            legacy_sequences: false,
        }),
    };
    let plan = Plan {
        workload: "w".into(),
        profile: String::new(),
        compat: String::new(),
        seed: 7,
        scale: 1.0,
        size_scale: 1.0,
        payload: PayloadKind::Random,
        verify: false,
        timeout_ns: 1,
        retry: RetryPlan::NONE,
        not_found_is_failure: true,
        keysets: Vec::new(),
        phases: vec![PhasePlan::new(
            "p",
            PhaseKind::Run,
            vec![work],
            Limits::default(),
        )],
    };
    NamedGen::new(&plan, 0, 0).unwrap()
}

/// The first `turns` operations of each worker, as container and object numbers.
fn take(of: &NamedGen, workers: u32, turns: usize) -> Vec<Vec<(u32, u32)>> {
    let place = |op: Op| ((op.key >> 32) as u32, op.key as u32);
    (0..workers)
        .map(|w| {
            let mut at = of.cursor(w);
            std::iter::from_fn(|| of.next(&mut at))
                .take(turns)
                .map(place)
                .collect()
        })
        .collect()
}

#[test]
fn a_walk_visits_every_object_of_every_bucket_once() {
    let numbers = |hi| Numbers::Range { lo: 1, hi };
    let put = entry(
        pattern("c", numbers(3), false),
        pattern("o", numbers(10), true),
    );
    let made = NamedEntry {
        object: None,
        ..put.clone()
    };
    let of = generator(
        4,
        true,
        vec![(OpClass::Put, 1.0, put), (OpClass::MakeBucket, 0.0, made)],
    );
    let mut seen = BTreeSet::new();
    for w in 0..4 {
        let mut at = of.cursor(w);
        let mut makes = 0;
        while let Some(op) = of.next(&mut at) {
            match op.class {
                OpClass::MakeBucket => makes += 1,
                _ => assert!(seen.insert(op.key)),
            }
            assert_eq!(op.size, 64_000);
        }
        // Every worker tries to create every bucket.
        assert_eq!(makes, 3);
    }
    assert_eq!(seen.len(), 30);
}

#[test]
fn an_empty_walk_ends_at_once() {
    let put = entry(
        pattern("c", Numbers::Empty, false),
        pattern("o", Numbers::Empty, true),
    );
    let of = generator(2, true, vec![(OpClass::Put, 1.0, put)]);
    assert_eq!(take(&of, 2, 5), [vec![], vec![]]);
}

/// B16: a sequence gives each number to one worker once before it repeats, divided or not.
#[test]
fn a_sequence_names_everything_once_per_round() {
    for divided in [false, true] {
        let objects = pattern("o", Numbers::Sequential { lo: 1, hi: 40 }, divided);
        let put = entry(pattern("c", Numbers::Constant { n: 1 }, false), objects);
        let of = generator(8, false, vec![(OpClass::Put, 100.0, put)]);
        let names: BTreeSet<_> = take(&of, 8, 5).into_iter().flatten().collect();
        assert_eq!(names.len(), 40, "divided: {divided}");
    }
}

/// B16: container and object sequences cover every combination, not only those that coincide in step.
#[test]
fn two_sequences_cover_every_combination() {
    let range = |hi| Numbers::Range { lo: 1, hi };
    for (workers, containers, objects) in [(1, 4, 6), (1, 3, 3), (2, 4, 6), (3, 6, 9)] {
        let put = entry(
            pattern("c", range(containers), false),
            pattern("o", range(objects), false),
        );
        let of = generator(workers, false, vec![(OpClass::Put, 100.0, put)]);
        let all = containers * objects;
        let seen: BTreeSet<_> = take(&of, workers, (all / workers) as usize)
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(
            seen.len(),
            all as usize,
            "{workers} workers, {containers} x {objects}"
        );
    }
}

/// The histogram's first bucket gets exactly its share.
#[test]
fn weights_are_exact() {
    let buckets = vec![(1, 1, 1), (2, 2, 1)];
    let objects = pattern("o", Numbers::Weighted { buckets }, false);
    let put = entry(pattern("c", Numbers::Constant { n: 1 }, false), objects);
    let of = generator(1, false, vec![(OpClass::Put, 100.0, put)]);
    let ones = take(&of, 1, 10_000)[0]
        .iter()
        .filter(|(_, o)| *o == 1)
        .count();
    // Binomial(10^4, 1/2): 5000 ± 4 · 50.
    assert!((4800..=5200).contains(&ones), "{ones}");
}

#[test]
fn ratios_are_probabilities() {
    let each = || {
        entry(
            pattern("c", Numbers::Constant { n: 1 }, false),
            pattern("o", Numbers::Uniform { lo: 1, hi: 9 }, false),
        )
    };
    let of = generator(
        1,
        false,
        vec![(OpClass::Get, 80.0, each()), (OpClass::Put, 20.0, each())],
    );
    let mut at = of.cursor(0);
    let reads = (0..10_000)
        .filter(|_| of.next(&mut at).unwrap().class == OpClass::Get)
        .count();
    // Binomial(10^4, 0.8): 8000 ± 4 · 40.
    assert!((7840..=8160).contains(&reads), "{reads}");
}

proptest! {
    #[test]
    fn workers_stay_in_their_slices(workers in 1u32..9, objects in 1u32..50, turns in 1usize..30) {
        prop_assume!(objects >= workers);
        let numbers = Numbers::Uniform { lo: 1, hi: objects };
        let put = entry(pattern("c", Numbers::Constant { n: 1 }, false), pattern("o", numbers, true));
        let of = generator(workers, false, vec![(OpClass::Put, 100.0, put)]);
        let mut owners = std::collections::BTreeMap::new();
        for (worker, names) in take(&of, workers, turns).into_iter().enumerate() {
            for name in names {
                prop_assert!((1..=objects).contains(&name.1));
                prop_assert_eq!(*owners.entry(name).or_insert(worker), worker);
            }
        }
    }

    #[test]
    fn names_are_rendered_exactly(container in 1u32..1000, object in 1u32..i32::MAX as u32) {
        let put = entry(
            pattern("my", Numbers::Constant { n: container }, false),
            pattern("obj", Numbers::Constant { n: object }, false),
        );
        let of = generator(1, false, vec![(OpClass::Put, 100.0, put)]);
        let op = of.next(&mut of.cursor(0)).unwrap();
        let (mut bucket, mut key) = (String::new(), String::new());
        of.render(&op, &mut bucket, &mut key);
        prop_assert_eq!((bucket, key), (format!("my{container}"), format!("obj{object}")));
    }
}
