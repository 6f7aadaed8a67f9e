//! Run directories, their analysis and outputs.

mod accounting;
mod analyze;
mod compare;
mod nodes;
mod output;
mod rundir;
mod studies;
#[path = "../support/mod.rs"]
mod support;
