//! The blocking client: [`Client`] for single calls, [`Pipeline`] for several requests in one go, [`Download`] for
//! the bytes of an object as they come.
//!
//! ```text
//! calls: one function per call ── pool: connections between calls ── connection: handshake, frames
//! download, pipeline, files ──────┘
//! ```
//!
//! A client may be used by any number of threads at once; each call has a connection to itself while it lasts. A
//! call that fails other than by an answer of the store closes its connection. Nothing is repeated by itself.

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
