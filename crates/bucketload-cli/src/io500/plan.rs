//! From a configuration to a plan: a phase of ranks per phase of IO500 (section A.1), in its order.

use bucketload_core::op::OpClass;
use bucketload_core::payload::{Pattern, PatternSet, PayloadKind};
use bucketload_core::plan::buckets::MOST_BUCKETS;
use bucketload_core::plan::ranks::{RankMapping, RankTask, RanksPlan};
use bucketload_core::plan::{
    Accounting, BucketService, BucketsPlan, KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry,
    ModelPlan, PhaseKind, PhasePlan, Plan, RetryPlan, SizeAssign, SizeKind, SizeLaw, WorkPlan,
};
use bucketload_results::io500::measure::SECOND;
use bucketload_results::io500::{Phase, Tool, phases};
use bucketload_workload::resolve::EMBEDDED_MEMORY_BUDGET;

use super::Config;
use super::config::{Deletes, Packet};
use super::location::Location;
use super::workbench;
use crate::target::Target;

/// Name of the profile in plans.
pub(crate) const PROFILE: &str = "io500";

/// Sizes that may not be changed (section A.1).
const HARD_TRANSFER: u64 = 47_008;
const HARD_FILE: u64 = 3_901;
const RANDOM_READ: u64 = 4_096;
/// Most random reads of a rank (`-s=10000000`).
const RANDOM_READS: u64 = 10_000_000;
/// How long requests in flight are waited for, and the longest request.
const DRAIN_NS: u64 = 60_000_000_000;
const TIMEOUT_NS: u64 = 300_000_000_000;
/// Most bytes of all ranks' buffers.
const MOST_BUFFERS: u64 = 4 << 30;
/// Most small objects per tree that the embedded server over memory is given.
const MEMORY_ITEMS: u64 = 20_000;

/// Trees of files: key sets of the plan, in this order.
const TREES: [&str; 5] = [
    "ior-easy",
    "ior-hard",
    "mdtest-easy",
    "mdtest-hard",
    "mdworkbench",
];

/// A plan, and why phases are not in it.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) skipped: Vec<(String, String)>,
}

/// How much is done at most.
struct Amounts {
    ranks: u32,
    transfer: u64,
    easy: u64,
    hard: u64,
    items_easy: u64,
    items_hard: u64,
}

/// The plan of a configuration with `ranks` ranks, unless it states another number.
///
/// # Errors
/// What cannot be done, with a remedy.
pub(crate) fn plan(
    config: &Config,
    place: &Location,
    ranks: u32,
    keep: bool,
    notes: &mut Vec<String>,
) -> Result<Planned, String> {
    let amounts = amounts(config, place, ranks, notes)?;
    let seed = place.timestamp.bytes().fold(2_166_136_261u32, fnv);
    let mut plan = Plan {
        workload: "io500".to_owned(),
        profile: PROFILE.to_owned(),
        compat: String::new(),
        seed: u64::from(seed),
        scale: 1.0,
        size_scale: 1.0,
        payload: payload(config, place, &amounts)?,
        // Nothing comes back from the null target.
        verify: place.target != Target::Null,
        timeout_ns: TIMEOUT_NS,
        retry: RetryPlan {
            max_attempts: 1,
            backoff_ns: 0,
            max_backoff_ns: 0,
        },
        not_found_is_failure: true,
        keysets: TREES[..if config.extended()? { 5 } else { 4 }]
            .iter()
            .map(|tree| keyset(tree, place, &amounts))
            .collect(),
        phases: vec![control("init", PhaseKind::Init)],
    };
    let mut skipped = Vec::new();
    for phase in phases(config.extended()?) {
        match work(config, place, &amounts, phase, &plan.phases)? {
            Step::Work(work) => plan.phases.push(loaded(*work)),
            Step::Twice(first) => {
                let mut second = (*first).clone();
                if let ModelPlan::Ranks(ranks) = &mut second.model {
                    // The queues have moved on.
                    ranks.after.extend(u16::try_from(plan.phases.len()));
                }
                let named = |work: WorkPlan, suffix: &str| WorkPlan {
                    name: format!("{}{suffix}", work.name),
                    ..work
                };
                plan.phases.push(loaded(named(*first, FIRST)));
                plan.phases.push(loaded(named(second, SECOND)));
            }
            Step::Skipped(why) => skipped.push((phase.name.to_owned(), why)),
            Step::Nothing => {}
        }
    }
    if plan.phases.len() == 1 {
        return Err("every phase has run = FALSE; leave some of them to be run".to_owned());
    }
    if !keep {
        plan.phases.push(control("cleanup", PhaseKind::Cleanup));
    }
    Ok(Planned { plan, skipped })
}

/// FNV-1a: a seed from a name and an instant, as IO500 takes 32 bits of a hash of both.
fn fnv(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
}

fn amounts(
    config: &Config,
    place: &Location,
    ranks: u32,
    notes: &mut Vec<String>,
) -> Result<Amounts, String> {
    let ranks = config.ranks()?.unwrap_or(ranks);
    let (transfer, easy) = config.easy()?;
    let mut amounts = Amounts {
        ranks,
        transfer,
        easy,
        hard: config.segments()?,
        items_easy: config.items("mdtest-easy")?,
        items_hard: config.items("mdtest-hard")?,
    };
    let random = place.mapping != RankMapping::Libs3Buckets
        && place.mapping != RankMapping::Libs3Single
        && config.skipped("ior-rnd4K-easy-read").is_none();
    if transfer % RANDOM_READ != 0 && random {
        return Err(format!(
            "[ior-easy] transferSize = {transfer}: ior-rnd4K-easy-read reads multiples of 4096 bytes of it; \
             use a multiple, or [ior-rnd4K-easy-read] run = FALSE"
        ));
    }
    let all = u64::from(ranks);
    let cut_for = |why: &str, amount: &mut u64, most: u64, what: &str, notes: &mut Vec<String>| {
        let most = (most / all).max(1);
        if *amount > most {
            notes.push(format!(
                "{what}: {most} per rank instead of {amount}, {why}; the run may be too short to be valid"
            ));
            *amount = most;
        }
    };
    if place.mapping == RankMapping::Libs3Buckets {
        let why = "each of which is a bucket";
        let (easy, hard) = (&mut amounts.items_easy, &mut amounts.items_hard);
        cut_for(why, easy, MOST_BUCKETS, "mdtest-easy: files", notes);
        cut_for(why, hard, MOST_BUCKETS, "mdtest-hard: files", notes);
    }
    if place.target == Target::Memory {
        let cut = |amount: &mut u64, most: u64, what: &str, notes: &mut Vec<String>| {
            let why = "what the embedded server has memory for";
            cut_for(why, amount, most, what, notes);
        };
        let bytes = EMBEDDED_MEMORY_BUDGET / 4;
        cut(
            &mut amounts.easy,
            bytes / transfer,
            "ior-easy: transfers",
            notes,
        );
        cut(
            &mut amounts.hard,
            bytes / HARD_TRANSFER,
            "ior-hard: segments",
            notes,
        );
        cut(
            &mut amounts.items_easy,
            MEMORY_ITEMS,
            "mdtest-easy: files",
            notes,
        );
        cut(
            &mut amounts.items_hard,
            MEMORY_ITEMS,
            "mdtest-hard: files",
            notes,
        );
    }
    Ok(amounts)
}

fn payload(config: &Config, place: &Location, amounts: &Amounts) -> Result<PayloadKind, String> {
    if config.packet()? == Packet::Random {
        return Ok(PayloadKind::Random);
    }
    let seed = |tree: &str| {
        let hash = tree
            .bytes()
            .chain(place.timestamp.bytes())
            .fold(2_166_136_261, fnv);
        hash as i32
    };
    let set = |tree: &str, len: u64, interleaved: bool| PatternSet {
        seed: seed(tree),
        len,
        interleaved,
    };
    let files = place.mapping == RankMapping::Files;
    let pattern = Pattern {
        ranks: amounts.ranks,
        sets: [
            set(TREES[0], amounts.transfer, false),
            set(TREES[1], HARD_TRANSFER, files),
            PatternSet::default(),
            set(TREES[3], HARD_FILE, false),
            match config.extended()? {
                true => set(TREES[4], HARD_FILE, false),
                false => PatternSet::default(),
            },
        ],
    };
    let bytes = pattern.total_bytes();
    if bytes > MOST_BUFFERS {
        return Err(format!(
            "the buffers of {} ranks take {bytes} bytes; use fewer ranks, a smaller transferSize, or \
             dataPacketType = random, which all ranks share",
            amounts.ranks
        ));
    }
    Ok(PayloadKind::Timestamp(pattern))
}

/// What follows the name of MD-Workbench's benchmark in its first iteration.
const FIRST: &str = "-0";

/// A phase that consists of `work`.
fn loaded(work: WorkPlan) -> PhasePlan {
    PhasePlan {
        works: vec![work.clone()],
        limits: Limits {
            drain_ns: DRAIN_NS,
            ..Limits::default()
        },
        ..control(&work.name, PhaseKind::Run)
    }
}

fn control(name: &str, kind: PhaseKind) -> PhasePlan {
    PhasePlan {
        name: name.to_owned(),
        kind,
        works: Vec::new(),
        limits: Limits::default(),
        steady_state: false,
        stop: None,
        accounting: Accounting::default(),
    }
}

fn constant(bytes: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Const { bytes },
        min: bytes,
        max: bytes,
    }
}

fn keyset(tree: &str, place: &Location, amounts: &Amounts) -> KeysetPlan {
    let path = format!("{}{tree}/", place.directory);
    let mut prefix = String::new();
    match place.mapping {
        RankMapping::Libs3Single => {
            bucketload_core::generate::ranks::spell(&path, &mut prefix);
        }
        _ => prefix = path,
    }
    KeysetPlan {
        name: tree.to_owned(),
        prefix,
        shards: 1,
        count: 0,
        size: constant(0),
        assign: SizeAssign::Random,
        overwritten: false,
        naming: KeyNaming::Index,
        existing: false,
        buckets: buckets(tree, place, amounts),
    }
}

/// A bucket per file, where the mapping makes them. Names say whose they are: paths are none that services take.
fn buckets(tree: &str, place: &Location, amounts: &Amounts) -> Option<BucketsPlan> {
    let per_rank = match tree {
        "mdtest-easy" => amounts.items_easy,
        "mdtest-hard" => amounts.items_hard,
        _ => 1,
    };
    let ranks = match tree {
        // The file of all.
        "ior-hard" => 1,
        _ => u64::from(amounts.ranks),
    };
    (place.mapping == RankMapping::Libs3Buckets && tree != TREES[4]).then(|| BucketsPlan {
        count: ranks.saturating_mul(per_rank),
        name: tree.to_owned(),
        exact: false,
        service: BucketService::Any,
        per_rank,
    })
}

pub(super) fn entry(class: OpClass, keyset: u16, bytes: Option<u64>) -> MixEntry {
    MixEntry {
        class,
        weight: 1.0,
        keyset,
        keys: KeyLaw::Sequential,
        size: bytes.map(constant),
        range: None,
        count: 0,
        pages: 0,
        delimiter: String::new(),
    }
}

/// The same on a file that stays open.
fn held(entry: MixEntry) -> MixEntry {
    MixEntry { count: 1, ..entry }
}

pub(super) enum Step {
    Work(Box<WorkPlan>),
    /// Two iterations.
    Twice(Box<WorkPlan>),
    Skipped(String),
    Nothing,
}

/// The work of `phase`, behind the phases `before`.
fn work(
    config: &Config,
    place: &Location,
    amounts: &Amounts,
    phase: &Phase,
    before: &[PhasePlan],
) -> Result<Step, String> {
    use OpClass::{
        Delete, DeleteBucket, Get, Head, HeadBucket, List, MakeBucket, MultipartPut, Put, RangeGet,
        RangePut, Sync,
    };
    let index = |name: &str| {
        let at = before.iter().position(|phase| phase.name == name)?;
        u16::try_from(at).ok()
    };
    if let Some(why) = config.skipped(phase.name) {
        return Ok(Step::Skipped(why));
    }
    let stonewall_ns = config.stonewall_ns()?;
    let libs3 = place.mapping == RankMapping::Libs3Single;
    let per_file = place.mapping == RankMapping::Libs3Buckets;
    if per_file && matches!(phase.tool, Tool::Find | Tool::Workbench) {
        let why = match phase.tool {
            Tool::Find => {
                "names and sizes of files would take a listing of every bucket (ior-libs3-bucket-per-file)"
            }
            _ => "each new object would be another bucket (ior-libs3-bucket-per-file)",
        };
        return Ok(Step::Skipped(why.to_owned()));
    }
    let mut plan = RanksPlan {
        ranks: amounts.ranks,
        task: RankTask::EasyItem,
        mapping: place.mapping,
        opening: 0,
        first_opens: false,
        closing: 0,
        shift: 0,
        steps: 0,
        follows: None,
        part: None,
        after: Vec::new(),
        start: 0,
        stonewall_ns: if phase.writes { stonewall_ns } else { 0 },
        wear_out: phase.writes,
        waiting: 0.0,
        newer_than: None,
    };
    let mut mix = Vec::new();
    let transfers = |tree: u16, bytes: u64, mix: &mut Vec<MixEntry>, plan: &mut RanksPlan| {
        let bytes = Some(bytes);
        match (phase.writes, place.mapping) {
            (true, RankMapping::Libs3Single) => {
                mix.push(entry(Put, tree, None));
                plan.opening = 1;
                plan.first_opens = tree == 1;
                mix.push(entry(Put, tree, bytes));
            }
            (true, RankMapping::Libs3Buckets) => {
                mix.push(entry(MakeBucket, tree, None));
                plan.opening = 1;
                plan.first_opens = tree == 1;
                mix.push(entry(Put, tree, bytes));
            }
            (true, RankMapping::Multipart) if tree == 0 => {
                mix.push(MixEntry {
                    count: config.part_size().unwrap_or(5 << 20),
                    ..entry(MultipartPut, tree, bytes)
                });
            }
            (true, RankMapping::Files) => {
                mix.push(entry(RangePut, tree, bytes));
                mix.push(entry(Sync, tree, None));
                plan.closing = 1;
            }
            (true, _) => mix.push(entry(Put, tree, bytes)),
            (false, RankMapping::Libs3Single) => {
                mix.push(entry(Head, tree, None));
                plan.opening = 1;
                mix.push(entry(Get, tree, bytes));
            }
            (false, RankMapping::Libs3Buckets) => {
                mix.push(entry(HeadBucket, tree, None));
                plan.opening = 1;
                mix.push(entry(Get, tree, bytes));
            }
            (false, RankMapping::Files) => mix.push(held(entry(RangeGet, tree, bytes))),
            (false, _) => mix.push(entry(Get, tree, bytes)),
        }
    };
    // Ranks of IOR read what the next one wrote (`-C -Q 1`), those of mdtest stat, read and delete
    // what the next three wrote (`-N 1`).
    match phase.name {
        "ior-easy-write" | "ior-easy-read" => {
            plan.task = RankTask::EasyTransfer {
                bytes: amounts.transfer,
            };
            plan.steps = amounts.easy;
            plan.shift = u32::from(!phase.writes);
            transfers(0, amounts.transfer, &mut mix, &mut plan);
        }
        "ior-hard-write" | "ior-hard-read" => {
            plan.task = RankTask::HardTransfer {
                bytes: HARD_TRANSFER,
            };
            plan.steps = amounts.hard;
            plan.shift = u32::from(!phase.writes);
            transfers(1, HARD_TRANSFER, &mut mix, &mut plan);
        }
        "ior-rnd4K-easy-read" if libs3 || per_file => {
            let why = "under the mappings of ior-libs3 a read is the GET of an object that was written with the \
                       same size, and none of 4 KiB was";
            return Ok(Step::Skipped(why.to_owned()));
        }
        "ior-rnd4K-easy-read" => {
            plan.task = RankTask::RandomRead {
                bytes: RANDOM_READ,
                transfer: amounts.transfer,
            };
            plan.steps = RANDOM_READS;
            // `-C -Q 2`
            plan.shift = 2;
            (plan.stonewall_ns, plan.wear_out) = (stonewall_ns, true);
            let read = entry(RangeGet, 0, Some(amounts.transfer));
            mix.push(match place.mapping {
                RankMapping::Files => held(read),
                _ => read,
            });
        }
        "find-easy" => {
            plan.task = RankTask::Find {
                bytes: None,
                within: Some(2),
                workbench: false,
            };
            mix.push(entry(List, 0, None));
        }
        "find" | "find-hard" => {
            plan.task = RankTask::Find {
                bytes: Some(HARD_FILE),
                within: (phase.name == "find-hard").then_some(3),
                workbench: index("mdworkbench-create").is_some(),
            };
            let since = ["ior-hard-write", "mdtest-hard-write"]
                .into_iter()
                .find_map(index);
            plan.newer_than = since;
            mix.push(entry(List, 0, None));
        }
        "timestamp" => return Ok(Step::Nothing),
        name if phase.tool == Tool::Workbench => {
            return workbench::work(config, (name, plan), before);
        }
        name => {
            let hard = name.starts_with("mdtest-hard");
            let (tree, bytes) = if hard {
                (3, Some(HARD_FILE))
            } else {
                (2, Some(0))
            };
            plan.task = if hard {
                RankTask::HardItem
            } else {
                RankTask::EasyItem
            };
            plan.steps = if hard {
                amounts.items_hard
            } else {
                amounts.items_easy
            };
            let what = name.rsplit('-').next().unwrap_or_default();
            plan.shift = match what {
                "stat" => 1,
                "read" => 2,
                "delete" => 3,
                _ => 0,
            };
            match what {
                "write" if per_file => {
                    mix.push(entry(MakeBucket, tree, None));
                    if hard {
                        mix.push(entry(Put, tree, bytes));
                    }
                }
                "stat" if per_file => mix.push(entry(HeadBucket, tree, None)),
                "read" if per_file => {
                    mix.push(entry(HeadBucket, tree, None));
                    mix.push(entry(Get, tree, bytes));
                }
                "delete" if per_file => {
                    mix.push(entry(List, tree, None));
                    if hard {
                        mix.push(entry(Delete, tree, None));
                    }
                    mix.push(entry(DeleteBucket, tree, None));
                }
                "write" => {
                    if libs3 && hard {
                        mix.push(entry(Put, tree, Some(0)));
                    }
                    mix.push(entry(Put, tree, bytes));
                }
                "stat" => mix.push(entry(Head, tree, None)),
                "read" => {
                    if libs3 {
                        mix.push(entry(Head, tree, None));
                    }
                    mix.push(entry(Get, tree, bytes));
                }
                _ => {
                    let heuristics = config.deletes()? == Deletes::Heuristics;
                    if libs3 && heuristics {
                        mix.push(entry(Head, tree, None));
                    }
                    mix.push(entry(Delete, tree, None));
                    if libs3 && !heuristics {
                        mix.push(entry(List, tree, None));
                    }
                }
            }
        }
    }
    plan.shift %= amounts.ranks;
    if !phase.writes && phase.tool != Tool::Find {
        let written = match phase.name.rsplit_once('-') {
            _ if phase.name == "ior-rnd4K-easy-read" => "ior-easy-write".to_owned(),
            Some((family, _)) => format!("{family}-write"),
            None => String::new(),
        };
        let Some(follows) = index(&written) else {
            return Ok(Step::Skipped(format!("{written} is not run")));
        };
        plan.follows = Some(follows);
    }
    Ok(Step::Work(Box::new(WorkPlan {
        name: phase.name.to_owned(),
        model: ModelPlan::Ranks(plan),
        mix,
    })))
}
#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
