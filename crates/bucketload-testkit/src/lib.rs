//! Shared code of several crates' tests and examples: a counting allocator, and fakes of storage services that follow
//! the services' documentation and do not depend on our drivers. Never part of a shipped crate.
//!
//! A fake listens on loopback, answers on its own threads and ends with its process.

pub mod alloc;
pub mod gcs;
pub mod hdfs;
pub mod http;
pub mod seaweedfs;
pub mod swift;
pub mod toy;
pub mod webhdfs;
