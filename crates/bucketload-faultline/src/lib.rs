//! The fault line: a TCP proxy between a client and each endpoint of a store, in a process of its own. It carries bytes
//! untouched, TLS included, until it is told to break something.
//!
//! ```text
//!  stdin ─ Setup, then Orders ─► Proxy ─ Listening, then Reports ─► stdout
//!                                  │ one epoll loop, one thread
//!                 client ◄─ Lane ─ Link ─ Lane ─► endpoint
//!                                  │
//!                         Effects: what the active faults do to this connection
//! ```
//!
//! `protocol` has the messages, `proxy` the loop, `link` a connection, `lane` one direction of it, `effects` what faults do
//! to it, `answer` the plain HTTP that forged answers need, `draw` the random numbers. The process ends when its standard
//! input closes, which happens however its parent ends.

mod answer;
mod draw;
mod effects;
mod lane;
mod link;
mod protocol;
mod proxy;

pub use protocol::{Order, Report, Setup};
pub use proxy::serve;
