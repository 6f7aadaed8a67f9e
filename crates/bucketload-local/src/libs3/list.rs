//! Listings: of keys in pages, of buckets, of unfinished uploads.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use bucketload_core::driver::{Completion, OpClass, OpResult, Probe, Request};
use bucketload_core::op::Watch;
use libs3_abi::{
    S3ListBucketContent, S3ListBucketHandler, S3ListMultipartUpload, S3ListMultipartUploadsHandler,
    S3ListServiceHandler,
};

use super::call::{CallState, Collect, OK, RESPONSE, bytes, call};
use super::session::{CText, Libs3Session, unsupported};

/// Default number of keys per page.
pub(super) const PAGE: usize = 1000;

/// The position of a listing between two pages.
#[derive(Debug, Default)]
pub(super) struct Page {
    marker: CText,
    /// Marker of the current page: the library may read it until the call returns, while callbacks set the next.
    from: CText,
    /// The greatest key or group of the page.
    last: Vec<u8>,
    more: bool,
}

extern "C" fn listed(
    truncated: c_int,
    next: *const c_char,
    count: c_int,
    contents: *const S3ListBucketContent,
    groups: c_int,
    prefixes: *const *const c_char,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the data of this request is a call state.
    let call = unsafe { call(data) };
    call.probe.first_byte();
    let Collect::Keys { page, watch, keys } = &mut call.collect else {
        return OK;
    };
    page.more = truncated != 0;
    // SAFETY: null or a string that is valid during the callback.
    page.marker.set_bytes(unsafe { bytes(next) });
    let mut see = |text: &[u8]| {
        if text > &page.last[..] {
            page.last.clear();
            page.last.extend_from_slice(text);
        }
        call.received += 1;
    };
    for i in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: `count` entries that are valid during the callback, with strings as keys.
        let entry = unsafe { &*contents.add(i) };
        // SAFETY: keys are strings that are valid as long as the entry.
        let key = unsafe { bytes(entry.key) };
        see(key);
        if watch.is_some() || keys.is_some() {
            let key = String::from_utf8_lossy(key);
            if let Some(watch) = watch {
                watch.listed(&key);
                if watch.wants_details() {
                    watch.details(entry.size, entry.last_modified);
                }
            }
            if let Some(keys) = keys {
                keys.push(key.into_owned());
            }
        }
    }
    for i in 0..usize::try_from(groups).unwrap_or(0) {
        // SAFETY: `groups` strings that are valid during the callback.
        see(unsafe { bytes(*prefixes.add(i)) });
    }
    OK
}

impl Libs3Session {
    /// Lists a page of the session's bucket and prefix, from the page's marker on. Returns the number of entries.
    fn list_page<'a>(
        &mut self,
        most: usize,
        probe: &'a mut Probe,
        watch: Option<&'a dyn Watch>,
        keys: Option<&'a mut Vec<String>>,
    ) -> OpResult<u64> {
        let handler = S3ListBucketHandler {
            response: RESPONSE,
            list_bucket: Some(listed),
        };
        std::mem::swap(&mut self.page.marker, &mut self.page.from);
        self.page.marker.set_bytes(b"");
        let from = self.page.from.as_ptr();
        self.page.last.clear();
        self.page.more = false;
        let list_bucket = self.inner.library.functions.list_bucket;
        let page = &mut self.page;
        let mut call = CallState::new(probe).collecting(Collect::Keys { page, watch, keys });
        let ended = self.inner.make(&self.bucket, &mut call, |bucket, data| {
            let (prefix, delimiter) = (self.key.as_ptr(), self.second.as_ptr());
            let most = c_int::try_from(most).unwrap_or(c_int::MAX);
            let context = null_mut();
            // SAFETY: strings, handler and call live until the call returns, as `make` says.
            unsafe {
                list_bucket(
                    bucket, prefix, from, delimiter, most, context, 0, &handler, data,
                )
            }
        });
        let items = call.received;
        // Without a marker the next page begins after the last entry, as in the first version of the listing.
        if self.page.more && self.page.marker.bytes().is_empty() {
            let Page { marker, last, .. } = &mut self.page;
            marker.set_bytes(last);
        }
        ended.map(|()| items)
    }

    pub(super) fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let op = &request.op;
        self.name(request.bucket, request.key)?;
        self.second.set(request.delimiter)?;
        self.page.marker.set_bytes(b"");
        let most = match usize::try_from(op.count) {
            Ok(0) | Err(_) => PAGE,
            Ok(count) => count,
        };
        let (mut items, mut pages) = (0, 0);
        loop {
            items += self.list_page(most, probe, request.watch, None)?;
            pages += 1;
            // A page without entries would repeat forever.
            if !self.page.more || self.page.last.is_empty() {
                break;
            }
            if op.pages > 0 && pages >= op.pages {
                if let Some(watch) = request.watch {
                    watch.cut_short();
                }
                break;
            }
        }
        Ok(Completion::of_items(items))
    }

    /// A page of keys for the control plane, and whether more follow.
    pub(super) fn keys(
        &mut self,
        (bucket, prefix, after): (&str, &str, &str),
        probe: &mut Probe,
    ) -> OpResult<(Vec<String>, bool)> {
        self.name(bucket, prefix)?;
        self.second.set("")?;
        self.page.marker.set(after)?;
        let mut keys = Vec::new();
        self.list_page(PAGE, probe, None, Some(&mut keys))?;
        Ok((keys, self.page.more))
    }

    pub(super) fn list_buckets(&mut self, probe: &mut Probe) -> OpResult {
        let handler = S3ListServiceHandler {
            response: RESPONSE,
            list_service: Some(bucket_listed),
        };
        let functions = &self.inner.library.functions;
        let mut call = CallState::new(probe);
        self.inner.make(&self.bucket, &mut call, |bucket, data| {
            // SAFETY: as in `list_page`.
            unsafe {
                (functions.list_service)(
                    bucket.protocol,
                    bucket.access_key_id,
                    bucket.secret_access_key,
                    bucket.appended.security_token,
                    bucket.host_name,
                    bucket.appended.auth_region,
                    null_mut(),
                    0,
                    &raw const handler,
                    data,
                );
            }
        })?;
        Ok(Completion::of_items(call.received))
    }

    pub(super) fn list_uploads(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let uploads = self.uploads(request.bucket, request.key, None, probe)?;
        Ok(Completion::of_items(uploads))
    }

    /// Lists at most one page of unfinished uploads.
    pub(super) fn uploads(
        &mut self,
        bucket: &str,
        prefix: &str,
        names: Option<&mut Vec<(String, String)>>,
        probe: &mut Probe,
    ) -> OpResult<u64> {
        let Some(list_uploads) = self.inner.library.functions.list_uploads else {
            return Err(unsupported(OpClass::ListUploads));
        };
        self.name(bucket, prefix)?;
        let handler = S3ListMultipartUploadsHandler {
            response: RESPONSE,
            list_uploads: Some(uploads_listed),
        };
        let mut call = CallState::new(probe).collecting(Collect::Uploads(names));
        self.inner.make(&self.bucket, &mut call, |bucket, data| {
            // SAFETY: as in `list_page`.
            unsafe {
                list_uploads(
                    bucket,
                    self.key.as_ptr(),
                    null(),
                    null(),
                    null(),
                    null(),
                    PAGE as c_int,
                    null_mut(),
                    0,
                    &raw const handler,
                    data,
                );
            }
        })?;
        Ok(call.received)
    }
}

extern "C" fn bucket_listed(
    _owner: *const c_char,
    _owner_name: *const c_char,
    _bucket: *const c_char,
    _created: i64,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the data of this request is a call state.
    let call = unsafe { call(data) };
    call.probe.first_byte();
    call.received += 1;
    OK
}

extern "C" fn uploads_listed(
    _truncated: c_int,
    _next_key: *const c_char,
    _next_upload: *const c_char,
    count: c_int,
    uploads: *const S3ListMultipartUpload,
    _groups: c_int,
    _prefixes: *const *const c_char,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the data of this request is a call state.
    let call = unsafe { call(data) };
    for i in 0..usize::try_from(count).unwrap_or(0) {
        call.received += 1;
        if let Collect::Uploads(Some(names)) = &mut call.collect {
            // SAFETY: `count` entries that are valid during the callback.
            let upload = unsafe { &*uploads.add(i) };
            // SAFETY: null or strings that are valid during the callback.
            let text = |text| String::from_utf8_lossy(unsafe { bytes(text) }).into_owned();
            names.push((text(upload.key), text(upload.upload_id)));
        }
    }
    OK
}
