//! Arguments of C: texts, buckets and keys, put properties, read conditions.
//!
//! What is wrong with them is found before a request begins, as libs3 does: the callback that
//! completes is made at once, without details.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bucketload_store::{Commit, Headers, PutOptions};

use crate::abi::{
    S3_CANNED_ACL_BUCKET_OWNER_FULL_CONTROL, S3_CANNED_ACL_PRIVATE, S3_MAX_KEY_SIZE,
    S3_MAX_METADATA_SIZE, S3BucketContext, S3PutProperties,
};
use crate::backend::Backend;
use crate::reply::Failure;
use crate::status::Status;
use crate::{library, names};

/// Longest value of a header that a client may set, in bytes.
const MAX_HEADER_BYTES: usize = 1024;

/// A text of C; `None` for NULL.
///
/// # Safety
/// `text` is NULL or ends with a NUL, and stays unchanged while the result is used.
pub(crate) unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: by the contract of this function.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A copy of a text of C; empty for NULL.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn string(text: *const c_char) -> Result<String, Failure> {
    // SAFETY: by the contract of this function.
    let bytes = unsafe { bytes(text) }.unwrap_or_default();
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Failure::new(Status::ErrorInvalidURI, "a name is not UTF-8"))
}

/// A part of a query (prefix, marker, delimiter, identity).
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

/// Where requests go. That there is nothing for a host is found out when they are performed.
pub(crate) type Where = Result<Arc<Backend>, Failure>;

/// The same with a limit on the time of each call; none for 0 and below.
pub(crate) fn within(backend: Where, timeout_ms: c_int) -> Where {
    let backend = backend?;
    let limit = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0);
    let limited = limit.and_then(|ms| backend.within(Duration::from_millis(ms)));
    Ok(limited.unwrap_or(backend))
}

/// A bucket, and where it is.
pub(crate) struct Bucket {
    pub(crate) backend: Where,
    pub(crate) name: String,
}

/// An object.
pub(crate) struct Target {
    pub(crate) backend: Where,
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
    // The rules admit ASCII only.
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
    /// The same with a limit on the time of each call.
    pub(crate) fn within(mut self, timeout_ms: c_int) -> Self {
        self.backend = within(self.backend, timeout_ms);
        self
    }

    /// The bucket `name` at `host`.
    ///
    /// # Safety
    /// As for [`bytes`], for both texts.
    pub(crate) unsafe fn at(
        host: *const c_char,
        name: *const c_char,
        uri_style: c_int,
    ) -> Result<Self, Failure> {
        // SAFETY: by the contract of this function.
        let name = unsafe { bucket_name(name, uri_style) }?;
        Ok(Self {
            // SAFETY: by the contract of this function.
            backend: library::backend(unsafe { bytes(host) }),
            name,
        })
    }

    /// The bucket of a bucket context.
    ///
    /// # Safety
    /// `context` is NULL or points to a bucket context whose texts are as for [`bytes`].
    pub(crate) unsafe fn of(context: *const S3BucketContext) -> Result<Self, Failure> {
        // SAFETY: by the contract of this function.
        let context = unsafe { context.as_ref() }.ok_or(Status::FailedToInitializeRequest)?;
        // SAFETY: by the contract of this function.
        unsafe { Self::at(context.host_name, context.bucket_name, context.uri_style) }
    }
}

impl Target {
    /// The same with a limit on the time of each call.
    pub(crate) fn within(mut self, timeout_ms: c_int) -> Self {
        self.backend = within(self.backend, timeout_ms);
        self
    }

    /// An object of the bucket of a bucket context.
    ///
    /// # Safety
    /// As for [`Bucket::of`]; `key` as for [`bytes`].
    pub(crate) unsafe fn of(
        context: *const S3BucketContext,
        key_text: *const c_char,
    ) -> Result<Self, Failure> {
        // SAFETY: by the contract of this function.
        let bucket = unsafe { Bucket::of(context) }?;
        Ok(Self {
            backend: bucket.backend,
            bucket: bucket.name,
            // SAFETY: by the contract of this function.
            key: unsafe { key(key_text) }?,
        })
    }
}

/// What statuses say about a header.
struct HeaderStatus {
    bad: Status,
    too_long: Status,
}

/// The value of a header: without blanks around it, and without control characters.
///
/// # Safety
/// As for [`bytes`].
unsafe fn header(text: *const c_char, status: &HeaderStatus) -> Result<Option<String>, Failure> {
    // SAFETY: by the contract of this function.
    let Some(bytes) = (unsafe { bytes(text) }) else {
        return Ok(None);
    };
    let value = bytes.trim_ascii();
    if value.len() > MAX_HEADER_BYTES {
        return Err(status.too_long.into());
    }
    match std::str::from_utf8(value) {
        Ok(value) if !value.is_empty() && !value.chars().any(char::is_control) => {
            Ok(Some(value.to_owned()))
        }
        _ => Err(status.bad.into()),
    }
}

/// Put properties, checked.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    headers: Headers,
    content_md5: Option<[u8; 16]>,
    /// Something is asked for that the store does not have.
    refused: Option<&'static str>,
}

impl Properties {
    /// Reads put properties; those of NULL are empty.
    ///
    /// # Safety
    /// `properties` is NULL or points to properties whose texts are as for [`bytes`] and whose
    /// metadata has the number of entries that it says.
    pub(crate) unsafe fn read(properties: *const S3PutProperties) -> Result<Self, Failure> {
        // SAFETY: by the contract of this function.
        let Some(given) = (unsafe { properties.as_ref() }) else {
            return Ok(Self::default());
        };
        let read = |text, bad, too_long| {
            // SAFETY: a text of the properties, by the contract of this function.
            unsafe { header(text, &HeaderStatus { bad, too_long }) }
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

    /// Fails when something is asked for that the store does not have.
    fn permitted(&self) -> Result<(), Failure> {
        match self.refused {
            None => Ok(()),
            Some(what) => Err(Failure::new(Status::ErrorNotImplemented, what)),
        }
    }

    /// What is known before the bytes of an object of `size` bytes.
    pub(crate) fn options(&self, size: u64) -> Result<PutOptions, Failure> {
        self.permitted()?;
        Ok(PutOptions {
            size: Some(size),
            content_md5: self.content_md5,
        })
    }

    /// Whether the bytes must have a digest that was given.
    pub(crate) const fn has_digest(&self) -> bool {
        self.content_md5.is_some()
    }

    /// What the client says about the content.
    pub(crate) fn into_headers(self) -> Result<Headers, Failure> {
        self.permitted()?;
        Ok(self.headers)
    }

    /// What the write is committed with.
    pub(crate) fn into_commit(self) -> Commit {
        Commit {
            headers: self.headers,
            ..Commit::default()
        }
    }
}

/// Why the access control that is asked for cannot be had: whoever may read the files may read the
/// objects, and nobody else.
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
/// As for [`Properties::read`].
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
        // HTTP joins repeated headers.
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = format!("{known},{value}"),
            None => all.push((name, value.to_owned())),
        }
    }
    Ok(all)
}
