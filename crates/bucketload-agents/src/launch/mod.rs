//! How agents are started, and how processes that a scheduler has started find their number and each
//! other.

pub mod batch;
pub mod hosts;
pub mod kubernetes;
pub mod rank;
mod yaml;
