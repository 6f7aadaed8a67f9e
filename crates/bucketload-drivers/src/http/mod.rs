//! The kit that all HTTP drivers share, on top of the wire client.
//!
//! ```text
//! driver's session ── connection ── exchange ── wire       client: state that all sessions share
//!      head              │          │   │
//!   outgoing (Plain) ────┘          │   └── sink, reading (verification of bodies)
//!                                   └────── probe
//! ```
//!
//! A session renders a head into a pooled buffer (`render`) and combines it with the body in an `outgoing::Outgoing`. It
//! passes that to its `connection::Connection` through the methods of `session::HttpSession`. The response body goes to
//! a `sink::Sink`. A refusal comes back as a reply, which the driver turns into an error with the help of `answer`.

pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod control;
pub(crate) mod doctor;
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

/// Implements `Debug` by the type's name alone.
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

pub(crate) use client::{Client, IdFields};
pub(crate) use connection::Connection;
pub(crate) use exchange::{Refusal, Reply};
pub(crate) use outgoing::{Body, NO_BODY, Outgoing, Plain};
pub(crate) use parked::park;
pub(crate) use pool::Buffer;
pub(crate) use reading::Reading;
pub(crate) use render::Render;
pub(crate) use session::{HttpSession, Rendering};
pub(crate) use sink::{Collect, Ignore, OneField, Sink};
pub(crate) use span::Span;
