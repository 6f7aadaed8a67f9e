//! The effect of operations on objects: versions, sizes, ranges, copies, deletes, and popularity by age.

use std::collections::{HashMap, HashSet};

use crate::generate_common::*;
use bucketload_core::generate::names::KeyNames;
use bucketload_core::generate::ops::{ContentId, FRESH_STRIDE, OpGen};
use bucketload_core::op::{KeySource, Op, OpClass};
use bucketload_core::plan::*;

#[test]
fn prepare_writes_every_initial_object_as_reads_expect_it() {
    for assign in [SizeAssign::Random, SizeAssign::LowDiscrepancy] {
        for overwritten in [false, true] {
            let mut set = keyset("r", 500, uniform(1, 1_000_000));
            set.assign = assign;
            set.overwritten = overwritten;
            let put = entry(OpClass::Put, 1.0, 0, KeyLaw::Sequential);
            let get = entry(OpClass::Get, 1.0, 0, zipf());
            let plan = plan(
                vec![set],
                vec![
                    phase(PhaseKind::Prepare, vec![vec![put]]),
                    phase(PhaseKind::Run, vec![vec![get]]),
                ],
            );
            let prepare = OpGen::new(&plan, 0, 0).unwrap();
            let read = OpGen::new(&plan, 1, 0).unwrap();
            let written: HashMap<u64, Op> = (0..500)
                .map(|seq| prepare.op(seq))
                .map(|op| (op.key, op))
                .collect();
            assert_eq!(written.len(), 500);
            assert_eq!(prepare.op(500).key, 0);
            for seq in 0..2000 {
                let op = read.op(seq);
                let put = written[&op.key];
                assert_eq!(put.version, 0);
                assert_eq!(read.object_size(0, op.key), Some(put.size));
                if overwritten {
                    assert_eq!(op.size, Op::UNKNOWN_SIZE);
                    assert_eq!(ContentId::of(&op), None);
                } else {
                    assert_eq!(op.size, put.size);
                    assert_eq!(ContentId::of(&op), ContentId::of(&put));
                }
            }
        }
    }
}

#[test]
fn overwrites_have_new_versions_and_drawn_sizes() {
    let mut set = keyset("r", 10, constant(5));
    set.overwritten = true;
    let mut put = entry(OpClass::Put, 1.0, 0, KeyLaw::Uniform);
    put.size = Some(uniform(100, 200));
    let gen_ops = OpGen::new(&run(vec![set], vec![put]), 0, 0).unwrap();
    let mut sizes = HashSet::new();
    for seq in 0..1000 {
        let op = gen_ops.op(seq);
        assert_eq!(u64::from(op.version), seq + 1);
        assert!((100..=200).contains(&op.size));
        sizes.insert(op.size);
    }
    assert!(sizes.len() > 90);
    assert_ne!(gen_ops.op(u64::from(u32::MAX)).version, 0);
}

#[test]
fn works_that_write_fresh_objects_into_one_key_set_do_not_collide() {
    let put = || vec![entry(OpClass::Put, 1.0, 0, KeyLaw::Fresh)];
    let plan = plan(
        vec![keyset("w", 100, constant(1))],
        vec![
            phase(PhaseKind::Run, vec![put(), put()]),
            phase(PhaseKind::Run, vec![put()]),
        ],
    );
    let first = |phase, work| OpGen::new(&plan, phase, work).unwrap().op(0).key;
    assert_eq!(first(0, 0), 100);
    assert_eq!(first(0, 1), 100 + FRESH_STRIDE);
    assert_eq!(first(1, 0), 100 + 2 * FRESH_STRIDE);
}

/// The law by age against a model that remembers every object.
#[test]
fn latest_follows_the_written_objects() {
    const INITIAL: u64 = 1000;
    let sets = vec![keyset("r", INITIAL, uniform(1, 1000))];
    let theta = 0.99;
    let mix = vec![
        entry(OpClass::Get, 0.7, 0, KeyLaw::Latest { theta, lag: 0 }),
        entry(OpClass::Put, 0.2, 0, KeyLaw::Fresh),
        entry(OpClass::Put, 0.1, 0, KeyLaw::Fresh),
    ];
    let gen_ops = OpGen::new(&run(sets, mix), 0, 0).unwrap();
    // Objects in the order of writing, with their sizes.
    let mut written: Vec<u64> = (0..INITIAL).collect();
    let mut sizes: HashMap<u64, u64> = (0..INITIAL)
        .map(|key| (key, gen_ops.object_size(0, key).unwrap()))
        .collect();
    let bounds = [1u64, 2, 5, 10, 30, 100, 300, 1000, 10_000];
    let mut hits = [0f64; 9];
    let mut expected = [0f64; 9];
    let mut harmonic = vec![0.0];
    for i in 1..200_000u32 {
        harmonic.push(harmonic[harmonic.len() - 1] + f64::from(i).powf(-theta));
    }
    let mut reads = 0.0;
    for seq in 0..400_000 {
        let op = gen_ops.op(seq);
        if op.class == OpClass::Put {
            written.push(op.key);
            sizes.insert(op.key, op.size);
            continue;
        }
        assert_eq!(
            sizes.get(&op.key),
            Some(&op.size),
            "object {} does not exist",
            op.key
        );
        // The list is ascending because fresh indices grow with seq.
        let age = written.len() - 1 - written.binary_search(&op.key).unwrap();
        reads += 1.0;
        let total = harmonic[written.len()];
        for (i, &bound) in bounds.iter().enumerate() {
            hits[i] += f64::from(u8::from((age as u64) < bound));
            expected[i] += harmonic[written.len().min(bound as usize)] / total;
        }
    }
    for (i, bound) in bounds.into_iter().enumerate() {
        let p = expected[i] / reads;
        let four_se = 4.0 * (p * (1.0 - p) / reads).sqrt();
        // Ages beyond 32 are mapped to their expected distance: within one part in a hundred.
        let tolerance = if bound <= 30 {
            four_se
        } else {
            four_se + 0.01 * p
        };
        let realised = hits[i] / reads;
        assert!(
            (realised - p).abs() <= tolerance,
            "newest {bound}: {realised}, expected {p}"
        );
    }
}

/// With a lag, no read uses an object of the latest writes; until enough has been written, reads use the
/// initial objects.
#[test]
fn latest_leaves_out_objects_that_may_be_in_flight() {
    const INITIAL: u64 = 20;
    const LAG: u64 = 600;
    let sets = vec![keyset("w", INITIAL, constant(7))];
    let latest = KeyLaw::Latest {
        theta: 0.99,
        lag: LAG,
    };
    let mix = vec![
        entry(OpClass::Get, 0.2, 0, latest),
        entry(OpClass::Put, 0.3, 0, KeyLaw::Fresh),
        entry(OpClass::Get, 0.5, 0, KeyLaw::Uniform),
    ];
    let gen_ops = OpGen::new(&run(sets, mix), 0, 0).unwrap();
    let mut written: Vec<u64> = (0..INITIAL).collect();
    let (mut youngest, mut old, mut reads) = (u64::MAX, 0u64, 0u64);
    for seq in 0..100_000 {
        let op = gen_ops.op(seq);
        if op.class == OpClass::Put {
            written.push(op.key);
        } else if op.entry == 0 {
            let age = (written.len() - 1 - written.binary_search(&op.key).unwrap()) as u64;
            if (written.len() as u64) < LAG {
                assert!(op.key < INITIAL, "{op:?} is too new");
                continue;
            }
            reads += 1;
            youngest = youngest.min(age);
            old += u64::from(age >= 2 * LAG);
        }
    }
    // The age of a far object is correct up to the fluctuation of the number of writes in between: four
    // standard deviations of a binomial with 600 successes of probability 0.3 are 82.
    assert!((LAG - 100..LAG + 20).contains(&youngest), "{youngest}");
    // Beyond the lag the law continues: ages of 600 more and above, H(n)-H(600) of H(n) at n ≈ 30 000.
    assert!(old as f64 / reads as f64 > 0.2, "{old} of {reads}");
}

#[test]
fn ranges_lie_within_their_object() {
    let mut range_get = entry(OpClass::RangeGet, 1.0, 0, KeyLaw::Uniform);
    range_get.range = Some(RangePlan {
        len: uniform(1, 20_000),
        align: 4096,
    });
    let set = keyset("r", 1000, uniform(0, 50_000));
    let gen_ops = OpGen::new(&run(vec![set.clone()], vec![range_get.clone()]), 0, 0).unwrap();
    let mut last_blocks = 0;
    for seq in 0..50_000 {
        let op = gen_ops.op(seq);
        match op.range {
            None => assert_eq!(op.size, 0),
            Some(range) => {
                assert!(range.len >= 1 && range.len <= 20_000);
                assert_eq!(range.offset % 4096, 0);
                assert!(range.offset + range.len <= op.size);
                last_blocks += u32::from(op.size - range.offset - range.len < 4096);
            }
        }
    }
    assert!(
        last_blocks > 1000,
        "the ends of objects are read too: {last_blocks}"
    );
    // If sizes are unknown, ranges lie within the smallest possible object.
    let mut overwritten = set;
    overwritten.overwritten = true;
    overwritten.size = uniform(6000, 50_000);
    let gen_ops = OpGen::new(&run(vec![overwritten], vec![range_get]), 0, 0).unwrap();
    for seq in 0..1000 {
        let op = gen_ops.op(seq);
        let range = op.range.unwrap();
        assert_eq!(op.size, Op::UNKNOWN_SIZE);
        assert!(range.offset + range.len <= 6000);
    }
}

#[test]
fn copies_read_existing_sources_and_create_fresh_objects() {
    for keys in [zipf(), KeyLaw::Fresh, KeyLaw::Sequential] {
        let copy = entry(OpClass::Copy, 1.0, 0, keys);
        let gen_ops = OpGen::new(&run(vec![keyset("r", 50, uniform(1, 9))], vec![copy]), 0, 0);
        let gen_ops = gen_ops.unwrap();
        let mut sources = HashSet::new();
        for seq in 0..2000 {
            let op = gen_ops.op(seq);
            assert_eq!(op.key, 50 + seq);
            assert_eq!(op.source_keyset, 0);
            assert_eq!(gen_ops.object_size(0, op.source_key), Some(op.size));
            assert_eq!(ContentId::of(&op), None);
            sources.insert(op.source_key);
        }
        assert_eq!(sources.len(), 50);
    }
}

#[test]
fn sequential_batches_of_deletes_touch_every_object_once() {
    let mut delete = entry(OpClass::DeleteMany, 1.0, 0, KeyLaw::Sequential);
    delete.count = 7;
    let set = keyset("r", 70, constant(1));
    let names = KeyNames::new("", &set).unwrap();
    let gen_ops = OpGen::new(&run(vec![set], vec![delete]), 0, 0).unwrap();
    let mut seen = HashSet::new();
    for seq in 0..10 {
        let op = gen_ops.op(seq);
        let mut name = String::new();
        for i in 0..op.count {
            names.batch(op.key).render(i, &mut name);
            assert!(seen.insert(name.clone()), "{name} twice");
        }
    }
    assert_eq!(seen.len(), 70);
}
