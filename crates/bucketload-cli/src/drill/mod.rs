//! Drills: who breaks and mends while a run measures.
//!
//! ```text
//!  Job ─ events ─► Watch ─► Stage (a thread) ─ orders ─► fault line (a process)
//!                             │       └─ commands ─► Hooks
//!                             └─ journal: drill.jsonl in the run directory
//! ```
//!
//! `stage` keeps to the schedule, `line` is the fault line seen from the run, `hooks` runs commands, `journal` records what
//! happened and what is owed, `repeat` does the same drill several times. The figures are computed from the run directory afterwards.

pub(crate) mod hooks;
pub(crate) mod journal;
pub(crate) mod line;
pub(crate) mod repeat;
pub(crate) mod stage;
