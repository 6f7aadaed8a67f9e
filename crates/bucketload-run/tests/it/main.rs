//! The runner against a scripted driver. What bounds real times is in `alone`, what the runner costs in `cost`.

mod campaign;
#[path = "../common/mod.rs"]
mod common;
mod leftover;
mod loops;
mod ownership;
