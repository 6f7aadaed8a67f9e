//! Turns a Java exception of the cluster into an [`OpError`].
//!
//! Name node and data nodes send the class of the exception and a message: WebHDFS as JSON
//! (`RemoteException`), the RPC protocol as two strings. WebHDFS answers nearly every `IOException` with
//! status 403, so the class determines the kind; the status matters only for unknown classes.

use bucketload_core::error::{ErrorKind, OpError};
use serde::Deserialize;

use crate::http::answer::{self, one_line};

/// WebHDFS's description of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct RemoteException {
    /// Simple name of the class.
    #[serde(default)]
    pub(crate) exception: String,
    /// Full name of the class; empty if the server does not give it.
    #[serde(default, rename = "javaClassName")]
    pub(crate) java_class: String,
    #[serde(default)]
    pub(crate) message: String,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "RemoteException")]
    remote: RemoteException,
}

impl RemoteException {
    /// The exception in the body of an answer; `None` for any other body (such as a proxy's page).
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let document: Document = serde_json::from_slice(body).ok()?;
        Some(document.remote)
    }

    /// The full name of the class, or else its simple name.
    pub(crate) fn class(&self) -> &str {
        if self.java_class.is_empty() {
            &self.exception
        } else {
            &self.java_class
        }
    }
}

/// The name of a class without packages and outer classes.
fn simple(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

/// The error for an exception of `class`. `status` is the HTTP status, 0 without one.
pub(crate) fn to_error(class: &str, message: &str, status: u16) -> OpError {
    let name = simple(class);
    let kind = kind_of(name, message).unwrap_or_else(|| by_status(status));
    OpError::with_status(
        kind,
        status,
        answer::refusal_text(status, name, &tidy(message)),
    )
}

/// The first line of `text`, without control characters, of bounded length. A stack trace follows it.
pub(crate) fn tidy(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    one_line(line.unwrap_or_default())
}

/// The error kind for an exception class (Hadoop 3.4, `org.apache.hadoop.{fs,hdfs,ipc,security}`).
fn kind_of(name: &str, message: &str) -> Option<ErrorKind> {
    Some(match name {
        "FileNotFoundException" => ErrorKind::NotFound,
        "FileAlreadyExistsException"
        | "ParentNotDirectoryException"
        | "PathIsNotDirectoryException"
        | "PathIsNotEmptyDirectoryException"
        | "AlreadyBeingCreatedException"
        | "RecoveryInProgressException"
        // The file was replaced or deleted while it was being written.
        | "LeaseExpiredException" => ErrorKind::Conflict,
        "AccessControlException"
        | "AuthorizationException"
        | "AuthenticationException"
        | "SecurityException"
        | "InvalidToken"
        | "SaslException" => ErrorKind::Auth,
        "QuotaExceededException"
        | "NSQuotaExceededException"
        | "DSQuotaExceededException"
        | "QuotaByStorageTypeExceededException"
        | "MaxDirectoryItemsExceededException"
        | "DiskOutOfSpaceException" => ErrorKind::Full,
        "InvalidPathException"
        | "IllegalArgumentException"
        | "HadoopIllegalArgumentException"
        | "PathComponentTooLongException"
        | "InvalidPathHandleException" => ErrorKind::Rejected,
        "UnsupportedOperationException" => ErrorKind::Unsupported,
        "ServerTooBusyException" | "RetriableException" => ErrorKind::Throttled,
        "SafeModeException"
        | "StandbyException"
        | "ObserverRetryOnActiveException"
        | "NotReplicatedYetException"
        | "BlockMissingException"
        | "CannotObtainBlockLengthException" => ErrorKind::Server,
        "ChecksumException" => ErrorKind::Corrupt,
        "IOException" | "RemoteException" => by_message(message),
        // A data node was asked for an offset at or past the end that the name node did not know yet.
        "EOFException" if message.contains("seek") => ErrorKind::Rejected,
        "EOFException" => ErrorKind::Server,
        _ => return None,
    })
}

/// The error kind for an exception of the base class, which only its message identifies.
fn by_message(message: &str) -> ErrorKind {
    // No data node accepts the block. With live data nodes that means a full cluster.
    let no_target = message.contains("could only be written to 0 of")
        || message.contains("could only be replicated to 0 nodes");
    let no_space = message.contains("No space left") || message.contains("Out of space");
    if no_space || (no_target && !message.contains("There are 0 datanode(s) running")) {
        ErrorKind::Full
    } else if message.contains("out of the range") {
        // OPEN with an offset at or past the end.
        ErrorKind::Rejected
    } else {
        ErrorKind::Server
    }
}

/// The error kind for a status without a known exception.
fn by_status(status: u16) -> ErrorKind {
    match status {
        0 => ErrorKind::Server,
        _ => answer::kind_of(status),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;

    use super::{RemoteException, tidy, to_error};

    #[test]
    fn documents_are_read() {
        let body = br#"{"RemoteException":{"exception":"FileNotFoundException",
            "javaClassName":"java.io.FileNotFoundException","message":"File does not exist: /b/k"}}"#;
        let remote = RemoteException::parse(body).unwrap();
        let error = to_error(remote.class(), &remote.message, 404);
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert_eq!(error.status, 404);
        assert_eq!(
            &*error.detail,
            "FileNotFoundException: File does not exist: /b/k"
        );
        assert_eq!(RemoteException::parse(b"<html>"), None);
        assert_eq!(RemoteException::parse(b"{}"), None);
    }

    #[test]
    fn classes_map_to_error_kinds() {
        let full = "File /b/k could only be written to 0 of the 1 minReplication nodes. There are 2 \
                    datanode(s) running and no node(s) are excluded in this operation.";
        let unplaced = "File /b/k could only be written to 0 of the 1 minReplication nodes. There are \
                      0 datanode(s) running and no node(s) are excluded in this operation.";
        let past = "Offset=1000 out of the range [0, 10); OPEN, path=/b/k";
        for (class, message, status, kind) in [
            (
                "java.io.EOFException",
                "Cannot seek after EOF",
                403,
                ErrorKind::Rejected,
            ),
            (
                "org.apache.hadoop.fs.FileAlreadyExistsException",
                "",
                403,
                ErrorKind::Conflict,
            ),
            (
                "org.apache.hadoop.fs.ParentNotDirectoryException",
                "",
                403,
                ErrorKind::Conflict,
            ),
            (
                "org.apache.hadoop.security.AccessControlException",
                "",
                403,
                ErrorKind::Auth,
            ),
            (
                "org.apache.hadoop.security.token.SecretManager$InvalidToken",
                "",
                403,
                ErrorKind::Auth,
            ),
            (
                "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
                "",
                403,
                ErrorKind::Full,
            ),
            (
                "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
                "",
                403,
                ErrorKind::Rejected,
            ),
            (
                "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
                "",
                403,
                ErrorKind::Server,
            ),
            (
                "org.apache.hadoop.ipc.StandbyException",
                "",
                403,
                ErrorKind::Server,
            ),
            ("java.io.IOException", full, 403, ErrorKind::Full),
            ("java.io.IOException", unplaced, 403, ErrorKind::Server),
            ("java.io.IOException", past, 403, ErrorKind::Rejected),
            ("java.io.IOException", "anything", 0, ErrorKind::Server),
            ("some.Other", "", 403, ErrorKind::Auth),
            ("some.Other", "", 500, ErrorKind::Server),
            ("some.Other", "", 400, ErrorKind::Rejected),
            ("", "", 507, ErrorKind::Full),
        ] {
            assert_eq!(
                to_error(class, message, status).kind,
                kind,
                "{class} {message}"
            );
        }
    }

    #[test]
    fn messages_are_one_line_of_bounded_length() {
        assert_eq!(
            tidy("\n first \u{1b}[31mline\n\tat java.lang"),
            "first [31mline"
        );
        assert_eq!(tidy(&"x".repeat(1000)).chars().count(), 301);
        assert_eq!(tidy(""), "");
    }
}
