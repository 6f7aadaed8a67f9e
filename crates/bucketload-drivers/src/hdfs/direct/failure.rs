//! What failures of connections mean.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_wire::Error as WireError;

/// The meaning of a failure of the connection to `whom`.
#[cold]
pub(super) fn broken(whom: &str, error: &WireError) -> OpError {
    let kind = match error {
        WireError::TooLarge { .. } => ErrorKind::Protocol,
        _ => ErrorKind::Reset,
    };
    OpError::new(kind, format!("{whom}: {error}"))
}
