//! Executes a plan: load threads, pacing, recording, phases, ownership.
//!
//! ```text
//!  run ── check ── preflight, marker (own) ── phase … phase ── clean-up ── RunEnd
//!                                               │
//!                     collector (the caller's thread): collect, machine ──▶ RunSink
//!                        ▲ tallies at interval boundaries, failures        │
//!                        │                                   commands ◀────┘ stop handle
//!          ┌─────────────┴──────────────┐
//!     load thread 0 …              load thread N: pinned, a runtime of its own, nothing shared
//!          │
//!      Shard: slots (deadlines) · recorder (tally) · keeper (intervals, timeouts, limits)
//!          ├─ open work: Baton (feed, idle workers, waits) + OpenWork tasks
//!          └─ closed work: labour tasks, ThinkTimer
//!                   └── both ──▶ perform: render, execute, retry, record
//! ```
//!
//! Everything in a load thread is `Rc` and `Cell`; per operation there is no lock, no channel, no
//! allocation and no timer. Drivers are known without their types ([`bucketload_core::driver::AnyDriver`]): what is
//! here is compiled once, and an operation costs one indirect call.

mod accord;
mod affinity;
mod baton;
mod buckets;
mod calibrate;
mod check;
mod cleanup;
mod clock;
mod closed;
mod collect;
mod error;
mod feed;
mod files;
mod keeper;
mod leftover;
mod lot;
mod machine;
mod models;
mod named;
mod names;
mod open;
mod options;
mod oracle;
mod orders;
mod own;
mod perform;
mod phase;
mod ranks;
mod readback;
mod recorder;
mod rounds;
mod rows;
mod run;
mod session;
mod shard;
mod sleeper;
mod slots;
mod slow;
mod source;
mod startup;
mod stop;
mod streams;
mod think;
mod thread;
mod timer;
mod trailing;
mod uploads;
mod waits;

pub use accord::{Accord, Reached};
pub use affinity::{layout, usable_cores};
pub use calibrate::calibrate;
pub use cleanup::{CleanupReport, Discard};
pub use clock::now_ns;
pub use collect::PhaseTotals;
pub use error::RunError;
pub use leftover::Leftovers;
pub use options::{
    Cores, DataOf, Pacing, PhaseHook, RemoteLoad, RunOptions, Share, StartGate, StopHook,
};
pub use orders::{Order, Orders, serve};
pub use own::{MARKER, Marker, prefix_in_own_buckets, read_marker};
pub use phase::PhaseSummary;
pub use run::{RunEnd, discard, run};
pub use stop::{StopHandle, StopLevel};
