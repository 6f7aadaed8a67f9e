//! The pure heart of Bucketload: what a workload is, which operations it consists of, how they are
//! recorded and what the numbers mean.
//!
//! Nothing here performs I/O, reads a clock or knows a runtime; instants are `u64` nanoseconds
//! handed in by the caller. The flow is [`plan`] (what a workload file comes to, without options; the crate
//! `bucketload-workload` makes it) → [`generate`] (arrivals and operations as functions of seed and sequence number) →
//! [`driver`] (the traits storage adapters implement) → [`record`] and [`tally`] (per-thread
//! accumulation and explicit merge) → [`stats`] and [`verdict`] (what the numbers are worth); [`capacity`] searches for
//! the rate that a store sustains.

pub mod agent;
pub mod anatomy;
pub mod capacity;
mod divisor;
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
pub mod units;
pub mod verdict;
pub mod wakeup;
