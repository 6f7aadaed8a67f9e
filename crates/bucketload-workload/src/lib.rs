//! The workload language: turns what a user writes into a plan.
//!
//! [`spec`] reads TOML and command-line settings into typed tables. [`resolve`] layers profiles and settings,
//! fills in defaults, validates, and builds the [`bucketload_core::plan::Plan`] that a run executes. Both run
//! once, before any operation. [`training`] has the models of `train`, which become workloads.

pub mod resolve;
pub mod spec;
pub mod training;
