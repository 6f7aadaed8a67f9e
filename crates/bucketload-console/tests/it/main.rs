//! The controller and its console from outside: queue with a scripted process and clock, and
//! every request that must be rejected.

mod crowd;
mod events;
mod fleet;
mod flows;
mod queue;
mod results;
mod security;
mod support;
