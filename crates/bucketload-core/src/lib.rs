//! The core of Bucketload: the workload model, the operations it consists of, how they are recorded and how
//! the results are evaluated.
//!
//! Nothing here performs I/O, reads a clock or depends on an async runtime. Callers pass instants as `u64`
//! nanoseconds. The flow is [`plan`] (a fully resolved workload, built by the crate `bucketload-workload`) →
//! [`generate`] (arrivals and operations as functions of seed and sequence number) → [`driver`] (the traits
//! that storage adapters implement) → [`record`] and [`tally`] (per-thread accumulation and explicit merge) →
//! [`stats`] and [`verdict`] (what the numbers support). [`capacity`] searches for the highest rate that a
//! store sustains.

pub mod agent;
pub mod ai;
pub mod anatomy;
pub mod capacity;
mod divisor;
pub mod drill;
pub mod driver;
pub mod endpoint;
pub mod error;
pub mod generate;
pub mod histogram;
pub mod inspect;
pub mod op;
pub mod oplog;
pub mod oracle;
pub mod payload;
pub mod plan;
pub mod probe;
pub mod ranks;
pub mod record;
pub mod rows;
pub mod serde_once;
pub mod sink;
pub mod slowest;
pub mod stats;
pub mod tally;
pub mod trace;
pub mod trail;
pub mod train;
pub mod units;
pub mod verdict;
pub mod wakeup;
