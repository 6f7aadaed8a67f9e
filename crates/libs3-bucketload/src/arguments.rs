//! Arguments from C: texts, buckets and keys, put properties.
//!
//! Invalid arguments are detected before a request starts, as in libs3: the completion callback is called
//! at once, without details.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bucketload_store::{Commit, Headers, PutOptions};

use crate::abi::{
    S3_CANNED_ACL_BUCKET_OWNER_FULL_CONTROL, S3_CANNED_ACL_PRIVATE, S3_MAX_KEY_SIZE,
    S3_MAX_METADATA_SIZE, S3BucketContext, S3PutProperties,
};
use crate::backend::{Backend, OpenBackend};
use crate::reply::Failure;
use crate::status::Status;
use crate::{library, names};

/// Maximum length of a header value that a client may set, in bytes.
const MAX_HEADER_BYTES: usize = 1024;

/// A text from C; `None` for NULL.
///
/// # Safety
/// `text` is NULL or ends with a NUL, and stays unchanged while the result is used.
pub(crate) unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: by the contract of this function.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A copy of a text from C; empty for NULL.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn string(text: *const c_char) -> Result<String, Failure> {
    // SAFETY: by the contract of this function.
    let bytes = unsafe { bytes(text) }.unwrap_or_default();
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Failure::new(Status::ErrorInvalidURI, "a name is not UTF-8"))
}

/// A part of a query (prefix, marker, delimiter, id).
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn query(text: *const c_char) -> Result<String, Failure> {
    // SAFETY: by the contract of this function.
    let text = unsafe { string(text) }?;
    if text.len() > S3_MAX_KEY_SIZE {
        return Err(Status::QueryParamsTooLong.into());
    }
    Ok(text)
}

/// The store for `host`, with a timeout for each call; no timeout for 0 and below.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn backend(host: *const c_char, timeout_ms: c_int) -> OpenBackend {
    // SAFETY: by the contract of this function.
    let backend = library::backend(unsafe { bytes(host) })?;
    let limit = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0);
    let limited = limit.and_then(|ms| backend.within(Duration::from_millis(ms)));
    Ok(limited.unwrap_or(backend))
}

/// A bucket and its store.
pub(crate) struct Bucket {
    backend: OpenBackend,
    pub(crate) name: String,
}

/// An object and its store.
pub(crate) struct Target {
    backend: OpenBackend,
    pub(crate) bucket: String,
    pub(crate) key: String,
}

/// A checked bucket name.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn bucket_name(name: *const c_char, uri_style: c_int) -> Result<String, Failure> {
    // SAFETY: by the contract of this function.
    let bytes = unsafe { bytes(name) }.unwrap_or_default();
    names::check(bytes, uri_style)?;
    // Valid names are ASCII.
    String::from_utf8(bytes.to_vec()).map_err(|_| Status::ErrorInvalidURI.into())
}

/// A checked key.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn key(key: *const c_char) -> Result<String, Failure> {
    // SAFETY: by the contract of this function.
    let key = unsafe { string(key) }?;
    if key.is_empty() {
        return Err(Status::ErrorUserKeyMustBeSpecified.into());
    }
    if key.len() > S3_MAX_KEY_SIZE {
        return Err(Status::UriTooLong.into());
    }
    Ok(key)
}

impl Bucket {
    /// The bucket `name` at `host`.
    ///
    /// # Safety
    /// As for [`bytes`], for both texts.
    pub(crate) unsafe fn at(
        host: *const c_char,
        name: *const c_char,
        uri_style: c_int,
        timeout_ms: c_int,
    ) -> Result<Self, Failure> {
        // SAFETY: by the contract of this function.
        let name = unsafe { bucket_name(name, uri_style) }?;
        // SAFETY: by the contract of this function.
        let backend = unsafe { backend(host, timeout_ms) };
        Ok(Self { backend, name })
    }

    /// The bucket of a bucket context.
    ///
    /// # Safety
    /// `context` is NULL or points to a bucket context whose texts are as for [`bytes`].
    pub(crate) unsafe fn of(
        context: *const S3BucketContext,
        timeout_ms: c_int,
    ) -> Result<Self, Failure> {
        // SAFETY: by the contract of this function.
        let context = unsafe { context.as_ref() }.ok_or(Status::FailedToInitializeRequest)?;
        let (host, name) = (context.host_name, context.bucket_name);
        // SAFETY: by the contract of this function.
        unsafe { Self::at(host, name, context.uri_style, timeout_ms) }
    }

    /// The store, or the failure to find one for the host.
    pub(crate) fn backend(&self) -> Result<&Backend, Failure> {
        self.backend.as_deref().map_err(Failure::clone)
    }
}

impl Target {
    /// An object in the bucket of a bucket context.
    ///
    /// # Safety
    /// As for [`Bucket::of`]; `key` as for [`bytes`].
    pub(crate) unsafe fn of(
        context: *const S3BucketContext,
        key_text: *const c_char,
        timeout_ms: c_int,
    ) -> Result<Self, Failure> {
        // SAFETY: by the contract of this function.
        let bucket = unsafe { Bucket::of(context, timeout_ms) }?;
        Ok(Self {
            backend: bucket.backend,
            bucket: bucket.name,
            // SAFETY: by the contract of this function.
            key: unsafe { key(key_text) }?,
        })
    }

    /// The store, or the failure to find one for the host.
    pub(crate) fn backend(&self) -> Result<&Backend, Failure> {
        self.backend.as_deref().map_err(Failure::clone)
    }

    /// The store, unless there is none for the host.
    pub(crate) fn open_backend(&self) -> Option<&Arc<Backend>> {
        self.backend.as_ref().ok()
    }

    /// Bucket and key.
    pub(crate) fn name(&self) -> (&str, &str) {
        (&self.bucket, &self.key)
    }
}

/// The value of a header, trimmed. Refuses a value with control characters as `bad`, and a long one as
/// `too_long`.
///
/// # Safety
/// As for [`bytes`].
unsafe fn header(
    text: *const c_char,
    bad: Status,
    too_long: Status,
) -> Result<Option<String>, Failure> {
    // SAFETY: by the contract of this function.
    let Some(bytes) = (unsafe { bytes(text) }) else {
        return Ok(None);
    };
    let value = bytes.trim_ascii();
    if value.len() > MAX_HEADER_BYTES {
        return Err(too_long.into());
    }
    match std::str::from_utf8(value) {
        Ok(value) if !value.is_empty() && !value.chars().any(char::is_control) => {
            Ok(Some(value.to_owned()))
        }
        _ => Err(bad.into()),
    }
}

/// Checked put properties.
#[derive(Debug, Default)]
pub(crate) struct PutProperties {
    headers: Headers,
    content_md5: Option<[u8; 16]>,
    /// The reason to refuse the request: it asks for something that the store does not support.
    refused: Option<&'static str>,
}

impl PutProperties {
    /// Reads put properties; NULL means none.
    ///
    /// # Safety
    /// `properties` is NULL or points to properties whose texts are as for [`bytes`] and whose
    /// metadata has the stated number of entries.
    pub(crate) unsafe fn read(properties: *const S3PutProperties) -> Result<Self, Failure> {
        // SAFETY: by the contract of this function.
        let Some(given) = (unsafe { properties.as_ref() }) else {
            return Ok(Self::default());
        };
        let read = |text, bad, too_long| {
            // SAFETY: a text of the properties, by the contract of this function.
            unsafe { header(text, bad, too_long) }
        };
        let mut headers = Headers {
            content_type: read(
                given.content_type,
                Status::BadContentType,
                Status::ContentTypeTooLong,
            )?,
            ..Headers::default()
        };
        let mut system = |name: &str, value: Option<String>| {
            headers
                .system
                .extend(value.map(|value| (name.to_owned(), value)));
        };
        system(
            "cache-control",
            read(
                given.cache_control,
                Status::BadCacheControl,
                Status::CacheControlTooLong,
            )?,
        );
        system(
            "content-disposition",
            read(
                given.content_disposition_filename,
                Status::BadContentDispositionFilename,
                Status::ContentDispositionFilenameTooLong,
            )?
            .map(|name| format!("attachment; filename=\"{name}\"")),
        );
        system(
            "content-encoding",
            read(
                given.content_encoding,
                Status::BadContentEncoding,
                Status::ContentEncodingTooLong,
            )?,
        );
        if let Ok(expires) = u64::try_from(given.expires) {
            let text = bucketload_s3::date::http_date(expires);
            system("expires", Some(String::from_utf8_lossy(&text).into_owned()));
        }
        // SAFETY: by the contract of this function.
        headers.user = unsafe { metadata(given) }?;
        let md5 = read(given.md5, Status::BadMD5, Status::MD5TooLong)?;
        let content_md5 = match md5 {
            None => None,
            Some(text) => {
                let digest = base64::engine::general_purpose::STANDARD.decode(text);
                let digest = digest.ok().and_then(|digest| digest.try_into().ok());
                Some(digest.ok_or(Status::BadMD5)?)
            }
        };
        Ok(Self {
            headers,
            content_md5,
            refused: refused(given),
        })
    }

    /// Fails if the request asks for something that the store does not support.
    fn permitted(&self) -> Result<(), Failure> {
        match self.refused {
            None => Ok(()),
            Some(what) => Err(Failure::new(Status::ErrorNotImplemented, what)),
        }
    }

    /// The options for an object of `size` bytes.
    pub(crate) fn options(&self, size: u64) -> Result<PutOptions, Failure> {
        self.permitted()?;
        Ok(PutOptions {
            size: Some(size),
            content_md5: self.content_md5,
        })
    }

    /// Whether the client announced an MD5.
    pub(crate) const fn has_digest(&self) -> bool {
        self.content_md5.is_some()
    }

    /// The client's metadata about the content.
    pub(crate) fn into_headers(self) -> Result<Headers, Failure> {
        self.permitted()?;
        Ok(self.headers)
    }

    /// The metadata for committing the write.
    pub(crate) fn into_commit(self) -> Commit {
        Commit {
            headers: self.headers,
            ..Commit::default()
        }
    }
}

/// The reason to refuse a canned access control list, if any. File permissions alone decide who may read
/// the objects.
pub(crate) const fn refused_acl(canned_acl: c_int) -> Option<&'static str> {
    match canned_acl {
        S3_CANNED_ACL_PRIVATE | S3_CANNED_ACL_BUCKET_OWNER_FULL_CONTROL => None,
        _ => {
            Some("access control lists are not stored; the permissions of the store's files decide")
        }
    }
}

const fn refused(given: &S3PutProperties) -> Option<&'static str> {
    #[cfg(not(feature = "abi2"))]
    if given.appended != 0 {
        return Some("the store does not encrypt");
    }
    refused_acl(given.canned_acl)
}

/// User metadata: lower-case names and trimmed values.
///
/// # Safety
/// As for [`PutProperties::read`].
unsafe fn metadata(given: &S3PutProperties) -> Result<Vec<(String, String)>, Failure> {
    let count = usize::try_from(given.metadata_count).unwrap_or(0);
    if count == 0 || given.metadata.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: by the contract of this function.
    let given = unsafe { std::slice::from_raw_parts(given.metadata, count) };
    let mut all: Vec<(String, String)> = Vec::with_capacity(count);
    let mut total = 0;
    for pair in given {
        // SAFETY: by the contract of this function.
        let name = unsafe { bytes(pair.name) }.unwrap_or_default();
        // SAFETY: by the contract of this function.
        let value = unsafe { bytes(pair.value) }
            .unwrap_or_default()
            .trim_ascii();
        let token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
        let value = std::str::from_utf8(value).map_err(|_| Status::BadMetaData)?;
        if name.is_empty() || !name.iter().all(token) || value.chars().any(char::is_control) {
            return Err(Status::BadMetaData.into());
        }
        total += name.len() + value.len();
        if total > S3_MAX_METADATA_SIZE {
            return Err(Status::MetaDataHeadersTooLong.into());
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        // Repeated headers are joined, as in HTTP.
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = format!("{known},{value}"),
            None => all.push((name, value.to_owned())),
        }
    }
    Ok(all)
}
