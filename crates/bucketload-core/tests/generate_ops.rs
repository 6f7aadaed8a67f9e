//! Operations: determinism under sharding, mixes, versions, sizes, ranges, and what is refused
//! (scenarios.md section 11, test 2; design invariant 2).

use std::collections::{HashMap, HashSet};

use bucketload_core::generate::arrivals::{Schedule, Shard};
use bucketload_core::generate::names::KeyNames;
use bucketload_core::generate::ops::{ContentId, FRESH_STRIDE, OpGen};
use bucketload_core::op::{Op, OpClass};
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::*;
use sha2::{Digest, Sha256};

fn constant(bytes: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Const { bytes },
        min: 0,
        max: u64::MAX,
    }
}

fn uniform(a: u64, b: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Uniform { a, b },
        min: 0,
        max: u64::MAX,
    }
}

fn keyset(name: &str, count: u64, size: SizeLaw) -> KeysetPlan {
    KeysetPlan {
        name: name.into(),
        prefix: format!("{name}/"),
        shards: 4,
        count,
        size,
        assign: SizeAssign::Random,
        overwritten: false,
    }
}

fn entry(class: OpClass, weight: f64, keyset: u16, keys: KeyLaw) -> MixEntry {
    MixEntry {
        class,
        weight,
        keyset,
        keys,
        size: None,
        range: None,
        count: 0,
        pages: 0,
        delimiter: String::new(),
    }
}

fn phase(kind: PhaseKind, mixes: Vec<Vec<MixEntry>>) -> PhasePlan {
    let work = |mix| WorkPlan {
        name: "work".into(),
        model: ModelPlan::Closed {
            workers: 1,
            think: GapLaw::None,
        },
        mix,
    };
    PhasePlan {
        name: "phase".into(),
        kind,
        works: mixes.into_iter().map(work).collect(),
        limits: Limits::default(),
        steady_state: false,
        stop: None,
    }
}

fn plan(keysets: Vec<KeysetPlan>, phases: Vec<PhasePlan>) -> Plan {
    Plan {
        workload: "test".into(),
        profile: String::new(),
        seed: 2020,
        scale: 1.0,
        payload: PayloadKind::Random,
        verify: false,
        timeout_ns: 1,
        retry: RetryPlan {
            max_attempts: 1,
            backoff_ns: 0,
            max_backoff_ns: 0,
        },
        not_found_is_failure: true,
        keysets,
        phases,
    }
}

fn run(keysets: Vec<KeysetPlan>, mix: Vec<MixEntry>) -> Plan {
    plan(keysets, vec![phase(PhaseKind::Run, vec![mix])])
}

fn zipf() -> KeyLaw {
    KeyLaw::Zipf {
        theta: 0.99,
        scramble: true,
    }
}

/// The online-service mix of scenarios.md section 3.1.
fn online() -> Plan {
    let kib = 1024.0;
    let read = SizeLaw {
        law: SizeKind::Emg {
            mu: 32.0 * kib,
            sigma: 8.0 * kib,
            tau: 93.98 * kib,
        },
        min: 1,
        max: 64 << 20,
    };
    let write = SizeLaw {
        law: SizeKind::Zipf {
            n: 16_384,
            s: 1.5036,
            unit: 4096,
            align: true,
        },
        min: 1,
        max: 64 << 20,
    };
    let mut read = keyset("r", 100_000, read);
    read.assign = SizeAssign::LowDiscrepancy;
    run(
        vec![read, keyset("w", 0, write)],
        vec![
            entry(OpClass::Get, 70.0, 0, zipf()),
            entry(OpClass::Put, 30.0, 1, KeyLaw::Fresh),
        ],
    )
}

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
                // A generator of its own per worker, as on several agents.
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
    let per_op = gen_ops.mean_bytes_per_op();
    assert!((per_op - 0.7 * read - 0.3 * write).abs() < 1e-6);
}

/// Neighbouring streams do not influence one another: another entry in the mix leaves the keys and
/// sizes of the operations that stay as they were.
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
fn works_that_write_fresh_objects_into_one_key_set_do_not_meet() {
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
fn latest_follows_what_is_written() {
    const INITIAL: u64 = 1000;
    let sets = vec![keyset("r", INITIAL, uniform(1, 1000))];
    let theta = 0.99;
    let mix = vec![
        entry(OpClass::Get, 0.7, 0, KeyLaw::Latest { theta }),
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
        // The list is ascending: fresh indices grow with seq.
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
        // Ages beyond 32 are placed by their expected distance: one part in a hundred.
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
        "the end of objects is read too: {last_blocks}"
    );
    // Where sizes are unknown, within the smallest possible object.
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
fn copies_take_existing_sources_and_make_fresh_objects() {
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
    use bucketload_core::op::KeySource;
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

#[test]
fn mixes_that_contradict_themselves_are_refused() {
    let set = || keyset("r", 10, constant(1));
    let fresh_get = entry(OpClass::Get, 1.0, 0, KeyLaw::Fresh);
    let mut sized_get = entry(OpClass::Get, 1.0, 0, KeyLaw::Uniform);
    sized_get.size = Some(constant(1));
    let mut sized_put = entry(OpClass::Put, 1.0, 0, KeyLaw::Uniform);
    sized_put.size = Some(constant(2));
    let latest_put = entry(OpClass::Put, 1.0, 0, KeyLaw::Latest { theta: 1.0 });
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
        entry(OpClass::Get, 1000.0, 0, KeyLaw::Latest { theta: 1.0 }),
        entry(OpClass::Put, 1.0, 0, KeyLaw::Fresh),
    ];
    assert!(error(&run(vec![set()], rare)).contains("latest cannot follow"));
    assert!(error(&plan(vec![], vec![])).contains("phases[0].works[0]: does not exist"));
}
