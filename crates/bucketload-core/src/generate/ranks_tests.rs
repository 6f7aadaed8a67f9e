use super::{RankGen, StepPosition, spell};
use crate::op::{Op, OpClass};
use crate::payload::PayloadKind;
use crate::plan::ranks::{RankMapping, RankTask, RanksPlan, WorkbenchStage, split_key};
use crate::plan::{
    KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry, ModelPlan, PhaseKind, PhasePlan, Plan,
    RetryPlan, SizeAssign, SizeLaw, WorkPlan,
};

fn entry(class: OpClass, keyset: u16, bytes: Option<u64>) -> MixEntry {
    MixEntry {
        size: bytes.map(SizeLaw::constant),
        ..MixEntry::new(class, keyset, KeyLaw::Sequential)
    }
}

fn keyset(prefix: &str) -> KeysetPlan {
    KeysetPlan {
        name: prefix.trim_end_matches(['/', '_']).into(),
        prefix: prefix.into(),
        shards: 1,
        count: 0,
        size: SizeLaw::constant(0),
        assign: SizeAssign::Random,
        overwritten: false,
        naming: KeyNaming::Index,
        existing: false,
        buckets: None,
    }
}

fn generator(task: RankTask, mapping: RankMapping, shift: u32, mix: Vec<MixEntry>) -> RankGen {
    let ranks = RanksPlan {
        ranks: 4,
        task,
        mapping,
        opening: 0,
        first_opens: false,
        closing: 0,
        shift,
        steps: 100,
        follows: None,
        part: None,
        after: Vec::new(),
        start: 0,
        stonewall_ns: 0,
        wear_out: false,
        waiting: 0.0,
        newer_than: None,
    };
    let prefixes = match mapping {
        RankMapping::Libs3Single => ["iordyeasy_", "iordyhard_", "mdtestdyeasy_", "mdtestdyhard_"],
        _ => ["ior-easy/", "ior-hard/", "mdtest-easy/", "mdtest-hard/"],
    };
    let plan = Plan {
        workload: "t".into(),
        profile: String::new(),
        compat: String::new(),
        seed: 1,
        scale: 1.0,
        size_scale: 1.0,
        payload: PayloadKind::Random,
        verify: true,
        timeout_ns: 1,
        retry: RetryPlan::NONE,
        not_found_is_failure: true,
        keysets: prefixes.map(keyset).to_vec(),
        phases: vec![PhasePlan::new(
            "p",
            PhaseKind::Run,
            vec![WorkPlan {
                name: "w".into(),
                model: ModelPlan::Ranks(ranks),
                mix,
            }],
            Limits::default(),
        )],
    };
    RankGen::new(&plan, 0, 0, "d/").unwrap()
}

fn at(step: u64, entry: u16) -> StepPosition {
    StepPosition {
        base: 0,
        step,
        set: 0,
        entry,
    }
}

fn name(ops: &RankGen, op: &Op) -> String {
    let mut out = String::from("old");
    ops.render(op, &mut out);
    assert!(out.len() <= ops.max_len());
    out
}

/// docs/spec/io500-mdworkbench.md sections A.2 and A.6, docs/spec/libs3-abi.md section 12.
#[test]
fn names_match_those_of_ior_and_mdtest() {
    let put = |keyset, bytes| vec![entry(OpClass::Put, keyset, Some(bytes))];
    let of = |task, mapping, keyset, bytes, rank, step| {
        let ops = generator(task, mapping, 0, put(keyset, bytes));
        name(&ops, &ops.op(rank, at(step, 0), step, 0))
    };
    let easy = RankTask::EasyTransfer { bytes: 2 << 20 };
    let hard = RankTask::HardTransfer { bytes: 47_008 };
    use RankMapping::{Files, Libs3Single, Native};
    assert_eq!(
        of(easy, Files, 0, 2 << 20, 3, 5),
        "d/ior-easy/ior_file_easy.00000003"
    );
    assert_eq!(
        of(easy, Native, 0, 2 << 20, 3, 0),
        "d/ior-easy/ior_file_easy.00000003"
    );
    assert_eq!(
        of(easy, Native, 0, 2 << 20, 3, 1),
        "d/ior-easy/ior_file_easy.00000003-2097152-2097152"
    );
    // '_' is 95 = 3·26 + 17, '.' is 46 = 26 + 20.
    assert_eq!(
        of(easy, Libs3Single, 0, 2 << 20, 3, 1),
        "d/iordyeasy_iordrfiledreasybu00000003b-2097152-2097152"
    );
    assert_eq!(
        of(hard, Native, 1, 47_008, 1, 2),
        format!("d/ior-hard/file-{}-47008", 9 * 47_008)
    );
    assert_eq!(of(hard, Files, 1, 47_008, 1, 2), "d/ior-hard/file");
    assert_eq!(
        of(RankTask::EasyItem, Native, 2, 0, 3, 17),
        "d/mdtest-easy/test-dir.0-0/mdtest_tree.3.0/file.mdtest.3.17"
    );
    assert_eq!(
        of(RankTask::HardItem, Libs3Single, 3, 3901, 3, 17),
        "d/mdtestdyhard_testbtdirbu0bt0_mdtestdrtreebu0_filebumdtestbu3bu17b"
    );
    let mut spelt = String::new();
    spell("A-b/C.d_e", &mut spelt);
    assert_eq!(spelt, "abtb_cbuddre");
}

#[test]
fn ranks_read_objects_written_by_others() {
    let ops = generator(
        RankTask::HardItem,
        RankMapping::Native,
        3,
        vec![entry(OpClass::Get, 3, Some(3901))],
    );
    let op = ops.op(2, at(8, 0), 8, 0);
    assert!(name(&ops, &op).ends_with("file.mdtest.1.8"));
    assert_eq!((op.size, op.seq), (3901, 2 + 8 * 4));
}

#[test]
fn transfers_of_a_shared_file_interleave() {
    let ops = generator(
        RankTask::HardTransfer { bytes: 47_008 },
        RankMapping::Files,
        1,
        vec![entry(OpClass::RangeGet, 1, Some(47_008))],
    );
    let mut offsets: Vec<u64> = (0..4u32)
        .flat_map(|rank| (0..3u64).map(move |step| (rank, step)))
        .map(|(rank, step)| ops.op(rank, at(step, 0), step, 0).range.unwrap().offset)
        .collect();
    offsets.sort_unstable();
    let all: Vec<u64> = (0..12).map(|place| place * 47_008).collect();
    assert_eq!(offsets, all);
}

#[test]
fn a_search_covers_every_name_once() {
    let list = vec![entry(OpClass::List, 0, None)];
    let find = |searchers| RankTask::Find {
        bytes: Some(3901),
        within: None,
        workbench: false,
        searchers,
    };
    for (mapping, searchers) in [
        (RankMapping::Native, 0),
        (RankMapping::Native, 1),
        (RankMapping::Libs3Single, 0),
        (RankMapping::Libs3Single, 3),
        (RankMapping::Files, 0),
        (RankMapping::Files, 2),
    ] {
        let find = find(searchers);
        let finder = generator(find, mapping, 0, list.clone());
        let parts: Vec<String> = (0..4u32)
            .flat_map(|rank| (0..finder.plan().most_steps(rank)).map(move |step| (rank, step)))
            .map(|(rank, step)| name(&finder, &finder.op(rank, at(step, 0), step, 0)))
            .collect();
        let idle = (0..4u32).filter(|rank| finder.plan().most_steps(*rank) == 0);
        assert_eq!(idle.count() as u32, (4 - searchers) % 4);
        let trees = [
            (RankTask::EasyTransfer { bytes: 8 }, 0),
            (RankTask::HardTransfer { bytes: 8 }, 1),
            (RankTask::EasyItem, 2),
            (RankTask::HardItem, 3),
        ];
        for (task, keyset) in trees {
            let ops = generator(task, mapping, 0, vec![entry(OpClass::Put, keyset, Some(8))]);
            for rank in 0..4 {
                for step in [0, 1, 10] {
                    let file = name(&ops, &ops.op(rank, at(step, 0), step, 0));
                    let hits = parts.iter().filter(|part| file.starts_with(*part)).count();
                    assert_eq!(hits, 1, "{file} in {parts:?}");
                }
            }
        }
    }
}

/// The shared directory has as many files as the directories of all ranks together.
#[test]
fn ranks_search_about_equally_many_files() {
    let find = RankTask::Find {
        bytes: Some(3901),
        within: None,
        workbench: false,
        searchers: 0,
    };
    let list = vec![entry(OpClass::List, 0, None)];
    for ranks in [2, 4, 7] {
        let mut ops = generator(find, RankMapping::Files, 0, list.clone());
        ops.plan.ranks = ranks;
        let files = |rank: u32| -> u32 {
            let parts =
                (0..ops.plan.most_steps(rank)).map(|step| ops.op(rank, at(step, 0), step, 0));
            let names = parts.map(|op| name(&ops, &op));
            let files = names.map(|part| match part {
                part if part.starts_with("d/mdtest-hard/") => ranks,
                part if part.starts_with("d/mdtest-easy/") => 1,
                _ => 0,
            });
            files.sum()
        };
        let all: Vec<u32> = (0..ranks).map(files).collect();
        assert_eq!(all.iter().sum::<u32>(), 2 * ranks, "{all:?}");
        assert_eq!(all.iter().max(), Some(&ranks), "{all:?}");
    }
}

/// docs/spec/io500-mdworkbench.md section B.1: a queue per owner and set.
#[test]
fn the_oldest_object_is_consumed_by_another_rank_than_its_producer() {
    let task = |stage| RankTask::Workbench {
        sets: 3,
        objects: 5,
        stage,
        offset: 1,
    };
    let mix = vec![
        entry(OpClass::Head, 0, None),
        entry(OpClass::Get, 0, Some(10)),
        entry(OpClass::Delete, 0, None),
        entry(OpClass::Put, 0, Some(10)),
    ];
    let made = vec![entry(OpClass::Put, 0, Some(10))];
    let stage = task(WorkbenchStage::Precreate);
    let place = |mapping, rank, step, set| {
        let ops = generator(stage, mapping, 0, made.clone());
        name(
            &ops,
            &ops.op(rank, StepPosition { set, ..at(step, 0) }, 0, 0),
        )
    };
    assert_eq!(place(RankMapping::Native, 3, 4, 2), "d/ior-easy/3_2_4");
    // On files as IOR's md-workbench: a directory per set.
    assert_eq!(place(RankMapping::Files, 3, 4, 2), "d/ior-easy/3_2/file-4");
    let before = generator(stage, RankMapping::Native, 0, made.clone());
    let bench = generator(task(WorkbenchStage::Benchmark), RankMapping::Native, 0, mix);
    let after = generator(
        task(WorkbenchStage::Cleanup),
        RankMapping::Native,
        0,
        vec![entry(OpClass::Delete, 0, None)],
    );
    let mut there = std::collections::BTreeMap::new();
    let spot = |step, set, entry| StepPosition {
        base: 0,
        step,
        set,
        entry,
    };
    for (rank, step, set) in all(4, 5, 3) {
        let op = before.op(rank, spot(step, set, 0), 0, 0);
        assert!(there.insert(name(&before, &op), rank).is_none());
    }
    assert_eq!(there.len(), 60);
    for step in 0..7 {
        for (rank, _, set) in all(4, 1, 3) {
            let read = bench.op(rank, spot(step, set, 1), 0, 0);
            let gone = bench.op(rank, spot(step, set, 2), 0, 0);
            assert_eq!(read.key, gone.key);
            assert!(there.remove(&name(&bench, &gone)).is_some());
            assert_ne!(split_key(gone.key).0, rank);
        }
        for (rank, _, set) in all(4, 1, 3) {
            let made = bench.op(rank, spot(step, set, 3), 0, 0);
            assert!(there.insert(name(&bench, &made), rank).is_none());
        }
        assert_eq!(there.len(), 60);
    }
    for (rank, step, _) in all(4, 15, 1) {
        let place = StepPosition {
            base: 7,
            ..spot(step, 0, 0)
        };
        let op = after.op(rank, place, 0, 0);
        assert!(there.remove(&name(&after, &op)).is_some());
    }
    assert!(there.is_empty());
}

fn all(ranks: u32, steps: u64, sets: u32) -> impl Iterator<Item = (u32, u64, u32)> {
    (0..ranks).flat_map(move |rank| {
        (0..steps).flat_map(move |step| (0..sets).map(move |set| (rank, step, set)))
    })
}
