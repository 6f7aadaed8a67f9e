//! One run on many hosts.

mod access;
mod phase;
