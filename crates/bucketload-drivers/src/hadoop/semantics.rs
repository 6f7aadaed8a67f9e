//! What operations mean on HDFS, whichever way it is spoken to.

use std::time::{SystemTime, UNIX_EPOCH};

use bucketload_core::driver::{Completion, DONE};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::OpClass;

/// What HDFS can do.
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

/// The refusal of a class that is not among [`CLASSES`], with the reason.
#[cold]
pub(crate) fn absent(class: OpClass) -> OpError {
    let why = match class {
        OpClass::Copy | OpClass::MultipartCopy => {
            "HDFS cannot copy on the server: a client reads and writes the bytes"
        }
        OpClass::DeleteMany => "HDFS deletes one path per request",
        OpClass::ListV1 => "HDFS has one kind of listing; use list",
        OpClass::MultipartPut | OpClass::MultipartAbort | OpClass::ListUploads => {
            "HDFS has no multipart upload: files are written as streams; use put or append"
        }
        _ => "HDFS has nothing like it",
    };
    OpError::new(ErrorKind::Unsupported, format!("{class}: {why}"))
}

/// Whether an error says that there is a file already, or that somebody is writing one.
pub(crate) fn exists(error: &OpError) -> bool {
    let by_class = error.detail.starts_with("FileAlreadyExistsException")
        || error.detail.starts_with("AlreadyBeingCreatedException");
    by_class && !error.detail.contains("as a directory")
}

/// Whether a rename failed because the directory of the new name is missing.
pub(crate) fn lacks_parent(error: &OpError) -> bool {
    error.kind == ErrorKind::NotFound && error.detail.contains("destination parent")
}

/// Adds what an empty answer to a read may mean.
#[cold]
pub(crate) fn late(mut error: OpError, received: u64) -> OpError {
    if error.kind == ErrorKind::Corrupt && received == 0 {
        error.detail = format!(
            "{}: HDFS served the file as empty, as it does when a file that was just closed is not \
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
        format!("offset {offset} is out of the range of a file of {length} bytes"),
    )
}

/// The size of what a look at a path has found.
///
/// # Errors
/// `NotFound` for a directory.
pub(crate) fn size_of_file(is_dir: bool, size: u64) -> Result<Completion, OpError> {
    match is_dir {
        true => Err(OpError::new(ErrorKind::NotFound, "the path is a directory")),
        false => Ok(Completion {
            object_size: size,
            ..DONE
        }),
    }
}

/// The end of a look for a bucket.
///
/// # Errors
/// `NotFound` for a file.
pub(crate) fn found_bucket(bucket: &str, is_dir: bool) -> Result<Completion, OpError> {
    match is_dir {
        true => Ok(DONE),
        false => Err(OpError::new(
            ErrorKind::NotFound,
            format!("`{bucket}` is a file, not a directory"),
        )),
    }
}

/// The end of a deletion, which says whether there was anything.
///
/// # Errors
/// `NotFound` when there was nothing.
pub(crate) fn unlinked(was_there: bool) -> Result<(), OpError> {
    match was_there {
        true => Ok(()),
        false => Err(OpError::new(ErrorKind::NotFound, "there is no such file")),
    }
}

/// The time of day for a touch, milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::{ErrorKind, OpError};
    use bucketload_core::op::OpClass;

    use super::{CLASSES, absent, exists, late};

    #[test]
    fn every_other_class_is_refused_with_a_reason() {
        for class in OpClass::ALL.into_iter().filter(|c| !CLASSES.contains(c)) {
            let error = absent(class);
            assert_eq!(error.kind, ErrorKind::Unsupported);
            assert!(error.detail.contains("HDFS"), "{error}");
        }
    }

    #[test]
    fn a_file_served_empty_is_named() {
        let empty = OpError::new(ErrorKind::Corrupt, "0 bytes came instead of 9");
        assert!(late(empty.clone(), 0).detail.contains("just closed"));
        assert_eq!(late(empty.clone(), 3), empty);
    }

    #[test]
    fn a_directory_in_the_way_is_no_object() {
        let error = |text: &str| OpError::new(ErrorKind::Conflict, text);
        assert!(exists(&error(
            "FileAlreadyExistsException: /b/k for client 1 already exists"
        )));
        assert!(!exists(&error(
            "FileAlreadyExistsException: /b/k already exists as a directory"
        )));
        assert!(!exists(&error("ParentNotDirectoryException: /b/k")));
    }
}
