//! The history of one key, as far as it determines what a read may return.
//!
//! Mutations are numbered from 1 in the order in which they begin; the number is the version of the content.
//! The relevant part of the past is the *fence*: the latest start of an acknowledged mutation. A mutation
//! that ended before the fence is superseded. A read records the fence when it begins ([`ReadMark`]) and is
//! judged by it when it ends, so the superseded part of the history can be forgotten as soon as no read is in
//! flight.

/// Number of mutations per key to remember while reads are in flight.
const REMEMBERED: usize = 16;
/// Maximum number of unsuperseded mutations per key; beyond it the key is no longer judged.
const MOST_OPEN: usize = 48;
/// End of a mutation that is in flight or of unknown outcome.
const NEVER: u64 = u64::MAX;

/// What a mutation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Writes an object of this size.
    Object {
        /// Size in bytes.
        size: u64,
    },
    /// Removes the object.
    Absent,
}

/// An identifier that the store gave to a request, truncated to 40 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLabel {
    len: u8,
    bytes: [u8; 40],
}

impl RequestLabel {
    /// The label `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; 40];
        let len = text.len().min(bytes.len());
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self {
            len: len as u8,
            bytes,
        }
    }

    /// The text; empty if unknown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// The operation behind a mutation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Position in the sequence of its work.
    pub seq: u64,
    /// Index of its phase.
    pub phase: u16,
    /// Index of its work.
    pub work: u16,
}

/// A mutation of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// Version number.
    pub version: u32,
    /// What it does.
    pub state: State,
    /// Whether it takes effect only if the object is absent.
    pub if_absent: bool,
    /// The operation behind it.
    pub origin: Origin,
    /// When its first attempt began.
    pub start_ns: u64,
    /// When the acknowledged attempt began.
    attempt_ns: u64,
    /// Latest instant at which it may have taken effect.
    end_ns: u64,
    /// When it was acknowledged; 0 = not acknowledged.
    acknowledged_ns: u64,
    /// The store's request identifier.
    pub label: RequestLabel,
    /// Index of the endpoint it went to.
    pub endpoint: u16,
}

impl Mutation {
    /// When it was acknowledged, if it was.
    #[must_use]
    pub const fn acknowledged_ns(&self) -> Option<u64> {
        match self.acknowledged_ns {
            0 => None,
            at => Some(at),
        }
    }
}

/// How a mutation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Acknowledged at `at_ns`; the acknowledged attempt began at `attempt_ns`. With `stray`, an earlier
    /// attempt may still take effect.
    Acknowledged {
        /// When the acknowledged attempt began.
        attempt_ns: u64,
        /// When the acknowledgement arrived.
        at_ns: u64,
        /// Whether an earlier attempt has an unknown outcome.
        stray: bool,
    },
    /// It certainly had no effect.
    Refused,
    /// The outcome is unknown.
    Unknown,
}

/// The oldest state that a read may return; recorded when the read begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadMark {
    /// Start of the mutation that the answer must not precede; 0 = none.
    fence_ns: u64,
    /// The mutation's number.
    by: u32,
}

/// The verdict on an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The answer is possible.
    Allowed,
    /// The mutation with this number supersedes it.
    Superseded {
        /// Number of the mutation that should have been visible.
        by: u32,
    },
    /// Nobody wrote it.
    Phantom,
    /// The history does not reach back far enough.
    Unjudged,
}

/// The history of one key.
#[derive(Clone, Debug, Default)]
pub struct Register {
    /// Mutations begun.
    begun: u32,
    mark: ReadMark,
    history: Vec<Mutation>,
    /// Latest end of a mutation that was forgotten.
    forgotten_ns: u64,
    /// Reads in flight.
    readers: u32,
    /// Too much is unknown to judge any answer.
    given_up: bool,
    /// Whether the key may have had an object before the run.
    inherited: bool,
    /// Number of answers that lacked the mutation of the current mark, and of the findings they caused. Both
    /// are retracted if that mutation turns out to be lost.
    pub lacking: (u64, u64),
    /// Kind and version of the last finding; a repetition is not counted as another one.
    pub last: Option<(super::FindingKind, u32)>,
}

impl Register {
    /// The history of a key not touched yet; `inherited` means that it may hold an object from before the
    /// run.
    #[must_use]
    pub fn new(inherited: bool) -> Self {
        Self {
            inherited,
            ..Self::default()
        }
    }

    /// Registers the start of a mutation and returns its number.
    pub fn begin(&mut self, state: State, if_absent: bool, origin: Origin, start_ns: u64) -> u32 {
        self.begun += 1;
        self.last = None;
        self.history.push(Mutation {
            version: self.begun,
            state,
            if_absent,
            origin,
            start_ns,
            attempt_ns: start_ns,
            end_ns: NEVER,
            acknowledged_ns: 0,
            label: RequestLabel::new(""),
            endpoint: 0,
        });
        self.begun
    }

    /// Registers the end of mutation `version`.
    pub fn end(&mut self, version: u32, ending: Ending, label: RequestLabel, endpoint: u16) {
        let Some(at) = self.history.iter().position(|m| m.version == version) else {
            return;
        };
        let mutation = &mut self.history[at];
        (mutation.label, mutation.endpoint) = (label, endpoint);
        match ending {
            Ending::Acknowledged {
                attempt_ns,
                at_ns,
                stray,
            } => {
                mutation.attempt_ns = attempt_ns;
                mutation.acknowledged_ns = at_ns.max(1);
                mutation.end_ns = if stray { NEVER } else { at_ns };
                if attempt_ns > self.mark.fence_ns {
                    self.mark = ReadMark {
                        fence_ns: attempt_ns,
                        by: version,
                    };
                    self.lacking = (0, 0);
                }
            }
            Ending::Refused => {
                self.history.remove(at);
            }
            Ending::Unknown => {}
        }
        self.forget();
    }

    /// Registers the start of a read.
    pub fn begin_read(&mut self) -> ReadMark {
        self.readers += 1;
        self.mark
    }

    /// Registers the end of a read that has been judged.
    pub fn end_read(&mut self) {
        self.readers = self.readers.saturating_sub(1);
        self.forget();
    }

    /// The mark for a read that begins now.
    #[must_use]
    pub const fn mark(&self) -> ReadMark {
        self.mark
    }

    /// Whether the key is no longer judged.
    #[must_use]
    pub const fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Stops judging the key.
    pub fn give_up(&mut self) {
        self.given_up = true;
        self.history = Vec::new();
    }

    /// Number of the latest mutation begun.
    #[must_use]
    pub const fn begun(&self) -> u32 {
        self.begun
    }

    /// The remembered mutations, in order.
    #[must_use]
    pub fn history(&self) -> &[Mutation] {
        &self.history
    }

    /// Mutation `version`, if it is remembered.
    #[must_use]
    pub fn mutation(&self, version: u32) -> Option<&Mutation> {
        self.history.iter().find(|m| m.version == version)
    }

    /// The mutation that a read with mark `mark` must reflect, unless a newer one.
    #[must_use]
    pub fn missed(&self, mark: ReadMark) -> Option<&Mutation> {
        self.mutation(mark.by)
    }

    /// Whether a read that began at `mark` may return version `version`.
    #[must_use]
    pub fn rule_version(&self, version: u32, mark: ReadMark) -> Ruling {
        if self.given_up {
            return Ruling::Unjudged;
        }
        if let Some(mutation) = self.mutation(version) {
            return self.rule(mutation.end_ns, mark);
        }
        match version {
            // The content that the plan assigns to initial objects: from before the run.
            0 if self.inherited => self.rule(0, mark),
            0 => Ruling::Phantom,
            _ if version > self.begun => Ruling::Phantom,
            _ if mark.fence_ns > self.forgotten_ns => Ruling::Superseded { by: mark.by },
            _ => Ruling::Unjudged,
        }
    }

    /// Whether a read that began at `mark` may find no object.
    #[must_use]
    pub fn rule_absent(&self, mark: ReadMark) -> Ruling {
        if self.given_up {
            return Ruling::Unjudged;
        }
        let deletes = self.history.iter().filter(|m| m.state == State::Absent);
        let ruling = self.rule(deletes.map(|m| m.end_ns).max().unwrap_or(0), mark);
        if ruling != Ruling::Allowed && self.forgotten_ns >= mark.fence_ns {
            return Ruling::Unjudged;
        }
        ruling
    }

    /// Whether a read that began at `mark` may find an object of a version other than `but`.
    #[must_use]
    pub fn rule_present(&self, mark: ReadMark, but: u32) -> Ruling {
        if self.given_up || self.inherited && mark.fence_ns == 0 {
            return Ruling::Unjudged;
        }
        let puts = self
            .history
            .iter()
            .filter(|m| m.state != State::Absent && m.version != but);
        match puts.map(|m| m.end_ns).max() {
            Some(end_ns) if end_ns >= mark.fence_ns => Ruling::Allowed,
            _ if self.forgotten_ns >= mark.fence_ns && self.forgotten_ns > 0 => Ruling::Unjudged,
            _ if mark.by == 0 => Ruling::Phantom,
            _ => Ruling::Superseded { by: mark.by },
        }
    }

    const fn rule(&self, end_ns: u64, mark: ReadMark) -> Ruling {
        if end_ns >= mark.fence_ns {
            Ruling::Allowed
        } else {
            Ruling::Superseded { by: mark.by }
        }
    }

    /// The mark for an answer that began at `start_ns`, reconstructed afterwards from the remembered
    /// mutations that had been acknowledged before. Never demands more than a mark recorded at that time.
    #[must_use]
    pub fn mark_at(&self, start_ns: u64) -> ReadMark {
        let known = self
            .history
            .iter()
            .filter(|m| m.acknowledged_ns > 0 && m.acknowledged_ns < start_ns)
            .max_by_key(|m| m.attempt_ns);
        known.map_or(ReadMark::default(), |m| ReadMark {
            fence_ns: m.attempt_ns,
            by: m.version,
        })
    }

    /// Another conditional write that succeeded as well as `version`, with nothing in between that could have
    /// removed the object.
    #[must_use]
    pub fn other_winner(&self, version: u32) -> Option<&Mutation> {
        let winner = self.mutation(version)?;
        let end = |m: &Mutation| m.acknowledged_ns;
        self.history.iter().find(|other| {
            let wins = other.if_absent && other.acknowledged_ns > 0 && other.version != version;
            let (first, last) = (
                winner.start_ns.min(other.start_ns),
                end(winner).max(end(other)),
            );
            let removed =
                |m: &Mutation| m.state == State::Absent && m.start_ns <= last && m.end_ns >= first;
            // A mutation forgotten since then may have been a delete.
            wins && self.forgotten_ns < first && !self.history.iter().any(removed)
        })
    }

    /// Forgets superseded mutations, unless a read in flight may still return them.
    fn forget(&mut self) {
        if self.readers > 0 && self.history.len() <= REMEMBERED {
            return;
        }
        let (fence_ns, forgotten) = (self.mark.fence_ns, &mut self.forgotten_ns);
        self.history.retain(|m| {
            let keep = m.end_ns >= fence_ns;
            if !keep {
                *forgotten = m.end_ns.max(*forgotten);
            }
            keep
        });
        if self.history.len() > MOST_OPEN {
            self.give_up();
        }
    }
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
