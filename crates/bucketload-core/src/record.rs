//! The record of one operation and the parts of its response time.
//!
//! All instants are nanoseconds since the run's epoch on one monotonic clock. The operation's [`Probe`] collects them:
//!
//! ```text
//! due ──(queue)── taken ──(retry · DNS · connect · TLS · build)── started ──(send)── sent ──(wait)── first byte ──(body)── done
//!  └──────────────────────────── lag ────────────────────────────────┘
//!                                                                    └──────────────── service time ──────────────────────┘
//!  └──────────────────────────────────────────── response time ───────────────────────────────────────────────────────────┘
//! ```
//!
//! The times in parentheses are the [`Part`]s. They add up to the response time exactly.

use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;
use crate::op::OpClass;

pub use crate::probe::{AnswerIds, ConnectTimes, Probe};

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Ok,
    /// It failed for this reason. Failures never count as throughput.
    Failed(ErrorKind),
}

/// A part of the response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Part {
    /// From due to taken: timer lateness, the wait for a free worker, and in a replay the wait for an earlier request
    /// on the same key.
    Queue,
    /// Earlier attempts and the pauses between them.
    Retry,
    /// Name resolution, if a connection had to be made.
    Dns,
    /// TCP connect, if a connection had to be made.
    Connect,
    /// TLS handshake, if a connection had to be made.
    Tls,
    /// The client's own work before the request leaves: rendering, hashing, signing.
    Build,
    /// From the first to the last byte of the request handed to the kernel; 0 if one system call took all.
    Send,
    /// From the request sent to the first byte of the answer.
    Wait,
    /// From the first to the last byte of the answer. In operations of several requests, everything after the first
    /// byte of the first answer.
    Body,
}

impl Part {
    /// Every part, in chronological order.
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

/// The times and the outcome of one operation, including all its attempts.
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
    /// When a load thread turned to it. The wait `taken - due` without `dispatch_ns` and `blocked_ns` is timer
    /// lateness.
    pub taken_ns: u64,
    /// Part of `taken - due` during which no worker was free: the in-flight cap was reached, or sessions were
    /// connecting.
    pub dispatch_ns: u64,
    /// Part of `taken - due` spent waiting for an earlier request on the same key, in a replay that keeps the order of
    /// each key. Not included in `dispatch_ns`.
    pub blocked_ns: u64,
    /// When the request of the last attempt left.
    pub started_ns: u64,
    /// Part of `started - taken` that was not the client's own work: earlier attempts, the pauses between attempts, and
    /// connecting or reconnecting.
    pub held_ns: u64,
    /// Part of `held_ns`: connecting or reconnecting in the last attempt.
    pub connect: ConnectTimes,
    /// When the whole request had left; `started_ns` if it left in one system call, 0 if no request left.
    pub sent_ns: u64,
    /// When the answer's first byte came; 0 if none came.
    pub first_byte_ns: u64,
    /// End of the operation.
    pub done_ns: u64,
    /// Object bytes transferred.
    pub bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Number of attempts, at least 1.
    pub attempts: u32,
}

impl OpRecord {
    /// An empty record.
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

    /// Timer lateness, nanoseconds: how late the load thread turned to the operation although a worker was free.
    #[inline]
    #[must_use]
    pub const fn late_ns(&self) -> u64 {
        self.taken_ns
            .saturating_sub(self.due_ns)
            .saturating_sub(self.dispatch_ns)
            .saturating_sub(self.blocked_ns)
    }

    /// The share of `part` in the response time, nanoseconds. The parts of an operation that got an answer add up to
    /// its response time.
    #[must_use]
    pub const fn part_ns(&self, part: Part) -> u64 {
        match (part as usize).checked_sub(Part::Send as usize) {
            None => self.start_parts_ns()[part as usize],
            Some(after) => self.service_parts_ns()[after],
        }
    }

    /// The parts from [`Part::Queue`] to [`Part::Build`], nanoseconds, computed without a branch per part.
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

    /// The parts from [`Part::Send`] to [`Part::Body`], nanoseconds.
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

    /// Whether the operation succeeded and only the client's own work came before its start. Then lag, lateness plus
    /// build time, and [`Part::Build`] are the same time, and all other parts before the start are 0.
    #[inline]
    #[must_use]
    pub const fn only_built(&self) -> bool {
        matches!(self.outcome, Outcome::Ok)
            && self.taken_ns == self.due_ns
            && (self.held_ns | self.dispatch_ns | self.blocked_ns) == 0
            && self.connect.total_ns() == 0
            && self.started_ns > self.taken_ns
    }

    /// Whether the operation succeeded and only waited after its start. Then service time, time to first byte, and
    /// [`Part::Wait`] are the same time, and all other parts after the start are 0.
    #[inline]
    #[must_use]
    pub const fn only_waited(&self) -> bool {
        matches!(self.outcome, Outcome::Ok)
            && self.first_byte_ns == self.done_ns
            && self.sent_ns <= self.started_ns
            && self.done_ns > self.started_ns
    }

    /// When sending ended, bounded by the first byte of the answer: a store may answer before it has the whole request.
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

    /// Build time: the client's own work from taking the operation until its first byte leaves, nanoseconds. Excludes
    /// earlier attempts, their pauses and connecting.
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
                // A refusal may come before the whole request has left.
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
