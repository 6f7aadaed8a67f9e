//! The state that a library call shares with its callbacks.
//!
//! A call is synchronous, so its callbacks run on the calling thread while it waits. They get a pointer to a
//! [`CallState`] on its stack, which nothing else uses meanwhile.

use std::ffi::{CStr, c_char, c_int, c_void};

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::Watch;
use bucketload_core::payload::Content;
use bucketload_core::record::Probe;

use libs3_abi::{S3ErrorDetails, S3ResponseHandler, S3ResponseProperties, Status};

use super::library::Library;
use super::list::Page;
use super::session::CText;
use super::status::to_error;

/// Return value of callbacks that lets the request continue.
pub(super) const OK: c_int = Status::OK as c_int;

/// The data to send.
#[derive(Clone, Copy)]
pub(super) enum Outgoing<'a> {
    Nothing,
    /// Bytes of an object, from an offset up to another.
    Content(Content<'a>, u64, u64),
    Bytes(&'a [u8]),
}

/// What to do with received bytes, besides counting them.
#[derive(Clone, Copy)]
pub(super) enum Incoming<'a> {
    Count,
    /// Compare them with the content from the offset on.
    Verify(Content<'a>, u64),
    /// Pass them to a watcher.
    Watch(&'a dyn Watch),
}

/// What the callbacks of a listing, or of the start of an upload, collect. [`CallState::received`] counts the entries.
pub(super) enum Collect<'a> {
    Nothing,
    /// A page of keys, passed to `watch` and added to `keys`.
    Keys {
        page: &'a mut Page,
        watch: Option<&'a dyn Watch>,
        keys: Option<&'a mut Vec<String>>,
    },
    /// Keys and IDs of unfinished uploads; `None` to count them only.
    Uploads(Option<&'a mut Vec<(String, String)>>),
    /// The ID of a new upload.
    Begun(&'a mut CText),
}

/// The state of one call.
pub(super) struct CallState<'a> {
    pub(super) probe: &'a mut Probe,
    outgoing: Outgoing<'a>,
    incoming: Incoming<'a>,
    pub(super) collect: Collect<'a>,
    /// Receives the body, if set.
    pub(super) body: Option<&'a mut Vec<u8>>,
    /// Receives the entity tag, if set.
    pub(super) etag: Option<&'a mut Vec<u8>>,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Offset in the object of the first wrong byte.
    pub(super) wrong: Option<u64>,
    /// Content length according to the answer.
    pub(super) length: u64,
    status: Option<c_int>,
    detail: String,
}

impl<'a> CallState<'a> {
    /// The state of a call without data to send. Marks the call as started.
    pub(super) fn new(probe: &'a mut Probe) -> Self {
        probe.started();
        Self {
            probe,
            outgoing: Outgoing::Nothing,
            incoming: Incoming::Count,
            collect: Collect::Nothing,
            body: None,
            etag: None,
            sent: 0,
            received: 0,
            wrong: None,
            length: 0,
            status: None,
            detail: String::new(),
        }
    }

    pub(super) fn sending(mut self, outgoing: Outgoing<'a>) -> Self {
        self.outgoing = outgoing;
        self
    }

    pub(super) fn receiving(mut self, incoming: Incoming<'a>) -> Self {
        self.incoming = incoming;
        self
    }

    pub(super) fn collecting(mut self, collect: Collect<'a>) -> Self {
        self.collect = collect;
        self
    }

    /// The outcome of the call.
    pub(super) fn end(&mut self, library: &Library) -> OpResult<()> {
        match self.status {
            Some(OK) => Ok(()),
            Some(status) => Err(to_error(library, status, &self.detail)),
            None => {
                self.probe.first_byte_and_done();
                let text = "the library returned without reporting the outcome of the request";
                Err(OpError::new(ErrorKind::Protocol, text))
            }
        }
    }
}

/// The call state behind a callback's data.
///
/// # Safety
/// `data` must point to a [`CallState`] that nothing else uses meanwhile.
pub(super) unsafe fn call<'c>(data: *mut c_void) -> &'c mut CallState<'c> {
    // SAFETY: as the caller guarantees.
    unsafe { &mut *data.cast::<CallState<'c>>() }
}

/// The bytes of a C string; empty for a null pointer.
///
/// # Safety
/// `text` must be null or a NUL-terminated string that lives for `'c`.
pub(super) unsafe fn bytes<'c>(text: *const c_char) -> &'c [u8] {
    match text.is_null() {
        true => &[],
        // SAFETY: as the caller guarantees.
        false => unsafe { CStr::from_ptr(text) }.to_bytes(),
    }
}

/// The callbacks of every request.
pub(super) const RESPONSE: S3ResponseHandler = S3ResponseHandler {
    properties: Some(properties),
    complete: Some(complete),
};

extern "C" fn properties(properties: *const S3ResponseProperties, data: *mut c_void) -> c_int {
    // SAFETY: the library hands back the data of the request, which is a call state.
    let call = unsafe { call(data) };
    call.probe.first_byte();
    if properties.is_null() {
        return OK;
    }
    // SAFETY: the pointer is valid during the callback.
    let properties = unsafe { &*properties };
    call.length = properties.content_length;
    if let Some(etag) = &mut call.etag {
        // SAFETY: null or a string that is valid during the callback.
        etag.extend_from_slice(unsafe { bytes(properties.etag) });
    }
    OK
}

extern "C" fn complete(status: c_int, details: *const S3ErrorDetails, data: *mut c_void) {
    // SAFETY: the library hands back the data of the request, which is a call state.
    let call = unsafe { call(data) };
    call.probe.first_byte_and_done();
    call.status = Some(status);
    if status == OK || details.is_null() {
        return;
    }
    // SAFETY: the pointer is valid during the callback.
    let details = unsafe { &*details };
    for text in [details.message, details.further_details] {
        // SAFETY: null or a string that is valid during the callback.
        let text = String::from_utf8_lossy(unsafe { bytes(text) });
        if !text.is_empty() {
            if !call.detail.is_empty() {
                call.detail += "; ";
            }
            // Bound the length: some stores return whole pages.
            call.detail.extend(text.chars().take(200));
        }
    }
}

/// Fills `buffer` with the next bytes to send.
pub(super) extern "C" fn put_data(size: c_int, buffer: *mut c_char, data: *mut c_void) -> c_int {
    // SAFETY: the library hands back the data of the request, which is a call state.
    let call = unsafe { call(data) };
    let size = usize::try_from(size).unwrap_or(0);
    if size == 0 || buffer.is_null() {
        return 0;
    }
    // SAFETY: the library passes a buffer of `size` bytes, which C treats as initialised.
    let out = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
    let count = match call.outgoing {
        Outgoing::Nothing => 0,
        Outgoing::Content(content, from, to) => {
            let at = from + call.sent;
            let left = usize::try_from(to - at).unwrap_or(usize::MAX);
            content.fill(at, &mut out[..size.min(left)])
        }
        Outgoing::Bytes(bytes) => {
            let rest = &bytes[call.sent as usize..];
            let count = rest.len().min(size);
            out[..count].copy_from_slice(&rest[..count]);
            count
        }
    };
    call.sent += count as u64;
    // At most `size`, so it fits.
    count as c_int
}

/// Takes the next received bytes.
pub(super) extern "C" fn get_data(size: c_int, buffer: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: the library hands back the data of the request, which is a call state.
    let call = unsafe { call(data) };
    call.probe.first_byte();
    let size = usize::try_from(size).unwrap_or(0);
    if size == 0 || buffer.is_null() {
        return OK;
    }
    if call.body.is_none() && matches!(call.incoming, Incoming::Count) {
        call.received += size as u64;
        return OK;
    }
    // SAFETY: the library passes `size` bytes that are valid during the callback.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), size) };
    if let Some(body) = &mut call.body {
        body.extend_from_slice(bytes);
    }
    match call.incoming {
        Incoming::Count => {}
        Incoming::Verify(content, from) if call.wrong.is_none() => {
            call.wrong = content.verify(from + call.received, bytes).err();
        }
        Incoming::Verify(..) => {}
        Incoming::Watch(watch) => watch.body(bytes),
    }
    call.received += size as u64;
    OK
}
