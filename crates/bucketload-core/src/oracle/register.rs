//! The history of one key, as far as it decides what a read may return.
//!
//! Mutations are numbered from 1 in the order in which they begin; the number is the version of the
//! content. What matters of the past is the *fence*: the latest beginning of an acknowledged
//! mutation. A mutation that had ended before the fence is superseded. A read notes the fence when it
//! begins ([`ReadMark`]) and is judged by it when it ends, so that the superseded part of the history
//! can be forgotten as soon as no read is under way.

/// Mutations of one key that are remembered while reads are under way.
const REMEMBERED: usize = 16;
/// Mutations of one key that nothing has superseded: with more the key is given up.
const MOST_OPEN: usize = 48;
/// End of a mutation that is under way or of unknown outcome.
const NEVER: u64 = u64::MAX;

/// What a mutation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Writes an object of so many bytes.
    Object {
        /// Size in bytes.
        size: u64,
    },
    /// Removes the object.
    Absent,
}

/// An identifier that the store gave to a request; what is longer than 40 bytes is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    len: u8,
    bytes: [u8; 40],
}

impl Label {
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

    /// The text; empty when it is not known.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// Where a mutation comes from.
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
    /// Its number.
    pub version: u32,
    /// What it does.
    pub state: State,
    /// Whether it takes effect only on an absent object.
    pub if_absent: bool,
    /// Where it comes from.
    pub origin: Origin,
    /// When its first attempt began.
    pub start_ns: u64,
    /// When the attempt began that was acknowledged.
    attempt_ns: u64,
    /// Latest instant at which it can have taken effect.
    end_ns: u64,
    /// When it was acknowledged; 0 = not.
    acknowledged_ns: u64,
    /// The store's name of the request.
    pub label: Label,
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
    /// Acknowledged at `at_ns`; the acknowledged attempt began at `attempt_ns`. `stray` tells that an
    /// earlier attempt may still take effect.
    Acknowledged {
        /// When the acknowledged attempt began.
        attempt_ns: u64,
        /// When the acknowledgement was there.
        at_ns: u64,
        /// Whether an earlier attempt has an unknown outcome.
        stray: bool,
    },
    /// It has certainly had no effect.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// What a read must not be older than; taken when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadMark {
    /// Beginning of the mutation that the answer must not precede; 0 = there is none.
    fence_ns: u64,
    /// Its number.
    by: u32,
}

/// What the history says about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may be so.
    Allowed,
    /// The mutation with this number supersedes it.
    Superseded {
        /// Number of the mutation that had to be seen.
        by: u32,
    },
    /// Nobody wrote that.
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
    /// Reads under way.
    readers: u32,
    /// Too much is unknown to judge anything.
    given_up: bool,
    /// Whether the key may have had an object before the run.
    inherited: bool,
    /// Answers that lacked the mutation of the current mark, and how many findings they made; taken
    /// back when it turns out to be lost.
    pub lacking: (u64, u64),
    /// The last finding's kind and version: seen again it is not another one.
    pub last: Option<(super::FindingKind, u32)>,
}

impl Register {
    /// The history of a key that nobody has touched; `inherited` tells that it may have an object
    /// from before the run.
    #[must_use]
    pub fn new(inherited: bool) -> Self {
        Self {
            inherited,
            ..Self::default()
        }
    }

    /// A mutation begins; returns its number.
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
            label: Label::new(""),
            endpoint: 0,
        });
        self.begun
    }

    /// Mutation `version` has ended.
    pub fn end(&mut self, version: u32, ending: Ending, label: Label, endpoint: u16) {
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

    /// A read begins.
    pub fn begin_read(&mut self) -> ReadMark {
        self.readers += 1;
        self.mark
    }

    /// A read has ended and been judged.
    pub fn end_read(&mut self) {
        self.readers = self.readers.saturating_sub(1);
        self.forget();
    }

    /// What a read that begins now must not be older than.
    #[must_use]
    pub const fn mark(&self) -> ReadMark {
        self.mark
    }

    /// Whether nothing can be said about the key any more.
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

    /// The mutations that are remembered, in order.
    #[must_use]
    pub fn history(&self) -> &[Mutation] {
        &self.history
    }

    /// Mutation `version`, if it is remembered.
    #[must_use]
    pub fn mutation(&self, version: u32) -> Option<&Mutation> {
        self.history.iter().find(|m| m.version == version)
    }

    /// The mutation that a read which began at `mark` must not be older than.
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
            // The content that the plan gives to initial objects: from before the run.
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

    /// Whether a read that began at `mark` may find an object, `but` apart.
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

    /// What an answer that began at `start_ns` must not be older than, found afterwards: what was
    /// acknowledged before, as far as it is remembered. Never demands more than a mark taken then.
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

    /// Another conditional write that succeeded although `version` did, with nothing between the two
    /// that could have removed the object.
    #[must_use]
    pub fn other_winner(&self, version: u32) -> Option<&Mutation> {
        let own = self.mutation(version)?;
        let end = |m: &Mutation| m.acknowledged_ns;
        self.history.iter().find(|other| {
            let wins = other.if_absent && other.acknowledged_ns > 0 && other.version != version;
            let (first, last) = (own.start_ns.min(other.start_ns), end(own).max(end(other)));
            let removed =
                |m: &Mutation| m.state == State::Absent && m.start_ns <= last && m.end_ns >= first;
            // What was forgotten since may have been a delete.
            wins && self.forgotten_ns < first && !self.history.iter().any(removed)
        })
    }

    /// Forgets what is superseded, unless a read is under way that may still return it.
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
