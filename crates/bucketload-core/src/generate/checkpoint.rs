//! The operations of a checkpoint ([`CheckpointPlan`]): functions of rank and turn.

use super::LawError;
use super::names::push_decimal;
use crate::op::{ByteRange, Op, OpClass};
use crate::plan::checkpoint::{CheckpointAction, CheckpointPlan};
use crate::plan::{MixEntry, Plan};

/// Room for the longest name below the prefix, bytes.
const LONGEST_NAME: usize = 160;
/// Bits of an object's number that hold the index within its rank.
const INDEX_BITS: u32 = 16;
/// Bits that hold index and number of the checkpoint; the higher ones hold the rank.
const RANK_SHIFT: u32 = 40;

/// The operations of one work. Immutable, shared by all threads.
#[derive(Clone, Debug)]
pub struct CheckpointGen {
    plan: CheckpointPlan,
    mix: Vec<MixEntry>,
    /// Common beginning of all names.
    prefix: String,
}

impl CheckpointGen {
    /// The operations of work number `work` of phase number `phase`; names begin with `prefix` and the prefix of their
    /// key set.
    ///
    /// # Errors
    /// If the work is no checkpoint, lacks an operation that its objects need, or its model is invalid.
    pub fn new(plan: &Plan, phase: usize, work: usize, prefix: &str) -> Result<Self, LawError> {
        let field = || format!("phases[{phase}].works[{work}]");
        let work_plan = &plan.phases[phase].works[work];
        let Some(checkpoint) = work_plan.model.checkpoint() else {
            return Err(LawError::new(field(), "is not a checkpoint"));
        };
        checkpoint
            .model
            .check()
            .map_err(|e| LawError::new(format!("{}.model.{}", field(), e.field), e.reason))?;
        let ranks = u64::from(checkpoint.ranks);
        if ranks == 0 || ranks > checkpoint.model.ranks() {
            return Err(LawError::new(
                field(),
                "has ranks that its model does not have",
            ));
        }
        let Some(set) = work_plan
            .mix
            .first()
            .and_then(|e| plan.keysets.get(usize::from(e.keyset)))
        else {
            return Err(LawError::new(field(), "has no operations"));
        };
        let out = Self {
            plan: checkpoint.clone(),
            mix: work_plan.mix.clone(),
            prefix: format!("{prefix}{}", set.prefix),
        };
        let largest = checkpoint.largest();
        if checkpoint.action == CheckpointAction::Write
            && usize::from(out.entry_for(largest)) >= out.mix.len()
        {
            return Err(LawError::new(
                field(),
                "has no operation for objects larger than a part",
            ));
        }
        Ok(out)
    }

    /// The plan of the work.
    #[must_use]
    pub const fn plan(&self) -> &CheckpointPlan {
        &self.plan
    }

    /// The entry of the mix that writes an object of `bytes` bytes: the second if it is larger than a part.
    const fn entry_for(&self, bytes: u64) -> u16 {
        let parts = self.plan.piece_bytes > 0 && bytes > self.plan.piece_bytes;
        (parts && matches!(self.plan.action, CheckpointAction::Write)) as u16
    }

    /// Operation number `turn` of rank `rank`; `None` behind the last. Allocates nothing.
    #[must_use]
    pub fn op(&self, rank: u32, turn: u64) -> Option<Op> {
        let plan = &self.plan;
        let owner = plan.owner(rank);
        let (index, size, range) = match plan.action {
            CheckpointAction::Commit => {
                let text = u64::from(rank == 0 && turn == 0);
                (text > 0).then_some((0, MARKER_BYTES, None))?
            }
            CheckpointAction::Write => {
                let object = plan.model.object(u64::from(owner), turn, plan.scale)?;
                (turn, object.bytes, None)
            }
            CheckpointAction::Read => {
                let (mut index, mut left) = (0, turn);
                loop {
                    let object = plan.model.object(u64::from(owner), index, plan.scale)?;
                    let piece = match plan.piece_bytes {
                        0 => object.bytes.max(1),
                        piece => piece,
                    };
                    let pieces = object.bytes.div_ceil(piece);
                    if left < pieces {
                        let offset = left * piece;
                        let len = piece.min(object.bytes - offset);
                        let range = (plan.piece_bytes > 0).then_some(ByteRange { offset, len });
                        break (index, object.bytes, range);
                    }
                    left -= pieces;
                    index += 1;
                }
            }
        };
        let entry = self.entry_for(size);
        let entry_plan = &self.mix[usize::from(entry)];
        // The marker is one object, which every checkpoint overwrites.
        let commits = plan.action == CheckpointAction::Commit;
        Some(Op {
            seq: u64::from(rank) + turn * u64::from(plan.ranks.max(1)),
            entry,
            keyset: entry_plan.keyset,
            key: u64::from(owner) << RANK_SHIFT
                | if commits {
                    0
                } else {
                    u64::from(plan.number) << INDEX_BITS
                }
                | index,
            version: if commits { plan.number } else { 0 },
            size,
            range,
            count: if entry_plan.class.is_multipart() {
                plan.piece_bytes
            } else {
                0
            },
            pages: entry_plan.pages,
            ..Op::new(entry_plan.class)
        })
    }

    /// Writes the name of `op`'s object into `out`, replacing its contents.
    pub fn render(&self, op: &Op, out: &mut String) {
        out.clear();
        out.push_str(&self.prefix);
        let number = (op.key & ((1 << RANK_SHIFT) - 1)) >> INDEX_BITS;
        if number == 0 {
            out.push_str("latest");
            return;
        }
        let (rank, index) = (op.key >> RANK_SHIFT, op.key & ((1 << INDEX_BITS) - 1));
        self.push_path(rank, number as u32, index, out);
    }

    /// Appends the path of object `index` of rank `rank` of checkpoint `number`.
    fn push_path(&self, rank: u64, number: u32, index: u64, out: &mut String) {
        out.push_str("global_epoch1_step");
        push_decimal(u64::from(number), 1, out);
        out.push('/');
        if let Some(object) = self.plan.model.object(rank, index, self.plan.scale) {
            self.plan.model.push_name(rank, object.part, out);
        }
        out.push('.');
        out.push_str(&self.plan.extension);
    }

    /// Length of the longest name, bytes.
    #[must_use]
    pub fn max_len(&self) -> usize {
        self.prefix.len() + LONGEST_NAME + self.plan.extension.len()
    }

    /// The class of entry `entry`.
    #[must_use]
    pub fn class(&self, entry: u16) -> OpClass {
        self.mix[usize::from(entry)].class
    }
}

/// Size of the marker `latest`. Real ones hold the folder's name; this one holds as many bytes, of the kind that the
/// run can verify.
pub const MARKER_BYTES: u64 = 32;
