//! What tests and examples of several crates share: an allocator that counts, and fakes of storage services that
//! follow the services' documents and know nothing of our drivers. Never part of a shipped crate.
//!
//! A fake listens on loopback, answers on threads of its own and ends with its process.

pub mod alloc;
pub mod gcs;
pub mod hdfs;
pub mod http;
pub mod seaweedfs;
pub mod swift;
pub mod toy;
pub mod webhdfs;
