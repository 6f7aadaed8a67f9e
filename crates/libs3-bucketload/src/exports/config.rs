//! Requests on access control, lifecycle and logging.

use std::ffi::{c_char, c_int, c_void};

use super::Caller;
#[cfg(feature = "abi2")]
use super::timeout_ms;
use crate::abi::{S3AclGrant, S3BucketContext, S3RequestContext, S3ResponseHandler};
use crate::acl::{self, AclBuffers};
use crate::arguments::{Bucket, Target, string};
use crate::calls::config::{self, LogBuffers, Resource};
#[cfg(not(feature = "abi2"))]
use crate::reply::copy_out;
use crate::reply::{Callbacks, Failure};

/// The object `key`, or the bucket if there is no key.
unsafe fn resource(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    limit_ms: c_int,
) -> Result<Resource, Failure> {
    // SAFETY: a bucket context and a text of C.
    unsafe {
        if key.is_null() || *key == 0 {
            Bucket::of(bucket_context, limit_ms).map(Resource::Bucket)
        } else {
            Target::of(bucket_context, key, limit_ms).map(Resource::Object)
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_get_acl(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    owner_id: *mut c_char,
    owner_display_name: *mut c_char,
    acl_grant_count_return: *mut c_int,
    acl_grants: *mut S3AclGrant,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, buffers and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            if let Some(count) = acl_grant_count_return.as_mut() {
                *count = 0;
            }
            let resource = resource(bucket_context, key, timeout_ms)?;
            let to = AclBuffers {
                owner_id,
                owner_display_name,
                count: acl_grant_count_return,
                grants: acl_grants,
            };
            Ok(move |callbacks: &Callbacks| config::get_acl(resource, &to, callbacks))
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_set_acl(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    _owner_id: *const c_char,
    _owner_display_name: *const c_char,
    acl_grant_count: c_int,
    acl_grants: *const S3AclGrant,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, grants and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let resource = resource(bucket_context, key, timeout_ms)?;
            let is_of_owner = acl::is_of_owner(acl_grants, acl_grant_count);
            Ok(move |callbacks: &Callbacks| config::set_acl(resource, is_of_owner, callbacks))
        });
    }
}

#[cfg(not(feature = "abi2"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_get_lifecycle(
    bucket_context: *const S3BucketContext,
    lifecycle_xml_document_return: *mut c_char,
    lifecycle_xml_document_buffer_size: c_int,
    request_context: *mut S3RequestContext,
    timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, a buffer and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        let size = usize::try_from(lifecycle_xml_document_buffer_size).unwrap_or(0);
        copy_out(b"", lifecycle_xml_document_return, size);
        caller.on_bucket(bucket_context, |bucket, _| config::get_lifecycle(bucket));
    }
}

#[cfg(not(feature = "abi2"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_set_lifecycle(
    bucket_context: *const S3BucketContext,
    _lifecycle_xml_document: *const c_char,
    request_context: *mut S3RequestContext,
    timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.on_bucket(bucket_context, |bucket, _| config::set_lifecycle(bucket));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_get_server_access_logging(
    bucket_context: *const S3BucketContext,
    target_bucket_return: *mut c_char,
    target_prefix_return: *mut c_char,
    acl_grant_count_return: *mut c_int,
    _acl_grants: *mut S3AclGrant,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, buffers and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        let to = LogBuffers {
            target_bucket: target_bucket_return,
            target_prefix: target_prefix_return,
            count: acl_grant_count_return,
        };
        caller.on_bucket(bucket_context, move |bucket, callbacks| {
            config::get_logging(bucket, to, callbacks)
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_set_server_access_logging(
    bucket_context: *const S3BucketContext,
    target_bucket: *const c_char,
    _target_prefix: *const c_char,
    _acl_grant_count: c_int,
    _acl_grants: *const S3AclGrant,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, grants and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let bucket = Bucket::of(bucket_context, timeout_ms)?;
            let target = string(target_bucket)?;
            Ok(move |callbacks: &Callbacks| config::set_logging(bucket, &target, callbacks))
        });
    }
}
