//! Fault injection: rules that make the server slow, wrong or absent in a way that a test can
//! predict.
//!
//! A rule is one line of text, `KIND,NAME=VALUE,...`:
//!
//! | kind | parameters of its own | effect |
//! |---|---|---|
//! | `delay` | `ms=10`, `time=250us` or `dist=...` | holds the answer back that long |
//! | `queue` | `rate=400/s`, `service=exp` or `service=const` | one server for all matching requests, first come, first served: M/M/1 or M/D/1 under Poisson arrivals |
//! | `stall` | `at=10s`, `for=1s`, `period=20s` | holds back every answer that would leave in the window, again after each `period`; time counts from the first request that the rule matches |
//! | `slow` | `rate=1MiB/s` | limits each object body, sent or received, to that rate |
//! | `status` | `status=503` | answers with that status (4xx or 5xx) and does nothing else |
//! | `reset` | | resets the connection instead of doing anything |
//! | `full` | `after=100MiB` | refuses uploads with 507 once so many bytes of bodies were taken |
//! | `truncate` | | ends the connection after half of an object's body |
//! | `corrupt` | | changes one byte of an object's body |
//! | `stale` | `age=100ms` | answers a GET with the version before the current one, where one is known and was replaced at least `age` ago (0 unless given) |
//! | `lost` | | acknowledges an upload and forgets it |
//! | `torn` | | leaves the first half of the new content and the second half of the old one behind an overwrite that it acknowledges; needs an old version that reaches into the second half |
//! | `resurrect` | `age=100ms` | brings a deleted object back when its key is next read or listed, `age` after the delete or later, unless it was written again |
//! | `stale-list` | `lag=500ms` | lists what there was `lag` ago: without younger objects, with those deleted since |
//!
//! `status=503` may stand for `status,status=503`. Distributions: `const(5ms)`,
//! `uniform(min=1ms,max=9ms)`, `exp(mean=5ms)`, `lognormal(mean=5ms,cv=1)`,
//! `bimodal(low=2ms,high=50ms,share=0.1,cv=0.1)`: log-normal around `low`, or with probability
//! `share` around `high`, constants without `cv`.
//!
//! `stale`, `lost`, `torn` and `resurrect` count what they did, not what they tried: an injection is a
//! wrong answer (`stale`) or a wrong state of one object (the others). They match a request only where
//! they can do harm, so `every=` and `count=` are exact.
//!
//! Every kind but `stall` and `full` takes a trigger, `every=N` (each N-th matching request) or
//! `prob=P`, and, also `stall`, `count=N` (at most so many injections). Every kind takes the filters `op=NAME` (several joined by `+`,
//! see [`Operation`]), `prefix=KEY-PREFIX` and `contains=TEXT` (of the key); those with a trigger also `after=N` (the first N
//! matching requests are spared). `seed=N` varies the random choices.
//!
//! The queue is exact in virtual time: request i leaves at max(its arrival, departure of i-1) + S_i,
//! and that instant is what its answer waits for, so that a late timer delays one answer and not those
//! behind it. What was really done is written down, answer by answer, where the configuration names a
//! [fault log](crate::ServerConfig::fault_log).
//!
//! Choices are pure functions of the seed and of the request's number among those that match, so
//! that counts are exact and runs repeat.

use std::time::Duration;

use super::router::Operation;

mod active;
mod changes;
mod law;
mod log;
mod parse;
mod revenants;
mod stale;
mod units;

pub(crate) use active::{Faults, OnBody};
use law::Distribution;
pub(crate) use log::FaultLog;
pub use parse::FaultError;
pub(crate) use stale::{History, Name};

/// A parsed fault rule; see the [module](self) for the text form.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    text: String,
    kind: Kind,
    trigger: Trigger,
    /// Operations that match; empty for all.
    operations: Vec<Operation>,
    prefix: String,
    /// What the key contains.
    contains: String,
    /// Matching requests that are spared at the start.
    after: u64,
    /// Most injections.
    count: u64,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Delay(Distribution),
    /// Law of the service times.
    Queue(Distribution),
    Stall {
        at: Duration,
        length: Duration,
        period: Option<Duration>,
    },
    /// Bytes per second.
    Slow(u64),
    Status(u16),
    Reset,
    /// After so many bytes.
    Full(u64),
    Truncate,
    Corrupt,
    /// Least age of what has replaced the version.
    Stale(Duration),
    Lost,
    Torn,
    /// Least time since the delete.
    Resurrect(Duration),
    /// How far a listing lags behind.
    StaleList(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Trigger {
    Always,
    Every(u64),
    Probability(f64),
}

impl std::str::FromStr for FaultRule {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse::rule(text)
    }
}

impl std::fmt::Display for FaultRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// How often a rule has matched and struck.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FaultStats {
    /// The rule as it was given.
    pub rule: String,
    /// Requests that its filters let through.
    pub matched: u64,
    /// Requests that it has changed.
    pub injected: u64,
}

impl FaultRule {
    /// Whether the rule may strike requests about `key`.
    fn concerns(&self, key: &str) -> bool {
        key.starts_with(&self.prefix) && key.contains(&self.contains)
    }

    fn matches(&self, operation: Operation, key: &str) -> bool {
        (self.operations.is_empty() || self.operations.contains(&operation)) && self.concerns(key)
    }
}
