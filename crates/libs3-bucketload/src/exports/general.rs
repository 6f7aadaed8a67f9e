//! Initialisation, statuses, names, request contexts, presigned URLs.

use std::ffi::{c_char, c_int};
#[cfg(not(feature = "abi2"))]
use std::time::SystemTime;

use super::guarded;
use crate::abi::{
    S3_MAX_AUTHENTICATED_QUERY_STRING_SIZE, S3_MAX_KEY_SIZE, S3_PROTOCOL_HTTPS,
    S3_URI_STYLE_VIRTUAL_HOST, S3AclGrant, S3BucketContext, S3RequestContext,
};
use crate::acl::{self, AclBuffers};
use crate::arguments::{self, bytes};
#[cfg(not(feature = "abi2"))]
use crate::clock;
use crate::context;
use crate::presign::{self, Request};
use crate::reply::copy_out;
use crate::status::{self, Status, VERSION};
use crate::{library, names};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_initialize(
    _user_agent_info: *const c_char,
    _flags: c_int,
    default_host_name: *const c_char,
) -> c_int {
    // SAFETY: a text of C.
    guarded(|| library::initialize(unsafe { bytes(default_host_name) }))
}

#[unsafe(no_mangle)]
pub extern "C" fn S3_deinitialize() {
    guarded(|| {
        library::deinitialize();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn S3_get_status_name(status: c_int) -> *const c_char {
    Status::name(status, VERSION).as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn S3_status_is_retryable(status: c_int) -> c_int {
    c_int::from(status::is_retryable(status))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_validate_bucket_name(
    bucket_name: *const c_char,
    uri_style: c_int,
) -> c_int {
    // SAFETY: a text of C.
    guarded(|| names::check(unsafe { bytes(bucket_name) }.unwrap_or_default(), uri_style))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_convert_acl(
    acl_xml: *const c_char,
    owner_id: *mut c_char,
    owner_display_name: *mut c_char,
    acl_grant_count_return: *mut c_int,
    acl_grants: *mut S3AclGrant,
) -> c_int {
    let to = AclBuffers {
        owner_id,
        owner_display_name,
        count: acl_grant_count_return,
        grants: acl_grants,
    };
    // SAFETY: a text and the buffers of C.
    guarded(|| unsafe { acl::convert(acl_xml, &to) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_create_request_context(
    request_context_return: *mut *mut S3RequestContext,
) -> c_int {
    guarded(|| {
        // SAFETY: the place for the result, of C.
        let context = unsafe { request_context_return.as_mut() }.ok_or(Status::InternalError)?;
        *context = context::create();
        Ok(())
    })
}

/// This library does not use libcurl, so the client's multi handle cannot drive requests.
#[cfg(not(feature = "abi2"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_create_request_context_ex(
    request_context_return: *mut *mut S3RequestContext,
    curl_multi: *mut std::ffi::c_void,
    _setup_curl: Option<crate::abi::S3SetupCurlCallback>,
    _setup_data: *mut std::ffi::c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: the place for the result, of C.
        let context = unsafe { request_context_return.as_mut() }.ok_or(Status::InternalError)?;
        *context = std::ptr::null_mut();
        if !curl_multi.is_null() {
            return Err(Status::NotSupported);
        }
        *context = context::create();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_destroy_request_context(request_context: *mut S3RequestContext) {
    guarded(|| {
        // SAFETY: NULL or a context of this library.
        unsafe { context::destroy(request_context) };
        Ok(())
    });
}

/// Runs requests until the queue is empty, including requests that callbacks make.
unsafe fn drive_all(request_context: *mut S3RequestContext) -> c_int {
    guarded(|| {
        if request_context.is_null() {
            return Err(Status::InternalError);
        }
        // SAFETY: a context of this library; the loop ends if a callback destroys it.
        while unsafe { context::drive_one(request_context) }.is_some_and(|waiting| waiting > 0) {}
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_runall_request_context(
    request_context: *mut S3RequestContext,
) -> c_int {
    // SAFETY: a context of this library.
    unsafe { drive_all(request_context) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_runonce_request_context(
    request_context: *mut S3RequestContext,
    requests_remaining_return: *mut c_int,
) -> c_int {
    guarded(|| {
        if request_context.is_null() {
            return Err(Status::InternalError);
        }
        // SAFETY: a context of this library.
        let waiting = unsafe { context::drive_one(request_context) }.unwrap_or(0);
        // SAFETY: the place for the result, of C.
        if let Some(remaining) = unsafe { requests_remaining_return.as_mut() } {
            *remaining = c_int::try_from(waiting).unwrap_or(c_int::MAX);
        }
        Ok(())
    })
}

#[cfg(not(feature = "abi2"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_process_request_context(
    request_context: *mut S3RequestContext,
) -> c_int {
    // SAFETY: a context of this library.
    unsafe { drive_all(request_context) }
}

/// There is nothing to wait for and thus no descriptor: the caller drives the context instead of calling
/// `select`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_get_request_context_fdsets(
    _request_context: *mut S3RequestContext,
    _read_set: *mut libc::fd_set,
    _write_set: *mut libc::fd_set,
    _except_set: *mut libc::fd_set,
    max_fd: *mut c_int,
) -> c_int {
    guarded(|| {
        // SAFETY: the place for the result, of C.
        if let Some(fd) = unsafe { max_fd.as_mut() } {
            *fd = -1;
        }
        Ok(())
    })
}

/// 0 while requests are queued: drive the context now. -1 if there is nothing to do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_get_request_context_timeout(
    request_context: *mut S3RequestContext,
) -> i64 {
    // SAFETY: NULL or a context of this library.
    if request_context.is_null() || unsafe { context::waiting(request_context) } == 0 {
        -1
    } else {
        0
    }
}

/// There is no peer to verify.
#[cfg(not(feature = "abi2"))]
#[unsafe(no_mangle)]
pub extern "C" fn S3_set_request_context_verify_peer(
    _request_context: *mut S3RequestContext,
    _verify_peer: c_int,
) {
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_generate_authenticated_query_string(
    buffer: *mut c_char,
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    #[cfg(not(feature = "abi2"))] expires: c_int,
    #[cfg(feature = "abi2")] expires: i64,
    resource: *const c_char,
    #[cfg(not(feature = "abi2"))] http_method: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: a bucket context of C.
        let context = unsafe { bucket_context.as_ref() }.ok_or(Status::InternalError)?;
        // SAFETY: texts of C, here and below.
        let text = |text| unsafe { bytes(text) }.map(|b| String::from_utf8_lossy(b).into_owned());
        // SAFETY: as above.
        let bucket = unsafe { arguments::bucket_name(context.bucket_name, context.uri_style) };
        let bucket = bucket.map_err(|_| {
            let name = text(context.bucket_name).unwrap_or_default();
            names::check(name.as_bytes(), context.uri_style)
                .err()
                .unwrap_or(Status::InternalError)
        })?;
        // SAFETY: as above.
        let host =
            unsafe { bytes(context.host_name) }.map_or_else(library::default_host, <[u8]>::to_vec);
        if library::location_of_host(&host).is_some() {
            // There is no HTTP server for such a location.
            return Err(Status::NotSupported);
        }
        let key = text(key).unwrap_or_default();
        if key.len() > S3_MAX_KEY_SIZE {
            return Err(Status::UriTooLong);
        }
        let request = Request {
            https: context.protocol == S3_PROTOCOL_HTTPS,
            virtual_host: context.uri_style == S3_URI_STYLE_VIRTUAL_HOST,
            host: String::from_utf8_lossy(&host).into_owned(),
            bucket,
            key,
            resource: text(resource).unwrap_or_default(),
            access_key: text(context.access_key_id).unwrap_or_default(),
            #[cfg(not(feature = "abi2"))]
            token: text(context.appended.security_token),
            #[cfg(feature = "abi2")]
            token: None,
            #[cfg(not(feature = "abi2"))]
            region: text(context.appended.auth_region).unwrap_or_else(|| "us-east-1".to_owned()),
            #[cfg(not(feature = "abi2"))]
            method: text(http_method).unwrap_or_else(|| "GET".to_owned()),
        };
        // SAFETY: as above.
        let secret = unsafe { bytes(context.secret_access_key) }.unwrap_or_default();
        #[cfg(not(feature = "abi2"))]
        let url = presign::url(
            &request,
            secret,
            clock::seconds(SystemTime::now()),
            expires.into(),
        );
        #[cfg(feature = "abi2")]
        let url = presign::url(&request, secret, expires);
        if url.len() >= S3_MAX_AUTHENTICATED_QUERY_STRING_SIZE {
            return Err(Status::UriTooLong);
        }
        // SAFETY: the buffer of C has the size that libs3 requires.
        unsafe {
            copy_out(
                url.as_bytes(),
                buffer,
                S3_MAX_AUTHENTICATED_QUERY_STRING_SIZE,
            )
        };
        Ok(())
    })
}
