//! What operations of all drivers begin and end with.

use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Request;
use bucketload_core::payload::Content;

/// A success without bytes or items.
pub(crate) const DONE: Completion = Completion {
    bytes: 0,
    items: 0,
    object_size: 0,
};

/// The content to write.
pub(crate) fn content_of<'a>(request: &'a Request<'_>) -> Result<&'a Content<'a>, OpError> {
    request.content.as_ref().ok_or_else(|| {
        OpError::new(
            ErrorKind::Unsupported,
            format!("{} was asked for without content", request.op.class),
        )
    })
}
