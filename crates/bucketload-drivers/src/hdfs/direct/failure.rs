//! Errors for failed connections.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_wire::Error as WireError;

/// The error for a failure of the connection to `peer`.
#[cold]
pub(super) fn broken(peer: &str, error: &WireError) -> OpError {
    let kind = match error {
        WireError::TooLarge { .. } => ErrorKind::Protocol,
        _ => ErrorKind::Reset,
    };
    OpError::new(kind, format!("{peer}: {error}"))
}
