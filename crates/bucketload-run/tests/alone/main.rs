//! The runner's times against a scripted driver. A program of its own: these tests bound real times and take turns
//! (`undisturbed`), which the work of further tests on the other threads would stretch.

mod backlog;
#[path = "../common/mod.rs"]
mod common;
mod ending;
mod jobs;
mod replay;
mod replay_calibration;
mod truth;
