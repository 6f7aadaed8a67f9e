//! One run on many hosts: a coordinator gives every agent the same plan, each agent carries out its
//! share, and the coordinator merges what they measure into one run.
//!
//! ```text
//!                     ┌─ agent 0 ─ bucketload_run::serve (share 0 of n) ─▶ target
//!  run ─ coordinator ─┼─ agent 1 ─ …                                        gRPC, one stream each
//!     (RemoteLoad)    └─ agent n-1
//! ```
//!
//! - [`access`]: authentication by token or certificates, and the version check;
//! - [`message`]: the messages; `service` and `stdio`: their transport;
//! - [`agent`], [`conductor`]: an agent; its [`Executor`] opens and drives the target;
//! - [`coordinator`]: gathering, phases, merge, `agents.json`;
//! - [`clock`]: the offsets of the agents' clocks;
//! - [`simulate`]: agents without a load, to measure the coordinator;
//! - [`launch`]: how agents are started, and how processes started by a scheduler learn their
//!   rank and find each other.
//!
//! The operations of a run are a pure function of seed and sequence number, so only the plan is
//! handed out, and the set of operations does not depend on the number of agents.

pub mod access;
pub mod agent;
pub mod clock;
pub mod conductor;
pub mod coordinator;
pub mod launch;
pub mod message;
pub mod simulate;

mod error;
mod host;
mod probe;
mod rows;
mod service;
mod stdio;
mod tally;
mod varint;

pub use access::{Access, TOKEN_ENV, Tls, TlsFiles};
pub use agent::{AgentOptions, Executor, ProbeAnswer, dial, listen, serve_stdio};
pub use conductor::Conductor;
pub use coordinator::{AgentCommand, Fleet, FleetLoad, FleetWatch, GatherOptions};
pub use error::AgentsError;
pub use message::{Assignment, PROTOCOL, Problem};
pub use probe::{ProbeResult, probe, probe_async};

/// Locks a mutex, even if another thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
