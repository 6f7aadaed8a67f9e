//! The controller of Bucketload: a queue of workloads, a web console, a terminal console.
//!
//! ```text
//! queue ─── controller ─── launcher ──> child process `bucketload run …` ──> run directory
//!              │                                                                 │
//!              │                             live: follows it ──> monitor <──────┘
//!              │                                                    │
//!  web (pages, forms, events, files, JSON, COSBench's texts) ◄──────┼──► tui (terminal)
//!   └─ server: TLS, limits      client: submit, info, cancel        │
//! ```
//!
//! [`controller`] holds the [`queue`] and runs one job after the other with a [`launcher::Launcher`].
//! [`options`] and `upload` restrict submissions; `matrix` generates workloads from combinations. [`monitor`] keeps
//! what is known of a run in bounded memory, for [`web`] and [`tui`]. `outcome` has what is shown of an ended run.
//! `auth` and the web's guard control access;
//! [`server`] serves, [`client`] talks to a controller. [`fleet`] checks the health of the agents.

pub mod agents;
pub mod client;
pub mod controller;
pub mod fleet;
pub mod launcher;
pub mod monitor;
pub mod options;
pub mod outcome;
pub mod queue;
pub mod server;
pub mod tui;
pub mod web;

mod auth;
mod connections;
mod live;
mod matrix;
mod receiver_stream;
mod upload;

pub use outcome::Figures;
pub use web::api::{JobInfo, LiveInfo};

/// Locks a mutex, even if another thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
