//! Requests on objects: put, copy, get, head, delete.

use std::ffi::{c_char, c_int, c_void};

use bucketload_store::{ETag, ReadConditions};

use super::Caller;
#[cfg(feature = "abi2")]
use super::timeout_ms;
use crate::abi::{
    S3_URI_STYLE_PATH, S3BucketContext, S3GetConditions, S3GetObjectHandler, S3PutObjectHandler,
    S3PutProperties, S3RequestContext, S3ResponseHandler,
};
use crate::arguments::{self, PutProperties, Target, bytes};
use crate::backend::{Conditions, Span};
use crate::calls::PutCallback;
use crate::calls::object::{self, Copied, ObjectOperation};
use crate::clock;
use crate::reply::{Callbacks, Failure, copy_out};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_put_object(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    content_length: u64,
    put_properties: *const S3PutProperties,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3PutObjectHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, properties and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.on_object(bucket_context, key, || {
            Ok(ObjectOperation::Put {
                size: content_length,
                given: PutProperties::read(put_properties)?,
                body: PutCallback {
                    callback: handler.as_ref().and_then(|handler| handler.data),
                    data: callback_data,
                },
            })
        });
    }
}

/// The properties for a copy; `None` (NULL) means those of the source.
///
/// # Safety
/// As for [`PutProperties::read`].
pub(super) unsafe fn given(
    properties: *const S3PutProperties,
) -> Result<Option<PutProperties>, Failure> {
    (!properties.is_null())
        // SAFETY: by the contract of this function.
        .then(|| unsafe { PutProperties::read(properties) })
        .transpose()
}

/// The destination of a copy, and the buffers of C for its result.
pub(super) struct Destination {
    pub(super) bucket: String,
    pub(super) key: String,
    last_modified: *mut i64,
    etag: *mut c_char,
    etag_size: usize,
}

impl Destination {
    /// Reads the destination of a copy of `source`. A NULL bucket or key means that of the source.
    /// Initialises the results as if nothing was copied.
    ///
    /// # Safety
    /// Texts and buffers of C.
    pub(super) unsafe fn read(
        source: &Target,
        bucket: *const c_char,
        key: *const c_char,
        last_modified: *mut i64,
        etag_size: c_int,
        etag: *mut c_char,
    ) -> Result<Self, Failure> {
        let etag_size = usize::try_from(etag_size).unwrap_or(0);
        // SAFETY: by the contract of this function.
        unsafe {
            if let Some(time) = last_modified.as_mut() {
                *time = -1;
            }
            copy_out(b"", etag, etag_size);
            Ok(Self {
                bucket: if bucket.is_null() {
                    source.bucket.clone()
                } else {
                    arguments::bucket_name(bucket, S3_URI_STYLE_PATH)?
                },
                key: if key.is_null() {
                    source.key.clone()
                } else {
                    arguments::key(key)?
                },
                last_modified,
                etag,
                etag_size,
            })
        }
    }

    /// Writes the result of the copy, then calls the properties callback.
    pub(super) fn report(&self, copied: &Copied, callbacks: &Callbacks) -> Result<(), Failure> {
        // SAFETY: the buffers come from C, which keeps them until completion.
        unsafe {
            if let Some(time) = self.last_modified.as_mut() {
                *time = copied.last_modified;
            }
            copy_out(copied.etag.as_bytes(), self.etag, self.etag_size);
        }
        callbacks.no_properties()
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_copy_object(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    destination_bucket: *const c_char,
    destination_key: *const c_char,
    put_properties: *const S3PutProperties,
    last_modified_return: *mut i64,
    etag_return_size: c_int,
    etag_return: *mut c_char,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
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
            Ok(move |callbacks: &Callbacks| {
                let copied = object::copy(source, (&to.bucket, &to.key), given)?;
                to.report(&copied, callbacks)
            })
        });
    }
}

/// The tags of a condition. An empty list means `*`; tags that no store could have issued are skipped.
unsafe fn tags(text: *const c_char) -> Option<Vec<ETag>> {
    // SAFETY: a text of C.
    let text = std::str::from_utf8(unsafe { bytes(text) }?).unwrap_or("?");
    if text.trim() == "*" {
        return Some(Vec::new());
    }
    Some(
        text.split(',')
            .filter_map(|tag| tag.trim().parse().ok())
            .collect(),
    )
}

/// Reads the conditions of a read; NULL means none.
///
/// # Safety
/// `given` is NULL or points to conditions of C.
unsafe fn conditions(given: *const S3GetConditions) -> Conditions {
    // SAFETY: by the contract of this function.
    let Some(given) = (unsafe { given.as_ref() }) else {
        return Conditions::default();
    };
    // SAFETY: by the contract of this function.
    let star = |text| unsafe { bytes(text) }.is_some_and(|text| text.trim_ascii() == b"*");
    // SAFETY: by the contract of this function.
    let (matching, not_matching) =
        unsafe { (tags(given.if_match_etag), tags(given.if_not_match_etag)) };
    let unknown = |tags: &Vec<ETag>, text| tags.is_empty() && !star(text);
    let never = matching
        .as_ref()
        .is_some_and(|tags| unknown(tags, given.if_match_etag));
    Conditions {
        never,
        read: ReadConditions {
            if_match: matching.filter(|_| !never),
            if_none_match: not_matching.filter(|tags| !unknown(tags, given.if_not_match_etag)),
            if_modified_since: clock::instant(given.if_modified_since),
            if_unmodified_since: clock::instant(given.if_not_modified_since),
        },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_get_object(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    get_conditions: *const S3GetConditions,
    start_byte: u64,
    byte_count: u64,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3GetObjectHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts, conditions and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.on_object(bucket_context, key, || {
            Ok(ObjectOperation::Get {
                conditions: conditions(get_conditions),
                span: Span {
                    start: start_byte,
                    count: byte_count,
                },
                on_data: handler.as_ref().and_then(|handler| handler.data),
            })
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_head_object(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.on_object(bucket_context, key, || Ok(ObjectOperation::Head));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_delete_object(
    bucket_context: *const S3BucketContext,
    key: *const c_char,
    request_context: *mut S3RequestContext,
    #[cfg(not(feature = "abi2"))] timeout_ms: c_int,
    handler: *const S3ResponseHandler,
    callback_data: *mut c_void,
) {
    // SAFETY: a handler, texts and contexts of C.
    unsafe {
        let caller = Caller::new(handler, callback_data, request_context, timeout_ms);
        caller.on_object(bucket_context, key, || Ok(ObjectOperation::Delete));
    }
}
