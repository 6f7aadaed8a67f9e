//! The blocking client: [`Client`] for single calls, [`Pipeline`] for batches of small requests, [`Download`] for the
//! bytes of an object.
//!
//! ```text
//! calls: one function per call ── pool: idle connections ── connection: handshake, frames
//! download, pipeline, files ──────┘
//! ```
//!
//! Any number of threads may use a client at once; each call has its own connection while it lasts. A call that fails
//! for another reason than an answer of the store closes its connection. Nothing is retried.

mod calls;
mod connection;
mod download;
mod error;
mod files;
mod options;
mod pipeline;
mod pool;

pub use calls::Client;
pub use download::Download;
pub use error::{Error, Result};
pub use options::Options;
pub use pipeline::{Pipeline, Reply};
