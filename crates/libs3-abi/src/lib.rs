//! The C interface of libs3: structures, callbacks, functions and statuses, for the library that
//! implements it and for the driver that calls it.
//!
//! Written from tables of names, types and offsets; a C compiler on x86-64 (LP64) gave the sizes and
//! offsets. All declarations are those of version 4. Structures of version 2 lack the members that version 4
//! appended. Structures that C passes in therefore have a type parameter for these members, which is `()`
//! in version 2. Every callback may be NULL.
#![allow(
    missing_docs,
    reason = "the names are those of libs3, whose documentation explains them"
)]

mod functions;
mod status;

use std::ffi::{c_char, c_int, c_void};

pub use functions::*;
pub use status::{Status, Version};

/// Maximum length of a key, in bytes.
pub const S3_MAX_KEY_SIZE: usize = 1024;
/// Maximum bytes of metadata (names and values) of an object.
pub const S3_MAX_METADATA_SIZE: usize = 2048;
/// Maximum number of grants in an access control list.
pub const S3_MAX_ACL_GRANT_COUNT: usize = 100;
/// Size of the buffers for identities, names and addresses in access control lists, in bytes.
pub const S3_MAX_GRANTEE_SIZE: usize = 128;
/// Size of the buffer for an authenticated query string, in bytes.
pub const S3_MAX_AUTHENTICATED_QUERY_STRING_SIZE: usize = 3469;

pub const S3_INIT_ALL: c_int = 1;
pub const S3_PROTOCOL_HTTPS: c_int = 0;
pub const S3_PROTOCOL_HTTP: c_int = 1;
pub const S3_URI_STYLE_VIRTUAL_HOST: c_int = 0;
pub const S3_URI_STYLE_PATH: c_int = 1;
pub const S3_CANNED_ACL_PRIVATE: c_int = 0;
pub const S3_CANNED_ACL_BUCKET_OWNER_FULL_CONTROL: c_int = 4;

/// A request context, opaque to clients.
#[repr(C)]
#[derive(Debug)]
pub struct S3RequestContext {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct S3NameValue {
    pub name: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct S3ResponseProperties {
    pub request_id: *const c_char,
    pub request_id2: *const c_char,
    pub content_type: *const c_char,
    pub content_length: u64,
    pub server: *const c_char,
    pub etag: *const c_char,
    pub last_modified: i64,
    pub metadata_count: c_int,
    pub metadata: *const S3NameValue,
    pub uses_server_side_encryption: c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct S3AclGrant {
    pub grantee_type: c_int,
    /// An e-mail address, or an identity (128 bytes) and a display name (128 bytes).
    pub grantee: [c_char; 2 * S3_MAX_GRANTEE_SIZE],
    pub permission: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct S3BucketContext<Appended = TokenAndRegion> {
    pub host_name: *const c_char,
    pub bucket_name: *const c_char,
    pub protocol: c_int,
    pub uri_style: c_int,
    pub access_key_id: *const c_char,
    pub secret_access_key: *const c_char,
    pub appended: Appended,
}

/// The members that version 4 appended to [`S3BucketContext`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TokenAndRegion {
    pub security_token: *const c_char,
    pub auth_region: *const c_char,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct S3ListBucketContent {
    pub key: *const c_char,
    pub last_modified: i64,
    pub etag: *const c_char,
    pub size: u64,
    pub owner_id: *const c_char,
    pub owner_display_name: *const c_char,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct S3ListMultipartUpload {
    pub key: *const c_char,
    pub upload_id: *const c_char,
    pub initiator_id: *const c_char,
    pub initiator_display_name: *const c_char,
    pub owner_id: *const c_char,
    pub owner_display_name: *const c_char,
    pub storage_class: *const c_char,
    pub initiated: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct S3ListPart {
    pub etag: *const c_char,
    pub last_modified: i64,
    pub part_number: u64,
    pub size: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct S3PutProperties<Appended = c_char> {
    pub content_type: *const c_char,
    pub md5: *const c_char,
    pub cache_control: *const c_char,
    pub content_disposition_filename: *const c_char,
    pub content_encoding: *const c_char,
    pub expires: i64,
    pub canned_acl: c_int,
    pub metadata_count: c_int,
    pub metadata: *const S3NameValue,
    /// In version 4: whether the server should encrypt the object.
    pub appended: Appended,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct S3GetConditions {
    pub if_modified_since: i64,
    pub if_not_modified_since: i64,
    pub if_match_etag: *const c_char,
    pub if_not_match_etag: *const c_char,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct S3ErrorDetails {
    pub message: *const c_char,
    pub resource: *const c_char,
    pub further_details: *const c_char,
    pub extra_details_count: c_int,
    pub extra_details: *const S3NameValue,
}

pub type S3ResponsePropertiesCallback =
    unsafe extern "C" fn(*const S3ResponseProperties, *mut c_void) -> c_int;
pub type S3ResponseCompleteCallback =
    unsafe extern "C" fn(c_int, *const S3ErrorDetails, *mut c_void);
pub type S3ListServiceCallback =
    unsafe extern "C" fn(*const c_char, *const c_char, *const c_char, i64, *mut c_void) -> c_int;
pub type S3ListBucketCallback = unsafe extern "C" fn(
    c_int,
    *const c_char,
    c_int,
    *const S3ListBucketContent,
    c_int,
    *const *const c_char,
    *mut c_void,
) -> c_int;
pub type S3PutObjectDataCallback = unsafe extern "C" fn(c_int, *mut c_char, *mut c_void) -> c_int;
pub type S3GetObjectDataCallback = unsafe extern "C" fn(c_int, *const c_char, *mut c_void) -> c_int;
pub type S3MultipartInitialResponseCallback =
    unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
pub type S3MultipartCommitResponseCallback =
    unsafe extern "C" fn(*const c_char, *const c_char, *mut c_void) -> c_int;
pub type S3ListPartsResponseCallback = unsafe extern "C" fn(
    c_int,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
    c_int,
    c_int,
    *const S3ListPart,
    *mut c_void,
) -> c_int;
pub type S3ListMultipartUploadsResponseCallback = unsafe extern "C" fn(
    c_int,
    *const c_char,
    *const c_char,
    c_int,
    *const S3ListMultipartUpload,
    c_int,
    *const *const c_char,
    *mut c_void,
) -> c_int;
pub type S3SetupCurlCallback = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> c_int;

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3ResponseHandler {
    pub properties: Option<S3ResponsePropertiesCallback>,
    pub complete: Option<S3ResponseCompleteCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3ListServiceHandler {
    pub response: S3ResponseHandler,
    pub list_service: Option<S3ListServiceCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3ListBucketHandler {
    pub response: S3ResponseHandler,
    pub list_bucket: Option<S3ListBucketCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3PutObjectHandler {
    pub response: S3ResponseHandler,
    pub data: Option<S3PutObjectDataCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3GetObjectHandler {
    pub response: S3ResponseHandler,
    pub data: Option<S3GetObjectDataCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3MultipartInitialHandler {
    pub response: S3ResponseHandler,
    pub initial: Option<S3MultipartInitialResponseCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3MultipartCommitHandler {
    pub response: S3ResponseHandler,
    pub data: Option<S3PutObjectDataCallback>,
    pub commit: Option<S3MultipartCommitResponseCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3ListPartsHandler {
    pub response: S3ResponseHandler,
    pub list_parts: Option<S3ListPartsResponseCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3ListMultipartUploadsHandler {
    pub response: S3ResponseHandler,
    pub list_uploads: Option<S3ListMultipartUploadsResponseCallback>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct S3AbortMultipartUploadHandler {
    pub response: S3ResponseHandler,
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    /// Checks the offsets of all members in order, then the size.
    macro_rules! layout {
        ($type:ident { $($field:ident: $offset:expr),* $(,)? } $size:expr) => {
            $(assert_eq!(offset_of!($type, $field), $offset, stringify!($type.$field));)*
            assert_eq!(size_of::<$type>(), $size, stringify!($type));
        };
    }

    #[test]
    fn structures_have_the_layout_of_the_c_compiler() {
        layout!(S3NameValue { name: 0, value: 8 } 16);
        layout!(S3ResponseProperties {
            request_id: 0, request_id2: 8, content_type: 16, content_length: 24, server: 32,
            etag: 40, last_modified: 48, metadata_count: 56, metadata: 64,
            uses_server_side_encryption: 72,
        } 80);
        layout!(S3AclGrant { grantee_type: 0, grantee: 4, permission: 260 } 264);
        assert_eq!(align_of::<S3AclGrant>(), 4);
        layout!(S3BucketContext {
            host_name: 0, bucket_name: 8, protocol: 16, uri_style: 20, access_key_id: 24,
            secret_access_key: 32, appended: 40,
        } 56);
        layout!(TokenAndRegion { security_token: 0, auth_region: 8 } 16);
        layout!(S3ListBucketContent {
            key: 0, last_modified: 8, etag: 16, size: 24, owner_id: 32, owner_display_name: 40,
        } 48);
        layout!(S3ListMultipartUpload {
            key: 0, upload_id: 8, initiator_id: 16, initiator_display_name: 24, owner_id: 32,
            owner_display_name: 40, storage_class: 48, initiated: 56,
        } 64);
        layout!(S3ListPart { etag: 0, last_modified: 8, part_number: 16, size: 24 } 32);
        layout!(S3PutProperties {
            content_type: 0, md5: 8, cache_control: 16, content_disposition_filename: 24,
            content_encoding: 32, expires: 40, canned_acl: 48, metadata_count: 52, metadata: 56,
            appended: 64,
        } 72);
        layout!(S3GetConditions {
            if_modified_since: 0, if_not_modified_since: 8, if_match_etag: 16,
            if_not_match_etag: 24,
        } 32);
        layout!(S3ErrorDetails {
            message: 0, resource: 8, further_details: 16, extra_details_count: 24,
            extra_details: 32,
        } 40);
        layout!(S3ResponseHandler { properties: 0, complete: 8 } 16);
        layout!(S3ListServiceHandler { response: 0, list_service: 16 } 24);
        layout!(S3ListBucketHandler { response: 0, list_bucket: 16 } 24);
        layout!(S3PutObjectHandler { response: 0, data: 16 } 24);
        layout!(S3GetObjectHandler { response: 0, data: 16 } 24);
        layout!(S3MultipartInitialHandler { response: 0, initial: 16 } 24);
        layout!(S3MultipartCommitHandler { response: 0, data: 16, commit: 24 } 32);
        layout!(S3ListPartsHandler { response: 0, list_parts: 16 } 24);
        layout!(S3ListMultipartUploadsHandler { response: 0, list_uploads: 16 } 24);
        layout!(S3AbortMultipartUploadHandler { response: 0 } 16);
    }

    #[test]
    fn version_2_lacks_the_members_that_version_4_appended() {
        assert_eq!(size_of::<S3BucketContext<()>>(), 40);
        assert_eq!(size_of::<S3PutProperties<()>>(), 64);
    }
}
