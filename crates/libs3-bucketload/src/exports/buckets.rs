//! Requests on the service and on buckets, and the listing of a bucket.

use std::ffi::{c_char, c_int, c_void};

use super::begin;
use crate::abi::{S3BucketContext, S3ListBucketHandler, S3ListServiceHandler, S3ResponseHandler};
use crate::arguments::{Bucket, bytes, query, refused_acl, within};
use crate::calls::{bucket, list};
use crate::context::{S3RequestContext, submit};
use crate::reply::copy_out;
use crate::status::Status;
use crate::{library, names};

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
    #[cfg(feature = "abi2")]
    let timeout_ms = 0;
    // SAFETY: a handler, texts and a context of C.
    unsafe {
        begin(
            handler.cast::<S3ResponseHandler>(),
            callback_data,
            |callbacks| {
                let tell = handler.as_ref().and_then(|handler| handler.list_service);
                let backend = within(library::backend(bytes(host_name)), timeout_ms);
                let work = move || bucket::list(backend, &callbacks, tell);
                submit(request_context, callbacks, work, drop);
                Ok(())
            },
        );
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
    #[cfg(feature = "abi2")]
    let timeout_ms = 0;
    // SAFETY: a handler, texts, a buffer and a context of C.
    unsafe {
        begin(handler, callback_data, |callbacks| {
            // A directory has no location, which is that of S3's first region.
            let size = usize::try_from(location_constraint_return_size).unwrap_or(0);
            copy_out(b"", location_constraint_return, size);
            let target = Bucket::at(host_name, bucket_name, uri_style)?.within(timeout_ms);
            let work = move || bucket::test(target, &callbacks);
            submit(request_context, callbacks, work, drop);
            Ok(())
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
    #[cfg(feature = "abi2")]
    let timeout_ms = 0;
    // SAFETY: a handler, texts and a context of C.
    unsafe {
        begin(handler, callback_data, |callbacks| {
            let target = Bucket::at(host_name, bucket_name, names::PATH)?.within(timeout_ms);
            let work = move || match refused_acl(canned_acl) {
                Some(why) => Err(Status::ErrorNotImplemented.because(why)),
                None => bucket::create(target, &callbacks),
            };
            submit(request_context, callbacks, work, drop);
            Ok(())
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
    #[cfg(feature = "abi2")]
    let timeout_ms = 0;
    // SAFETY: a handler, texts and a context of C.
    unsafe {
        begin(handler, callback_data, |callbacks| {
            let target = Bucket::at(host_name, bucket_name, uri_style)?.within(timeout_ms);
            let work = move || bucket::delete(target, &callbacks);
            submit(request_context, callbacks, work, drop);
            Ok(())
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
    #[cfg(feature = "abi2")]
    let timeout_ms = 0;
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        begin(
            handler.cast::<S3ResponseHandler>(),
            callback_data,
            |callbacks| {
                let tell = handler.as_ref().and_then(|handler| handler.list_bucket);
                let target = Bucket::of(bucket_context)?.within(timeout_ms);
                let query = list::Query {
                    prefix: query(prefix)?,
                    marker: query(marker)?,
                    delimiter: query(delimiter)?,
                    max_keys,
                };
                let work = move || list::list(target, &query, tell, timeout_ms, &callbacks);
                submit(request_context, callbacks, work, drop);
                Ok(())
            },
        );
    }
}
