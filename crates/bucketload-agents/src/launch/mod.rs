//! How agents are started, and how processes that a scheduler has started find their number and each
//! other.

pub mod hosts;
pub mod rank;
