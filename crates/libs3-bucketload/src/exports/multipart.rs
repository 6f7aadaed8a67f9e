//! Multipart uploads and copies of ranges (version 4 only).

use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};

use super::Caller;
use super::objects::{Destination, given};
use crate::abi::{
    S3AbortMultipartUploadHandler, S3BucketContext, S3ListMultipartUploadsHandler,
    S3ListPartsHandler, S3MultipartCommitHandler, S3MultipartInitialHandler, S3PutObjectHandler,
    S3PutProperties, S3RequestContext, S3ResponseHandler,
};
use crate::arguments::{Bucket, PutProperties, Target, bytes, query, string};
use crate::backend::Span;
use crate::calls::multipart::{self, Completed};
use crate::calls::{PutCallback, object, uploads};
use crate::reply::{Callbacks, Failure};
use crate::status::Status;

/// As in libs3, the range of a copy includes byte `start_offset + count`: the `s3` tool passes a count
/// that is one too low. A count of 0 means the whole object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_copy_object_range(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    destination_bucket: *const c_char,
    destination_key: *const c_char,
    part_number: c_int,
    upload_id: *const c_char,
    start_offset: c_ulong,
    count: c_ulong,
    put_properties: *const S3PutProperties,
    last_modified_return: *mut i64,
    etag_return_size: c_int,
    etag_return: *mut c_char,
    request_context: *mut S3RequestContext,
    timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, buffers, properties and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let source = Target::of(bucket_context, key, timeout_ms)?;
            let to = Destination::read(
                &source,
                destination_bucket,
                destination_key,
                last_modified_return,
                etag_return_size,
                etag_return,
            )?;
            let given = given(put_properties)?;
            let upload_id = string(upload_id)?;
            let span = match count {
                0 => Span { start: 0, count: 0 },
                _ => Span {
                    start: start_offset,
                    count: count.saturating_add(1),
                },
            };
            Ok(move |callbacks: &Callbacks| {
                let destination = (&*to.bucket, &*to.key);
                let copied = if part_number > 0 {
                    multipart::copy_part(source, span, destination, (&upload_id, part_number))?
                } else if span.count == 0 {
                    object::copy(source, destination, given)?
                } else {
                    let why = "only a part can be a copy of a range";
                    return Err(Failure::new(Status::ErrorInvalidArgument, why));
                };
                to.report(&copied, callbacks)
            })
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_initiate_multipart(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    put_properties: *const S3PutProperties,
    handler: *const S3MultipartInitialHandler,
    request_context: *mut S3RequestContext,
    timeout_ms: c_int,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, properties and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.then(|| {
            let report = handler.as_ref().and_then(|handler| handler.initial);
            let target = Target::of(bucket_context, key, timeout_ms)?;
            let given = PutProperties::read(put_properties)?;
            let work = move |callbacks: &Callbacks| multipart::initiate(target, given, callbacks);
            let after = move |id: Option<CString>| {
                if let Some(report) = report {
                    let id = id.as_deref().unwrap_or(c"");
                    // After completion, the returned value has no meaning.
                    let _ = report(id.as_ptr(), callback_data);
                }
            };
            Ok((work, after))
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_upload_part(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    put_properties: *const S3PutProperties,
    handler: *const S3PutObjectHandler,
    part_number: c_int,
    upload_id: *const c_char,
    part_content_length: c_int,
    request_context: *mut S3RequestContext,
    timeout_ms: c_int,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, properties and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let body = PutCallback {
                callback: handler.as_ref().and_then(|handler| handler.data),
                data: callback_data,
            };
            let target = Target::of(bucket_context, key, timeout_ms)?;
            let given = PutProperties::read(put_properties)?;
            let upload_id = string(upload_id)?;
            Ok(move |callbacks: &Callbacks| {
                let part = (&*upload_id, part_number);
                let size = part_content_length;
                multipart::upload_part(target, part, size, &given, body, timeout_ms, callbacks)
            })
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_complete_multipart_upload(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    handler: *const S3MultipartCommitHandler,
    upload_id: *const c_char,
    content_length: c_int,
    request_context: *mut S3RequestContext,
    timeout_ms: c_int,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.then(|| {
            let body = PutCallback {
                callback: handler.as_ref().and_then(|handler| handler.data),
                data: callback_data,
            };
            let report = handler.as_ref().and_then(|handler| handler.commit);
            let target = Target::of(bucket_context, key, timeout_ms)?;
            let id = string(upload_id)?;
            let work = move |callbacks: &Callbacks| {
                multipart::complete(target, &id, content_length, body, timeout_ms, callbacks)
            };
            let after = move |done: Option<Completed>| {
                if let Some(report) = report {
                    let none: &CStr = c"";
                    let (location, etag) = done
                        .as_ref()
                        .map_or((none, none), |done| (&*done.location, &*done.etag));
                    // After completion, the returned value has no meaning.
                    let _ = report(location.as_ptr(), etag.as_ptr(), callback_data);
                }
            };
            Ok((work, after))
        });
    }
}

/// As in libs3, the completion callback is never called, and the properties callback gets NULL as data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_abort_multipart_upload(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    upload_id: *const c_char,
    timeout_ms: c_int,
    handler: *const S3AbortMultipartUploadHandler,
) {
    let none = std::ptr::null_mut();
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        let mut caller = Caller::new(handler, none, std::ptr::null_mut(), timeout_ms);
        caller.callbacks = caller.callbacks.never_complete();
        caller.submit(|| {
            let target = Target::of(bucket_context, key, timeout_ms)?;
            let id = string(upload_id)?;
            Ok(move |callbacks: &Callbacks| multipart::abort(target, &id, callbacks))
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_list_parts(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    part_number_marker: *const c_char,
    upload_id: *const c_char,
    _encoding_type: *const c_char,
    max_parts: c_int,
    request_context: *mut S3RequestContext,
    timeout_ms: c_int,
    handler: *const S3ListPartsHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let report = handler.as_ref().and_then(|handler| handler.list_parts);
            let target = Target::of(bucket_context, key, timeout_ms)?;
            let (marker, id) = (query(part_number_marker)?, string(upload_id)?);
            Ok(move |callbacks: &Callbacks| {
                uploads::parts(target, &id, &marker, max_parts, report, callbacks)
            })
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_list_multipart_uploads(
    bucket_context: *const S3BucketContext,
    prefix: *const c_char,
    key_marker: *const c_char,
    upload_id_marker: *const c_char,
    encoding_type: *const c_char,
    delimiter: *const c_char,
    max_uploads: c_int,
    request_context: *mut S3RequestContext,
    timeout_ms: c_int,
    handler: *const S3ListMultipartUploadsHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.submit(|| {
            let report = handler.as_ref().and_then(|handler| handler.list_uploads);
            let target = Bucket::of(bucket_context, timeout_ms)?;
            let query = uploads::Query {
                prefix: query(prefix)?,
                delimiter: query(delimiter)?,
                key_marker: query(key_marker)?,
                upload_id_marker: query(upload_id_marker)?,
                max_uploads,
                encode: bytes(encoding_type) == Some(b"url"),
            };
            Ok(move |callbacks: &Callbacks| uploads::uploads(target, &query, report, callbacks))
        });
    }
}
