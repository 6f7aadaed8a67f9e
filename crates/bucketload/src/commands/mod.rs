//! The commands of the program, one module each.

pub(crate) mod cleanup;
pub(crate) mod config;
pub(crate) mod docs;
pub(crate) mod model;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod trace;
pub(crate) mod workloads;
