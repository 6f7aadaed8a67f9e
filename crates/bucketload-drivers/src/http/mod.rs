//! What drivers of HTTP services have in common, on top of the wire client.
//!
//! ```text
//! driver's session ── link ── exchange ── wire       hub: what all sessions share
//!      head            │        │   │
//!   outgoing (Plain) ──┘        │   └── sink, reading (verification of bodies)
//!                               └────── probe
//! ```
//!
//! A session renders a head into a pooled buffer, wraps it with its body into an
//! `outgoing::Outgoing` and gives both to its `link::Link`, which keeps the connection. The
//! answer's body goes to a `sink::Sink`; a refusal comes back as a reply and the driver says what
//! it means.

pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod endpoint;
pub(crate) mod exchange;
pub(crate) mod hub;
pub(crate) mod link;
pub(crate) mod outgoing;
pub(crate) mod parked;
pub(crate) mod per_thread;
pub(crate) mod pool;
pub(crate) mod reading;
pub(crate) mod secret;
pub(crate) mod sink;
pub(crate) mod span;

pub use config::{ConfigError, Origin, Source, TlsConfig};
pub use endpoint::Endpoint;
pub use secret::Secret;
