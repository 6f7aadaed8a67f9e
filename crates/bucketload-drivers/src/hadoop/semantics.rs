//! The meaning of operations on HDFS, for both drivers.

use std::time::{SystemTime, UNIX_EPOCH};

use bucketload_core::driver::{Completion, DONE, ErrorKind, OpClass, OpError, OpResult};

/// Operations of HDFS.
pub(crate) const CLASSES: [OpClass; 14] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::PutIfAbsent,
    OpClass::Append,
    OpClass::Touch,
    OpClass::Head,
    OpClass::Delete,
    OpClass::List,
    OpClass::Rename,
    OpClass::MakeBucket,
    OpClass::HeadBucket,
    OpClass::DeleteBucket,
    OpClass::ListBuckets,
];

/// The error for a class that is not in [`CLASSES`], with the reason.
#[cold]
pub(crate) fn unsupported(class: OpClass) -> OpError {
    let why = match class {
        OpClass::Copy | OpClass::MultipartCopy => {
            "HDFS cannot copy on the server: a client has to read and write the bytes"
        }
        OpClass::DeleteMany => "HDFS deletes one path per request",
        OpClass::ListV1 => "HDFS has one kind of listing; use list",
        OpClass::MultipartPut | OpClass::MultipartAbort | OpClass::ListUploads => {
            "HDFS has no multipart upload: files are written as streams; use put or append"
        }
        _ => "HDFS has no such operation",
    };
    OpError::new(ErrorKind::Unsupported, format!("{class}: {why}"))
}

/// Whether an error means that the file exists or that another client is writing it.
pub(crate) fn is_existing_file(error: &OpError) -> bool {
    let by_class = error.detail.starts_with("FileAlreadyExistsException")
        || error.detail.starts_with("AlreadyBeingCreatedException");
    by_class && !error.detail.contains("as a directory")
}

/// Whether a rename failed because the directory of the new name does not exist.
pub(crate) fn is_missing_parent(error: &OpError) -> bool {
    error.kind == ErrorKind::NotFound && error.detail.contains("destination parent")
}

/// Adds a likely cause to the error of a read that returned no bytes.
#[cold]
pub(crate) fn explain_empty_read(mut error: OpError, received: u64) -> OpError {
    if error.kind == ErrorKind::Corrupt && received == 0 {
        error.detail = format!(
            "{}: HDFS returned an empty file, which happens when a file that was just closed is not \
             visible yet",
            error.detail
        )
        .into();
    }
    error
}

/// The error of a read that begins at or past the end.
#[cfg(feature = "hdfs")]
#[cold]
pub(crate) fn past_the_end(offset: u64, length: u64) -> OpError {
    OpError::new(
        ErrorKind::Rejected,
        format!("offset {offset} is outside the file of {length} bytes"),
    )
}

/// The result of a head, from a path's status.
///
/// # Errors
/// `NotFound` for a directory.
pub(crate) fn size_of_file(is_dir: bool, size: u64) -> OpResult {
    match is_dir {
        true => Err(OpError::new(ErrorKind::NotFound, "the path is a directory")),
        false => Ok(Completion::of_size(size)),
    }
}

/// Checks that a bucket's path is a directory.
///
/// # Errors
/// `NotFound` for a file.
pub(crate) fn check_is_directory(bucket: &str, is_dir: bool) -> OpResult {
    match is_dir {
        true => Ok(DONE),
        false => Err(OpError::new(
            ErrorKind::NotFound,
            format!("`{bucket}` is a file, not a directory"),
        )),
    }
}

/// Checks that a deletion found a file.
///
/// # Errors
/// `NotFound` when it did not.
pub(crate) fn check_deleted(was_there: bool) -> OpResult<()> {
    match was_there {
        true => Ok(()),
        false => Err(OpError::new(ErrorKind::NotFound, "the file does not exist")),
    }
}

/// The current time for a touch, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::{ErrorKind, OpError};
    use bucketload_core::op::OpClass;

    use super::{CLASSES, explain_empty_read, is_existing_file, unsupported};

    #[test]
    fn every_other_class_is_refused_with_a_reason() {
        for class in OpClass::ALL.into_iter().filter(|c| !CLASSES.contains(c)) {
            let error = unsupported(class);
            assert_eq!(error.kind, ErrorKind::Unsupported);
            assert!(error.detail.contains("HDFS"), "{error}");
        }
    }

    #[test]
    fn an_empty_read_gets_an_explanation() {
        let empty = OpError::new(ErrorKind::Corrupt, "0 bytes came instead of 9");
        assert!(
            explain_empty_read(empty.clone(), 0)
                .detail
                .contains("just closed")
        );
        assert_eq!(explain_empty_read(empty.clone(), 3), empty);
    }

    #[test]
    fn an_existing_directory_is_not_an_existing_file() {
        let error = |text: &str| OpError::new(ErrorKind::Conflict, text);
        assert!(is_existing_file(&error(
            "FileAlreadyExistsException: /b/k for client 1 already exists"
        )));
        assert!(!is_existing_file(&error(
            "FileAlreadyExistsException: /b/k already exists as a directory"
        )));
        assert!(!is_existing_file(&error(
            "ParentNotDirectoryException: /b/k"
        )));
    }
}
