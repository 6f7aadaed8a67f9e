//! The drivers against Bucketload's own server, fake services, and servers that misbehave.

mod append;
mod azure;
mod conformance;
mod connections;
mod control;
mod differential;
mod engines;
mod gcs;
mod hdfs;
mod libs3;
mod listing_fallback;
mod object;
mod posix;
mod seaweedfs;
#[path = "../support/mod.rs"]
mod support;
mod swift;
mod toy;
mod trail;
mod webhdfs;
