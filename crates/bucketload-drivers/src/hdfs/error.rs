//! Turns the library's errors into an [`OpError`].

use std::io;

use bucketload_core::error::{ErrorKind, OpError};
use hdfs_native::HdfsError;

use crate::hadoop::exception::{tidy, to_error};

#[cold]
pub(super) fn to_op_error(error: HdfsError) -> OpError {
    let of = |kind, text: &str| OpError::new(kind, tidy(text));
    match error {
        HdfsError::IOError(error) => connection(&error),
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => {
            to_error(&class, &message, 0)
        }
        HdfsError::AlreadyExists(message) => to_error("FileAlreadyExistsException", &message, 0),
        HdfsError::FileNotFound(path) | HdfsError::BlocksNotFound(path) => {
            to_error("FileNotFoundException", &path, 0)
        }
        HdfsError::IsADirectoryError(path) => of(
            ErrorKind::NotFound,
            &format!("the path is a directory: {path}"),
        ),
        HdfsError::ChecksumError => of(ErrorKind::Corrupt, "a block's checksum is wrong"),
        error @ (HdfsError::InvalidPath(_)
        | HdfsError::InvalidArgument(_)
        | HdfsError::UrlParseError(_)) => of(ErrorKind::Rejected, &error.to_string()),
        error @ (HdfsError::UnsupportedFeature(_)
        | HdfsError::UnsupportedErasureCodingPolicy(_)) => {
            of(ErrorKind::Unsupported, &error.to_string())
        }
        error @ (HdfsError::SASLError(_)
        | HdfsError::GSSAPIError(..)
        | HdfsError::NoSASLMechanism) => of(ErrorKind::Auth, &error.to_string()),
        error @ HdfsError::InvalidRPCResponse(_) => of(ErrorKind::Protocol, &error.to_string()),
        error => of(ErrorKind::Server, &error.to_string()),
    }
}

fn connection(error: &io::Error) -> OpError {
    use io::ErrorKind as IoKind;
    let text = error.to_string();
    let kind = match error.kind() {
        IoKind::ConnectionRefused
        | IoKind::AddrNotAvailable
        | IoKind::HostUnreachable
        | IoKind::NetworkUnreachable
        | IoKind::NotFound => ErrorKind::Connect,
        IoKind::TimedOut => ErrorKind::Timeout,
        // Failures of the system's resolver have no specific kind.
        _ if text.contains("lookup address") => ErrorKind::Connect,
        _ => ErrorKind::Reset,
    };
    OpError::new(kind, tidy(&text))
}

#[cfg(test)]
mod tests {
    use std::io;

    use bucketload_core::error::ErrorKind;
    use hdfs_native::HdfsError;

    use super::to_op_error;
    use crate::hadoop::semantics::is_existing_file;

    #[test]
    fn errors_map_to_error_kinds() {
        let rpc = |class: &str| HdfsError::RPCError(class.to_owned(), "m\n\tat x".to_owned());
        let io = |kind: io::ErrorKind| HdfsError::IOError(io::Error::from(kind));
        for (error, kind) in [
            (
                rpc("org.apache.hadoop.security.AccessControlException"),
                ErrorKind::Auth,
            ),
            (
                rpc("org.apache.hadoop.hdfs.server.namenode.SafeModeException"),
                ErrorKind::Server,
            ),
            (
                rpc("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException"),
                ErrorKind::Full,
            ),
            (
                HdfsError::FileNotFound("/a".to_owned()),
                ErrorKind::NotFound,
            ),
            (
                HdfsError::IsADirectoryError("/a".to_owned()),
                ErrorKind::NotFound,
            ),
            (HdfsError::ChecksumError, ErrorKind::Corrupt),
            (io(io::ErrorKind::ConnectionRefused), ErrorKind::Connect),
            (io(io::ErrorKind::UnexpectedEof), ErrorKind::Reset),
            (io(io::ErrorKind::TimedOut), ErrorKind::Timeout),
            (
                HdfsError::IOError(io::Error::other("failed to lookup address information: x")),
                ErrorKind::Connect,
            ),
            (HdfsError::NoSASLMechanism, ErrorKind::Auth),
            (
                HdfsError::DataTransferError("x".to_owned()),
                ErrorKind::Server,
            ),
        ] {
            let found = to_op_error(error);
            assert_eq!(found.kind, kind, "{found}");
            assert!(!found.detail.contains('\n'));
        }
    }

    #[test]
    fn an_existing_file_is_recognised() {
        let message = "/b/k for client 127.0.0.1 already exists".to_owned();
        assert!(is_existing_file(&to_op_error(HdfsError::AlreadyExists(
            message
        ))));
    }
}
