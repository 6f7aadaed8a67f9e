//! Reporting to C: properties, and the end of a request with the reason for a failure.
//!
//! The strings of a thread's last error stay valid until the thread's next request fails, because
//! clients print them after the callback.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use bucketload_store::{ETag, StoreError};

use crate::abi::{
    S3ErrorDetails, S3NameValue, S3ResponseCompleteCallback, S3ResponseHandler,
    S3ResponseProperties, S3ResponsePropertiesCallback,
};
use crate::complaints;
use crate::status::{self, Status, VERSION};

/// Content type of objects stored without one, as in S3.
const DEFAULT_CONTENT_TYPE: &std::ffi::CStr = c"binary/octet-stream";

/// Why a request failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The status code for C: a [`Status`], or the value that a callback returned.
    code: c_int,
    message: Option<Cow<'static, str>>,
    /// The HTTP status that a server would respond with, for an error of the store.
    http: Option<u16>,
    /// Whether the request failed, rather than being answered with "no" or stopped by its own callback.
    counts: bool,
}

impl Failure {
    /// A failure with a status and a message.
    pub(crate) fn new(status: Status, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: Some(message.into()),
            ..status.into()
        }
    }

    /// Whether the failure has this status.
    pub(crate) fn is(&self, status: Status) -> bool {
        self.code == status.code(VERSION)
    }

    /// The failure after a panic.
    pub(crate) fn panicked() -> Self {
        Self::new(Status::InternalError, "the library has panicked")
    }

    /// The failure as seen in a response without a body.
    pub(crate) fn without_body(self) -> Self {
        match self.http {
            Some(http) => Self {
                counts: self.counts,
                ..status::of_http(http).into()
            },
            None => self,
        }
    }

    /// Counts the request as failed, if it did fail.
    fn count(&self) {
        if self.counts {
            complaints::failed(|| {
                let name = Status::name(self.code, VERSION).to_string_lossy();
                match &self.message {
                    Some(message) => format!("{name}: {message}"),
                    None => name.into_owned(),
                }
            });
        }
    }

    /// The failure with the code that a callback returned, unless it is OK.
    pub(crate) fn of_callback(code: c_int) -> Result<(), Self> {
        if code == Status::OK.code(VERSION) {
            Ok(())
        } else {
            Err(Self {
                code,
                message: None,
                http: None,
                counts: false,
            })
        }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self {
            code: status.code(VERSION),
            message: None,
            http: None,
            counts: !matches!(status, Status::AbortedByCallback | Status::Interrupted),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let http = error.http_status();
        Self {
            http: Some(http),
            counts: !matches!(http, 304 | 404 | 412),
            ..Self::new(status::of_store(&error), error.to_string())
        }
    }
}

/// Text for C. It would end at an embedded NUL, which no text of this library contains.
pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes: Vec<u8> = text.into();
    if let Some(nul) = bytes.iter().position(|b| *b == 0) {
        bytes.truncate(nul);
    }
    CString::new(bytes).unwrap_or_default()
}

/// An entity tag in quotes.
pub(crate) fn quoted(etag: ETag) -> CString {
    c_string(format!("\"{}\"", etag.text().as_str()))
}

/// Copies text into a buffer of C, truncated to its size and terminated by NUL.
///
/// # Safety
/// `buffer` is NULL or has `size` writable bytes.
pub(crate) unsafe fn copy_out(text: &[u8], buffer: *mut c_char, size: usize) {
    if buffer.is_null() || size == 0 {
        return;
    }
    let len = text.len().min(size - 1);
    // SAFETY: `len` bytes and the NUL fit into the buffer, by the contract of this function.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr().cast::<c_char>(), buffer, len);
        *buffer.add(len) = 0;
    }
}

/// A pointer to an array for C; NULL if it is empty.
pub(crate) fn array<T>(items: &[T]) -> *const T {
    if items.is_empty() {
        ptr::null()
    } else {
        items.as_ptr()
    }
}

/// The properties of a response.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ResponseProperties<'a> {
    /// Content type and user metadata, if an object is read.
    pub(crate) object: Option<&'a bucketload_store::Headers>,
    /// Number of bytes that follow.
    pub(crate) content_length: u64,
    pub(crate) etag: Option<ETag>,
    /// Seconds since the epoch.
    pub(crate) last_modified: Option<i64>,
}

/// The callbacks common to all requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callbacks {
    properties: Option<S3ResponsePropertiesCallback>,
    complete: Option<S3ResponseCompleteCallback>,
    pub(crate) data: *mut c_void,
}

thread_local! {
    static LAST_MESSAGE: RefCell<CString> = RefCell::default();
}

impl Callbacks {
    /// The callbacks of a handler of C.
    ///
    /// # Safety
    /// `handler` is NULL or points to a handler. Its functions may be called with `data` by the thread
    /// that runs the request, until the request has ended.
    pub(crate) unsafe fn new(handler: *const S3ResponseHandler, data: *mut c_void) -> Self {
        // SAFETY: NULL or valid, by the contract of this function.
        let handler = unsafe { handler.as_ref() }.copied().unwrap_or_default();
        Self {
            properties: handler.properties,
            complete: handler.complete,
            data,
        }
    }

    /// The same callbacks without completion and data, for aborting an upload.
    pub(crate) const fn never_complete(mut self) -> Self {
        self.complete = None;
        self.data = ptr::null_mut();
        self
    }

    /// Calls the properties callback of a response without properties.
    pub(crate) fn no_properties(&self) -> Result<(), Failure> {
        self.properties(&ResponseProperties::default())
    }

    /// Calls the properties callback of a write.
    pub(crate) fn etag(&self, etag: ETag) -> Result<(), Failure> {
        self.properties(&ResponseProperties {
            etag: Some(etag),
            ..ResponseProperties::default()
        })
    }

    /// Calls the properties callback.
    pub(crate) fn properties(&self, reported: &ResponseProperties<'_>) -> Result<(), Failure> {
        let Some(callback) = self.properties else {
            return Ok(());
        };
        let mut etag = [0_u8; 48];
        if let Some(tag) = reported.etag {
            let text = tag.text();
            let text = text.as_bytes();
            etag[0] = b'"';
            etag[1..=text.len()].copy_from_slice(text);
            etag[text.len() + 1] = b'"';
        }
        let object = reported.object;
        let content_type = object
            .and_then(|headers| headers.content_type.as_deref())
            .map(c_string);
        let user = object.map_or(&[][..], |headers| &headers.user);
        let pairs: Vec<(CString, CString)> = user
            .iter()
            .map(|(name, value)| (c_string(name.as_str()), c_string(value.as_str())))
            .collect();
        let metadata: Vec<S3NameValue> = pairs
            .iter()
            .map(|(name, value)| S3NameValue {
                name: name.as_ptr(),
                value: value.as_ptr(),
            })
            .collect();
        let properties = S3ResponseProperties {
            request_id: ptr::null(),
            request_id2: ptr::null(),
            content_type: match (&content_type, object) {
                (Some(text), _) => text.as_ptr(),
                (None, Some(_)) => DEFAULT_CONTENT_TYPE.as_ptr(),
                (None, None) => ptr::null(),
            },
            content_length: reported.content_length,
            server: c"Bucketload".as_ptr(),
            etag: if reported.etag.is_some() {
                etag.as_ptr().cast()
            } else {
                ptr::null()
            },
            last_modified: reported.last_modified.unwrap_or(-1),
            metadata_count: c_int::try_from(metadata.len()).unwrap_or(c_int::MAX),
            metadata: array(&metadata),
            uses_server_side_encryption: 0,
        };
        // SAFETY: the function is valid by the contract of `new`; everything that `properties` points
        // to lives until the call returns.
        Failure::of_callback(unsafe { callback(&raw const properties, self.data) })
    }

    /// Calls the completion callback.
    pub(crate) fn complete(&self, outcome: &Result<(), Failure>) {
        if let Err(failure) = outcome {
            failure.count();
        }
        let Some(callback) = self.complete else {
            return;
        };
        let mut details = S3ErrorDetails {
            message: ptr::null(),
            resource: ptr::null(),
            further_details: ptr::null(),
            extra_details_count: 0,
            extra_details: ptr::null(),
        };
        let code = match outcome {
            Ok(()) => Status::OK.code(VERSION),
            Err(failure) => {
                if let Some(message) = &failure.message {
                    let text = c_string(message.as_bytes());
                    details.message = text.as_ptr();
                    // Moving the string does not move its bytes. In an exiting thread the
                    // thread-local is gone, and the message is dropped.
                    if LAST_MESSAGE.try_with(|last| last.replace(text)).is_err() {
                        details.message = ptr::null();
                    }
                }
                failure.code
            }
        };
        // SAFETY: the function is valid by the contract of `new`; `details` and the message live
        // until the call returns.
        unsafe { callback(code, &raw const details, self.data) }
    }

    /// Ends a request that could not be set up, without details.
    pub(crate) fn refuse(&self, failure: &Failure) {
        failure.count();
        if let Some(callback) = self.complete {
            // SAFETY: the function is valid by the contract of `new`.
            unsafe { callback(failure.code, ptr::null(), self.data) }
        }
    }
}
