//! The record of one operation, and how its response time is made up.
//!
//! All instants are nanoseconds since the run's epoch on one monotonic clock; the [`Probe`] of the
//! operation collects them:
//!
//! ```text
//! due ──(queue)── taken ──(retry · DNS · connect · TLS · build)── started ──(send)── sent ──(wait)── first byte ──(body)── done
//!  └──────────────────────────── lag ────────────────────────────────┘
//!                                                                    └──────────────── service time ──────────────────────┘
//!  └──────────────────────────────────────────── response time ───────────────────────────────────────────────────────────┘
//! ```
//!
//! The parts below the line are [`Part`]s: they add up to the response time exactly.

use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;
use crate::op::OpClass;

pub use crate::probe::{AnswerIds, ConnectTimes, Probe};

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Ok,
    /// It failed for the stated reason; never counts as throughput.
    Failed(ErrorKind),
}

/// A part of the response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Part {
    /// Due to taken: timer lateness, the wait for a free worker, and in a replay the wait for an
    /// earlier request on the same key.
    Queue,
    /// Earlier attempts and the pauses between them.
    Retry,
    /// Name resolution, when a connection had to be made.
    Dns,
    /// TCP connect, when a connection had to be made.
    Connect,
    /// TLS handshake, when a connection had to be made.
    Tls,
    /// The client's own work before the request leaves: rendering, hashing, signing.
    Build,
    /// First to last byte of the request handed to the kernel; 0 when one system call took it all.
    Send,
    /// Request sent to first byte of the answer.
    Wait,
    /// First byte of the answer to its last; of operations with several requests, all that
    /// follows the first answer's first byte.
    Body,
}

impl Part {
    /// Every part, in the order in which they follow each other.
    pub const ALL: [Self; 9] = [
        Self::Queue,
        Self::Retry,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Build,
        Self::Send,
        Self::Wait,
        Self::Body,
    ];

    /// The name used in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Retry => "retry",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Build => "build",
            Self::Send => "send",
            Self::Wait => "wait",
            Self::Body => "body",
        }
    }

    /// The part called `name`, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Everything that is recorded about one operation (including all its attempts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpRecord {
    /// Index of the work within the phase.
    pub work: u16,
    /// Operation class.
    pub class: OpClass,
    /// Worker that performed it.
    pub worker: u32,
    /// Endpoint it went to.
    pub endpoint: u16,
    /// Intended start.
    pub due_ns: u64,
    /// Instant a load thread turned to it; `taken - due` minus `dispatch_ns` and `blocked_ns` is
    /// timer lateness.
    pub taken_ns: u64,
    /// Part of `taken - due` during which no worker was free (in-flight cap, connecting).
    pub dispatch_ns: u64,
    /// Part of `taken - due` during which an earlier request on the same key had to end first (a
    /// replay that keeps the order of each key); no part of `dispatch_ns`.
    pub blocked_ns: u64,
    /// Instant its (last attempt's) request left.
    pub started_ns: u64,
    /// Part of `started - taken` that was not the client's own work: earlier attempts, the pauses
    /// between attempts, and (re)connecting.
    pub held_ns: u64,
    /// Part of `held_ns`: the last attempt's (re)connecting.
    pub connect: ConnectTimes,
    /// Instant its request had left entirely; `started_ns` when it left in one system call, and 0
    /// when nothing left.
    pub sent_ns: u64,
    /// Instant of the answer's first byte; 0 when there was none.
    pub first_byte_ns: u64,
    /// End of the operation.
    pub done_ns: u64,
    /// Object bytes transferred.
    pub bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Attempts made, at least 1.
    pub attempts: u32,
}

impl OpRecord {
    /// A record in which nothing stands yet.
    pub const BLANK: Self = Self {
        work: 0,
        class: OpClass::Get,
        worker: 0,
        endpoint: 0,
        due_ns: 0,
        taken_ns: 0,
        dispatch_ns: 0,
        blocked_ns: 0,
        started_ns: 0,
        held_ns: 0,
        connect: ConnectTimes {
            dns_ns: 0,
            tcp_ns: 0,
            tls_ns: 0,
        },
        sent_ns: 0,
        first_byte_ns: 0,
        done_ns: 0,
        bytes: 0,
        outcome: Outcome::Ok,
        attempts: 0,
    };

    /// Response time: end minus intended start, in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn response_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.due_ns)
    }

    /// Service time: end minus actual start, in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn service_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.started_ns)
    }

    /// Lag: actual minus intended start, in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn lag_ns(&self) -> u64 {
        self.started_ns.saturating_sub(self.due_ns)
    }

    /// Timer lateness: how long after the due instant the load thread noticed, although a worker
    /// was free, in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn late_ns(&self) -> u64 {
        self.taken_ns
            .saturating_sub(self.due_ns)
            .saturating_sub(self.dispatch_ns)
            .saturating_sub(self.blocked_ns)
    }

    /// How much of the response time `part` took, nanoseconds. The parts of an operation that got
    /// an answer add up to its response time.
    #[must_use]
    pub const fn part_ns(&self, part: Part) -> u64 {
        match (part as usize).checked_sub(Part::Send as usize) {
            None => self.start_parts_ns()[part as usize],
            Some(after) => self.service_parts_ns()[after],
        }
    }

    /// How much time each part from [`Part::Queue`] to [`Part::Build`] took, nanoseconds: all at once, without a branch
    /// per part.
    #[inline]
    #[must_use]
    pub const fn start_parts_ns(&self) -> [u64; Part::Send as usize] {
        [
            self.taken_ns.saturating_sub(self.due_ns),
            self.held_ns.saturating_sub(self.connect.total_ns()),
            self.connect.dns_ns,
            self.connect.tcp_ns,
            self.connect.tls_ns,
            self.build_ns(),
        ]
    }

    /// How much time each part from [`Part::Send`] to [`Part::Body`] took, nanoseconds.
    #[inline]
    #[must_use]
    pub const fn service_parts_ns(&self) -> [u64; Part::ALL.len() - Part::Send as usize] {
        let sent_until_ns = self.sent_until_ns();
        let body_ns = match self.first_byte_ns {
            0 => 0,
            first => self.done_ns.saturating_sub(first),
        };
        [
            sent_until_ns.saturating_sub(self.started_ns),
            self.first_byte_ns.saturating_sub(sent_until_ns),
            body_ns,
        ]
    }

    /// Whether the client's own work was all that came before the start of an operation that succeeded: then lag,
    /// lateness with build time, and [`Part::Build`] are one time, and the other parts before the start took none.
    #[inline]
    #[must_use]
    pub const fn only_built(&self) -> bool {
        matches!(self.outcome, Outcome::Ok)
            && self.taken_ns == self.due_ns
            && (self.held_ns | self.dispatch_ns | self.blocked_ns) == 0
            && self.connect.total_ns() == 0
            && self.started_ns > self.taken_ns
    }

    /// Whether waiting was all that an operation that succeeded did after its start: then service time, time to first
    /// byte, and [`Part::Wait`] are one time, and the other parts after the start took none.
    #[inline]
    #[must_use]
    pub const fn only_waited(&self) -> bool {
        matches!(self.outcome, Outcome::Ok)
            && self.first_byte_ns == self.done_ns
            && self.sent_ns <= self.started_ns
            && self.done_ns > self.started_ns
    }

    /// When sending ended: a store may answer before it has taken the whole request.
    #[inline]
    const fn sent_until_ns(&self) -> u64 {
        if self.sent_ns > self.first_byte_ns && self.first_byte_ns != 0 {
            self.first_byte_ns
        } else if self.sent_ns > self.started_ns {
            self.sent_ns
        } else {
            self.started_ns
        }
    }

    /// Build time: the client's own work from taking the operation to its first byte leaving, in
    /// nanoseconds. Earlier attempts, their pauses and connecting are no part of it.
    #[inline]
    #[must_use]
    pub const fn build_ns(&self) -> u64 {
        self.started_ns
            .saturating_sub(self.taken_ns)
            .saturating_sub(self.held_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ConnectTimes, OpRecord, Part};
    use crate::op::OpClass;

    #[test]
    fn parts_have_names() {
        for (i, part) in Part::ALL.into_iter().enumerate() {
            assert_eq!(part as usize, i);
            assert_eq!(Part::from_name(part.name()), Some(part));
            assert_eq!(serde_json::to_value(part).unwrap(), part.name());
        }
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_response_time(
            steps in prop::array::uniform9(0u64..1 << 30),
            early in any::<bool>(),
            one_call in any::<bool>(),
        ) {
            let [queue, retry, dns, tcp, tls, build, send, wait, body] = steps;
            let due_ns = 77;
            let taken_ns = due_ns + queue;
            let connect = ConnectTimes { dns_ns: dns, tcp_ns: tcp, tls_ns: tls };
            let held_ns = retry + connect.total_ns();
            let started_ns = taken_ns + held_ns + build;
            let first_byte_ns = started_ns + send + wait;
            let record = OpRecord {
                class: OpClass::Put,
                due_ns,
                taken_ns,
                dispatch_ns: queue / 2,
                started_ns,
                held_ns,
                connect,
                // A refusal may come before everything has left.
                sent_ns: match (one_call, early) {
                    (true, _) => started_ns,
                    (_, true) => first_byte_ns + 5,
                    (_, false) => started_ns + send,
                },
                first_byte_ns,
                done_ns: first_byte_ns + body,
                attempts: 1,
                ..OpRecord::BLANK
            };
            let sum: u64 = Part::ALL.into_iter().map(|part| record.part_ns(part)).sum();
            prop_assert_eq!(sum, record.response_ns());
            prop_assert_eq!(record.part_ns(Part::Queue), queue);
            prop_assert_eq!(record.part_ns(Part::Retry), retry);
            prop_assert_eq!(record.part_ns(Part::Build), build);
            prop_assert_eq!(record.part_ns(Part::Body), body);
            let served = [Part::Send, Part::Wait, Part::Body].map(|p| record.part_ns(p));
            prop_assert_eq!(served.iter().sum::<u64>(), record.service_ns());
        }
    }
}
