//! Version 4 of the libs3 interface: the structures and functions that the driver needs, for 64-bit systems.
//!
//! The sizes are checked at compile time against those that a C compiler gives.

use std::ffi::{c_char, c_int, c_void};

pub(super) type Status = c_int;

/// The request went well.
pub(super) const OK: Status = 0;
/// A callback wanted the request to end.
pub(super) const ABORTED_BY_CALLBACK: Status = 47;

/// `S3_INIT_ALL`.
pub(super) const INIT_ALL: c_int = 1;
/// Longest host name, without the final NUL.
pub(super) const MAX_HOST_NAME: usize = 254;

pub(super) const HTTPS: c_int = 0;
pub(super) const HTTP: c_int = 1;
pub(super) const VIRTUAL_HOST: c_int = 0;
pub(super) const PATH: c_int = 1;

#[repr(C)]
pub(super) struct ResponseProperties {
    pub(super) request_id: *const c_char,
    pub(super) request_id2: *const c_char,
    pub(super) content_type: *const c_char,
    pub(super) content_length: u64,
    pub(super) server: *const c_char,
    pub(super) etag: *const c_char,
    pub(super) last_modified: i64,
    pub(super) meta_data_count: c_int,
    pub(super) meta_data: *const c_void,
    pub(super) server_side_encryption: c_char,
}

#[repr(C)]
pub(super) struct BucketContext {
    pub(super) host_name: *const c_char,
    pub(super) bucket_name: *const c_char,
    pub(super) protocol: c_int,
    pub(super) uri_style: c_int,
    pub(super) access_key_id: *const c_char,
    pub(super) secret_access_key: *const c_char,
    pub(super) security_token: *const c_char,
    pub(super) auth_region: *const c_char,
}

#[repr(C)]
pub(super) struct ListBucketContent {
    pub(super) key: *const c_char,
    pub(super) last_modified: i64,
    pub(super) etag: *const c_char,
    pub(super) size: u64,
    pub(super) owner_id: *const c_char,
    pub(super) owner_display_name: *const c_char,
}

#[repr(C)]
pub(super) struct ListMultipartUpload {
    pub(super) key: *const c_char,
    pub(super) upload_id: *const c_char,
    pub(super) initiator_id: *const c_char,
    pub(super) initiator_display_name: *const c_char,
    pub(super) owner_id: *const c_char,
    pub(super) owner_display_name: *const c_char,
    pub(super) storage_class: *const c_char,
    pub(super) initiated: i64,
}

#[repr(C)]
pub(super) struct ErrorDetails {
    pub(super) message: *const c_char,
    pub(super) resource: *const c_char,
    pub(super) further_details: *const c_char,
    pub(super) extra_details_count: c_int,
    pub(super) extra_details: *const c_void,
}

const _: () = {
    assert!(size_of::<ResponseProperties>() == 80);
    assert!(size_of::<BucketContext>() == 56);
    assert!(size_of::<ListBucketContent>() == 48);
    assert!(size_of::<ListMultipartUpload>() == 64);
    assert!(size_of::<ErrorDetails>() == 40);
    assert!(size_of::<MultipartCommitHandler>() == 32);
};

pub(super) type PropertiesCallback =
    extern "C" fn(*const ResponseProperties, *mut c_void) -> Status;
pub(super) type CompleteCallback = extern "C" fn(Status, *const ErrorDetails, *mut c_void);
pub(super) type PutDataCallback = extern "C" fn(c_int, *mut c_char, *mut c_void) -> c_int;
pub(super) type GetDataCallback = extern "C" fn(c_int, *const c_char, *mut c_void) -> Status;
pub(super) type ListServiceCallback =
    extern "C" fn(*const c_char, *const c_char, *const c_char, i64, *mut c_void) -> Status;
pub(super) type ListBucketCallback = extern "C" fn(
    c_int,
    *const c_char,
    c_int,
    *const ListBucketContent,
    c_int,
    *const *const c_char,
    *mut c_void,
) -> Status;
pub(super) type InitialCallback = extern "C" fn(*const c_char, *mut c_void) -> Status;
pub(super) type CommitCallback = extern "C" fn(*const c_char, *const c_char, *mut c_void) -> Status;
pub(super) type ListUploadsCallback = extern "C" fn(
    c_int,
    *const c_char,
    *const c_char,
    c_int,
    *const ListMultipartUpload,
    c_int,
    *const *const c_char,
    *mut c_void,
) -> Status;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ResponseHandler {
    pub(super) properties: PropertiesCallback,
    pub(super) complete: CompleteCallback,
}

/// `S3PutObjectHandler`, `S3GetObjectHandler` and the like: a response handler and one callback.
#[repr(C)]
pub(super) struct Handler<C> {
    pub(super) response: ResponseHandler,
    pub(super) callback: C,
}

#[repr(C)]
pub(super) struct MultipartCommitHandler {
    pub(super) response: ResponseHandler,
    pub(super) put_data: PutDataCallback,
    pub(super) commit: CommitCallback,
}

/// Text of C, not to be changed.
type Text = *const c_char;
/// A request context; the driver has none.
type Context = *mut c_void;
/// What the callbacks get.
type Data = *mut c_void;

pub(super) type Initialize = unsafe extern "C" fn(Text, c_int, Text) -> Status;
pub(super) type Deinitialize = unsafe extern "C" fn();
pub(super) type GetStatusName = unsafe extern "C" fn(Status) -> Text;
/// Protocol, access key, secret key, token, host, region, context, timeout, handler, data.
pub(super) type ListService = unsafe extern "C" fn(
    c_int,
    Text,
    Text,
    Text,
    Text,
    Text,
    Context,
    c_int,
    *const Handler<ListServiceCallback>,
    Data,
);
/// Protocol, style, access key, secret key, token, host, bucket, region, location size, location, …
pub(super) type TestBucket = unsafe extern "C" fn(
    c_int,
    c_int,
    Text,
    Text,
    Text,
    Text,
    Text,
    Text,
    c_int,
    *mut c_char,
    Context,
    c_int,
    *const ResponseHandler,
    Data,
);
/// Protocol, access key, secret key, token, host, bucket, region, ACL, location, …
pub(super) type CreateBucket = unsafe extern "C" fn(
    c_int,
    Text,
    Text,
    Text,
    Text,
    Text,
    Text,
    c_int,
    Text,
    Context,
    c_int,
    *const ResponseHandler,
    Data,
);
/// Protocol, style, access key, secret key, token, host, bucket, region, …
pub(super) type DeleteBucket = unsafe extern "C" fn(
    c_int,
    c_int,
    Text,
    Text,
    Text,
    Text,
    Text,
    Text,
    Context,
    c_int,
    *const ResponseHandler,
    Data,
);
/// Bucket, prefix, marker, delimiter, most keys, …
pub(super) type ListBucket = unsafe extern "C" fn(
    *const BucketContext,
    Text,
    Text,
    Text,
    c_int,
    Context,
    c_int,
    *const Handler<ListBucketCallback>,
    Data,
);
/// Bucket, key, length, properties, …
pub(super) type PutObject = unsafe extern "C" fn(
    *const BucketContext,
    Text,
    u64,
    *const c_void,
    Context,
    c_int,
    *const Handler<PutDataCallback>,
    Data,
);
/// Bucket, key, conditions, first byte, count, …
pub(super) type GetObject = unsafe extern "C" fn(
    *const BucketContext,
    Text,
    *const c_void,
    u64,
    u64,
    Context,
    c_int,
    *const Handler<GetDataCallback>,
    Data,
);
/// HEAD and DELETE: bucket, key, …
pub(super) type OnObject =
    unsafe extern "C" fn(*const BucketContext, Text, Context, c_int, *const ResponseHandler, Data);
/// Source bucket and key, destination bucket and key, properties, time, size and place of the entity tag, …
pub(super) type CopyObject = unsafe extern "C" fn(
    *const BucketContext,
    Text,
    Text,
    Text,
    *const c_void,
    *mut i64,
    c_int,
    *mut c_char,
    Context,
    c_int,
    *const ResponseHandler,
    Data,
);
/// Bucket, key, properties, handler, context, timeout, data.
pub(super) type InitiateMultipart = unsafe extern "C" fn(
    *const BucketContext,
    Text,
    *const c_void,
    *const Handler<InitialCallback>,
    Context,
    c_int,
    Data,
);
/// Bucket, key, properties, handler, number, upload, length, context, timeout, data.
pub(super) type UploadPart = unsafe extern "C" fn(
    *const BucketContext,
    Text,
    *const c_void,
    *const Handler<PutDataCallback>,
    c_int,
    Text,
    c_int,
    Context,
    c_int,
    Data,
);
/// Bucket, key, handler, upload, length of the document, context, timeout, data.
pub(super) type CompleteMultipart = unsafe extern "C" fn(
    *const BucketContext,
    Text,
    *const MultipartCommitHandler,
    Text,
    c_int,
    Context,
    c_int,
    Data,
);
/// Bucket, key, upload, timeout, handler. Its callbacks get no data.
pub(super) type AbortMultipart =
    unsafe extern "C" fn(*const BucketContext, Text, Text, c_int, *const ResponseHandler);
/// Bucket, prefix, key marker, upload marker, encoding, delimiter, most uploads, …
pub(super) type ListUploads = unsafe extern "C" fn(
    *const BucketContext,
    Text,
    Text,
    Text,
    Text,
    Text,
    c_int,
    Context,
    c_int,
    *const Handler<ListUploadsCallback>,
    Data,
);
