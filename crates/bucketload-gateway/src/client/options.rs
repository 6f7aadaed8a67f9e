//! How a client talks to its gateway.

use std::time::Duration;

use crate::address::Address;
use crate::token::Token;

/// Options of a [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the gateway listens.
    pub address: Address,
    /// The token that the gateway demands, if it does.
    pub token: Option<Token>,
    /// Longest time to connect, handshake included.
    pub connect_timeout: Duration,
    /// Longest single wait for the gateway within a call: no byte comes or goes for that long.
    pub stall_timeout: Duration,
    /// How long a call looks for its answer before it sleeps, where it keeps nobody from working by that.
    pub patience: Duration,
    /// Most connections that are kept between calls.
    pub idle_connections: usize,
}

impl Options {
    /// The defaults for a gateway at `address`: no token, 10 s to connect, 60 s of stall, 50 µs of patience,
    /// 64 connections.
    #[must_use]
    pub const fn new(address: Address) -> Self {
        Self {
            address,
            token: None,
            connect_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(60),
            patience: Duration::from_micros(50),
            idle_connections: 64,
        }
    }
}
