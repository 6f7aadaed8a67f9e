//! The commands of the program, one module each.

pub(crate) mod agent;
pub(crate) mod capacity;
pub(crate) mod cleanup;
pub(crate) mod compare;
pub(crate) mod config;
pub(crate) mod controller;
pub(crate) mod convert;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod gates;
pub(crate) mod gateway;
pub(crate) mod grid;
pub(crate) mod hpc;
pub(crate) mod init;
pub(crate) mod io500;
pub(crate) mod mdworkbench;
pub(crate) mod model;
pub(crate) mod render;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sweep;
mod swept_field;
pub(crate) mod trace;
pub(crate) mod train;
pub(crate) mod workloads;
