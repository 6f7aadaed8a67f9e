//! Requests that record their callbacks.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use s3::abi::*;
use s3::exports::*;

/// A request and its recorded callbacks: P properties, D data, L batch, C completion. Runs of D and L
/// count once.
pub(crate) struct Request {
    body: Vec<u8>,
    given: usize,
    /// Number of the data callback that aborts.
    pub(crate) abort_at: Option<usize>,
    /// Store from which to delete the listed keys.
    deletes: Option<*const Store>,
    /// Context to drive when the request of [`Store::head_and_drive_in`] completes.
    pub(crate) drives: *mut S3RequestContext,
    pub(crate) events: String,
    pub(crate) status: c_int,
    pub(crate) message: String,
    pub(crate) data_calls: Vec<usize>,
    pub(crate) received: Vec<u8>,
    pub(crate) content_length: u64,
    pub(crate) batches: Vec<c_int>,
    pub(crate) keys: Vec<String>,
    pub(crate) truncated: bool,
    pub(crate) next_marker: String,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            body: Vec::new(),
            given: 0,
            abort_at: None,
            deletes: None,
            drives: ptr::null_mut(),
            events: String::new(),
            status: 0,
            message: String::new(),
            data_calls: Vec::new(),
            received: Vec::new(),
            content_length: 0,
            batches: Vec::new(),
            keys: Vec::new(),
            truncated: false,
            next_marker: String::new(),
        }
    }
}

impl Request {
    pub(crate) fn with_body(body: &[u8]) -> Self {
        Self {
            body: body.to_vec(),
            ..Self::default()
        }
    }

    /// Recorded callbacks and status.
    pub(crate) fn end(&self) -> (&str, c_int) {
        (&self.events, self.status)
    }

    fn event(&mut self, letter: char) {
        if !("DL".contains(letter) && self.events.ends_with(letter)) {
            self.events.push(letter);
        }
    }
}

fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the library passes texts that end with NUL.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// # Safety
/// `data` is the request, as in all callbacks here.
unsafe fn request<'a>(data: *mut c_void) -> &'a mut Request {
    // SAFETY: by the contract of this function.
    unsafe { &mut *data.cast::<Request>() }
}

unsafe extern "C" fn on_properties(p: *const S3ResponseProperties, data: *mut c_void) -> c_int {
    // SAFETY: as the library calls it.
    let (properties, request) = unsafe { (&*p, request(data)) };
    request.event('P');
    request.content_length = properties.content_length;
    0
}

unsafe extern "C" fn on_complete(status: c_int, details: *const S3ErrorDetails, data: *mut c_void) {
    // SAFETY: as the library calls it.
    let (details, request) = unsafe { (details.as_ref(), request(data)) };
    request.event('C');
    request.status = status;
    request.message = details.map(|d| text(d.message)).unwrap_or_default();
}

unsafe extern "C" fn on_put(size: c_int, buffer: *mut c_char, data: *mut c_void) -> c_int {
    // SAFETY: as the library calls it.
    let request = unsafe { request(data) };
    request.event('D');
    request.data_calls.push(size as usize);
    if request.abort_at == Some(request.data_calls.len()) {
        return -1;
    }
    let rest = &request.body[request.given..];
    let len = rest.len().min(size as usize);
    // SAFETY: the buffer has `size` bytes.
    unsafe { ptr::copy_nonoverlapping(rest.as_ptr(), buffer.cast(), len) };
    request.given += len;
    len as c_int
}

unsafe extern "C" fn on_get(size: c_int, buffer: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: as the library calls it.
    let (request, piece) = unsafe {
        let piece = std::slice::from_raw_parts(buffer.cast::<u8>(), size as usize);
        (request(data), piece)
    };
    request.event('D');
    request.data_calls.push(piece.len());
    if request.abort_at == Some(request.data_calls.len()) {
        return 47;
    }
    request.received.extend_from_slice(piece);
    0
}

unsafe extern "C" fn on_list(
    is_truncated: c_int,
    next_marker: *const c_char,
    count: c_int,
    contents: *const S3ListBucketContent,
    prefix_count: c_int,
    _prefixes: *const *const c_char,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library calls it.
    let request = unsafe { request(data) };
    request.event('L');
    request.batches.push(count + prefix_count);
    request.truncated = is_truncated != 0;
    request.next_marker = text(next_marker);
    for at in 0..count as usize {
        // SAFETY: there are `count` entries.
        let key = text(unsafe { (*contents.add(at)).key });
        if let Some(store) = request.deletes {
            // SAFETY: the store outlives the request.
            assert_eq!(unsafe { &*store }.delete(&key).status, 0);
        }
        request.keys.push(key);
    }
    0
}

/// A function such as `S3_head_object`.
type ObjectFunction = unsafe extern "C" fn(
    *const S3BucketContext,
    *const c_char,
    *mut S3RequestContext,
    c_int,
    *const S3ResponseHandler,
    *mut c_void,
);

static HANDLER: S3ResponseHandler = S3ResponseHandler {
    properties: Some(on_properties),
    complete: Some(on_complete),
};

/// A bucket in its own directory.
pub(crate) struct Store {
    pub(crate) host: CString,
    bucket: CString,
    _directory: Option<tempfile::TempDir>,
}

/// Records the completion and drives the context.
unsafe extern "C" fn on_complete_and_drive(
    status: c_int,
    details: *const S3ErrorDetails,
    data: *mut c_void,
) {
    // SAFETY: as the library calls it; the context is one of the request's.
    unsafe {
        on_complete(status, details, data);
        assert_eq!(S3_runall_request_context(request(data).drives), 0);
    }
}

impl Store {
    /// Creates the directory and the bucket.
    pub(crate) fn new(bucket: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let host = CString::new(directory.path().to_str().unwrap()).unwrap();
        let mut store = Self::made(&host, bucket);
        store._directory = Some(directory);
        store
    }

    /// Creates the bucket.
    pub(crate) fn made(host: &CStr, bucket: &str) -> Self {
        let store = Self::at(host, bucket);
        let mut created = Request::default();
        // SAFETY: the arguments are valid, and everything has ended when the call returns.
        unsafe {
            S3_create_bucket(
                1,
                c"access".as_ptr(),
                c"secret".as_ptr(),
                ptr::null(),
                store.host.as_ptr(),
                store.bucket.as_ptr(),
                ptr::null(),
                0,
                ptr::null(),
                ptr::null_mut(),
                0,
                &raw const HANDLER,
                (&raw mut created).cast(),
            );
        }
        assert_eq!(created.end(), ("PC", 0), "{}", created.message);
        store
    }

    /// A bucket that may not exist.
    pub(crate) fn at(host: &CStr, bucket: &str) -> Self {
        Self {
            host: host.to_owned(),
            bucket: CString::new(bucket).unwrap(),
            _directory: None,
        }
    }

    /// Another bucket in the same directory.
    pub(crate) fn other(&self, bucket: &str) -> Self {
        Self::at(&self.host, bucket)
    }

    fn context(&self) -> S3BucketContext {
        S3BucketContext {
            host_name: self.host.as_ptr(),
            bucket_name: self.bucket.as_ptr(),
            protocol: 1,
            uri_style: 1,
            access_key_id: c"access".as_ptr(),
            secret_access_key: c"secret".as_ptr(),
            appended: TokenAndRegion {
                security_token: ptr::null(),
                auth_region: ptr::null(),
            },
        }
    }

    /// # Safety
    /// `request` does not move until `context` has run the request.
    pub(crate) unsafe fn put_in(
        &self,
        context: *mut S3RequestContext,
        key: &str,
        request: &mut Request,
    ) {
        let handler = S3PutObjectHandler {
            response: HANDLER,
            data: Some(on_put),
        };
        let (bucket, key) = (self.context(), CString::new(key).unwrap());
        let size = request.body.len() as u64;
        // SAFETY: by the contract of this function.
        unsafe {
            S3_put_object(
                &raw const bucket,
                key.as_ptr(),
                size,
                ptr::null(),
                context,
                0,
                &raw const handler,
                ptr::from_mut(request).cast(),
            );
        }
    }

    /// Sends a request that needs only a key.
    ///
    /// # Safety
    /// As for [`put_in`](Self::put_in).
    unsafe fn on_key(
        &self,
        function: ObjectFunction,
        context: *mut S3RequestContext,
        key: &str,
        handler: &S3ResponseHandler,
        request: &mut Request,
    ) {
        let (bucket, key) = (self.context(), CString::new(key).unwrap());
        let data = ptr::from_mut(request).cast();
        // SAFETY: by the contract of this function.
        unsafe { function(&raw const bucket, key.as_ptr(), context, 0, handler, data) };
    }

    /// # Safety
    /// As for [`put_in`](Self::put_in).
    pub(crate) unsafe fn head_in(
        &self,
        context: *mut S3RequestContext,
        key: &str,
        request: &mut Request,
    ) {
        // SAFETY: by the contract of this function.
        unsafe { self.on_key(S3_head_object, context, key, &HANDLER, request) };
    }

    /// Sends a HEAD whose completion drives the context.
    ///
    /// # Safety
    /// As for [`put_in`](Self::put_in).
    pub(crate) unsafe fn head_and_drive_in(
        &self,
        context: *mut S3RequestContext,
        key: &str,
        request: &mut Request,
    ) {
        let handler = S3ResponseHandler {
            complete: Some(on_complete_and_drive),
            ..HANDLER
        };
        request.drives = context;
        // SAFETY: by the contract of this function.
        unsafe { self.on_key(S3_head_object, context, key, &handler, request) };
    }

    pub(crate) fn put_request(&self, key: &str, request: &mut Request) {
        // SAFETY: the request has ended when the call returns.
        unsafe { self.put_in(ptr::null_mut(), key, request) };
    }

    pub(crate) fn put(&self, key: &str, body: &[u8]) -> Request {
        let mut request = Request::with_body(body);
        self.put_request(key, &mut request);
        request
    }

    pub(crate) fn head(&self, key: &str) -> Request {
        let mut request = Request::default();
        // SAFETY: the request has ended when the call returns.
        unsafe { self.head_in(ptr::null_mut(), key, &mut request) };
        request
    }

    pub(crate) fn get_request(&self, key: &str, start: u64, count: u64, request: &mut Request) {
        // SAFETY: the request has ended when the call returns.
        unsafe { self.get_in(ptr::null_mut(), key, start, count, request) };
    }

    /// # Safety
    /// As for [`put_in`](Self::put_in).
    pub(crate) unsafe fn get_in(
        &self,
        context: *mut S3RequestContext,
        key: &str,
        start: u64,
        count: u64,
        request: &mut Request,
    ) {
        let handler = S3GetObjectHandler {
            response: HANDLER,
            data: Some(on_get),
        };
        let (bucket, key) = (self.context(), CString::new(key).unwrap());
        // SAFETY: by the contract of this function.
        unsafe {
            S3_get_object(
                &raw const bucket,
                key.as_ptr(),
                ptr::null(),
                start,
                count,
                context,
                0,
                &raw const handler,
                ptr::from_mut(request).cast(),
            );
        }
    }

    pub(crate) fn get(&self, key: &str, start: u64, count: u64) -> Request {
        let mut request = Request::default();
        self.get_request(key, start, count, &mut request);
        request
    }

    pub(crate) fn delete(&self, key: &str) -> Request {
        let mut request = Request::default();
        // SAFETY: the request has ended when the call returns.
        unsafe { self.delete_in(ptr::null_mut(), key, &mut request) };
        request
    }

    /// # Safety
    /// As for [`put_in`](Self::put_in).
    pub(crate) unsafe fn delete_in(
        &self,
        context: *mut S3RequestContext,
        key: &str,
        request: &mut Request,
    ) {
        // SAFETY: by the contract of this function.
        unsafe { self.on_key(S3_delete_object, context, key, &HANDLER, request) };
    }

    pub(crate) fn list(
        &self,
        prefix: &str,
        delimiter: &str,
        max_keys: c_int,
        deletes: bool,
    ) -> Request {
        let mut request = Request {
            deletes: deletes.then_some(ptr::from_ref(self)),
            ..Request::default()
        };
        let handler = S3ListBucketHandler {
            response: HANDLER,
            list_bucket: Some(on_list),
        };
        let bucket = self.context();
        let (prefix, delimiter) = (
            CString::new(prefix).unwrap(),
            CString::new(delimiter).unwrap(),
        );
        // SAFETY: the request has ended when the call returns.
        unsafe {
            S3_list_bucket(
                &raw const bucket,
                prefix.as_ptr(),
                ptr::null(),
                delimiter.as_ptr(),
                max_keys,
                ptr::null_mut(),
                0,
                &raw const handler,
                (&raw mut request).cast(),
            );
        }
        request
    }
}
