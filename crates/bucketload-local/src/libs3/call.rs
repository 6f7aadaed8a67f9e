//! What the callbacks of one call see and leave behind.
//!
//! A call is synchronous, so its callbacks run on the calling thread while it waits: they get a pointer to a
//! [`Call`] on its stack, and nobody else touches it meanwhile.

use std::ffi::{CStr, c_char, c_int, c_void};

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Watch;
use bucketload_core::payload::Content;
use bucketload_core::record::Probe;

use libs3_abi::{S3ErrorDetails, S3ResponseHandler, S3ResponseProperties, Status};

use super::library::Library;
use super::list::Page;
use super::session::Text;
use super::status::to_error;

/// What callbacks return unless the request shall end.
pub(super) const OK: c_int = Status::OK as c_int;

/// What is to be sent.
#[derive(Clone, Copy)]
pub(super) enum Outgoing<'a> {
    Nothing,
    /// Bytes of an object from `from` to `to`.
    Content(Content<'a>, u64, u64),
    Bytes(&'a [u8]),
}

/// What is done with the bytes that come.
#[derive(Clone, Copy)]
pub(super) enum Incoming<'a> {
    /// They are counted.
    Count,
    /// They are compared with the content from the offset on.
    Verify(Content<'a>, u64),
    /// They are shown.
    Watch(&'a dyn Watch),
}

/// What the callbacks of a listing, or of the beginning of an upload, fill. [`Call::received`] counts the entries.
pub(super) enum Told<'a> {
    Nothing,
    /// A page of keys, shown to `watch` and kept in `keys`.
    Keys {
        page: &'a mut Page,
        watch: Option<&'a dyn Watch>,
        keys: Option<&'a mut Vec<String>>,
    },
    /// Keys and identities of unfinished uploads, if they are kept.
    Uploads(Option<&'a mut Vec<(String, String)>>),
    /// The identity of an upload that has begun.
    Begun(&'a mut Text),
}

/// One call.
pub(super) struct Call<'a> {
    pub(super) probe: &'a mut Probe,
    outgoing: Outgoing<'a>,
    incoming: Incoming<'a>,
    pub(super) told: Told<'a>,
    /// Where received bytes are kept, if they are.
    pub(super) body: Option<&'a mut Vec<u8>>,
    /// Where the entity tag goes.
    pub(super) etag: Option<&'a mut Vec<u8>>,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Offset in the object of the first byte that differs.
    pub(super) wrong: Option<u64>,
    /// Length that the answer states.
    pub(super) length: u64,
    status: Option<c_int>,
    detail: String,
}

impl<'a> Call<'a> {
    /// A call with nothing to send, which begins now.
    pub(super) fn new(probe: &'a mut Probe) -> Self {
        probe.started();
        Self {
            probe,
            outgoing: Outgoing::Nothing,
            incoming: Incoming::Count,
            told: Told::Nothing,
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

    pub(super) fn telling(mut self, told: Told<'a>) -> Self {
        self.told = told;
        self
    }

    /// How the call ended.
    pub(super) fn end(&mut self, library: &Library) -> Result<(), OpError> {
        match self.status {
            Some(OK) => Ok(()),
            Some(status) => Err(to_error(library, status, &self.detail)),
            None => {
                self.probe.first_byte_and_done();
                let text = "the library returned without telling how the request ended";
                Err(OpError::new(ErrorKind::Protocol, text))
            }
        }
    }
}

/// The call behind a callback's data.
///
/// # Safety
/// `data` must be a pointer to a `Call` that nobody else uses meanwhile.
pub(super) unsafe fn call<'c>(data: *mut c_void) -> &'c mut Call<'c> {
    // SAFETY: as the caller says.
    unsafe { &mut *data.cast::<Call<'c>>() }
}

/// The bytes of a C string; none of a null pointer.
///
/// # Safety
/// `text` must be null or a string with a NUL at its end that lives for `'c`.
pub(super) unsafe fn bytes<'c>(text: *const c_char) -> &'c [u8] {
    match text.is_null() {
        true => &[],
        // SAFETY: as the caller says.
        false => unsafe { CStr::from_ptr(text) }.to_bytes(),
    }
}

/// The callbacks of every request.
pub(super) const RESPONSE: S3ResponseHandler = S3ResponseHandler {
    properties: Some(properties),
    complete: Some(complete),
};

extern "C" fn properties(properties: *const S3ResponseProperties, data: *mut c_void) -> c_int {
    // SAFETY: the library hands back the data of the request, which is a call.
    let call = unsafe { call(data) };
    call.probe.first_byte();
    if properties.is_null() {
        return OK;
    }
    // SAFETY: it points to the properties for the time of the callback.
    let properties = unsafe { &*properties };
    call.length = properties.content_length;
    if let Some(etag) = &mut call.etag {
        // SAFETY: a string for the time of the callback, or null.
        etag.extend_from_slice(unsafe { bytes(properties.etag) });
    }
    OK
}

extern "C" fn complete(status: c_int, details: *const S3ErrorDetails, data: *mut c_void) {
    // SAFETY: the library hands back the data of the request, which is a call.
    let call = unsafe { call(data) };
    call.probe.first_byte_and_done();
    call.status = Some(status);
    if status == OK || details.is_null() {
        return;
    }
    // SAFETY: it points to the details for the time of the callback.
    let details = unsafe { &*details };
    for text in [details.message, details.further_details] {
        // SAFETY: a string for the time of the callback, or null.
        let text = String::from_utf8_lossy(unsafe { bytes(text) });
        if !text.is_empty() {
            if !call.detail.is_empty() {
                call.detail += "; ";
            }
            // What a store says is for people; a page of it is none.
            call.detail.extend(text.chars().take(200));
        }
    }
}

/// Gives the next bytes to be sent.
pub(super) extern "C" fn put_data(size: c_int, buffer: *mut c_char, data: *mut c_void) -> c_int {
    // SAFETY: the library hands back the data of the request, which is a call.
    let call = unsafe { call(data) };
    let size = usize::try_from(size).unwrap_or(0);
    if size == 0 || buffer.is_null() {
        return 0;
    }
    // SAFETY: the library offers a buffer of `size` bytes, which C counts as initialised.
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
    // It is at most `size`.
    count as c_int
}

/// Takes bytes that came.
pub(super) extern "C" fn get_data(size: c_int, buffer: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: the library hands back the data of the request, which is a call.
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
    // SAFETY: the library shows `size` bytes for the time of the callback.
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
