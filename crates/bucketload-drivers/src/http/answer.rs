//! Reading responses of any service: size limits, object sizes, malformed responses, and the meaning of a status.

use std::fmt::Display;

use bucketload_core::driver::{Completion, DONE, ErrorKind, OpError, OpResult};

use super::exchange::Reply;

/// Maximum size of a control document in a response, in bytes.
pub(crate) const MAX_DOCUMENT: usize = 1 << 20;
/// Maximum size of a small object, in bytes.
pub(crate) const MAX_SMALL: usize = 16 << 20;
/// Maximum length of a server's message in an error, in characters.
const MAX_MESSAGE: usize = 300;

/// Text from a response that was checked to be UTF-8 when it was parsed.
pub(crate) fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// The object size from a response to HEAD.
pub(crate) fn size_of_object(reply: &Reply) -> OpResult {
    let Some(size) = reply.content_length() else {
        return Err(OpError::with_status(
            ErrorKind::Protocol,
            reply.status,
            "the response has no Content-Length",
        ));
    };
    Ok(Completion::of_size(size))
}

/// The result of a conditional write: status 412 counts as a success with zero items.
pub(crate) fn if_absent(done: OpResult) -> OpResult {
    match done {
        Ok(done) => Ok(Completion { items: 1, ..done }),
        Err(error) if error.status == 412 => Ok(DONE),
        Err(error) => Err(error),
    }
}

/// A successful response whose document cannot be parsed.
#[cold]
pub(crate) fn unreadable(what: &str, why: impl Display) -> OpError {
    OpError::new(
        ErrorKind::Protocol,
        format!("the {what} cannot be read: {why}"),
    )
}

/// A successful response that exceeds its size limit.
#[cold]
pub(crate) fn too_long(status: u16) -> OpError {
    OpError::with_status(
        ErrorKind::Protocol,
        status,
        "the response is longer than allowed",
    )
}

/// A page of a listing that does not say where to continue, or points back to its own start.
#[cold]
pub(crate) fn no_next_page() -> OpError {
    OpError::new(
        ErrorKind::Protocol,
        "the listing does not say where to continue, or points back to the start of this page",
    )
}

/// The meaning of a status if the service gave no further details.
pub(crate) const fn kind_of(status: u16) -> ErrorKind {
    match status {
        404 => ErrorKind::NotFound,
        409 | 412 => ErrorKind::Conflict,
        429 => ErrorKind::Throttled,
        401 | 403 => ErrorKind::Auth,
        405 | 501 => ErrorKind::Unsupported,
        507 => ErrorKind::Full,
        500..=599 => ErrorKind::Server,
        _ => ErrorKind::Rejected,
    }
}

/// The text of a refusal: its code, its message, or both.
pub(crate) fn refusal_text(status: u16, code: &str, message: &str) -> String {
    match (code, message) {
        ("", "") => format!("the server returned status {status} without an explanation"),
        (code, "") => code.to_owned(),
        ("", message) => message.to_owned(),
        (code, message) => format!("{code}: {message}"),
    }
}

/// `text` as one line without control characters, shortened to [`MAX_MESSAGE`] characters.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
