//! One worker's session: names as C strings, and which operation is which call.

use std::ffi::c_char;
use std::fmt;
use std::sync::Arc;

use bucketload_core::driver::{Completion, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;

use super::driver::Inner;
use super::list::Page;
use super::multipart::Upload;

/// A string for C that keeps its memory.
#[derive(Debug)]
pub(super) struct Text(Vec<u8>);

impl Default for Text {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Text {
    /// Takes another value.
    ///
    /// # Errors
    /// When it holds a NUL.
    pub(super) fn set(&mut self, text: &str) -> Result<&mut Self, OpError> {
        if text.as_bytes().contains(&0) {
            let text = format!("{text:?} holds a NUL, which no string of C can");
            return Err(OpError::new(ErrorKind::Rejected, text));
        }
        self.set_bytes(text.as_bytes());
        Ok(self)
    }

    /// Takes the bytes of a string of C.
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
    pub(super) inner: Arc<Inner>,
    pub(super) bucket: Text,
    pub(super) key: Text,
    /// Source of a copy, or delimiter of a listing.
    pub(super) second: Text,
    pub(super) page: Page,
    pub(super) upload: Upload,
}

impl fmt::Debug for Libs3Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Libs3Session").finish_non_exhaustive()
    }
}

impl Libs3Session {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            bucket: Text::default(),
            key: Text::default(),
            second: Text::default(),
            page: Page::default(),
            upload: Upload::default(),
        }
    }

    /// Takes the names of an object.
    pub(super) fn name(&mut self, bucket: &str, key: &str) -> Result<(), OpError> {
        self.bucket.set(bucket)?;
        self.key.set(key)?;
        Ok(())
    }
}

impl Session for Libs3Session {
    async fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
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

/// The error for what the library cannot do.
#[cold]
pub(super) fn unsupported(class: OpClass) -> OpError {
    OpError::new(
        ErrorKind::Unsupported,
        format!("{class}: there is no function of the library for it"),
    )
}
