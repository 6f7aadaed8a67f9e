//! Operations: independence of the number of agents, mixes, independent streams, and rejected plans
//! (docs/spec/scenarios.md section 11, tests 2 and 5).

use crate::generate_common::*;
use bucketload_core::generate::arrivals::{Schedule, Shard};
use bucketload_core::generate::names::KeyNames;
use bucketload_core::generate::ops::OpGen;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::*;
use sha2::{Digest, Sha256};

/// Test 2: the request list (due instants, operations and key texts) is identical for 1, 3 and 8
/// workers.
#[test]
fn the_request_list_does_not_depend_on_the_number_of_workers() {
    let plan = online();
    let names: Vec<KeyNames> = plan
        .keysets
        .iter()
        .map(|keyset| KeyNames::new("run/", keyset).unwrap())
        .collect();
    let law = ArrivalLaw::LognormalGaps {
        rate: 200.0,
        cv: 2.0,
    };
    let list = |of: u32| {
        let schedule = Schedule::new(plan.seed, 0, 0, &law).unwrap();
        let mut requests: Vec<(u64, String)> = (0..of)
            .flat_map(|index| {
                // Each worker has its own generator, as on several agents.
                let gen_ops = OpGen::new(&plan, 0, 0).unwrap();
                let mut key = String::new();
                let mine = schedule
                    .shard(Shard { index, of })
                    .take_while(|a| a.seq < 20_000);
                mine.map(|arrival| {
                    let op = gen_ops.op(arrival.seq);
                    names[usize::from(op.keyset)].render(op.key, &mut key);
                    (arrival.seq, format!("{} {op:?} {key}", arrival.due_ns))
                })
                .collect::<Vec<_>>()
            })
            .collect();
        requests.sort_unstable();
        assert_eq!(requests.len(), 20_000);
        let mut hash = Sha256::new();
        requests.iter().for_each(|request| hash.update(&request.1));
        hash.finalize()
    };
    let one = list(1);
    assert_eq!(list(3), one);
    assert_eq!(list(8), one);
}

/// Test 5, schedule part: the share of reads is by request.
#[test]
fn the_mix_is_by_request() {
    let plan = online();
    let gen_ops = OpGen::new(&plan, 0, 0).unwrap();
    let ops: Vec<Op> = (0..1_000_000).map(|seq| gen_ops.op(seq)).collect();
    let gets = ops.iter().filter(|op| op.class == OpClass::Get).count() as f64;
    assert!(
        (gets / 1e6 - 0.7).abs() < 4.0 * (0.21f64 / 1e6).sqrt(),
        "{gets}"
    );
    assert!((gen_ops.probability(0) - 0.7).abs() < 1e-12);
    for op in &ops {
        match op.class {
            OpClass::Get => assert!(op.key < 100_000 && op.keyset == 0),
            _ => assert!(op.key == op.seq && op.keyset == 1 && op.version == 0),
        }
    }
    // Offered bytes: reads 126 KiB, writes 392 kB, within four standard errors of the writes'
    // heavy tail (CV 7.5) and the popularity weighting of the reads.
    let bytes = |class| {
        let sizes = ops
            .iter()
            .filter(|op| op.class == class)
            .map(|op| op.size as f64);
        let count = sizes.clone().count() as f64;
        sizes.sum::<f64>() / count
    };
    let write = gen_ops.mean_bytes(1);
    assert!((write - 392_475.0).abs() < 1.0, "{write}");
    assert!((bytes(OpClass::Put) / write - 1.0).abs() < 4.0 * 7.5 / 300_000f64.sqrt());
    let read = gen_ops.mean_bytes(0);
    assert!((read / (126.0 * 1024.0) - 1.0).abs() < 0.1, "{read}");
    assert!((bytes(OpClass::Get) / read - 1.0).abs() < 0.005);
}

/// Streams do not influence one another: another mix entry does not change the keys and sizes of the
/// operations that remain.
#[test]
fn streams_are_separate() {
    let sets = || {
        vec![
            keyset("r", 1000, uniform(1, 100)),
            keyset("w", 0, uniform(1, 100)),
        ]
    };
    let get = entry(OpClass::Get, 1.0, 0, zipf());
    let put = entry(OpClass::Put, 1.0, 1, KeyLaw::Fresh);
    let alone = OpGen::new(&run(sets(), vec![get.clone()]), 0, 0).unwrap();
    let mixed = OpGen::new(&run(sets(), vec![get, put]), 0, 0).unwrap();
    let same = (0..1000)
        .map(|seq| (alone.op(seq), mixed.op(seq)))
        .filter(|(_, mixed)| mixed.class == OpClass::Get)
        .inspect(|(alone, mixed)| assert_eq!((alone.key, alone.size), (mixed.key, mixed.size)))
        .count();
    assert!((400..600).contains(&same), "{same}");
}

#[test]
fn mixes_that_contradict_themselves_are_rejected() {
    let set = || keyset("r", 10, constant(1));
    let fresh_get = entry(OpClass::Get, 1.0, 0, KeyLaw::Fresh);
    let mut sized_get = entry(OpClass::Get, 1.0, 0, KeyLaw::Uniform);
    sized_get.size = Some(constant(1));
    let mut sized_put = entry(OpClass::Put, 1.0, 0, KeyLaw::Uniform);
    sized_put.size = Some(constant(2));
    let latest_put = entry(OpClass::Put, 1.0, 0, KeyLaw::Latest { theta: 1.0, lag: 0 });
    let mut ranged_get = entry(OpClass::Get, 1.0, 0, KeyLaw::Uniform);
    ranged_get.range = Some(RangePlan {
        len: constant(1),
        align: 1,
    });
    let mut unaligned = entry(OpClass::RangeGet, 1.0, 0, KeyLaw::Uniform);
    unaligned.range = Some(RangePlan {
        len: constant(1),
        align: 0,
    });
    let bad_law = entry(
        OpClass::Get,
        1.0,
        0,
        KeyLaw::Zipf {
            theta: 0.0,
            scramble: true,
        },
    );
    for (mix, field) in [
        (fresh_get, "keys"),
        (sized_get, "size"),
        (sized_put, "size"),
        (latest_put, "keys"),
        (ranged_get, "range"),
        (unaligned, "range.align"),
        (bad_law, "keys.theta"),
        (entry(OpClass::RangeGet, 1.0, 0, KeyLaw::Uniform), "range"),
        (entry(OpClass::DeleteMany, 1.0, 0, KeyLaw::Uniform), "count"),
        (entry(OpClass::List, 1.0, 0, KeyLaw::Uniform), "count"),
        (entry(OpClass::MultipartPut, 1.0, 0, KeyLaw::Fresh), "count"),
    ] {
        let error = OpGen::new(&run(vec![set()], vec![mix]), 0, 0).unwrap_err();
        assert_eq!(
            error.field,
            format!("phases[0].works[0].mix[0].{field}"),
            "{error}"
        );
    }
    let error = |plan: &Plan| OpGen::new(plan, 0, 0).unwrap_err().to_string();
    let get = |keyset, keys| entry(OpClass::Get, 1.0, keyset, keys);
    let empty = run(
        vec![keyset("r", 0, constant(1))],
        vec![get(0, KeyLaw::Uniform)],
    );
    assert!(
        error(&empty).contains("get needs initial objects"),
        "{}",
        error(&empty)
    );
    let missing = run(vec![set()], vec![get(3, KeyLaw::Uniform)]);
    assert!(error(&missing).starts_with("keysets[3]: does not exist"));
    let nothing = run(vec![set()], vec![]);
    assert!(error(&nothing).starts_with("phases[0].works[0].mix: is empty"));
    let rare = vec![
        entry(
            OpClass::Get,
            1000.0,
            0,
            KeyLaw::Latest { theta: 1.0, lag: 0 },
        ),
        entry(OpClass::Put, 1.0, 0, KeyLaw::Fresh),
    ];
    assert!(error(&run(vec![set()], rare)).contains("latest cannot follow"));
    assert!(error(&plan(vec![], vec![])).contains("phases[0].works[0]: does not exist"));
}

/// Renames use their sources in turn and give them fresh keys; touches go to existing or new keys; appends
/// never add the initial content.
#[test]
fn renames_touches_and_appends_find_their_objects() {
    let mut set = keyset("r", 10, constant(100));
    set.overwritten = true;
    let mix = vec![
        entry(OpClass::Rename, 1.0, 0, KeyLaw::Sequential),
        entry(OpClass::Touch, 1.0, 0, KeyLaw::Fresh),
        entry(OpClass::Touch, 1.0, 0, KeyLaw::Uniform),
        entry(OpClass::Append, 1.0, 0, KeyLaw::Uniform),
    ];
    let gen_ops = OpGen::new(&run(vec![set], mix), 0, 0).unwrap();
    let ops: Vec<Op> = (0..1000).map(|seq| gen_ops.op(seq)).collect();
    let mut fresh = std::collections::HashSet::new();
    for op in &ops {
        match (op.class, op.entry) {
            (OpClass::Rename, _) => {
                assert_eq!(op.source_key, op.seq % 10);
                assert!(op.key >= 10 && fresh.insert(op.key));
            }
            (OpClass::Touch, 1) => assert!(op.key >= 10 && fresh.insert(op.key)),
            (OpClass::Touch, _) => assert!(op.key < 10),
            _ => assert!(op.key < 10 && op.size == 100 && op.version > 0),
        }
    }
    let renames = ops.iter().filter(|op| op.class == OpClass::Rename).count();
    assert!(renames > 200, "{renames}");
}

/// Every part of an object is read equally often, and the last one has what is left.
#[test]
fn parts_cover_their_objects() {
    let part = MixEntry {
        count: 100,
        ..entry(OpClass::GetPart, 1.0, 0, KeyLaw::Sequential)
    };
    for (size, parts) in [(250, 3), (300, 3), (100, 1), (0, 1)] {
        let plan = run(vec![keyset("r", 2, constant(size))], vec![part.clone()]);
        let ops = OpGen::new(&plan, 0, 0).unwrap();
        let mut seen = std::collections::BTreeMap::new();
        for op in (0..3000).map(|seq| ops.op(seq)) {
            let number = op.part_number();
            let len = op.range.map_or(0, |range| range.len);
            assert_eq!(len, size.saturating_sub((number - 1) * 100).min(100));
            assert_eq!(op.size, size);
            *seen.entry(number).or_insert(0) += 1;
        }
        assert!(seen.keys().copied().eq(1..=parts), "{seen:?}");
        assert!(seen.values().all(|n| *n > 900), "{seen:?}");
        assert_eq!(ops.mean_bytes(0), size as f64 / parts as f64);
    }
    let mut changing = keyset("r", 2, constant(250));
    changing.overwritten = true;
    let error = OpGen::new(&run(vec![changing], vec![part]), 0, 0).unwrap_err();
    assert!(error.to_string().contains("nobody overwrites"), "{error}");
}
