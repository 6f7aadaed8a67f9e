//! The operations of ranks ([`RanksPlan`]): functions of rank, step and position in the step.
//!
//! Paths match those of IOR and mdtest (docs/spec/io500-mdworkbench.md section A.2):
//!
//! ```text
//!  ior-easy/     ior_file_easy.00000003          transfer k at k·bytes
//!  ior-hard/     file                            transfer k of rank r of N at (k·N + r)·bytes
//!  mdtest-easy/  test-dir.0-0/mdtest_tree.3.0/file.mdtest.3.17
//!  mdtest-hard/  test-dir.0-0/mdtest_tree.0/file.mdtest.3.17
//!  mdworkbench/  3_0/file-17, or on object stores 3_0_17: rank, set, index
//! ```
//!
//! If each transfer is a separate object, its name is the file's name, followed by offset and length except
//! for the first transfer (docs/spec/libs3-abi.md section 12).

use super::LawError;
use super::names::push_decimal;
use super::rng::{Draws, Purpose, Stream};
use crate::op::{ByteRange, Op, OpClass};
use crate::plan::ranks::{RankMapping, RankTask, RanksPlan, WorkbenchStage, key_of, split_key};
use crate::plan::{MixEntry, Plan, SizeKind};

/// Room for the longest path below the prefix, in bytes, before characters are spelt out.
const LONGEST_PATH: usize = 128;

/// The operations of one work. Immutable, shared by all threads.
#[derive(Clone, Debug)]
pub struct RankGen {
    seed: u64,
    phase: u16,
    work: u16,
    plan: RanksPlan,
    mix: Vec<MixEntry>,
    /// Bytes that each entry writes or reads; `None` if it moves none.
    sizes: Vec<Option<u64>>,
    /// Common beginning of the names of each key set.
    prefixes: Vec<String>,
}

/// Position of an operation in a rank's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPosition {
    /// Number of steps of earlier phases that precede this one.
    pub base: u64,
    /// Number of the step in its phase, from 0.
    pub step: u64,
    /// Data set, for MD-Workbench; otherwise 0.
    pub set: u32,
    /// Index of the entry in the mix.
    pub entry: u16,
}

impl RankGen {
    /// The operations of work number `work` of phase number `phase`; names begin with `prefix` and the prefix
    /// of their key set.
    ///
    /// # Errors
    /// If the work is not of this kind, has no entries for its steps, or depends on a phase that does not
    /// come before it.
    pub fn new(plan: &Plan, phase: usize, work: usize, prefix: &str) -> Result<Self, LawError> {
        let field = || format!("phases[{phase}].works[{work}]");
        let work_plan = &plan.phases[phase].works[work];
        let Some(ranks) = work_plan.model.ranks() else {
            return Err(LawError::new(field(), "does not consist of ranks"));
        };
        if usize::from(ranks.opening) + usize::from(ranks.closing) >= work_plan.mix.len() {
            return Err(LawError::new(field(), "has no operations for its steps"));
        }
        if phase >= Stream::MAX_PHASES {
            let reason = format!("is one of more than {} phases", Stream::MAX_PHASES);
            return Err(LawError::new(field(), reason));
        }
        let dependencies = ranks
            .follows
            .iter()
            .chain(&ranks.after)
            .chain(&ranks.newer_than);
        if let Some(later) = dependencies
            .clone()
            .find(|other| usize::from(**other) >= phase)
        {
            let reason = format!("depends on phase {later}, which does not come before it");
            return Err(LawError::new(field(), reason));
        }
        let sizes = work_plan.mix.iter().map(|entry| {
            let law = entry.size.as_ref().map(|size| &size.law);
            match law {
                Some(SizeKind::Const { bytes }) => Some(*bytes),
                _ => None,
            }
        });
        Ok(Self {
            seed: plan.seed,
            phase: phase as u16,
            work: u16::try_from(work).unwrap_or(u16::MAX),
            plan: ranks.clone(),
            sizes: sizes.collect(),
            mix: work_plan.mix.clone(),
            prefixes: plan
                .keysets
                .iter()
                .map(|set| format!("{prefix}{}", set.prefix))
                .collect(),
        })
    }

    /// The plan of the work.
    #[must_use]
    pub const fn plan(&self) -> &RanksPlan {
        &self.plan
    }

    /// Entries of the mix.
    #[must_use]
    pub fn entries(&self) -> u16 {
        self.mix.len() as u16
    }

    /// Number of data sets that a step goes through.
    #[must_use]
    pub const fn sets(&self) -> u32 {
        match self.plan.task {
            RankTask::Workbench {
                stage: WorkbenchStage::Cleanup,
                ..
            } => 1,
            RankTask::Workbench { sets, .. } => sets,
            _ => 1,
        }
    }

    /// The operation of rank `rank` at `position`, number `turn` of all the rank's operations. `written` is a
    /// count taken from the phase that this one follows: the transfers of the file that random offsets are
    /// read from, or the objects per set of MD-Workbench. Allocates nothing.
    #[must_use]
    pub fn op(&self, rank: u32, position: StepPosition, turn: u64, written: u64) -> Op {
        let plan = &self.plan;
        let entry = &self.mix[usize::from(position.entry)];
        let ranks = plan.ranks.max(1);
        let owner = (rank + plan.shift) % ranks;
        let seq = u64::from(rank) + turn * u64::from(ranks);
        let steady =
            position.entry >= plan.opening && position.entry + plan.closing < self.entries();
        let mut op = Op {
            seq,
            class: entry.class,
            entry: position.entry,
            keyset: entry.keyset,
            key: key_of(
                owner,
                if steady {
                    position.base + position.step
                } else {
                    0
                },
            ),
            source_key: 0,
            source_keyset: 0,
            version: 0,
            size: match self.sizes[usize::from(position.entry)] {
                Some(bytes) => bytes,
                None if entry.class.writes_body() => 0,
                None => Op::UNKNOWN_SIZE,
            },
            range: None,
            count: entry.count,
            pages: entry.pages,
        };
        match plan.task {
            RankTask::EasyTransfer { bytes } if plan.mapping == RankMapping::Files => {
                op.key = key_of(owner, 0);
                if steady {
                    self.range(
                        &mut op,
                        position.step * bytes,
                        bytes,
                        plan.steps.saturating_mul(bytes),
                    );
                }
            }
            RankTask::HardTransfer { bytes } if plan.mapping == RankMapping::Files => {
                op.key = 0;
                if steady {
                    let all = plan
                        .steps
                        .saturating_mul(u64::from(ranks))
                        .saturating_mul(bytes);
                    let block = position.step * u64::from(ranks) + u64::from(owner);
                    self.range(&mut op, block * bytes, bytes, all);
                }
            }
            RankTask::RandomRead { bytes, transfer } => {
                let draw = Stream::new(Purpose::Range, self.phase, self.work);
                let mut draws = Draws::new(self.seed, draw, seq);
                let per_transfer = (transfer / bytes).max(1);
                let block = draws.below((written * per_transfer).max(1));
                if plan.mapping == RankMapping::Files {
                    op.key = key_of(owner, 0);
                    self.range(&mut op, block * bytes, bytes, written * transfer);
                } else {
                    op.key = key_of(owner, block / per_transfer);
                    self.range(&mut op, block % per_transfer * bytes, bytes, transfer);
                }
            }
            RankTask::Find { .. } => {
                op.key = plan.part(rank, position.step);
            }
            RankTask::Workbench {
                sets,
                objects,
                stage,
                offset,
            } => {
                let sets = u64::from(sets);
                let objects = match plan.part {
                    Some(_) => written,
                    None => objects,
                };
                let shift = |up: bool| {
                    let by = (u64::from(offset) * u64::from(position.set + 1)) % u64::from(ranks);
                    let by = by as u32;
                    if up {
                        (rank + by) % ranks
                    } else {
                        (rank + ranks - by) % ranks
                    }
                };
                let set = u64::from(position.set);
                op.key = match stage {
                    WorkbenchStage::Precreate => key_of(rank, position.step * sets + set),
                    WorkbenchStage::Benchmark if entry.class.writes_body() => {
                        let newest = objects + position.base + position.step;
                        key_of(shift(true), newest * sets + set)
                    }
                    WorkbenchStage::Benchmark => {
                        key_of(shift(false), (position.base + position.step) * sets + set)
                    }
                    WorkbenchStage::Cleanup => {
                        // Set by set; the first remaining object follows all earlier steps.
                        let objects = objects.max(1);
                        let (set, number) = (position.step / objects, position.step % objects);
                        key_of(rank, (position.base + number) * sets + set)
                    }
                };
            }
            _ => {}
        }
        op
    }

    /// Sets `op` to `len` bytes from `offset` of a file of `size` bytes.
    fn range(&self, op: &mut Op, offset: u64, len: u64, size: u64) {
        op.range = Some(ByteRange { offset, len });
        op.size = size;
    }

    /// Writes the name of `op`'s object into `out`, replacing its contents.
    #[inline]
    pub fn render(&self, op: &Op, out: &mut String) {
        out.clear();
        match self.plan.task {
            RankTask::Find { .. } => return self.render_part(op.key, out),
            RankTask::Count => {
                out.push_str(&self.prefixes[usize::from(op.keyset)]);
                return;
            }
            _ => {}
        }
        out.push_str(&self.prefixes[usize::from(op.keyset)]);
        let items = matches!(self.plan.task, RankTask::EasyItem | RankTask::HardItem);
        if items && op.class == OpClass::Sync {
            // The whole tree, in one call.
            return;
        }
        let (rank, index) = split_key(op.key);
        let mut path = Path {
            out,
            spell: self.plan.mapping == RankMapping::Libs3Single,
        };
        let ranks = u64::from(self.plan.ranks);
        let (offset, bytes) = match self.plan.task {
            RankTask::EasyTransfer { bytes } => (index * bytes, bytes),
            RankTask::RandomRead { transfer, .. } => (index * transfer, transfer),
            RankTask::HardTransfer { bytes } => ((index * ranks + u64::from(rank)) * bytes, bytes),
            _ => (0, 0),
        };
        if self.plan.mapping == RankMapping::Libs3Buckets {
            return path.in_bucket(op.class, offset, bytes);
        }
        match self.plan.task {
            RankTask::EasyTransfer { .. } | RankTask::RandomRead { .. } => path.easy_file(rank),
            RankTask::HardTransfer { .. } => path.text("file"),
            RankTask::EasyItem => {
                path.easy_directory(rank);
                path.item(rank);
                path.number(index, 1);
            }
            RankTask::HardItem => {
                path.text(HARD_DIRECTORY);
                path.item(rank);
                path.number(index, 1);
            }
            RankTask::Workbench { sets, .. } => {
                let sets = u64::from(sets.max(1));
                path.number(u64::from(rank), 1);
                path.text("_");
                path.number(index % sets, 1);
                // On a file system each set is a directory.
                path.text(match self.plan.mapping {
                    RankMapping::Files => "/file-",
                    _ => "_",
                });
                path.number(index / sets, 1);
            }
            RankTask::Find { .. } | RankTask::Count => {}
        }
        path.end();
        // An operation that opens a file refers to the file itself.
        let opens = op.entry < self.plan.opening;
        if offset > 0 && !opens && self.plan.mapping != RankMapping::Files {
            let mut plain = Path { out, spell: false };
            plain.text("-");
            plain.number(offset, 1);
            plain.text("-");
            plain.number(bytes, 1);
        }
    }

    /// Writes the common beginning of the names in part `part` of all files. Key sets are in the order of the
    /// trees.
    fn render_part(&self, part: u64, out: &mut String) {
        let whole = self.plan.mapping == RankMapping::Files;
        let (tree, rank) = self.part(part, whole);
        out.push_str(self.prefixes.get(tree).map_or("", String::as_str));
        let mut path = Path {
            out,
            spell: self.plan.mapping == RankMapping::Libs3Single,
        };
        match tree {
            2 => path.easy_directory(rank),
            0 if !whole => path.easy_file(rank),
            3 if !whole => {
                path.text(HARD_DIRECTORY);
                path.item(rank);
            }
            4 if !whole => {
                path.number(u64::from(rank), 1);
                path.text("_");
            }
            _ => {}
        }
    }

    /// Tree and rank of part `part`: 0 ior-easy, 1 ior-hard, 2 mdtest-easy, 3 mdtest-hard, 4 mdworkbench. If
    /// names cannot be listed by prefix, all trees except mdtest-easy are read `whole`.
    fn part(&self, part: u64, whole: bool) -> (usize, u32) {
        let ranks = u64::from(self.plan.ranks);
        if let RankTask::Find {
            within: Some(tree), ..
        } = self.plan.task
        {
            return (usize::from(tree), part as u32);
        }
        match part {
            // The shared directory has as many files as all others together.
            0 if whole => (3, 0),
            part if whole && part <= ranks => (2, (part - 1) as u32),
            part if whole => ([0, 1, 4][(part - ranks - 1).min(2) as usize], 0),
            part if part < ranks => (2, part as u32),
            part if part < 2 * ranks => (3, (part - ranks) as u32),
            part if part < 3 * ranks => (0, (part - 2 * ranks) as u32),
            part if part == 3 * ranks => (1, 0),
            part => (4, (part - 3 * ranks - 1) as u32),
        }
    }

    /// Length of the longest name, bytes.
    #[must_use]
    pub fn max_len(&self) -> usize {
        let prefix = self.prefixes.iter().map(String::len).max().unwrap_or(0);
        prefix + 2 * LONGEST_PATH
    }

    /// The class of entry `entry`.
    #[must_use]
    pub fn class(&self, entry: u16) -> OpClass {
        self.mix[usize::from(entry)].class
    }
}

const HARD_DIRECTORY: &str = "test-dir.0-0/mdtest_tree.0/";

/// Writes a path, spelt out if names may contain only letters and digits.
struct Path<'a> {
    out: &'a mut String,
    spell: bool,
}

impl Path<'_> {
    fn text(&mut self, text: &str) {
        match self.spell {
            true => spell(text, self.out),
            false => self.out.push_str(text),
        }
    }

    /// Writes a number with at least `digits` digits.
    fn number(&mut self, n: u64, digits: usize) {
        push_decimal(n, digits, self.out);
    }

    fn easy_file(&mut self, rank: u32) {
        self.text("ior_file_easy.");
        self.number(u64::from(rank), 8);
    }

    fn easy_directory(&mut self, rank: u32) {
        self.text("test-dir.0-0/mdtest_tree.");
        self.number(u64::from(rank), 1);
        self.text(".0/");
    }

    fn item(&mut self, rank: u32) {
        self.text("file.mdtest.");
        self.number(u64::from(rank), 1);
        self.text(".");
    }

    /// Names a transfer in the bucket of its file (docs/spec/io500-mdworkbench.md section A.6); lists use
    /// only the prefix.
    fn in_bucket(&mut self, class: OpClass, offset: u64, bytes: u64) {
        if class == OpClass::List {
            return;
        }
        self.number(offset, 1);
        if offset > 0 {
            self.out.push('-');
            self.number(bytes, 1);
        }
    }

    /// Ends the name of a file.
    fn end(&mut self) {
        if self.spell {
            self.out.push('b');
        }
    }
}

/// Appends `text` as IOR's backend `S3-libs3` spells file names: letters become lower case, digits stay, a
/// slash becomes `_`, and any other byte becomes two letters (docs/spec/libs3-abi.md section 12). The final
/// `b` is not added.
pub fn spell(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'/' => out.push('_'),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte.to_ascii_lowercase())),
            byte => {
                out.push(char::from(b'a' + byte / 26));
                out.push(char::from(b'a' + byte % 26));
            }
        }
    }
}

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;
