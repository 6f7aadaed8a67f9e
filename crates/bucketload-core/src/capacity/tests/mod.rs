//! The search in virtual time, against queues whose capacity theory knows.

mod queue;
mod simulated;
