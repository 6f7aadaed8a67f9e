//! Errors of a call, from the store or from the connection.

use std::io;

use bucketload_store::StoreError;

use crate::protocol::codec::Malformed;

/// Result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused; the connection is still usable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A conditional read: the caller has the object already (HTTP 304).
    #[error("the object has not been modified")]
    NotModified,
    /// No connection could be made; no request was sent.
    #[error("no connection to the gateway: {0}")]
    Connect(#[source] io::Error),
    /// The gateway refuses this client: different version, missing or wrong token, too many connections.
    #[error("the gateway refuses this client: {0}")]
    Refused(&'static str),
    /// The connection broke; the request may or may not have been carried out.
    #[error("the connection to the gateway broke: {0}")]
    Lost(#[source] io::Error),
    /// The time limit of the call has passed; the request may or may not be carried out.
    #[error("the gateway did not answer in time")]
    TimedOut,
    /// The caller's own source of bytes failed or ended early; nothing was written.
    #[error("the data to write could not be read: {0}")]
    Body(#[source] io::Error),
    /// The gateway sent a malformed answer, or reported a malformed request.
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
