//! Requests on the service and on buckets, and the listing of a bucket.

use std::ffi::{c_char, c_int, c_void};

use super::Caller;
#[cfg(feature = "abi2")]
use super::timeout_ms;
use crate::abi::{
    S3_URI_STYLE_PATH, S3BucketContext, S3ListBucketHandler, S3ListServiceHandler,
    S3RequestContext, S3ResponseHandler,
};
use crate::arguments::{Bucket, backend, query, refused_acl};
use crate::calls::{bucket, list};
use crate::reply::{Callbacks, Failure, copy_out};
use crate::status::Status;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_list_service(
    _protocol: c_int,
    _access_key_id: *const c_char,
    _secret_access_key: *const c_char,
    #[cfg(not(feature = "abi2"))] _security_token: *const c_char,
    host_name: *const c_char,
    #[cfg(not(feature = "abi2"))] _auth_region: *const c_char,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ListServiceHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and a context of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let report = handler.as_ref().and_then(|handler| handler.list_service);
            let backend = backend(host_name, timeout_ms);
            Ok(move |callbacks: &Callbacks| bucket::list(backend, callbacks, report))
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_test_bucket(
    _protocol: c_int,
    uri_style: c_int,
    _access_key_id: *const c_char,
    _secret_access_key: *const c_char,
    #[cfg(not(feature = "abi2"))] _security_token: *const c_char,
    host_name: *const c_char,
    bucket_name: *const c_char,
    #[cfg(not(feature = "abi2"))] _auth_region: *const c_char,
    location_constraint_return_size: c_int,
    location_constraint_return: *mut c_char,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, a buffer and a context of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            // A directory has no location; an empty one is that of S3's first region.
            let size = usize::try_from(location_constraint_return_size).unwrap_or(0);
            copy_out(b"", location_constraint_return, size);
            let target = Bucket::at(host_name, bucket_name, uri_style, timeout_ms)?;
            Ok(move |callbacks: &Callbacks| bucket::test(target, callbacks))
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_create_bucket(
    _protocol: c_int,
    _access_key_id: *const c_char,
    _secret_access_key: *const c_char,
    #[cfg(not(feature = "abi2"))] _security_token: *const c_char,
    host_name: *const c_char,
    bucket_name: *const c_char,
    #[cfg(not(feature = "abi2"))] _auth_region: *const c_char,
    canned_acl: c_int,
    _location_constraint: *const c_char,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and a context of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let target = Bucket::at(host_name, bucket_name, S3_URI_STYLE_PATH, timeout_ms)?;
            Ok(move |callbacks: &Callbacks| match refused_acl(canned_acl) {
                Some(why) => Err(Failure::new(Status::ErrorNotImplemented, why)),
                None => bucket::create(target, callbacks),
            })
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_delete_bucket(
    _protocol: c_int,
    uri_style: c_int,
    _access_key_id: *const c_char,
    _secret_access_key: *const c_char,
    #[cfg(not(feature = "abi2"))] _security_token: *const c_char,
    host_name: *const c_char,
    bucket_name: *const c_char,
    #[cfg(not(feature = "abi2"))] _auth_region: *const c_char,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and a context of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let target = Bucket::at(host_name, bucket_name, uri_style, timeout_ms)?;
            Ok(move |callbacks: &Callbacks| bucket::delete(target, callbacks))
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_list_bucket(
    bucket_context: *const S3BucketContext,
    prefix: *const c_char,
    marker: *const c_char,
    delimiter: *const c_char,
    max_keys: c_int,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ListBucketHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let report = handler.as_ref().and_then(|handler| handler.list_bucket);
            let target = Bucket::of(bucket_context, timeout_ms)?;
            let query = list::Query {
                prefix: query(prefix)?,
                marker: query(marker)?,
                delimiter: query(delimiter)?,
                max_keys,
            };
            Ok(move |callbacks: &Callbacks| {
                list::list(target, &query, report, timeout_ms, callbacks)
            })
        });
    }
}
