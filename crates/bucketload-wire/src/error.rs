//! The errors of a connection, distinguished by what the caller must do about them.

use std::io;

use crate::http::HttpError;
use crate::tls::TlsError;

/// Failure of an operation on a [`crate::Conn`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The peer closed or reset the connection, and no byte has arrived since the last `send`.
    ///
    /// For a client whose connection was not [fresh](crate::Conn::is_fresh) before the request, this
    /// usually means that the server closed an idle keep-alive connection. For a server, it means that
    /// the client is done.
    #[error("the peer closed the connection before the first byte of an answer")]
    ClosedBeforeAnswer,
    /// The peer closed the connection in the middle of a response. `clean` says whether it did so
    /// gracefully (for TLS: with a `close_notify`; for plain TCP: always).
    #[error("the peer closed the connection in the middle of an answer")]
    Closed {
        /// Whether the stream ended gracefully.
        clean: bool,
    },
    /// The peer reset the connection in the middle of a response or while a request was being sent.
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
    /// The receiver left more than `limit` bytes unconsumed and asked for more: the head or line does
    /// not end.
    #[error("no complete message head within {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The source of a body ended `missing` bytes before its announced length.
    #[error("the source of the body ended {missing} bytes early")]
    ShortBody {
        /// Bytes announced but not delivered.
        missing: u64,
    },
    /// An earlier operation failed or was dropped unfinished: the position in the stream is lost.
    #[error("the connection was abandoned in the middle of a message")]
    Broken,
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
