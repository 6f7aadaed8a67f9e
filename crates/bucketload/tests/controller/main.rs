//! The controller with real processes.

#[path = "../common/mod.rs"]
mod common;

mod agents;
mod journey;
mod support;
mod terminal;
mod xml;
