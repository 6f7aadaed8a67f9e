//! Drills: what breaks between client and store, when, and for how long.
//!
//! A drill is a load phase that goes through stages: *warm* (not used for anything), *steady* (the baseline), *fault* (from
//! the first fault to the end of the last one) and *recover*. `bucketload-workload` reads the plan from a workload,
//! `bucketload-faultline` makes the faults, `bucketload-results` computes the figures.

use serde::{Deserialize, Serialize};

use crate::plan::GapLaw;

/// Time between the baseline and the first fault, nanoseconds: in it, the baseline is judged.
pub const JUDGE_NS: u64 = 1_000_000_000;

/// A drill with no option left open. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrillPlan {
    /// Length of the stage before the baseline.
    pub warm_ns: u64,
    /// Length of the baseline.
    pub steady_ns: u64,
    /// How long the load goes on after the last fault.
    pub recover_ns: u64,
    /// How long everything has to stay within the baseline's band to count as recovered.
    pub hold_ns: u64,
    /// Length of an interval, the resolution of all figures.
    pub interval_ns: u64,
    /// Longest response time of an operation that counts as answered in time; 0 = the baseline decides.
    pub deadline_ns: u64,
    /// What breaks.
    pub faults: Vec<Fault>,
}

/// One fault, which may come back several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Its name in reports.
    pub name: String,
    /// What it does.
    pub what: What,
    /// Start, counted from [`JUDGE_NS`] after the end of the baseline.
    pub at_ns: u64,
    /// How long it lasts.
    pub for_ns: u64,
    /// From one start to the next, if it comes back.
    pub every_ns: u64,
    /// How often it comes, at least 1.
    pub times: u32,
    /// Over which time the share of connections that it strikes grows from 0 to `share`.
    pub ramp_ns: u64,
    /// Share of the connections that it strikes (of requests, for answers).
    pub share: f64,
    /// The direction of the bytes that it strikes.
    pub direction: Direction,
    /// The endpoints that it strikes, as written; empty for all.
    pub endpoints: Vec<String>,
}

/// The direction of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the client to the store.
    Up,
    /// From the store to the client.
    Down,
    /// Both.
    #[default]
    Both,
}

impl Direction {
    /// True if bytes from the client (`up`) or to it are struck.
    #[must_use]
    pub const fn strikes(self, up: bool) -> bool {
        match self {
            Self::Up => up,
            Self::Down => !up,
            Self::Both => true,
        }
    }
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum What {
    /// Bytes arrive later. Their order stays.
    Latency {
        /// The law of delays.
        delay: GapLaw,
    },
    /// A connection carries at most this much in each direction.
    Bandwidth {
        /// Bytes per second.
        bytes_per_s: u64,
    },
    /// A new connection carries nothing for a while.
    SlowOpen {
        /// The law of delays.
        delay: GapLaw,
    },
    /// The end of a connection is passed on later.
    SlowClose {
        /// The law of delays.
        delay: GapLaw,
    },
    /// The connection is reset (RST) after so many bytes or so much time, whatever comes first.
    Reset {
        /// Bytes in either direction since the fault struck; 0 = no limit.
        after_bytes: u64,
        /// Time since the fault struck; 0 without `after_bytes` = at once.
        after_ns: u64,
    },
    /// Connections are accepted and nothing is carried. What was held back arrives when the fault ends.
    BlackHole,
    /// Connections are refused; those that exist go on.
    Refused,
    /// Bytes arrive in small pieces.
    Slice {
        /// Largest piece, bytes.
        bytes: u64,
        /// Pause after each piece.
        pause_ns: u64,
    },
    /// The connection is closed (FIN) after so many bytes.
    Cut {
        /// Bytes in either direction since the fault struck.
        after_bytes: u64,
    },
    /// Requests over plain HTTP are answered without reaching the store.
    Answer {
        /// The status.
        status: u16,
        /// The body.
        body: String,
        /// Seconds in the header Retry-After; 0 = no such header.
        retry_after: u32,
    },
    /// Commands break the store and mend it.
    Hook {
        /// Breaks.
        r#break: String,
        /// Mends.
        mend: String,
        /// Succeeds once the store is well; empty for none.
        check: String,
        /// Time limit of each command.
        limit_ns: u64,
    },
}

impl What {
    /// The word that workloads use for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Latency { .. } => "latency",
            Self::Bandwidth { .. } => "bandwidth",
            Self::SlowOpen { .. } => "slow-open",
            Self::SlowClose { .. } => "slow-close",
            Self::Reset { .. } => "reset",
            Self::BlackHole => "black-hole",
            Self::Refused => "refused",
            Self::Slice { .. } => "slice",
            Self::Cut { .. } => "cut",
            Self::Answer { .. } => "answer",
            Self::Hook { .. } => "hook",
        }
    }
}

impl Fault {
    /// Start and end of each time that it comes, counted from the end of the baseline.
    pub fn rounds(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..u64::from(self.times)).map(|round| {
            let at = self
                .at_ns
                .saturating_add(round.saturating_mul(self.every_ns));
            (at, at.saturating_add(self.for_ns))
        })
    }

    /// When it ends for the last time, counted from the end of the baseline.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.rounds().map(|(_, end)| end).max().unwrap_or(0)
    }

    /// True if commands make it, not the fault line.
    #[must_use]
    pub const fn is_hook(&self) -> bool {
        matches!(self.what, What::Hook { .. })
    }
}

impl DrillPlan {
    /// When the baseline ends, counted from the start of the phase.
    #[must_use]
    pub const fn baseline_end_ns(&self) -> u64 {
        self.warm_ns + self.steady_ns
    }

    /// When the last fault has ended, counted from the end of the baseline.
    #[must_use]
    pub fn faults_end_ns(&self) -> u64 {
        self.faults.iter().map(Fault::end_ns).max().unwrap_or(0)
    }

    /// Length of the phase, with the time that judging the baseline may take.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.baseline_end_ns() + JUDGE_NS + self.faults_end_ns() + self.recover_ns
    }
}

/// A line of a drill's journal. Instants are nanoseconds since the run's epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "entry")]
pub enum Entry {
    /// The first line.
    Plan {
        /// The drill.
        drill: DrillPlan,
        /// Seed of all its draws.
        seed: u64,
        /// The endpoints in the order of the fault line; empty without one.
        endpoints: Vec<String>,
    },
    /// The measured phase began.
    Began {
        /// When.
        at_ns: u64,
    },
    /// The verdict on the baseline.
    Baseline {
        /// When it was known.
        at_ns: u64,
        /// Whether anything may be broken.
        valid: bool,
        /// The verdict's word and reasons.
        why: String,
    },
    /// A command that mends is owed from here on: written before the command that breaks begins.
    Owed {
        /// Index of the fault.
        fault: usize,
        /// The command.
        mend: String,
        /// Its time limit, nanoseconds.
        limit_ns: u64,
    },
    /// A fault began.
    Broke {
        /// Index of the fault.
        fault: usize,
        /// How many times it came before.
        round: u32,
        /// When.
        at_ns: u64,
    },
    /// A fault ended.
    Mended {
        /// Index of the fault.
        fault: usize,
        /// How many times it came before.
        round: u32,
        /// When.
        at_ns: u64,
    },
    /// A command ended. For the command that mends, success settles what is owed.
    Ran {
        /// Index of the fault.
        fault: usize,
        /// `break`, `mend` or `check`.
        hook: String,
        /// How it ended: `ok`, or the reason why it failed.
        outcome: String,
        /// When.
        at_ns: u64,
    },
    /// What the fault line has cost so far: once where the load begins, once where it ends.
    Cost {
        /// CPU time of its process, nanoseconds.
        cpu_ns: u64,
        /// Bytes that it carried, both directions.
        bytes: u64,
        /// Connections that it carried.
        connections: u64,
    },
}
