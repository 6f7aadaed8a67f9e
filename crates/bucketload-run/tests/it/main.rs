//! The runner against a scripted driver. Tests of real times are in `alone`, tests of the runner's cost in `cost`.

mod campaign;
#[path = "../common/mod.rs"]
mod common;
mod leftover;
mod loops;
mod ownership;
mod prepared;
