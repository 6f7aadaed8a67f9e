//! The oracle's view of one operation, from its beginning to its end.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::Relaxed;

use bucketload_core::driver::Completion;
use bucketload_core::error::ErrorKind;
use bucketload_core::inspect::Inspector;
use bucketload_core::op::{Op, OpClass, Watch};
use bucketload_core::oracle::register::{Ending, Origin, RequestLabel};
use bucketload_core::oracle::{ReadMark, State};
use bucketload_core::record::Outcome;

use super::judge::{Answer, WrongAnswer};
use super::{KeyId, OnFinding, Oracle};

/// The operation's effect on its key.
#[derive(Clone, Debug)]
enum Role {
    /// Writes or deletes one key: the number of the mutation, and whether it is conditional.
    Mutation {
        version: u32,
        if_absent: bool,
        mark: ReadMark,
    },
    /// Deletes these keys: key, and number of the mutation.
    Deletes(Vec<(u64, u32)>),
    /// Reads the object, or for `head` its metadata.
    Read { mark: ReadMark, head: bool },
    /// Reads one version, whose bytes the session compares.
    Version,
    /// Lists the shard of the key.
    List,
}

/// Facts about an answer that findings cite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerContext<'a> {
    pub(crate) key: &'a str,
    pub(crate) phase: u16,
    pub(crate) audit: bool,
    /// For operations on one version: whether nobody has begun to remove it.
    pub(crate) remembered: bool,
    /// When the last attempt began.
    pub(crate) attempt_ns: u64,
    pub(crate) done_ns: u64,
    pub(crate) request_id: &'a str,
    pub(crate) endpoint: u16,
}

/// The oracle's part in one operation.
pub(crate) struct Ticket<'a> {
    oracle: &'a Oracle,
    id: KeyId,
    role: Role,
    start_ns: u64,
    /// Whether a failed attempt may still take effect.
    stray: Cell<bool>,
    absent: Cell<bool>,
    completion: Cell<Option<Completion>>,
    offset: u64,
    inspector: RefCell<Option<Inspector<'a>>>,
    pub(super) listed: RefCell<Vec<u64>>,
    pub(super) cut_short: Cell<bool>,
}

/// Whether an attempt that failed with `kind` may have taken effect or may still do so.
const fn may_have_effect(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::Auth
            | ErrorKind::Rejected
            | ErrorKind::Connect
            | ErrorKind::Tls
            | ErrorKind::Unsupported
    )
}

impl Oracle {
    /// Begins an operation that was taken at `start_ns`. Sets the version of writes to the oracle's count, and drops
    /// the plan's expected size from reads. `None` if there is nothing to judge.
    pub(crate) fn begin(
        &self,
        op: &mut Op,
        (phase, work): (u16, u16),
        delimiter: &str,
        start_ns: u64,
    ) -> Option<Box<Ticket<'_>>> {
        let id = (op.keyset, op.key);
        let origin = Origin {
            seq: op.seq,
            phase,
            work,
        };
        let role = match op.class {
            OpClass::Put | OpClass::MultipartPut | OpClass::PutIfAbsent => {
                let if_absent = op.class == OpClass::PutIfAbsent;
                let state = State::Object { size: op.size };
                let (version, mark) = self.with_new(id, |register| {
                    // A conditional write reads whether the object exists.
                    let mark = match if_absent {
                        true => register.begin_read(),
                        false => register.mark(),
                    };
                    (register.begin(state, if_absent, origin, start_ns), mark)
                })?;
                op.version = version;
                Role::Mutation {
                    version,
                    if_absent,
                    mark,
                }
            }
            OpClass::Delete | OpClass::DeleteIfMatch => {
                let (version, mark) = self.with_new(id, |register| {
                    let mark = register.mark();
                    (register.begin(State::Absent, false, origin, start_ns), mark)
                })?;
                Role::Mutation {
                    version,
                    if_absent: false,
                    mark,
                }
            }
            OpClass::DeleteMany => {
                let keys = (0..op.count).map(|i| self.key_of_batch(op, i));
                let begun = keys.filter_map(|key| {
                    let version = self.with_new((op.keyset, key), |register| {
                        register.begin(State::Absent, false, origin, start_ns)
                    })?;
                    Some((key, version))
                });
                Role::Deletes(begun.collect())
            }
            OpClass::Copy | OpClass::MultipartCopy | OpClass::Append | OpClass::Touch => {
                // Nothing can be said about the key any more: a copy carries the stamps of its source, an append leaves
                // those of several writes, and a touch may have made an empty object.
                self.with_new(id, |register| register.give_up());
                return None;
            }
            OpClass::GetVersion => Role::Version,
            OpClass::DeleteVersion => {
                // If it was the current version, an older one takes its place.
                self.with_new(id, |register| register.give_up());
                return None;
            }
            OpClass::Rename => {
                // The same holds for the new key, and the old key may or may not exist.
                self.with_new(id, |register| register.give_up());
                let source = (op.source_keyset, op.source_key);
                self.with_new(source, |register| register.give_up());
                return None;
            }
            OpClass::Get | OpClass::RangeGet | OpClass::GetPart | OpClass::Head => {
                let mark = self.with(id, |register| {
                    (!register.is_given_up()).then(|| register.begin_read())
                })??;
                let head = op.class == OpClass::Head;
                if !head {
                    op.size = Op::UNKNOWN_SIZE;
                }
                Role::Read { mark, head }
            }
            OpClass::List | OpClass::ListV1 if delimiter.is_empty() => Role::List,
            _ => return None,
        };
        let writes = match &role {
            Role::Mutation { .. } => 1,
            Role::Deletes(keys) => keys.len() as u64,
            _ => 0,
        };
        self.mutations.fetch_add(writes, Relaxed);
        Some(self.ticket(op, role, start_ns))
    }

    /// A ticket for a read of the audit; `None` if the key cannot be judged.
    pub(super) fn begin_audit(&self, op: &Op, start_ns: u64) -> Option<Box<Ticket<'_>>> {
        let mark = self.with((op.keyset, op.key), |register| {
            (!register.is_given_up()).then(|| register.begin_read())
        })??;
        Some(self.ticket(op, Role::Read { mark, head: false }, start_ns))
    }

    fn ticket(&self, op: &Op, role: Role, start_ns: u64) -> Box<Ticket<'_>> {
        let offset = op.range.map_or(0, |range| range.offset);
        let ticket = Ticket {
            oracle: self,
            id: (op.keyset, op.key),
            role,
            start_ns,
            stray: Cell::new(false),
            absent: Cell::new(false),
            completion: Cell::new(None),
            offset,
            inspector: RefCell::new(None),
            listed: RefCell::default(),
            cut_short: Cell::new(false),
        };
        ticket.watch_again();
        Box::new(ticket)
    }

    /// Key number `i` of a delete-many, see [`bucketload_core::generate::names::KeyBatch`].
    fn key_of_batch(&self, op: &Op, i: u64) -> u64 {
        let count = self.counts[usize::from(op.keyset)];
        if op.key < count {
            (op.key + i) % count
        } else {
            op.key + i
        }
    }
}

impl Ticket<'_> {
    /// Starts watching a new attempt and discards what was seen of the last one.
    fn watch_again(&self) {
        self.absent.set(false);
        self.listed.borrow_mut().clear();
        self.cut_short.set(false);
        if let Role::Read { head: false, .. } = self.role {
            let (keyset, key) = self.id;
            let inspector = Inspector::new(&self.oracle.arena, keyset, key, self.offset);
            *self.inspector.borrow_mut() = Some(inspector);
        }
    }

    /// An attempt has failed.
    pub(crate) fn failed(&self, kind: ErrorKind) {
        self.watch_again();
        self.absent.set(kind == ErrorKind::NotFound);
        self.stray.set(self.stray.get() || may_have_effect(kind));
    }

    /// An attempt has succeeded.
    pub(crate) fn completed(&self, completion: &Completion) {
        self.completion.set(Some(*completion));
    }

    /// Judges an operation that has ended. Returns whether its body is wrong in itself.
    pub(crate) fn end(
        &self,
        op: &Op,
        outcome: Outcome,
        context: AnswerContext<'_>,
        on_finding: OnFinding<'_>,
    ) -> bool {
        match &self.role {
            Role::Mutation {
                version,
                if_absent,
                mark,
            } => {
                let ending = self.ending(outcome, context);
                let oracle = self.oracle;
                oracle.end_mutation(self.id, *version, ending, context);
                if *if_absent {
                    if outcome == Outcome::Ok && !self.stray.get() {
                        let refused = ending == Ending::Refused;
                        let write = (*version, *mark, refused);
                        oracle.judge_race(self.id, op, write, self.start_ns, context, on_finding);
                    }
                    oracle.with(self.id, |register| register.end_read());
                }
                false
            }
            Role::Deletes(keys) => {
                let ending = self.ending(outcome, context);
                for &(key, version) in keys {
                    let id = (self.id.0, key);
                    self.oracle.end_mutation(id, version, ending, context);
                }
                false
            }
            Role::Read { mark, .. } => {
                let wrong = self.answer(outcome).and_then(|answer| {
                    let range = op.range.map(|range| range.len);
                    self.oracle.reads.fetch_add(1, Relaxed);
                    self.oracle.judge(self.id, answer, range, *mark)
                });
                let kind = wrong.as_ref().map(|wrong| wrong.kind);
                if let Some(wrong) = wrong {
                    self.oracle
                        .report(self.id, op, wrong, self.start_ns, context, on_finding);
                }
                self.oracle.with(self.id, |register| register.end_read());
                kind.is_some_and(|kind| kind.spoils_body())
            }
            Role::Version => {
                self.oracle.reads.fetch_add(1, Relaxed);
                let wrong = WrongAnswer::of_version(
                    outcome,
                    op.version,
                    context.remembered && self.absent.get(),
                );
                if let Some(wrong) = wrong {
                    self.oracle
                        .report(self.id, op, wrong, self.start_ns, context, on_finding);
                }
                // The session has already failed a wrong body.
                false
            }
            Role::List => {
                if outcome == Outcome::Ok {
                    self.judge_listing(self.oracle, op, self.start_ns, context, on_finding);
                }
                false
            }
        }
    }

    /// The answer to a read; `None` if it failed for a reason that says nothing about the object.
    pub(super) fn answer(&self, outcome: Outcome) -> Option<Answer> {
        let Role::Read { head, .. } = self.role else {
            return None;
        };
        match outcome {
            Outcome::Failed(ErrorKind::NotFound) if self.absent.get() => Some(Answer::Absent),
            Outcome::Ok if head => Some(Answer::Size(self.completion.get()?.object_size)),
            Outcome::Ok => Some(Answer::Body(self.inspector.take()?.finish())),
            Outcome::Failed(_) => None,
        }
    }

    /// The read's mark.
    pub(super) fn mark(&self) -> ReadMark {
        match self.role {
            Role::Read { mark, .. } => mark,
            _ => ReadMark::default(),
        }
    }

    fn acknowledged(&self, context: AnswerContext<'_>) -> Ending {
        Ending::Acknowledged {
            attempt_ns: context.attempt_ns,
            at_ns: context.done_ns,
            stray: self.stray.get(),
        }
    }

    fn ending(&self, outcome: Outcome, context: AnswerContext<'_>) -> Ending {
        let not_done = if self.stray.get() {
            Ending::Unknown
        } else {
            Ending::Refused
        };
        match (outcome, &self.role) {
            (
                Outcome::Ok,
                Role::Mutation {
                    if_absent: true, ..
                },
            ) if self.completion.get().is_some_and(|c| c.items == 0) => not_done,
            (Outcome::Ok, _) => self.acknowledged(context),
            (Outcome::Failed(ErrorKind::Cancelled), _) => Ending::Unknown,
            // Some of the keys may have been deleted.
            (Outcome::Failed(_), Role::Deletes(_)) => Ending::Unknown,
            (Outcome::Failed(_), _) => not_done,
        }
    }
}

impl Oracle {
    fn end_mutation(&self, id: KeyId, version: u32, ending: Ending, context: AnswerContext<'_>) {
        let label = RequestLabel::new(context.request_id);
        self.with(id, |register| {
            register.end(version, ending, label, context.endpoint);
        });
        let unknown = ending == Ending::Unknown;
        self.unknown.fetch_add(u64::from(unknown), Relaxed);
    }
}

impl Watch for Ticket<'_> {
    fn body(&self, bytes: &[u8]) {
        if let Some(inspector) = &mut *self.inspector.borrow_mut() {
            inspector.feed(bytes);
        }
    }

    fn listed(&self, key: &str) {
        let names = &self.oracle.names[usize::from(self.id.0)];
        if let (Role::List, Some(index)) = (&self.role, names.index_of(key)) {
            self.listed.borrow_mut().push(index);
        }
    }

    fn cut_short(&self) {
        self.cut_short.set(true);
    }
}
