//! Plans of whole benchmarks, and settings that cannot be planned.

use bucketload_core::op::OpClass;
use bucketload_core::plan::PhaseKind;
use bucketload_core::plan::ranks::RankMapping;

use super::{Planned, plan};
use crate::cli::target::TargetArgs;
use crate::io500::Config;
use crate::io500::location::Location;
use crate::target::Target;

fn planned(mapping: RankMapping, target: Target, set: &[&str]) -> Result<Planned, String> {
    let set: Vec<String> = set.iter().map(|&s| s.to_owned()).collect();
    let config = Config::read(None, &set).unwrap();
    let location = Location {
        target,
        args: TargetArgs::default(),
        directory: "d/".to_owned(),
        mapping,
        timestamp: "t".to_owned(),
    };
    plan(&config, &location, 4, false, &mut Vec::new())
}

/// docs/spec/io500-mdworkbench.md sections A.1 and A.6.
#[test]
fn phases_and_requests_are_those_of_io500() {
    use OpClass::{Delete, Get, Head, List, Put, RangeGet, RangePut, Sync};
    let classes = |mapping| {
        let planned = planned(mapping, Target::Null, &[]).unwrap();
        let phases = planned.plan.phases.into_iter();
        let runs = phases.filter(|phase| phase.kind == PhaseKind::Run);
        runs.map(|phase| {
            let mix = phase.works[0].mix.iter().map(|entry| entry.class);
            (phase.name, mix.collect::<Vec<_>>())
        })
        .collect::<Vec<_>>()
    };
    let wanted = |easy_write: &[OpClass], easy_read: &[OpClass], rest: [&[OpClass]; 4]| {
        [
            ("ior-easy-write", easy_write),
            ("mdtest-easy-write", &[Put]),
            ("ior-hard-write", easy_write),
            ("mdtest-hard-write", rest[0]),
            ("find", &[List]),
            ("ior-easy-read", easy_read),
            ("mdtest-easy-stat", &[Head]),
            ("ior-hard-read", easy_read),
            ("mdtest-hard-stat", &[Head]),
            ("mdtest-easy-delete", rest[1]),
            ("mdtest-hard-read", rest[2]),
            ("mdtest-hard-delete", rest[3]),
        ]
        .map(|(name, mix)| (name.to_owned(), mix.to_vec()))
        .to_vec()
    };
    let libs3 = wanted(
        &[Put, Put],
        &[Head, Get],
        [&[Put, Put], &[Delete, List], &[Head, Get], &[Delete, List]],
    );
    assert_eq!(classes(RankMapping::Libs3Single), libs3);
    use OpClass::{DeleteBucket, HeadBucket, MakeBucket};
    let buckets: Vec<(String, Vec<OpClass>)> = [
        ("ior-easy-write", &[MakeBucket, Put][..]),
        ("mdtest-easy-write", &[MakeBucket]),
        ("ior-hard-write", &[MakeBucket, Put]),
        ("mdtest-hard-write", &[MakeBucket, Put]),
        ("ior-easy-read", &[HeadBucket, Get]),
        ("mdtest-easy-stat", &[HeadBucket]),
        ("ior-hard-read", &[HeadBucket, Get]),
        ("mdtest-hard-stat", &[HeadBucket]),
        ("mdtest-easy-delete", &[List, DeleteBucket]),
        ("mdtest-hard-read", &[HeadBucket, Get]),
        ("mdtest-hard-delete", &[List, Delete, DeleteBucket]),
    ]
    .map(|(name, mix)| (name.to_owned(), mix.to_vec()))
    .to_vec();
    assert_eq!(classes(RankMapping::Libs3Buckets), buckets);
    let plain: [&[OpClass]; 4] = [&[Put], &[Delete], &[Get], &[Delete]];
    let mut native = wanted(&[Put], &[Get], plain);
    native.push(("ior-rnd4K-easy-read".to_owned(), vec![RangeGet]));
    assert_eq!(classes(RankMapping::Native), native);
    let mut files = wanted(&[RangePut, Sync], &[RangeGet], plain);
    for (name, mix) in &mut files {
        // mdtest's -Y.
        if name.starts_with("mdtest") && name.ends_with("write") {
            mix.push(Sync);
        }
    }
    files.push(("ior-rnd4K-easy-read".to_owned(), vec![RangeGet]));
    assert_eq!(classes(RankMapping::Files), files);
}

#[test]
fn reads_follow_writes_and_shifts_are_those_of_the_tools() {
    let planned = planned(RankMapping::Native, Target::Null, &[]).unwrap();
    let phases = &planned.plan.phases;
    for phase in phases.iter().filter(|phase| phase.kind == PhaseKind::Run) {
        let Some(plan) = phase.works[0].model.ranks() else {
            panic!("{}", phase.name)
        };
        let shift = match phase.name.rsplit('-').next().unwrap() {
            _ if phase.name == "ior-rnd4K-easy-read" => 2,
            "stat" => 1,
            "read" if phase.name.starts_with("mdtest") => 2,
            "read" => 1,
            "delete" => 3,
            _ => 0,
        };
        assert_eq!(plan.shift, shift, "{}", phase.name);
        let stonewalled = phase.name.ends_with("write") || phase.name.contains("rnd4K");
        assert_eq!(plan.stonewall_ns > 0, stonewalled, "{}", phase.name);
        assert_eq!(plan.wear_out, stonewalled);
        if let Some(follows) = plan.follows {
            let before = &phases[usize::from(follows)].name;
            assert!(
                before.ends_with("-write") && before[..6] == phase.name[..6]
                    || phase.name.contains("rnd4K")
            );
        }
    }
}

#[test]
fn impossible_settings_are_refused_or_skipped() {
    let off = planned(
        RankMapping::Native,
        Target::Null,
        &["ior-easy-write.run=FALSE"],
    )
    .unwrap();
    let skipped: Vec<&str> = off.skipped.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        skipped,
        ["ior-easy-write", "ior-easy-read", "ior-rnd4K-easy-read"]
    );
    let odd = planned(
        RankMapping::Native,
        Target::Null,
        &["ior-easy.transferSize=1000", "ior-easy.blockSize=2000"],
    );
    assert!(odd.err().unwrap().contains("4096"));
    let mut notes = Vec::new();
    let config = Config::read(None, &[]).unwrap();
    let location = Location {
        target: Target::Null,
        args: TargetArgs::default(),
        directory: String::new(),
        mapping: RankMapping::Libs3Buckets,
        timestamp: "t".to_owned(),
    };
    let buckets = plan(&config, &location, 4, false, &mut notes).unwrap().plan;
    let counts = buckets
        .keysets
        .iter()
        .map(|set| set.buckets.as_ref().unwrap().count);
    assert_eq!(counts.collect::<Vec<_>>(), [4, 1, 10_000, 10_000]);
    assert!(
        notes
            .iter()
            .any(|note| note.contains("each of them is a bucket")),
        "{notes:?}"
    );
    let large = planned(
        RankMapping::Native,
        Target::Null,
        &["ior-easy.transferSize=2048m", "ior-easy.blockSize=4096m"],
    );
    assert!(large.err().unwrap().contains("dataPacketType"));
    // The load fits into the embedded server's memory.
    let memory = planned(RankMapping::Native, Target::Memory, &[]).unwrap();
    let Some(easy) = memory.plan.phases[1].works[0].model.ranks() else {
        panic!()
    };
    assert_eq!(easy.steps * 4 * (2 << 20), 128 << 20);
}
