//! What drivers of HTTP services have in common, on top of the wire client.
//!
//! ```text
//! driver's session ── connection ── exchange ── wire       client: what all sessions share
//!      head              │          │   │
//!   outgoing (Plain) ────┘          │   └── sink, reading (verification of bodies)
//!                                   └────── probe
//! ```
//!
//! A session renders a head into a pooled buffer (`render`), wraps it with its body into an
//! `outgoing::Outgoing` and gives both to its `connection::Connection`, which keeps the connection: the trait
//! `session::HttpSession` has the ways to do that. The answer's body goes to a `sink::Sink`; a refusal
//! comes back as a reply and the driver says what it means, with the help of `answer`.

pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod control;
pub(crate) mod endpoint;
pub(crate) mod exchange;
pub(crate) mod outgoing;
pub(crate) mod parked;
pub(crate) mod per_thread;
pub(crate) mod pool;
pub(crate) mod reading;
pub(crate) mod render;
pub(crate) mod secret;
pub(crate) mod session;
pub(crate) mod sink;
pub(crate) mod span;

/// `Debug` for what is named where it is shown and has nothing to tell.
macro_rules! opaque_debug {
    ($($named:ty),+) => {
        $(impl std::fmt::Debug for $named {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($named))
            }
        })+
    };
}

pub(crate) use opaque_debug;

pub use config::{ConfigError, Origin, Source, TlsConfig};
pub use endpoint::Endpoint;
pub use secret::Secret;
