//! Gateway and client over sockets.
#![allow(missing_docs)]

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod hostile;
mod last_bytes;
