//! The workload language: from what a user writes to a plan.
//!
//! [`spec`] reads TOML and settings of the command line into typed tables; [`resolve`] layers profiles and settings,
//! fills in defaults, checks, and makes the [`bucketload_core::plan::Plan`] that a run executes. It runs once, before
//! any operation.

pub mod resolve;
pub mod spec;
