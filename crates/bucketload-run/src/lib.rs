//! Executes a plan: load threads, pacing, recording, phases, ownership.
//!
//! ```text
//!  run ── check ── preflight, marker (ownership) ── phase … phase ── clean-up ── RunEnd
//!                                               │
//!                     collector (the caller's thread): collect, machine ──▶ RunSink
//!                        ▲ tallies at interval boundaries, failures        │
//!                        │                                   commands ◀────┘ stop handle
//!          ┌─────────────┴──────────────┐
//!     load thread 0 …              load thread N: pinned, own runtime, nothing shared
//!          │
//!      Shard: slots (deadlines) · recorder (tally) · supervisor (intervals, timeouts, limits)
//!          ├─ open work: Baton (feed, idle workers, waits) + OpenWork tasks
//!          └─ closed work: worker tasks, ThinkTimer
//!                   └── both ──▶ perform: render, execute, retry, record
//! ```
//!
//! Everything in a load thread is `Rc` and `Cell`. An operation takes no lock, channel, allocation or timer. Drivers
//! are type-erased ([`bucketload_core::driver::AnyDriver`]), so this crate is compiled once for all of them and an
//! operation costs one indirect call.

mod affinity;
mod agent_part;
mod baton;
mod buckets;
mod calibrate;
mod check;
mod checkpoint;
mod cleanup;
mod clock;
mod closed;
mod collect;
mod conditional;
mod dispatch_waits;
mod due;
mod error;
mod feed;
mod files;
mod integrity_trailer;
mod kvcache;
mod leftover;
mod machine;
mod models;
mod named_objects;
mod names;
mod open;
mod options;
mod oracle;
mod ownership;
mod partition;
mod perform;
mod phase;
mod prepared;
mod rank_agreement;
mod ranks;
mod readback;
mod recorder;
mod rounds;
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
mod supervisor;
mod think;
mod thread;
mod timer;
mod train;
mod uploads;
mod version_table;
mod versions;
mod worker_rows;

pub use affinity::{layout, usable_cores};
pub use agent_part::{Order, Orders, PhaseOrder, serve};
pub use calibrate::calibrate;
pub use cleanup::{CleanupReport, Discard};
pub use clock::now_ns;
pub use collect::PhaseTotals;
pub use error::RunError;
pub use leftover::Leftovers;
pub use options::{
    Cores, EarlierRun, EdgeHook, Pacing, PhaseEdge, PhaseHook, RemoteLoad, RemotePhase, RunOptions,
    Share, StartGate, StopHook, failing_note,
};
pub use ownership::{MARKER, Marker, prefix_in_workload_buckets, read_marker};
pub use phase::PhaseSummary;
pub use prepared::{DataSet, Filling, JOURNAL, PATIENCE, Part, Purpose, Range};
pub use rank_agreement::{RankAgreement, Reached};
pub use run::{RunEnd, discard, run, run_calibrated};
pub use stop::{StopHandle, StopLevel};
