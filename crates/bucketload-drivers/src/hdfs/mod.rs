//! The HDFS driver for the RPC protocol: it performs gets and heads on plain clusters itself, everything
//! else through the client library `hdfs-native`.
//!
//! ```text
//! config ── driver ── session ──┬── direct ── wire              paths, listings, errors: `hadoop`
//!             │                 └── ops, admin ── hdfs-native
//!             └── io: the runtime of the library's connections
//! ```
//!
//! The library shares one connection to the name node among the sessions of a load thread, keeps
//! connections to data nodes for three seconds, tries another data node when a read fails, and waits half
//! a second when the name node does not know all blocks of a file at its close. The result header names
//! the library as the engine.

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
