//! One run on many hosts: a coordinator gives every agent the same plan, each agent carries out its
//! share, and the coordinator merges what they measure into one run.
//!
//! ```text
//!                     ┌─ agent 0 ─ bucketload_run::serve (share 0 of n) ─▶ target
//!  run ─ coordinator ─┼─ agent 1 ─ …                                        gRPC, one stream each
//!     (RemoteLoad)    └─ agent n-1
//! ```
//!
//! - [`access`]: token, certificates, version: who may talk to whom;
//! - [`message`]: what is said; `service` and `stdio`: how it travels;
//! - [`agent`], [`conductor`]: an agent; what opens and drives the target is a [`Host`];
//! - [`coordinator`]: gathering, phases, merge, `agents.json`;
//! - [`clock`]: how far the agents' clocks are apart;
//! - [`simulate`]: agents that measure nothing, for measuring the coordinator;
//! - [`launch`]: how agents are started, and how processes that a scheduler has started find their
//!   number and each other.
//!
//! The operations of a run are a pure function of seed and sequence number, so nothing but the plan is
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

pub use access::{Access, TOKEN_ENV, Tls, TlsFiles, Token};
pub use agent::{AgentOptions, Host, ProbeAnswer, dial, listen, serve_stdio};
pub use conductor::Conductor;
pub use coordinator::{Child, Fleet, Gather, Remote, Watch};
pub use error::AgentsError;
pub use message::{Assignment, PROTOCOL, Problem};

pub use probe::{Probed, probe, probe_async};
