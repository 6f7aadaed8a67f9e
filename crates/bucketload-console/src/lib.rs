//! The controller of Bucketload: a queue of workloads, a web console, a terminal console.
//!
//! ```text
//! queue ─── controller ─── launcher ──> child process `bucketload run …` ──> run directory
//!              │                                                                 │
//!              │                             live: follows it ──> course <───────┘
//!              │                                                    │
//!  web (pages, forms, events, files, JSON, COSBench's texts) ◄──────┼──► tui (terminal)
//!   └─ server: TLS, limits      client: submit, info, cancel        │
//! ```
//!
//! [`controller`] holds the [`queue`] and runs one job after the other through a [`launcher::Launcher`];
//! [`options`] and `upload` say what may be submitted, `matrix` makes workloads of combinations. [`course`] is what is known of a run, in bounded
//! memory, for [`web`] and [`tui`]. `auth` and the web's guard keep others out; [`server`] serves,
//! [`client`] talks to a controller. [`fleet`] asks the agents that runs use how they are.

pub mod agents;
pub mod client;
pub mod controller;
pub mod course;
pub mod fleet;
pub mod launcher;
pub mod options;
pub mod queue;
pub mod server;
pub mod tui;
pub mod web;

mod auth;
mod feed;
mod live;
mod matrix;
mod upload;

pub use web::api::{JobInfo, LiveInfo};
