//! MD-Workbench on the ordinary runner (docs/md-workbench.md).
//!
//! ```text
//!  options ─ plan ─► Plan: a phase of ranks for precreation, per iteration, for cleanup ─► the runner
//!  info: the run that created the objects, and the number of steps done ─► the next command
//!  run directory ─ results::mdworkbench ─► lines, latency files
//! ```

pub(crate) mod info;
pub(crate) mod plan;

pub(crate) use info::Info;
pub(crate) use plan::{PROFILE, Parts, plan};
