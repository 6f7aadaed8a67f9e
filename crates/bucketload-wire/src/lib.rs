//! Sockets, TLS and HTTP/1.1 heads on a current-thread runtime, shared by client and server.
//!
//! This crate knows nothing of S3, workloads or results. It moves bytes at minimal cost and reports
//! failures precisely. It is designed for one tokio `current_thread` runtime per
//! thread: futures are not `Send`, and there is no lock, atomic or channel on the path of a request.
//!
//! # Layers
//!
//! ```text
//! http   response and request heads, chunked bodies          pure, no I/O
//! conn   one connection: send, receive, discard, verify      plain or TLS, one API
//! tls    trust, certificates, handshake errors               configuration
//! sock   a non-blocking TCP socket that counts its syscalls  calls `sys`
//! ```
//!
//! plus [`listen`] (a listener for several threads), [`dns`] (name resolution off the load thread) and
//! [`hosts`] (`host{1...8}:9000`).
//!
//! # Example: one request of a client
//!
//! ```no_run
//! use bucketload_wire::{Conn, Error, Sock, Step, http};
//!
//! # async fn client() -> Result<(), Error> {
//! let sock = Sock::connect("127.0.0.1:9000".parse().unwrap(), None).await?;
//! let mut conn = Conn::plain(sock);
//! conn.send(b"GET /bucket/key HTTP/1.1\r\nHost: a\r\n\r\n", b"").await?;
//! // One `recv` gets the head and, if the body is small, the body too.
//! let (head, in_buffer) = conn
//!     .recv_with(|bytes| -> Result<_, Error> {
//!         let Some(head) = http::parse_response(bytes, false)? else {
//!             return Ok(Step::More(0));
//!         };
//!         let body = (bytes.len() - head.len) as u64;
//!         let take = body.min(head.body.length().unwrap_or(0));
//!         Ok(Step::Done(head.len + take as usize, (head, take)))
//!     })
//!     .await?;
//! if let Some(length) = head.body.length() {
//!     conn.discard(length - in_buffer).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Cancellation
//!
//! Dropping an unfinished future of a [`Conn`] never silently loses the position in the stream: the
//! connection is marked broken ([`Conn::is_broken`]), further calls fail with [`Error::Broken`], and the
//! owner opens a new one. Exception: [`Conn::readable`] consumes nothing and may be dropped.

#![cfg(target_os = "linux")]

pub mod clock;
pub mod conn;
pub mod dns;
pub mod error;
pub mod hosts;
pub mod http;
pub mod listen;
mod parked;
mod scratch;
pub mod sock;
mod sys;
pub mod tls;

pub use conn::{Conn, Receiver, SendEnd, Step, TlsFacts};
pub use error::Error;
pub use parked::{Parked, park};
pub use sock::{Calls, Sock};
