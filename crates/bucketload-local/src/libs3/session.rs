//! One worker's session: names as C strings, and the dispatch of operations.

use std::ffi::c_char;
use std::fmt;
use std::sync::Arc;

use bucketload_core::driver::{ErrorKind, OpClass, OpError, OpResult, Probe, Request, Session};

use super::driver::DriverShared;
use super::list::Page;
use super::multipart::Upload;

/// A reusable C string.
#[derive(Debug)]
pub(super) struct CText(Vec<u8>);

impl Default for CText {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl CText {
    /// Sets the value.
    ///
    /// # Errors
    /// When `text` contains a NUL.
    pub(super) fn set(&mut self, text: &str) -> OpResult<&mut Self> {
        if text.as_bytes().contains(&0) {
            let text = format!("{text:?} contains a NUL, which a C string cannot");
            return Err(OpError::new(ErrorKind::Rejected, text));
        }
        self.set_bytes(text.as_bytes());
        Ok(self)
    }

    /// Sets the value to bytes without a NUL.
    pub(super) fn set_bytes(&mut self, bytes: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(bytes);
        self.0.push(0);
    }

    pub(super) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - 1]
    }
}

/// A session of the driver of the libs3 interface.
pub struct Libs3Session {
    pub(super) inner: Arc<DriverShared>,
    pub(super) bucket: CText,
    pub(super) key: CText,
    /// Source of a copy, or delimiter of a listing.
    pub(super) second: CText,
    pub(super) page: Page,
    pub(super) upload: Upload,
}

impl fmt::Debug for Libs3Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Libs3Session").finish_non_exhaustive()
    }
}

impl Libs3Session {
    pub(super) fn new(inner: Arc<DriverShared>) -> Self {
        Self {
            inner,
            bucket: CText::default(),
            key: CText::default(),
            second: CText::default(),
            page: Page::default(),
            upload: Upload::default(),
        }
    }

    /// Sets the current object.
    pub(super) fn name(&mut self, bucket: &str, key: &str) -> OpResult<()> {
        self.bucket.set(bucket)?;
        self.key.set(key)?;
        Ok(())
    }
}

impl Session for Libs3Session {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request, probe),
            OpClass::Put => self.put(request, probe),
            OpClass::MultipartPut => self.put_in_parts(request, probe),
            OpClass::Head => self.head(request, probe),
            OpClass::Delete => self.delete(request, probe),
            OpClass::Copy => self.copy(request, probe),
            OpClass::List | OpClass::ListV1 => self.list(request, probe),
            OpClass::ListUploads => self.list_uploads(request, probe),
            OpClass::MakeBucket => self.make_bucket(request.bucket, probe),
            OpClass::HeadBucket => self.test_bucket(request.bucket, probe),
            OpClass::DeleteBucket => self.remove_bucket(request.bucket, probe),
            OpClass::ListBuckets => self.list_buckets(probe),
            class => Err(unsupported(class)),
        }
    }
}

/// The error for an operation that the library does not support.
#[cold]
pub(super) fn unsupported(class: OpClass) -> OpError {
    OpError::new(
        ErrorKind::Unsupported,
        format!("{class}: the library has no function for it"),
    )
}
