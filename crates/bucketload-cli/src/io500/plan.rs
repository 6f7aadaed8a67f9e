//! Turns a configuration into a plan: a phase of ranks per phase of IO500 (section A.1), in IO500's order.

use bucketload_core::op::OpClass;
use bucketload_core::payload::{Pattern, PatternSet, PayloadKind};
use bucketload_core::plan::buckets::MOST_BUCKETS;
use bucketload_core::plan::ranks::{RankMapping, RankTask, RanksPlan};
use bucketload_core::plan::{
    BucketService, BucketsPlan, KeysetPlan, MixEntry, PhaseKind, PhasePlan, Plan, WorkPlan,
};
use bucketload_results::io500::measure::{FIRST, SECOND};
use bucketload_results::io500::{Phase, Tool, phases};
use bucketload_workload::resolve::EMBEDDED_MEMORY_BUDGET;

use super::Config;
use super::config::Deletes;
use super::location::Location;
use super::workbench;
use crate::cli::mdworkbench::PacketType;
use crate::rank_plan::{self, MOST_BUFFERS, control, entry, measuring};
use crate::target::Target;

/// Name of the profile in plans.
pub(crate) const PROFILE: &str = "io500";

/// Sizes that the rules fix (section A.1).
const HARD_TRANSFER: u64 = 47_008;
const HARD_FILE: u64 = 3_901;
const RANDOM_READ: u64 = 4_096;
/// Most random reads per rank (`-s=10000000`).
const RANDOM_READS: u64 = 10_000_000;
/// Time limit of a request.
const TIMEOUT_NS: u64 = 300_000_000_000;
/// Most small objects per tree in the embedded server over memory.
const MEMORY_ITEMS: u64 = 20_000;

/// Trees of files, which are the key sets of the plan, in this order.
const TREES: [&str; 5] = [
    "ior-easy",
    "ior-hard",
    "mdtest-easy",
    "mdtest-hard",
    "mdworkbench",
];

/// A plan, and the phases that are not in it, with the reasons.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) skipped: Vec<(String, String)>,
}

/// The most work per rank in each phase.
struct Amounts {
    ranks: u32,
    transfer: u64,
    easy: u64,
    hard: u64,
    items_easy: u64,
    items_hard: u64,
}

/// The plan of a configuration with `ranks` ranks, unless the configuration states another number.
///
/// # Errors
/// A setting that cannot be carried out, with a remedy.
pub(crate) fn plan(
    config: &Config,
    location: &Location,
    ranks: u32,
    keep: bool,
    notes: &mut Vec<String>,
) -> Result<Planned, String> {
    let amounts = amounts(config, location, ranks, notes)?;
    let seed = location.timestamp.bytes().fold(2_166_136_261u32, fnv);
    let keysets = TREES[..if config.extended()? { 5 } else { 4 }]
        .iter()
        .map(|tree| keyset(tree, location, &amounts));
    let mut plan = rank_plan::plan(
        PROFILE,
        u64::from(seed),
        TIMEOUT_NS,
        payload(config, location, &amounts)?,
        keysets.collect(),
        vec![control("init", PhaseKind::Init)],
    );
    // The null target returns no data to compare.
    plan.verify = location.target != Target::Null;
    let mut skipped = Vec::new();
    for phase in phases(config.extended()?) {
        match work(config, location, &amounts, phase, &plan.phases)? {
            PlannedPhase::Work(work) => plan.phases.push(measuring(*work)),
            PlannedPhase::Twice(first) => {
                let mut second = (*first).clone();
                if let Some(ranks) = second.model.get_mut::<RanksPlan>() {
                    // The first iteration has advanced the queues.
                    ranks.after.extend(u16::try_from(plan.phases.len()));
                }
                let named = |work: WorkPlan, suffix: &str| WorkPlan {
                    name: format!("{}{suffix}", work.name),
                    ..work
                };
                plan.phases.push(measuring(named(*first, FIRST)));
                plan.phases.push(measuring(named(second, SECOND)));
            }
            PlannedPhase::Skipped(why) => skipped.push((phase.name.to_owned(), why)),
            PlannedPhase::Nothing => {}
        }
    }
    if plan.phases.len() == 1 {
        return Err("every phase has run = FALSE; enable at least one".to_owned());
    }
    if !keep {
        plan.phases.push(control("cleanup", PhaseKind::Cleanup));
    }
    Ok(Planned { plan, skipped })
}

/// A step of the FNV-1a hash, which derives a seed from a name and a time, as IO500 uses 32 bits of a hash of both.
fn fnv(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
}

fn amounts(
    config: &Config,
    location: &Location,
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
    let random = location.mapping != RankMapping::Libs3Buckets
        && location.mapping != RankMapping::Libs3Single
        && config.skipped("ior-rnd4K-easy-read").is_none();
    if transfer % RANDOM_READ != 0 && random {
        return Err(format!(
            "[ior-easy] transferSize = {transfer}: ior-rnd4K-easy-read needs a multiple of 4096 bytes; \
             use one, or set [ior-rnd4K-easy-read] run = FALSE"
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
    if location.mapping == RankMapping::Libs3Buckets {
        let why = "because each of them is a bucket";
        let (easy, hard) = (&mut amounts.items_easy, &mut amounts.items_hard);
        cut_for(why, easy, MOST_BUCKETS, "mdtest-easy: files", notes);
        cut_for(why, hard, MOST_BUCKETS, "mdtest-hard: files", notes);
    }
    if location.target == Target::Memory {
        let cut = |amount: &mut u64, most: u64, what: &str, notes: &mut Vec<String>| {
            let why = "because the embedded server has no memory for more";
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

fn payload(config: &Config, location: &Location, amounts: &Amounts) -> Result<PayloadKind, String> {
    if config.packet()? == PacketType::Random {
        return Ok(PayloadKind::Random);
    }
    let seed = |tree: &str| {
        let hash = tree
            .bytes()
            .chain(location.timestamp.bytes())
            .fold(2_166_136_261, fnv);
        hash as i32
    };
    let set = |tree: &str, len: u64, interleaved: bool| PatternSet {
        seed: seed(tree),
        len,
        interleaved,
    };
    let files = location.mapping == RankMapping::Files;
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

fn keyset(tree: &str, location: &Location, amounts: &Amounts) -> KeysetPlan {
    let path = format!("{}{tree}/", location.directory);
    let mut prefix = String::new();
    match location.mapping {
        RankMapping::Libs3Single => {
            bucketload_core::generate::ranks::spell(&path, &mut prefix);
        }
        _ => prefix = path,
    }
    let buckets = buckets(tree, location, amounts);
    rank_plan::keyset(tree, prefix, 0, buckets)
}

/// A bucket per file, if the mapping uses them. Buckets are named after the tree, because services do not accept
/// paths as bucket names.
fn buckets(tree: &str, location: &Location, amounts: &Amounts) -> Option<BucketsPlan> {
    let per_rank = match tree {
        "mdtest-easy" => amounts.items_easy,
        "mdtest-hard" => amounts.items_hard,
        _ => 1,
    };
    let ranks = match tree {
        // All ranks share a file.
        "ior-hard" => 1,
        _ => u64::from(amounts.ranks),
    };
    (location.mapping == RankMapping::Libs3Buckets && tree != TREES[4]).then(|| BucketsPlan {
        count: ranks.saturating_mul(per_rank),
        name: tree.to_owned(),
        exact: false,
        service: BucketService::Any,
        per_rank,
    })
}

/// The same operation on a file that stays open.
fn kept_open(entry: MixEntry) -> MixEntry {
    MixEntry { count: 1, ..entry }
}

pub(super) enum PlannedPhase {
    Work(Box<WorkPlan>),
    /// A work with two iterations.
    Twice(Box<WorkPlan>),
    Skipped(String),
    Nothing,
}

/// Plans `phase`, which follows the phases `before`.
fn work(
    config: &Config,
    location: &Location,
    amounts: &Amounts,
    phase: &Phase,
    before: &[PhasePlan],
) -> Result<PlannedPhase, String> {
    use OpClass::{
        Delete, DeleteBucket, Get, Head, HeadBucket, List, MakeBucket, MultipartPut, Put, RangeGet,
        RangePut, Sync,
    };
    let index = |name: &str| {
        let at = before.iter().position(|phase| phase.name == name)?;
        u16::try_from(at).ok()
    };
    if let Some(why) = config.skipped(phase.name) {
        return Ok(PlannedPhase::Skipped(why));
    }
    let stonewall_ns = config.stonewall_ns()?;
    let libs3 = location.mapping == RankMapping::Libs3Single;
    let per_file = location.mapping == RankMapping::Libs3Buckets;
    if per_file && matches!(phase.tool, Tool::Find | Tool::Workbench) {
        let why = match phase.tool {
            Tool::Find => {
                "names and sizes of files would require a listing of every bucket (ior-libs3-bucket-per-file)"
            }
            _ => "each new object would be a new bucket (ior-libs3-bucket-per-file)",
        };
        return Ok(PlannedPhase::Skipped(why.to_owned()));
    }
    let mut plan = rank_plan::ranks(amounts.ranks, RankTask::EasyItem, location.mapping);
    if phase.writes {
        (plan.stonewall_ns, plan.wear_out) = (stonewall_ns, true);
    }
    let mut mix = Vec::new();
    let searchers = || -> Result<u32, String> {
        let stated = config.searchers(phase.name)?;
        match stated {
            Some(number) if number > amounts.ranks => {
                let remedy = format!("write at most {}, the number of ranks", amounts.ranks);
                Err(config.wrong(phase.name, "nproc", &remedy))
            }
            stated => Ok(stated.unwrap_or(0)),
        }
    };
    let transfers = |tree: u16, bytes: u64, mix: &mut Vec<MixEntry>, plan: &mut RanksPlan| {
        let bytes = Some(bytes);
        match (phase.writes, location.mapping) {
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
            (false, RankMapping::Files) => mix.push(kept_open(entry(RangeGet, tree, bytes))),
            (false, _) => mix.push(entry(Get, tree, bytes)),
        }
    };
    // Ranks of IOR read what the next rank wrote (`-C -Q 1`). Ranks of mdtest stat, read and delete what the next
    // three ranks wrote (`-N 1`).
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
            let why = "in the mappings of ior-libs3, a read is the GET of an object that was written with the same \
                       size, and no object of 4 KiB was written";
            return Ok(PlannedPhase::Skipped(why.to_owned()));
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
            mix.push(match location.mapping {
                RankMapping::Files => kept_open(read),
                _ => read,
            });
        }
        "find-easy" => {
            plan.task = RankTask::Find {
                bytes: None,
                within: Some(2),
                workbench: false,
                searchers: searchers()?,
            };
            mix.push(entry(List, 0, None));
        }
        "find" | "find-hard" => {
            plan.task = RankTask::Find {
                bytes: Some(HARD_FILE),
                within: (phase.name == "find-hard").then_some(3),
                workbench: index("mdworkbench-create").is_some(),
                searchers: searchers()?,
            };
            let since = ["ior-hard-write", "mdtest-hard-write"]
                .into_iter()
                .find_map(index);
            plan.newer_than = since;
            mix.push(entry(List, 0, None));
        }
        "timestamp" => return Ok(PlannedPhase::Nothing),
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
                    if location.mapping == RankMapping::Files {
                        // mdtest's -Y: the time includes that the files reach the storage.
                        mix.push(entry(Sync, tree, None));
                        plan.closing = 1;
                    }
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
            return Ok(PlannedPhase::Skipped(format!("{written} is skipped")));
        };
        plan.follows = Some(follows);
    }
    Ok(PlannedPhase::Work(Box::new(WorkPlan {
        name: phase.name.to_owned(),
        model: plan.into(),
        mix,
    })))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
