//! Executes a plan: load threads, pacing, recording, phases.

mod affinity;
mod baton;
mod calibrate;
mod cleanup;
mod clock;
mod closed;
mod collect;
mod error;
mod machine;
mod open;
mod options;
mod own;
mod perform;
mod phase;
mod recorder;
mod run;
mod session;
mod shard;
mod slots;
mod source;
mod stop;
mod think;
mod thread;
mod timer;

pub use calibrate::calibrate;
pub use cleanup::CleanupReport;
pub use clock::now_ns;
pub use collect::PhaseTotals;
pub use error::RunError;
pub use options::{Cores, Pacing, RunOptions, Share, StopHook};
pub use own::{MARKER, Marker, read_marker};
pub use phase::PhaseSummary;
pub use run::{RunEnd, run};
pub use stop::{StopHandle, StopLevel};
