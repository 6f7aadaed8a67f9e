//! What coordinator and agent say to each other: the protocol.
//!
//! Both sides are the same program of the same version (anything else is refused), so control
//! messages are plain serde types in JSON, a few per second; intervals and rows of the operation log,
//! which are many, have a compact form of their own (modules `tally` and `rows`).
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
//!       ◀─────────────────────────────── Reached     ranks only: how far its ranks have come
//!     Agreed ────────────────────────────────────▶   how far all go, once every agent has said so
//!       ◀───────────────────────────── PhaseDone     … next phase
//!     Bye ───────────────────────────────────────▶
//!     Ping ◀────────────────────────────────▶ Pong   all the time: life sign and clock
//! ```

use std::fmt;

use bucketload_core::driver::DriverFacts;
use bucketload_core::plan::Plan;
use bucketload_core::plan::crews::Pins;
use bucketload_core::sink::{Calibration, Event, PhaseEnd};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Interval;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::tally;

/// Version of the protocol; raised with every change of the messages.
pub const PROTOCOL: u32 = 4;

/// Largest message that is accepted, bytes: an interval whose histograms are all full is a quarter of
/// it.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;

const CONTROL: u8 = 0;
const INTERVAL: u8 = 1;
const OPS: u8 = 2;

/// What an agent is to do, and against what. Holds credentials (in `setup`), so it is never printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// Identifier of the run.
    pub run_id: String,
    /// Bucket that the run works in.
    pub bucket: String,
    /// The run's own key prefix.
    pub prefix: String,
    /// This agent's number, from 0.
    pub index: u32,
    /// Number of agents.
    pub of: u32,
    /// The agents of drivers that works are pinned to.
    pub pins: Pins,
    /// Length of an interval, nanoseconds.
    pub interval_ns: u64,
    /// Load threads, where the coordinator decides about them.
    pub threads: Option<u16>,
    /// Cores of the load threads; an empty list does not pin them; `None` leaves it to the agent.
    pub cores: Option<Vec<usize>>,
    /// Identifier and prefix of the earlier run whose objects are read.
    pub data: Option<(String, String)>,
    /// Whether every operation is sent one by one.
    pub op_log: bool,
    /// The plan, the same for all agents.
    pub plan: Plan,
    /// The target and its credentials, as the program that runs coordinator and agents wants them.
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

/// Who speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) version: String,
    pub(crate) protocol: u32,
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// An agent's own number, where its launcher gave it one.
    pub(crate) rank: Option<u32>,
    /// Silence after which the other side counts as lost, nanoseconds; said by the coordinator.
    pub(crate) timeout_ns: u64,
}

/// What a coordinator says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    Hello(Greeting),
    Assign(Box<Assignment>),
    Calibrate {
        phase: u16,
    },
    Phase {
        phase: u16,
    },
    /// The instant is on the agent's clock; `unix_s` says it on the coordinator's wall clock.
    Start {
        phase: u16,
        at_ns: u64,
        unix_s: i64,
    },
    /// All ranks go on to this step.
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

/// How an agent's part of a phase went; instants are on its clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) at_ns: u64,
    pub(crate) drained_ns: u64,
    pub(crate) end: PhaseEnd,
}

/// Why an agent could not do something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What to tell the user.
    pub message: String,
    /// The exit code that it means.
    pub exit_code: u8,
}

/// What an agent says.
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
    /// The start came `late_ns` after the agreed instant.
    Late {
        phase: u16,
        late_ns: u64,
    },
    /// No rank of the agent has a step left to make before all have agreed; `steps` made the first one.
    Reached {
        phase: u16,
        steps: u64,
    },
    Event(Event),
    Slow(Vec<SlowRequest>),
    PhaseDone {
        phase: u16,
        outcome: Result<Part, Problem>,
        /// Operations of the whole run that were not logged.
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

/// A message as it travels: its kind, then its contents.
pub(crate) enum Frame {
    Control(Bytes),
    Interval(Bytes),
    Ops(Bytes),
}

impl Frame {
    /// Takes a message apart; `None` when it is of no known kind.
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

/// A control message.
pub(crate) fn control<T: Serialize>(message: &T) -> Bytes {
    let mut out = vec![CONTROL];
    // Maps with keys that are no texts, which alone cannot be written, do not occur.
    let _ = serde_json::to_writer(&mut out, message);
    Bytes::from(out)
}

/// Reads a control message; the error says what is wrong with it, without its contents.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|e| {
        format!(
            "a message that means nothing ({:?} at byte {} of {})",
            e.classify(),
            e.column(),
            bytes.len()
        )
    })
}

/// An interval as a message.
pub(crate) fn interval(interval: &Interval, buffer: &mut Vec<u8>) -> Bytes {
    buffer.clear();
    buffer.push(INTERVAL);
    tally::encode(interval, buffer);
    Bytes::copy_from_slice(buffer)
}

/// An interval as a message, with its tally as it is encoded already.
pub(crate) fn raw_interval(interval: &Interval, tally: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(tally.len() + 512);
    out.push(INTERVAL);
    tally::encode_head(interval, &mut out);
    out.extend_from_slice(tally);
    Bytes::from(out)
}

/// Rows of the operation log as a message.
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
