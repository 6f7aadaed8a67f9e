//! The gateway: the calls of [`bucketload_store::Store`] over a socket. Processes use it to reach the objects of
//! another host's file system, or of another process, at a lower cost than over HTTP.
//!
//! ```text
//!   client ── Client, Pipeline, Download          server ── Server
//!      │        pool: connections between calls      │        one thread per connection
//!      └──────────── protocol: handshake, frames ────┘        performs calls on a Store
//! ```
//!
//! Both sides block; there is no runtime. A request is one little-endian frame with a head and a body. Answers
//! come in the order of the requests, so a client may send several before it reads. Nothing is encrypted: the
//! token ([`AccessToken`]) authenticates clients but does not keep others from reading the traffic.

mod address;
mod busy_poll;
pub mod client;
mod proof;
mod protocol;
mod receive_buffer;
pub mod server;
mod socket;

pub use address::{Address, ParseAddressError};
pub use bucketload_token::AccessToken;
pub use client::{Client, Download, Error, Options, Pipeline, Reply, Result};
pub use protocol::request::ByteRange;
pub use protocol::{MAX_PAGE, MAX_REPLY_HEAD_BYTES, MAX_REQUEST_HEAD_BYTES, PROTOCOL_VERSION};
pub use server::{Server, ServerOptions, StartError};
