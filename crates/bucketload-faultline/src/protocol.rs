//! The messages between a run and its fault line: one JSON document a line.

use std::net::SocketAddr;

use bucketload_core::drill::Fault;
use serde::{Deserialize, Serialize};

/// The first line that the fault line reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Seed of all draws.
    pub seed: u64,
    /// Where connections go; the fault line listens once for each.
    pub endpoints: Vec<SocketAddr>,
    /// The faults that orders name by their index. Commands among them are ignored.
    pub faults: Vec<Fault>,
    /// For each fault, the indices of the endpoints that it strikes; empty for all.
    pub struck: Vec<Vec<usize>>,
}

/// A further line that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Begins a fault.
    Break {
        /// Its index.
        fault: usize,
        /// How many times it came before; part of its draws.
        round: u32,
    },
    /// Ends a fault.
    Mend {
        /// Its index.
        fault: usize,
    },
    /// Asks for the costs.
    Cost,
}

/// A line that it writes, one for [`Setup`] and for each [`Order`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// It listens at these addresses, in the order of the endpoints.
    Listening(Vec<SocketAddr>),
    /// A fault began or ended.
    Done {
        /// When, nanoseconds on `CLOCK_MONOTONIC`.
        at_ns: u64,
    },
    /// What it has cost so far.
    Cost {
        /// CPU time of the process, nanoseconds.
        cpu_ns: u64,
        /// Bytes carried, both directions.
        bytes: u64,
        /// Connections accepted.
        connections: u64,
    },
}
