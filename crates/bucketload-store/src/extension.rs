//! The rules of appends that are independent of the medium: an append begins where the object ends, and
//! adds a part to it.

use crate::api::MAX_PARTS;
use crate::digest::MAX_OBJECT_BYTES;
use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::types::ObjectInfo;

/// Checks that `base` can be extended at `offset`.
pub(crate) fn check(base: &ObjectInfo, offset: u64) -> Result<()> {
    if base.size != offset {
        return Err(StoreError::InvalidWriteOffset);
    }
    if base.parts.count() >= MAX_PARTS {
        return Err(StoreError::TooManyParts);
    }
    Ok(())
}

/// `base` after `size` bytes with the tag `etag` were appended; modified when `base` was.
pub(crate) fn extended(base: &ObjectInfo, size: u64, etag: ETag) -> Result<ObjectInfo> {
    let mut info = base.clone();
    info.size += size;
    if info.size > MAX_OBJECT_BYTES {
        return Err(StoreError::EntityTooLarge {
            maximum: MAX_OBJECT_BYTES,
        });
    }
    // What was written in one piece is the first part.
    if info.parts.is_empty() && base.size > 0 {
        info.parts.push(base.size);
    }
    info.parts.push(size);
    info.etag = base.etag.extended(etag, info.parts.count());
    Ok(info)
}

/// The error of an append whose object changed before the commit.
pub(crate) fn changed(error: StoreError) -> StoreError {
    match error {
        StoreError::PreconditionFailed | StoreError::NoSuchKey => StoreError::InvalidWriteOffset,
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn an_append_adds_a_part() {
        let base = ObjectInfo::bare(7, ETag::from_md5([1; 16]), UNIX_EPOCH);
        check(&base, 7).unwrap();
        for offset in [0, 6, 8] {
            let error = check(&base, offset).unwrap_err();
            assert_eq!(error.code(), "InvalidWriteOffset");
        }
        let once = extended(&base, 2, ETag::from_md5([2; 16])).unwrap();
        let twice = extended(&once, 2, ETag::from_md5([2; 16])).unwrap();
        assert_eq!((once.size, once.parts.runs()), (9, &[(1, 7), (1, 2)][..]));
        assert_eq!(
            (twice.size, twice.parts.runs()),
            (11, &[(1, 7), (2, 2)][..])
        );
        assert!(twice.etag.to_string().ends_with("-3"));
        assert_ne!(once.etag.to_raw().0, twice.etag.to_raw().0);
    }

    #[test]
    fn parts_and_size_have_a_limit() {
        let mut base = ObjectInfo::bare(MAX_OBJECT_BYTES - 1, ETag::from_md5([1; 16]), UNIX_EPOCH);
        let tag = ETag::from_md5([2; 16]);
        assert!(extended(&base, 1, tag).is_ok());
        assert_eq!(
            extended(&base, 2, tag).unwrap_err().code(),
            "EntityTooLarge"
        );
        for _ in 1..MAX_PARTS {
            base.parts.push(1);
        }
        check(&base, base.size).unwrap();
        base.parts.push(1);
        assert_eq!(check(&base, base.size).unwrap_err().code(), "TooManyParts");
    }
}
