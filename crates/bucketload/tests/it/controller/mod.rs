//! The controller with real processes.

mod agents;
mod journey;
mod support;
mod terminal;
mod xml;
