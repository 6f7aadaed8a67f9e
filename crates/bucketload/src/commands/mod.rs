//! The commands of the program, one module each.

pub(crate) mod cleanup;
pub(crate) mod compare;
pub(crate) mod config;
pub(crate) mod docs;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod workloads;
