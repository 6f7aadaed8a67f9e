//! The types of the version 4 functions that Rust code calls. The library is checked against them too.

use std::ffi::{c_char, c_int, c_void};

use crate::{
    S3AbortMultipartUploadHandler, S3BucketContext, S3GetConditions, S3GetObjectHandler,
    S3ListBucketHandler, S3ListMultipartUploadsHandler, S3ListServiceHandler,
    S3MultipartCommitHandler, S3MultipartInitialHandler, S3PutObjectHandler, S3PutProperties,
    S3RequestContext, S3ResponseHandler,
};

/// Constant text.
type Text = *const c_char;
/// A request context, or NULL.
type Context = *mut S3RequestContext;
/// Data for the callbacks.
type Data = *mut c_void;

pub type Initialize = unsafe extern "C" fn(Text, c_int, Text) -> c_int;
pub type Deinitialize = unsafe extern "C" fn();
pub type GetStatusName = unsafe extern "C" fn(c_int) -> Text;

/// Functions that end with a request context, a timeout in milliseconds, a handler and the data for its
/// callbacks.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($first:ty),*; $handler:ty);)*) => {$(
        $(#[$doc])*
        pub type $name = unsafe extern "C" fn($($first,)* Context, c_int, *const $handler, Data);
    )*};
}

functions! {
    /// Protocol, access key, secret key, token, host, region, …
    ListService(c_int, Text, Text, Text, Text, Text; S3ListServiceHandler);
    /// Protocol, style, access key, secret key, token, host, bucket, region, location size, location, …
    TestBucket(
        c_int, c_int, Text, Text, Text, Text, Text, Text, c_int, *mut c_char; S3ResponseHandler
    );
    /// Protocol, access key, secret key, token, host, bucket, region, ACL, location, …
    CreateBucket(c_int, Text, Text, Text, Text, Text, Text, c_int, Text; S3ResponseHandler);
    /// Protocol, style, access key, secret key, token, host, bucket, region, …
    DeleteBucket(c_int, c_int, Text, Text, Text, Text, Text, Text; S3ResponseHandler);
    /// Bucket, prefix, marker, delimiter, maximum number of keys, …
    ListBucket(*const S3BucketContext, Text, Text, Text, c_int; S3ListBucketHandler);
    /// Bucket, key, length, properties, …
    PutObject(*const S3BucketContext, Text, u64, *const S3PutProperties; S3PutObjectHandler);
    /// Bucket, key, conditions, first byte, count, …
    GetObject(*const S3BucketContext, Text, *const S3GetConditions, u64, u64; S3GetObjectHandler);
    /// HEAD and DELETE: bucket, key, …
    OnObject(*const S3BucketContext, Text; S3ResponseHandler);
    /// Source bucket and key, destination bucket and key, properties, time, size and buffer of the entity
    /// tag, …
    CopyObject(
        *const S3BucketContext, Text, Text, Text, *const S3PutProperties, *mut i64, c_int, *mut c_char;
        S3ResponseHandler
    );
    /// Bucket, prefix, key marker, upload id marker, encoding, delimiter, maximum number of uploads, …
    ListUploads(
        *const S3BucketContext, Text, Text, Text, Text, Text, c_int; S3ListMultipartUploadsHandler
    );
}

/// Bucket, key, properties, handler, context, timeout, data.
pub type InitiateMultipart = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    *const S3PutProperties,
    *const S3MultipartInitialHandler,
    Context,
    c_int,
    Data,
);
/// Bucket, key, properties, handler, part number, upload id, length, context, timeout, data.
pub type UploadPart = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    *const S3PutProperties,
    *const S3PutObjectHandler,
    c_int,
    Text,
    c_int,
    Context,
    c_int,
    Data,
);
/// Bucket, key, handler, upload id, length of the document, context, timeout, data.
pub type CompleteMultipart = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    *const S3MultipartCommitHandler,
    Text,
    c_int,
    Context,
    c_int,
    Data,
);
/// Bucket, key, upload id, timeout, handler. The callbacks get no data.
pub type AbortMultipart = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    Text,
    c_int,
    *const S3AbortMultipartUploadHandler,
);
