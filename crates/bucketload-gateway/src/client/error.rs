//! Why a call failed: as the store says, or on the way to it.

use std::io;

use bucketload_store::StoreError;

use crate::protocol::codec::Malformed;

/// Result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store says no; the connection is fine.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A read under conditions: the caller has the object already (HTTP 304).
    #[error("the object has not been modified")]
    NotModified,
    /// No connection could be made; nothing was asked for.
    #[error("no connection to the gateway: {0}")]
    Connect(#[source] io::Error),
    /// The gateway does not take this client: another version, a missing or wrong token, too many connections.
    #[error("the gateway refuses this client: {0}")]
    Refused(&'static str),
    /// The connection broke; what was asked for may or may not have happened.
    #[error("the connection to the gateway broke: {0}")]
    Lost(#[source] io::Error),
    /// The time limit of the call has passed; what was asked for may or may not happen yet.
    #[error("the gateway did not answer in time")]
    TimedOut,
    /// The caller's own source of bytes failed or ended early; nothing was written.
    #[error("the data to write could not be had: {0}")]
    Body(#[source] io::Error),
    /// The gateway's answer makes no sense, or it says so of the request.
    #[error("the gateway does not speak the protocol: {0}")]
    Protocol(String),
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::Protocol(malformed.0.to_owned())
    }
}

impl Error {
    /// The error for a failure of an established connection.
    pub(crate) fn lost(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Lost(error),
        }
    }
}
