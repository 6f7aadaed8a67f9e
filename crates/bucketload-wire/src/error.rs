//! What can go wrong on a connection, told apart by what the caller must do about it.

use std::io;

use crate::http::HttpError;
use crate::tls::TlsError;

/// Failure of an operation on a [`crate::Conn`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The peer closed or reset the connection before any byte arrived since the last `send`.
    ///
    /// To a client whose connection was not [fresh](crate::Conn::is_fresh) before the request this usually
    /// means that the server closed an idle keep-alive connection; to a server that the client is done.
    #[error("the peer closed the connection before the first byte of an answer")]
    ClosedBeforeAnswer,
    /// The peer closed the connection in the middle of an answer. `clean` says whether it did so
    /// in good order (for TLS: with a `close_notify`; for plain TCP always).
    #[error("the peer closed the connection in the middle of an answer")]
    Closed {
        /// Whether the stream ended in good order.
        clean: bool,
    },
    /// The peer reset the connection in the middle of an answer or while a request was being sent.
    #[error("the peer reset the connection")]
    Reset,
    /// The TLS handshake failed, or a record could not be read.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Another failure of the socket.
    #[error(transparent)]
    Io(io::Error),
    /// Bytes that violate HTTP.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The receiver left more than `limit` bytes unconsumed and asked for more: a head or a line
    /// that never ends.
    #[error("no complete message head within {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The source of a body ended `missing` bytes before its announced length.
    #[error("the source of the body ended {missing} bytes early")]
    ShortBody {
        /// Bytes that were announced and not delivered.
        missing: u64,
    },
    /// An earlier operation failed or was abandoned half-way: the position in the stream is lost.
    #[error("the connection was abandoned in the middle of a message")]
    Broken,
}

impl Error {
    /// Whether the peer, not the network path or this program, ended the connection.
    #[must_use]
    pub const fn is_close(&self) -> bool {
        matches!(
            self,
            Self::ClosedBeforeAnswer | Self::Closed { .. } | Self::Reset
        )
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Reset,
            _ => Self::Io(error),
        }
    }
}
