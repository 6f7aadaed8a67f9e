//! The gateway: the calls of [`bucketload_store::Store`] over a socket, for processes that want the objects of
//! another host's file system (or of another process) at less cost than HTTP has.
//!
//! ```text
//!   client ── Client, Pipeline, Download          server ── Server
//!      │        pool: connections between calls      │        one thread per connection
//!      └──────────── protocol: handshake, frames ────┘        performs calls on a Store
//! ```
//!
//! Both sides block; there is no runtime. One request is one frame, little-endian, with its body behind its
//! head; answers come in the order of the requests, so that a client may send several before it reads. Nothing
//! is encrypted: the token ([`Token`]) says who may talk, not who may listen.

mod address;
pub mod client;
mod frames;
mod patience;
mod protocol;
pub mod server;
mod socket;
mod token;

pub use address::{Address, ParseAddressError};
pub use client::{Client, Download, Error, Options, Pipeline, Reply, Result};
pub use protocol::request::ByteRange;
pub use protocol::{MAX_PAGE, MAX_REPLY_HEAD_BYTES, MAX_REQUEST_HEAD_BYTES, PROTOCOL_VERSION};
pub use server::{Server, ServerOptions, StartError};
pub use token::{Token, TokenError};
