//! The controller and its console from outside: queue with a scripted process and a clock of its own, and
//! every request that must not be answered.

mod events;
mod fleet;
mod flows;
mod queue;
mod security;
mod support;
