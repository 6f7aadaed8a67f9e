//! Options of a client.

use std::time::Duration;

use bucketload_token::AccessToken;

use crate::address::Address;

/// Options of a [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the gateway listens.
    pub address: Address,
    /// The gateway's token, if it demands one.
    pub token: Option<AccessToken>,
    /// Maximum time to connect, including the handshake.
    pub connect_timeout: Duration,
    /// Maximum time within a call during which no byte is sent or received.
    pub stall_timeout: Duration,
    /// How long a call polls for its answer before it sleeps, unless the core is needed for other work.
    pub busy_poll: Duration,
    /// Maximum number of idle connections kept between calls.
    pub idle_connections: usize,
}

impl Options {
    /// The defaults for a gateway at `address`: no token, 10 s to connect, a stall timeout of 60 s, 50 µs of polling,
    /// 64 idle connections.
    #[must_use]
    pub const fn new(address: Address) -> Self {
        Self {
            address,
            token: None,
            connect_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(60),
            busy_poll: Duration::from_micros(50),
            idle_connections: 64,
        }
    }
}
