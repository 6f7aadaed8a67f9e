//! Object metadata: from request headers to the store and back.

use std::sync::atomic::Ordering::Relaxed;

use super::{Ctx, acl, grants, lock, sse};
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::respond::Head;
use crate::tags;
use crate::uri::Target;
use bucketload_store::{Headers as Stored, ObjectInfo, Tags};

/// Maximum bytes of user metadata, names and values together: S3's limit.
const MAX_USER_METADATA: usize = 2048;

/// Headers stored verbatim, each with the query parameter that overrides it in a GET.
const SYSTEM: [(Name, &str); 5] = [
    (Name::CacheControl, "response-cache-control"),
    (Name::ContentDisposition, "response-content-disposition"),
    (Name::ContentEncoding, "response-content-encoding"),
    (Name::ContentLanguage, "response-content-language"),
    (Name::Expires, "response-expires"),
];

/// What the names of Amazon's headers begin with.
pub(crate) const AMAZON: &str = "x-amz-";

/// Content type of objects stored without one, as in S3.
const DEFAULT_TYPE: &str = "binary/octet-stream";

/// Collects the metadata in the request's headers.
///
/// # Errors
/// `MetadataTooLarge`, `InvalidStorageClass`, `InvalidArgument` for text that is not UTF-8.
pub(crate) fn collect(headers: &Headers<'_, '_>) -> S3Result<bucketload_store::Headers> {
    let mut all = bucketload_store::Headers {
        content_type: headers.text(Name::ContentType)?.map(str::to_owned),
        ..bucketload_store::Headers::default()
    };
    for (name, _) in SYSTEM {
        let Some(value) = headers.text(name)? else {
            continue;
        };
        let value = if name == Name::ContentEncoding {
            without_aws_chunked(value)
        } else {
            value.to_owned()
        };
        if !value.is_empty() {
            all.system.push((name.text().to_owned(), value));
        }
    }
    all.set_storage_class(storage_class(headers)?);
    sse::collect(headers, &mut all)?;
    if headers.has_user_metadata {
        let mut bytes = 0;
        for (name, value) in headers.user_metadata() {
            let value = String::from_utf8(value.to_vec()).map_err(|_| {
                S3Error::new(
                    Code::InvalidArgument,
                    format!("The metadata {name} is not UTF-8."),
                )
            })?;
            bytes += name.len() + value.len();
            if bytes > MAX_USER_METADATA {
                return Err(Code::MetadataTooLarge.into());
            }
            // A repeated header counts as one header with both values.
            match all.user.iter_mut().find(|(other, _)| *other == name) {
                Some((_, first)) => *first = format!("{first},{value}"),
                None => all.user.push((name, value)),
            }
        }
    }
    Ok(all)
}

/// The headers of a new object: those that the request gives it, its lock, and the bucket's default
/// encryption.
///
/// # Errors
/// As [`collect`], and for an invalid lock.
pub(crate) fn of_new(ctx: &Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Stored> {
    let mut stored = collect(headers)?;
    lock::collect(ctx, headers, &mut stored)?;
    if let Some(asked) = grants::from_headers(headers)? {
        acl::check(ctx, &asked)?;
        stored.set(Name::Acl.text(), asked.list);
    }
    // Asked only if there is such a bucket, because this is the path of every write.
    if ctx.server.default_encryption.load(Relaxed) {
        sse::by_default(ctx, &mut stored)?;
    }
    Ok(stored)
}

/// `value` without the `aws-chunked` coding, which is part of the transfer, not of the object.
fn without_aws_chunked(value: &str) -> String {
    let keep = |coding: &&str| !coding.eq_ignore_ascii_case("aws-chunked") && !coding.is_empty();
    value
        .split(',')
        .map(str::trim)
        .filter(keep)
        .collect::<Vec<_>>()
        .join(",")
}

/// Name of the standard storage class, in which objects are that name no other.
pub(crate) const STANDARD: &str = "STANDARD";

/// The storage class that the request names; `None` is the standard one.
///
/// # Errors
/// `InvalidStorageClass`.
pub(crate) fn storage_class(headers: &Headers<'_, '_>) -> S3Result<Option<String>> {
    match headers.bytes(Name::StorageClass) {
        None | Some(b"STANDARD") => Ok(None),
        Some(b"REDUCED_REDUNDANCY") => Ok(Some("REDUCED_REDUNDANCY".to_owned())),
        Some(_) => Err(Code::InvalidStorageClass.into()),
    }
}

/// Checks the storage options of an upload in parts.
///
/// # Errors
/// `InvalidStorageClass`, `NotImplemented`.
pub(crate) fn check_storage(headers: &Headers<'_, '_>) -> S3Result<()> {
    storage_class(headers)?;
    if headers.has(Name::WriteOffset) {
        return Err(S3Error::new(
            Code::NotImplemented,
            "Only a PUT of an object can have a write offset.",
        ));
    }
    Ok(())
}

/// The tags of the `x-amz-tagging` header.
///
/// # Errors
/// As [`tags::tagging_header`].
pub(crate) fn tags(headers: &Headers<'_, '_>) -> S3Result<Tags> {
    headers
        .text(Name::Tagging)?
        .map_or(Ok(Tags::new()), tags::tagging_header)
}

/// Writes an object's metadata into the head of a GET or HEAD response, with the overrides in the
/// query parameters. Includes the checksums if `checksums` is set.
pub(crate) fn write(head: &mut Head, target: &Target, info: &ObjectInfo, checksums: bool) {
    head.etag(info.etag)
        .modified(info.modified)
        .header("Accept-Ranges", b"bytes");
    let headers = &info.headers;
    let content_type = target.param("response-content-type");
    let content_type = content_type
        .or(headers.content_type.as_deref())
        .unwrap_or(DEFAULT_TYPE);
    head.header("Content-Type", content_type.as_bytes());
    for (name, parameter) in SYSTEM {
        let stored = || {
            headers
                .system
                .iter()
                .find(|(n, _)| n == name.text())
                .map(|(_, v)| v.as_str())
        };
        if let Some(value) = target.param(parameter).or_else(stored) {
            head.header(name.text(), value.as_bytes());
        }
    }
    // Storage class, version, encryption and lock.
    for (name, value) in &headers.system {
        if name.starts_with(AMAZON) && !matches!(&**name, Stored::LOCK_UNTIL | "x-amz-acl") {
            head.header(name, value.as_bytes());
        }
    }
    lock::write(head, headers);
    for (name, value) in &headers.user {
        head.header(&["x-amz-meta-", name].concat(), value.as_bytes());
    }
    if !info.tags.is_empty() {
        head.number("x-amz-tagging-count", info.tags.len() as u64);
    }
    if checksums {
        head.checksums(&info.checksums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transfer_coding_is_dropped() {
        assert_eq!(without_aws_chunked("aws-chunked"), "");
        assert_eq!(without_aws_chunked("aws-chunked, gzip"), "gzip");
        assert_eq!(without_aws_chunked("gzip,AWS-Chunked"), "gzip");
        assert_eq!(without_aws_chunked("br, gzip"), "br,gzip");
    }
}
