//! The messages between coordinator and agent.
//!
//! Both sides run the same version of the program (others are refused), so control messages, a few per
//! second, are plain serde types in JSON. Intervals and rows of the operation log are many and have a
//! compact encoding of their own (modules `tally` and `rows`).
//!
//! ```text
//! coordinator                                     agent
//!     Hello ─────────────────────────────────────▶
//!       ◀───────────────────────────────── Hello     version, host, rank
//!     Assign (plan, share, target) ──────────────▶   opens the target
//!       ◀─────────────────────── Accepted │ Refused
//!     Phase ─────────────────────────────────────▶   opens sessions
//!       ◀───────────────────────────────── Ready
//!     Start (instant on the agent's clock) ──────▶
//!       ◀──── Interval … once a second, Ops, Slow, Event
//!       ◀──────────────────────────────── Filled     data sets only: what of the agent's part is there
//!       ◀─────────────────────────────── Reached     ranks only: steps its ranks have made
//!     Agreed ────────────────────────────────────▶   steps of all ranks, once every agent has reported
//!       ◀───────────────────────────── PhaseDone     … next phase
//!     Bye ───────────────────────────────────────▶
//!     Ping ◀────────────────────────────────▶ Pong   throughout: heartbeat and clock
//! ```

use std::fmt;

use bucketload_core::driver::DriverFacts;
use bucketload_core::plan::Plan;
use bucketload_core::plan::crews::Pins;
use bucketload_core::sink::{Calibration, Event, PhaseEnd};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Interval;
use bucketload_run::{Part, Range};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::{host, tally};

/// Version of the protocol; raised with every change of the messages.
pub const PROTOCOL: u32 = 6;

/// Maximum message size, bytes. An interval whose histograms are all full takes a quarter of it.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;

const CONTROL: u8 = 0;
const INTERVAL: u8 = 1;
const OPS: u8 = 2;

/// An agent's share of a run and its target. Holds credentials (in `setup`), so it is never printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// Identifier of the run.
    pub run_id: String,
    /// Bucket of the run.
    pub bucket: String,
    /// The run's own key prefix.
    pub prefix: String,
    /// This agent's number, from 0.
    pub index: u32,
    /// Number of agents.
    pub of: u32,
    /// The agents of the drivers to which works are pinned.
    pub pins: Pins,
    /// Length of an interval, nanoseconds.
    pub interval_ns: u64,
    /// Number of load threads; `None` lets the agent decide.
    pub threads: Option<u16>,
    /// Cores of the load threads; an empty list does not pin them; `None` lets the agent decide.
    pub cores: Option<Vec<usize>>,
    /// Identifier and prefix of the earlier run whose objects this run reads.
    pub data: Option<(String, String)>,
    /// Whether the agent sends a row for every operation.
    pub op_log: bool,
    /// The plan, the same for all agents.
    pub plan: Plan,
    /// The target and its credentials, in the form that the program's own [`Executor`](crate::Executor) reads.
    pub setup: serde_json::Value,
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assignment")
            .field("run_id", &self.run_id)
            .field("index", &self.index)
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}

/// How one side introduces itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) version: String,
    pub(crate) protocol: u32,
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// The agent's rank, if its launcher gave it one.
    pub(crate) rank: Option<u32>,
    /// Silence after which the other side counts as lost, nanoseconds; set by the coordinator.
    pub(crate) timeout_ns: u64,
}

impl Greeting {
    /// The greeting of this process, without rank and time-out.
    pub(crate) fn new(access: &Access) -> Self {
        Self {
            version: access.version.clone(),
            protocol: access.protocol,
            host: host::name(),
            pid: std::process::id(),
            ..Self::default()
        }
    }
}

/// A control message of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    Hello(Greeting),
    Assign(Box<Assignment>),
    Calibrate {
        phase: u16,
    },
    Phase {
        phase: u16,
        /// Number of the measurement on the same data set.
        generation: u32,
        /// What this agent is to write of a kept data set.
        part: Option<Part>,
    },
    /// `at_ns` is on the agent's clock; `unix_s` is the same instant on the coordinator's wall clock.
    Start {
        phase: u16,
        at_ns: u64,
        unix_s: i64,
    },
    /// All ranks make this many steps.
    Agreed {
        phase: u16,
        steps: u64,
    },
    Converged {
        phase: u16,
    },
    /// 1: finish, 2: abort.
    Stop {
        level: u8,
    },
    Ping {
        t0: u64,
    },
    Bye,
}

/// How an agent's share of a phase ended; instants are on its clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentPhaseEnd {
    pub(crate) at_ns: u64,
    pub(crate) drained_ns: u64,
    pub(crate) end: PhaseEnd,
}

/// Why an agent could not do something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Message for the user.
    pub message: String,
    /// Exit code of the process.
    pub exit_code: u8,
}

/// A control message of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToCoordinator {
    Hello(Greeting),
    Accepted {
        threads: u32,
        facts: DriverFacts,
    },
    Refused(Problem),
    Calibrated(Result<Calibration, Problem>),
    Ready {
        phase: u16,
    },
    /// The agent learned of the start `late_ns` after the agreed instant.
    Late {
        phase: u16,
        late_ns: u64,
    },
    /// The agent's ranks or accelerators can make no further step before all agents agree; the first of them made
    /// `steps`.
    Reached {
        phase: u16,
        steps: u64,
    },
    /// The objects of the agent's part that the store has acknowledged so far.
    Filled {
        phase: u16,
        ranges: Vec<Range>,
    },
    Event(Event),
    Slow(Vec<SlowRequest>),
    PhaseDone {
        phase: u16,
        outcome: Result<AgentPhaseEnd, Problem>,
        /// Operations of the whole run that are missing from the operation log.
        dropped: u64,
    },
    Pong {
        t0: u64,
        t1: u64,
        t2: u64,
        wall_ns: i64,
    },
    Bye {
        reason: String,
    },
}

/// A message on the wire: its kind, then its contents.
pub(crate) enum Frame {
    Control(Bytes),
    Interval(Bytes),
    Ops(Bytes),
}

impl Frame {
    /// Splits off the kind; `None` if it is unknown.
    pub(crate) fn of(mut bytes: Bytes) -> Option<Self> {
        if bytes.is_empty() {
            return None;
        }
        let kind = bytes.split_to(1);
        match kind[0] {
            CONTROL => Some(Self::Control(bytes)),
            INTERVAL => Some(Self::Interval(bytes)),
            OPS => Some(Self::Ops(bytes)),
            _ => None,
        }
    }
}

/// Encodes a control message.
pub(crate) fn control<T: Serialize>(message: &T) -> Bytes {
    let mut out = vec![CONTROL];
    // Only maps with keys other than strings cannot be written, and none occur.
    let _ = serde_json::to_writer(&mut out, message);
    Bytes::from(out)
}

/// Decodes a control message. The error does not quote its contents, which may be secret.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|e| {
        format!(
            "a malformed message ({:?} at byte {} of {})",
            e.classify(),
            e.column(),
            bytes.len()
        )
    })
}

/// Encodes an interval; `buffer` is scratch space.
pub(crate) fn interval(interval: &Interval, buffer: &mut Vec<u8>) -> Bytes {
    buffer.clear();
    buffer.push(INTERVAL);
    tally::encode(interval, buffer);
    Bytes::copy_from_slice(buffer)
}

/// Encodes an interval whose tally is already encoded.
pub(crate) fn raw_interval(interval: &Interval, tally: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(tally.len() + 512);
    out.push(INTERVAL);
    tally::encode_head(interval, &mut out);
    out.extend_from_slice(tally);
    Bytes::from(out)
}

/// Encodes rows of the operation log.
pub(crate) fn ops(batch: &bucketload_core::oplog::Batch) -> Bytes {
    let mut out = Vec::with_capacity(64 + batch.len() * 160);
    out.push(OPS);
    crate::rows::encode(batch, &mut out);
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::{Frame, ToAgent, ToCoordinator, control, parse};

    #[test]
    fn control_messages_survive_and_damaged_ones_are_not_quoted() {
        let Some(Frame::Control(bytes)) = Frame::of(control(&ToAgent::Ping { t0: 7 })) else {
            panic!("a control message");
        };
        assert!(matches!(parse(&bytes), Ok(ToAgent::Ping { t0: 7 })));
        let wrong = parse::<ToCoordinator>(b"{\"secret\":1}").unwrap_err();
        assert!(!wrong.contains("secret"), "{wrong}");
        assert!(Frame::of(bytes::Bytes::new()).is_none());
        assert!(Frame::of(bytes::Bytes::from_static(&[9])).is_none());
    }
}
