//! ListObjects (V1 and V2) and ListObjectVersions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use super::{Ctx, metadata, version_id};
use crate::checksum;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::parse_u64;
use crate::respond::Body;
use crate::router::Operation;
use crate::uri::Target;
use crate::xml::Doc;
use bucketload_store::{ListEntry, ListRequest, ListVersionsRequest, Listing};

/// Maximum number of keys on a page: S3's limit.
const MAX_KEYS: u64 = 1000;

/// The parameters that all listings share.
struct Page<'a> {
    prefix: &'a str,
    delimiter: &'a str,
    max_keys: u64,
    url: bool,
}

impl<'a> Page<'a> {
    fn of(target: &'a Target) -> S3Result<Self> {
        Ok(Self {
            prefix: target.param("prefix").unwrap_or_default(),
            delimiter: target.param("delimiter").unwrap_or_default(),
            max_keys: limit(target, "max-keys")?,
            url: wants_url(target)?,
        })
    }

    fn fetch(
        &self,
        ctx: &Ctx<'_>,
        operation: Operation,
        start_after: &'a str,
    ) -> S3Result<Listing> {
        ctx.page(operation, &self.request(start_after))
    }

    const fn request(&self, start_after: &'a str) -> ListRequest<'a> {
        ListRequest {
            prefix: self.prefix,
            delimiter: self.delimiter,
            start_after,
            max_keys: self.max_keys as usize,
        }
    }

    /// Writes the elements at the start of every listing.
    fn header(&self, doc: &mut Doc<'_>, bucket: &str, truncated: bool) {
        doc.text("Name", bucket)
            .key("Prefix", self.prefix, self.url);
        if !self.delimiter.is_empty() {
            doc.key("Delimiter", self.delimiter, self.url);
        }
        doc.number("MaxKeys", self.max_keys);
        if self.url {
            doc.text("EncodingType", "url");
        }
        doc.flag("IsTruncated", truncated);
    }

    fn entry(&self, doc: &mut Doc<'_>, entry: &ListEntry, owner: bool) {
        doc.key("Key", &entry.key, self.url)
            .time("LastModified", entry.modified);
        doc.etag(entry.etag.text().as_str());
        for algorithm in &entry.checksums {
            doc.text("ChecksumAlgorithm", checksum::name(*algorithm));
        }
        let class = entry.storage_class.as_deref();
        doc.number("Size", entry.size)
            .text("StorageClass", class.unwrap_or(metadata::STANDARD));
        if owner {
            doc.owner("Owner");
        }
    }

    fn contents(&self, doc: &mut Doc<'_>, listing: &Listing, owner: bool) {
        for entry in &listing.objects {
            doc.open("Contents");
            self.entry(doc, entry, owner);
            doc.close("Contents");
        }
        common_prefixes(doc, &listing.common_prefixes, self.url);
    }
}

pub(crate) fn common_prefixes(doc: &mut Doc<'_>, prefixes: &[String], url: bool) {
    for prefix in prefixes {
        doc.open("CommonPrefixes")
            .key("Prefix", prefix, url)
            .close("CommonPrefixes");
    }
}

/// Reads a parameter that limits a page. It is 1000 if missing or larger than that.
///
/// # Errors
/// `InvalidArgument` if it is not a number.
pub(crate) fn limit(target: &Target, name: &str) -> S3Result<u64> {
    match target.param(name) {
        None | Some("") => Ok(MAX_KEYS),
        Some(text) => match parse_u64(text.as_bytes()) {
            Some(n) => Ok(n.min(MAX_KEYS)),
            None => Err(S3Error::new(
                Code::InvalidArgument,
                format!("Provided {name} not an integer or within integer range."),
            )),
        },
    }
}

/// Whether the request asks for percent-encoded keys.
///
/// # Errors
/// `InvalidArgument` for an unknown encoding.
pub(crate) fn wants_url(target: &Target) -> S3Result<bool> {
    match target.param("encoding-type") {
        None | Some("") => Ok(false),
        Some("url") => Ok(true),
        Some(_) => Err(S3Error::new(
            Code::InvalidArgument,
            "Invalid Encoding Method specified in Request.",
        )),
    }
}

/// The continuation token for the page after `key`.
pub(crate) fn encode_token(key: &str) -> String {
    BASE64.encode(key)
}

/// The key in a continuation token.
///
/// # Errors
/// `InvalidArgument` for a token that this server did not issue.
pub(crate) fn decode_token(token: &str) -> S3Result<String> {
    let bytes = BASE64.decode(token).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(incorrect_token)
}

fn incorrect_token() -> S3Error {
    S3Error::new(
        Code::InvalidArgument,
        "The continuation token provided is incorrect.",
    )
}

/// ListObjectsV2.
pub(crate) fn v2(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let target = ctx.target;
    let page = Page::of(target)?;
    let start_after = target.param("start-after").unwrap_or_default();
    let token = target.param("continuation-token");
    let after = match token {
        Some("") => return Err(incorrect_token()),
        Some(token) => decode_token(token)?,
        None => start_after.to_owned(),
    };
    let owner = target
        .param("fetch-owner")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let listing = page.fetch(ctx, Operation::List, &after)?;
    let mut doc = ctx.xml("ListBucketResult");
    page.header(&mut doc, target.bucket(), listing.next.is_some());
    doc.number(
        "KeyCount",
        (listing.objects.len() + listing.common_prefixes.len()) as u64,
    );
    if let Some(token) = token {
        doc.text("ContinuationToken", token);
    }
    if let Some(next) = &listing.next {
        doc.text("NextContinuationToken", &encode_token(next));
    }
    if !start_after.is_empty() {
        doc.key("StartAfter", start_after, page.url);
    }
    page.contents(&mut doc, &listing, owner);
    Ok(doc.finish())
}

/// ListObjects.
pub(crate) fn v1(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let target = ctx.target;
    let page = Page::of(target)?;
    let marker = target.param("marker").unwrap_or_default();
    let listing = page.fetch(ctx, Operation::ListV1, marker)?;
    let mut doc = ctx.xml("ListBucketResult");
    page.header(&mut doc, target.bucket(), listing.next.is_some());
    doc.key("Marker", marker, page.url);
    if let Some(next) = &listing.next {
        doc.key("NextMarker", next, page.url);
    }
    page.contents(&mut doc, &listing, true);
    Ok(doc.finish())
}

/// ListObjectVersions.
pub(crate) fn versions(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let target = ctx.target;
    let page = Page::of(target)?;
    let marker = target.param("key-marker").unwrap_or_default();
    let after = target.param("version-id-marker").unwrap_or_default();
    if marker.is_empty() && !after.is_empty() {
        return Err(S3Error::new(
            Code::InvalidArgument,
            "A version-id marker cannot be specified without a key marker.",
        ));
    }
    let request = ListVersionsRequest {
        keys: page.request(marker),
        after: match after {
            "" => None,
            id => Some(version_id(id).map_err(|_| {
                S3Error::new(Code::InvalidArgument, "Invalid version id specified.")
            })?),
        },
    };
    let listing = ctx.version_page(&request)?;
    let mut doc = ctx.xml("ListVersionsResult");
    page.header(&mut doc, target.bucket(), listing.next.is_some());
    doc.key("KeyMarker", marker, page.url)
        .text("VersionIdMarker", after);
    if let Some((key, version)) = &listing.next {
        doc.key("NextKeyMarker", key, page.url);
        if let Some(version) = version {
            doc.text("NextVersionIdMarker", &version.to_string());
        }
    }
    for version in &listing.versions {
        let element = if version.marker {
            "DeleteMarker"
        } else {
            "Version"
        };
        doc.open(element)
            .text("VersionId", &version.version.to_string())
            .flag("IsLatest", version.latest);
        if version.marker {
            doc.key("Key", &version.entry.key, page.url)
                .time("LastModified", version.entry.modified)
                .owner("Owner");
        } else {
            page.entry(&mut doc, &version.entry, true);
        }
        doc.close(element);
    }
    common_prefixes(&mut doc, &listing.common_prefixes, page.url);
    Ok(doc.finish())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{decode_token, encode_token};

    proptest! {
        #[test]
        fn tokens_round_trip(key in "\\PC{0,50}", other in "\\PC{0,20}") {
            prop_assert_eq!(decode_token(&encode_token(&key)).unwrap(), key);
            let _ = decode_token(&other);
        }
    }
}
