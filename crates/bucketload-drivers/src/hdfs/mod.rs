//! The HDFS driver: the RPC protocol, by itself for gets and heads of plain clusters, else through the
//! client library `hdfs-native`.
//!
//! ```text
//! config ── driver ── session ──┬── direct ── wire              path, listings, meanings: `hadoop`
//!             │                 └── ops, admin ── hdfs-native
//!             └── io: the runtime that the library's connections live on
//! ```
//!
//! What the library does is its own: it shares one connection to the name node among the sessions of a
//! load thread, keeps connections to data nodes for three seconds, asks another data node when a read
//! fails, and waits half a second when the name node does not know all blocks of a file at its close.
//! The result header names it as the engine.

mod admin;
mod config;
mod direct;
mod driver;
mod error;
mod io;
mod ops;
mod session;

pub use config::HdfsConfig;
pub use driver::HdfsDriver;
pub use session::HdfsSession;
