//! The runner's times against a scripted driver. A test program of its own: these tests bound real times and run one
//! at a time (`undisturbed`); other tests on other threads would slow them down.

mod backlog;
#[path = "../common/mod.rs"]
mod common;
mod ending;
mod jobs;
mod replay;
mod replay_calibration;
mod truth;
