//! The record of one operation and the probe that collects its instants.
//!
//! All instants are nanoseconds since the run's epoch on one monotonic clock:
//!
//! ```text
//! due ──(timer lateness)── taken ──(dispatch, build, sign, reconnect)── started ── first byte ── done
//!  └───────────────────────── lag ─────────────────────────────────────────┘
//!                                                                       └──── service time ────┘
//!  └──────────────────────────────────── response time ────────────────────────────────────────┘
//! ```

use crate::error::ErrorKind;
use crate::op::OpClass;

/// Phase durations of one connection establishment, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectTimes {
    /// Name resolution; 0 when the address was literal or resolved before.
    pub dns_ns: u64,
    /// TCP connect.
    pub tcp_ns: u64,
    /// TLS handshake; 0 without TLS.
    pub tls_ns: u64,
}

/// Collects the instants of one operation. The clock is a plain function, so that tests can use
/// virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    clock: fn() -> u64,
    started_ns: u64,
    first_byte_ns: u64,
    done_ns: u64,
    requests: u32,
    connects: u32,
    connect: ConnectTimes,
}

impl Probe {
    /// A probe that reads `clock` (nanoseconds since the run's epoch).
    #[must_use]
    pub fn new(clock: fn() -> u64) -> Self {
        Self {
            clock,
            started_ns: 0,
            first_byte_ns: 0,
            done_ns: 0,
            requests: 0,
            connects: 0,
            connect: ConnectTimes::default(),
        }
    }

    /// Forgets the previous operation.
    #[inline]
    pub fn reset(&mut self) {
        *self = Self::new(self.clock);
    }

    /// Current time in nanoseconds since the run's epoch.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        (self.clock)()
    }

    /// Marks the instant at which a request leaves. The first call of an operation sets
    /// `started`; each call counts one request.
    #[inline]
    pub fn started(&mut self) {
        if self.requests == 0 {
            self.started_ns = (self.clock)();
        }
        self.requests += 1;
    }

    /// Marks the arrival of the answer's first byte; later calls of the same operation are
    /// ignored, so that the first answer of several counts.
    #[inline]
    pub fn first_byte(&mut self) {
        if self.first_byte_ns == 0 {
            self.first_byte_ns = (self.clock)();
        }
    }

    /// Marks the arrival of the last byte; the last call counts.
    #[inline]
    pub fn done(&mut self) {
        self.done_ns = (self.clock)();
    }

    /// Marks first and last byte with one clock reading: the whole answer came at once.
    #[inline]
    pub fn first_byte_and_done(&mut self) {
        self.done_ns = (self.clock)();
        if self.first_byte_ns == 0 {
            self.first_byte_ns = self.done_ns;
        }
    }

    /// Adds a connection establishment that took place before `started`.
    pub fn connected(&mut self, times: ConnectTimes) {
        self.connects += 1;
        self.connect.dns_ns += times.dns_ns;
        self.connect.tcp_ns += times.tcp_ns;
        self.connect.tls_ns += times.tls_ns;
    }

    /// Instant the first request left; 0 when none did.
    #[must_use]
    pub const fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Instant of the answer's first byte; 0 when there was none.
    #[must_use]
    pub const fn first_byte_ns(&self) -> u64 {
        self.first_byte_ns
    }

    /// Instant of the answer's last byte; 0 when there was none.
    #[must_use]
    pub const fn done_ns(&self) -> u64 {
        self.done_ns
    }

    /// Requests sent for the operation.
    #[must_use]
    pub const fn requests(&self) -> u32 {
        self.requests
    }

    /// Connections made during the operation and their summed phase times.
    #[must_use]
    pub const fn connects(&self) -> (u32, ConnectTimes) {
        (self.connects, self.connect)
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Ok,
    /// It failed for the stated reason; never counts as throughput.
    Failed(ErrorKind),
}

/// Everything that is recorded about one operation (including all its attempts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpRecord {
    /// Position in the work's global sequence.
    pub seq: u64,
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
