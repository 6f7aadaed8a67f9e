//! How agents are started, and how processes started by a scheduler learn their rank and find each other.

pub mod batch;
pub mod hosts;
pub mod kubernetes;
pub mod rank;
mod yaml;
