//! Fault injection: rules that make the server slow, wrong or unreachable in a predictable way.
//!
//! A rule is one line of text, `KIND,NAME=VALUE,...`:
//!
//! | kind | parameters | effect |
//! |---|---|---|
//! | `delay` | `ms=10`, `time=250us` or `dist=...` | holds the response back that long |
//! | `queue` | `rate=400/s`, `service=exp` or `service=const` | one server for all matching requests, first come, first served: M/M/1 or M/D/1 under Poisson arrivals |
//! | `stall` | `at=10s`, `for=1s`, `period=20s` | holds back every response that would leave in the window, again after each `period`; time counts from the first request that the rule matches |
//! | `slow` | `rate=1MiB/s` | limits each object body, sent or received, to that rate |
//! | `status` | `status=503` | responds with that status (4xx or 5xx) and does nothing else |
//! | `reset` | | resets the connection instead of handling the request |
//! | `full` | `after=100MiB` | refuses uploads with 507 once the server has accepted that many bytes |
//! | `truncate` | | ends the connection after half of an object's body |
//! | `corrupt` | | changes one byte of an object's body |
//! | `stale` | `age=100ms` | answers a GET with the version before the current one, if that is known and was replaced at least `age` ago (default 0) |
//! | `lost` | | acknowledges an upload and forgets it |
//! | `torn` | | acknowledges an overwrite but stores the first half of the new content and the second half of the old; needs an old version that reaches into the second half |
//! | `resurrect` | `age=100ms` | brings a deleted object back when its key is next read or listed at least `age` after the delete (default 0), unless it was written again |
//! | `stale-list` | `lag=500ms` | lists the state of `lag` ago: omits newer objects, includes objects deleted since |
//!
//! `status=503` is short for `status,status=503`. Distributions: `const(5ms)`,
//! `uniform(min=1ms,max=9ms)`, `exp(mean=5ms)`, `lognormal(mean=5ms,cv=1)`,
//! `bimodal(low=2ms,high=50ms,share=0.1,cv=0.1)`: log-normal around `low`, or with probability
//! `share` around `high`; without `cv`, the constants `low` and `high`.
//!
//! `stale`, `lost`, `torn` and `resurrect` count effects, not attempts: an injection is a wrong
//! response (`stale`) or a wrong state of one object (the others). These rules match a request only if
//! they can have an effect, so `every=` and `count=` are exact.
//!
//! Every kind except `stall` and `full` takes a trigger, `every=N` (every N-th matching request) or
//! `prob=P`, and `after=N` (spares the first N matching requests). Every kind except `full` takes
//! `count=N` (at most N injections). Every kind takes the filters `op=NAME` (several joined by `+`, see
//! [`Operation`]), `prefix=KEY-PREFIX` and `contains=TEXT` (a part of the key), and `seed=N`, which
//! varies the random choices.
//!
//! The queue is exact in virtual time: request i leaves at max(its arrival, departure of i-1) + S_i.
//! Its response waits for that instant, so a late timer delays one response but not the ones behind
//! it. If the configuration names a [fault log](crate::ServerConfig::fault_log), the server logs when
//! each response was released.
//!
//! Choices are pure functions of the seed and of the request's number among those that match, so
//! counts are exact and runs are repeatable.

use std::time::Duration;

use super::router::Operation;

mod active;
mod changes;
mod distribution;
mod history;
mod log;
mod parse;
mod resurrections;
mod units;

pub(crate) use active::{BodyFaults, Faults};
use distribution::Distribution;
pub(crate) use history::{History, ObjectName};
pub(crate) use log::FaultLog;
pub use parse::FaultError;

/// A parsed fault rule; see the [module](self) for the text form.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    text: String,
    kind: Kind,
    trigger: Trigger,
    /// Operations that match; empty for all.
    operations: Vec<Operation>,
    prefix: String,
    /// Text that the key must contain.
    contains: String,
    /// Number of matching requests to spare first.
    after: u64,
    /// Maximum number of injections.
    count: u64,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Delay(Distribution),
    /// Distribution of the service times.
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
    /// Bytes accepted before the store is full.
    Full(u64),
    Truncate,
    Corrupt,
    /// Minimum time since the version was replaced.
    Stale(Duration),
    Lost,
    Torn,
    /// Minimum time since the delete.
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

/// How often a rule matched and injected its fault.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FaultStats {
    /// The rule's text.
    pub rule: String,
    /// Requests that passed its filters.
    pub matched: u64,
    /// Requests into which it injected its fault.
    pub injected: u64,
}

impl FaultRule {
    /// Whether the rule applies to `key`.
    fn concerns(&self, key: &str) -> bool {
        key.starts_with(&self.prefix) && key.contains(&self.contains)
    }

    fn matches(&self, operation: Operation, key: &str) -> bool {
        (self.operations.is_empty() || self.operations.contains(&operation)) && self.concerns(key)
    }
}
