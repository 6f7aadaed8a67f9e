//! Objects in parts: a call to begin, one per part, and one with the list of parts.

use std::ffi::{c_char, c_int, c_void};
use std::io::Write as _;
use std::ptr::{null, null_mut};

use bucketload_core::driver::{
    Completion, ErrorKind, OpClass, OpError, OpResult, Probe, Request, content_of,
};
use libs3_abi::{
    S3AbortMultipartUploadHandler, S3ErrorDetails, S3MultipartCommitHandler,
    S3MultipartInitialHandler, S3PutObjectHandler, S3ResponseHandler, S3ResponseProperties,
};

use super::call::{CallState, Collect, OK, Outgoing, RESPONSE, bytes, call, put_data};
use super::session::{CText, Libs3Session, unsupported};

/// The state of an unfinished upload.
#[derive(Debug, Default)]
pub(super) struct Upload {
    id: CText,
    document: Vec<u8>,
}

/// Called after the end of the request.
extern "C" fn begun(id: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: the data of this request is a call state.
    if let Collect::Begun(place) = unsafe { &mut call(data).collect } {
        // SAFETY: null or a string that is valid during the callback.
        place.set_bytes(unsafe { bytes(id) });
    }
    OK
}

extern "C" fn committed(
    _location: *const c_char,
    _etag: *const c_char,
    _data: *mut c_void,
) -> c_int {
    OK
}

/// The callbacks of an abort, which get no data and no outcome.
const ABORT: S3AbortMultipartUploadHandler = S3AbortMultipartUploadHandler {
    response: S3ResponseHandler {
        properties: Some(ignored),
        complete: Some(ended),
    },
};

extern "C" fn ignored(_: *const S3ResponseProperties, _: *mut c_void) -> c_int {
    OK
}

extern "C" fn ended(_: c_int, _: *const S3ErrorDetails, _: *mut c_void) {}

impl Libs3Session {
    pub(super) fn put_in_parts(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let content = content_of(request)?;
        let (size, part) = (content.size(), request.op.count.max(1));
        let count = size.div_ceil(part).max(1);
        let rejected = |text: String| Err(OpError::new(ErrorKind::Rejected, text));
        if count > 10_000 {
            return rejected(format!("{count} parts; an upload has at most 10,000"));
        }
        if part.min(size) > c_int::MAX as u64 {
            return rejected(format!(
                "parts of {part} bytes; libs3 supports less than 2 GiB"
            ));
        }
        self.name(request.bucket, request.key)?;
        self.begin(probe)?;
        self.upload.document.clear();
        self.upload
            .document
            .extend_from_slice(b"<CompleteMultipartUpload>");
        for i in 0..count {
            let range = (i * part, size.min((i + 1) * part));
            self.part(
                i + 1,
                Outgoing::Content(*content, range.0, range.1),
                range.1 - range.0,
                probe,
            )?;
        }
        self.upload
            .document
            .extend_from_slice(b"</CompleteMultipartUpload>");
        self.complete(probe)?;
        Ok(Completion::of_parts(size, count))
    }

    fn begin(&mut self, probe: &mut Probe) -> OpResult<()> {
        let Some(initiate) = self.inner.library.functions.initiate_multipart else {
            return Err(unsupported(OpClass::MultipartPut));
        };
        let handler = S3MultipartInitialHandler {
            response: RESPONSE,
            initial: Some(begun),
        };
        self.upload.id.set_bytes(b"");
        let mut call = CallState::new(probe).collecting(Collect::Begun(&mut self.upload.id));
        self.inner.make(&self.bucket, &mut call, |bucket, data| {
            let key = self.key.as_ptr();
            // SAFETY: strings, handler and call live until the call returns, as `make` says.
            unsafe { initiate(bucket, key, null(), &handler, null_mut(), 0, data) }
        })?;
        if self.upload.id.bytes().is_empty() {
            let text = "the library began an upload without returning its ID";
            return Err(OpError::new(ErrorKind::Protocol, text));
        }
        Ok(())
    }

    fn part(
        &mut self,
        number: u64,
        outgoing: Outgoing<'_>,
        size: u64,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let Some(upload_part) = self.inner.library.functions.upload_part else {
            return Err(unsupported(OpClass::MultipartPut));
        };
        let handler = S3PutObjectHandler {
            response: RESPONSE,
            data: Some(put_data),
        };
        let document = &mut self.upload.document;
        // Writing to memory cannot fail.
        let _ = write!(document, "<Part><PartNumber>{number}</PartNumber><ETag>");
        let mut call = CallState::new(probe).sending(outgoing);
        call.etag = Some(document);
        self.inner.make(&self.bucket, &mut call, |bucket, data| {
            // SAFETY: as in `begin`; number and size were checked.
            unsafe {
                upload_part(
                    bucket,
                    self.key.as_ptr(),
                    null(),
                    &raw const handler,
                    number as c_int,
                    self.upload.id.as_ptr(),
                    size as c_int,
                    null_mut(),
                    0,
                    data,
                );
            }
        })?;
        self.upload.document.extend_from_slice(b"</ETag></Part>");
        Ok(())
    }

    fn complete(&self, probe: &mut Probe) -> OpResult<()> {
        let Some(complete) = self.inner.library.functions.complete_multipart else {
            return Err(unsupported(OpClass::MultipartPut));
        };
        let handler = S3MultipartCommitHandler {
            response: RESPONSE,
            data: Some(put_data),
            commit: Some(committed),
        };
        let document = &self.upload.document;
        let mut call = CallState::new(probe).sending(Outgoing::Bytes(document));
        self.inner.make(&self.bucket, &mut call, |bucket, data| {
            let (key, id) = (self.key.as_ptr(), self.upload.id.as_ptr());
            let size = document.len() as c_int;
            // SAFETY: as in `begin`; a document of at most 10,000 parts is far below 2 GiB.
            unsafe { complete(bucket, key, &handler, id, size, null_mut(), 0, data) }
        })
    }

    /// Aborts an upload. The library does not report the outcome.
    pub(super) fn abort(&mut self, bucket: &str, key: &str, id: &str) -> OpResult<()> {
        let Some(abort) = self.inner.library.functions.abort_multipart else {
            return Err(unsupported(OpClass::MultipartAbort));
        };
        self.name(bucket, key)?;
        self.second.set(id)?;
        let context = self.inner.context(&self.bucket);
        let (key, id) = (self.key.as_ptr(), self.second.as_ptr());
        // SAFETY: the strings live until the call returns and the handler is static; its callbacks use no data.
        unsafe { abort(&raw const context, key, id, 0, &ABORT) };
        Ok(())
    }
}
