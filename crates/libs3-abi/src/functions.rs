//! The types of the version 4 functions that Rust code calls. The library is checked against them too.
//!
//! Most functions end with a request context, a timeout in milliseconds, a handler and the data for its
//! callbacks (`…` below).

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
/// Protocol, access key, secret key, token, host, region, context, timeout, handler, data.
pub type ListService = unsafe extern "C" fn(
    c_int,
    Text,
    Text,
    Text,
    Text,
    Text,
    Context,
    c_int,
    *const S3ListServiceHandler,
    Data,
);
/// Protocol, style, access key, secret key, token, host, bucket, region, location size, location, …
pub type TestBucket = unsafe extern "C" fn(
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
    *const S3ResponseHandler,
    Data,
);
/// Protocol, access key, secret key, token, host, bucket, region, ACL, location, …
pub type CreateBucket = unsafe extern "C" fn(
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
    *const S3ResponseHandler,
    Data,
);
/// Protocol, style, access key, secret key, token, host, bucket, region, …
pub type DeleteBucket = unsafe extern "C" fn(
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
    *const S3ResponseHandler,
    Data,
);
/// Bucket, prefix, marker, delimiter, maximum number of keys, …
pub type ListBucket = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    Text,
    Text,
    c_int,
    Context,
    c_int,
    *const S3ListBucketHandler,
    Data,
);
/// Bucket, key, length, properties, …
pub type PutObject = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    u64,
    *const S3PutProperties,
    Context,
    c_int,
    *const S3PutObjectHandler,
    Data,
);
/// Bucket, key, conditions, first byte, count, …
pub type GetObject = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    *const S3GetConditions,
    u64,
    u64,
    Context,
    c_int,
    *const S3GetObjectHandler,
    Data,
);
/// HEAD and DELETE: bucket, key, …
pub type OnObject = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    Context,
    c_int,
    *const S3ResponseHandler,
    Data,
);
/// Source bucket and key, destination bucket and key, properties, time, size and buffer of the entity
/// tag, …
pub type CopyObject = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    Text,
    Text,
    *const S3PutProperties,
    *mut i64,
    c_int,
    *mut c_char,
    Context,
    c_int,
    *const S3ResponseHandler,
    Data,
);
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
/// Bucket, prefix, key marker, upload id marker, encoding, delimiter, maximum number of uploads, …
pub type ListUploads = unsafe extern "C" fn(
    *const S3BucketContext,
    Text,
    Text,
    Text,
    Text,
    Text,
    c_int,
    Context,
    c_int,
    *const S3ListMultipartUploadsHandler,
    Data,
);
