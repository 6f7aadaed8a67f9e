//! AWS Signature Version 2: in the query string, where boto3 puts it for presigned URLs unless it is
//! configured for version 4, and in the header of old clients.
//!
//! Source: "Signing and authenticating REST requests", Amazon S3 developer guide. The signature is
//! HMAC-SHA1 over method, `Content-MD5`, `Content-Type`, date or expiry, the `x-amz-` headers and the
//! resource with its subresources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bucketload_s3::date;
use bucketload_s3::encode::push_key;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name, parse_u64};
use super::sigv4::KeyPair;
use super::uri::Target;

/// The parameters that are part of the signed resource, sorted.
const SUBRESOURCES: [&str; 33] = [
    "accelerate",
    "acl",
    "cors",
    "delete",
    "encryption",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "notification",
    "object-lock",
    "partNumber",
    "policy",
    "replication",
    "requestPayment",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "restore",
    "retention",
    "select",
    "select-type",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
];

/// Whether the request has the form of a URL presigned with version 2.
pub(crate) fn is_presigned(target: &Target) -> bool {
    target.has("AWSAccessKeyId") && target.has("Signature")
}

/// Verifies a URL presigned with version 2 at `now` (seconds since 1970).
///
/// # Errors
/// `InvalidAccessKeyId`, `SignatureDoesNotMatch`, or `AccessDenied` after its expiry.
pub(crate) fn verify(
    keys: &KeyPair,
    method: &str,
    target: &Target,
    headers: &Headers<'_, '_>,
    now: u64,
) -> S3Result<()> {
    let expires = target.param("Expires").unwrap_or_default();
    let until = parse_u64(expires.as_bytes()).ok_or_else(|| {
        S3Error::new(
            Code::AccessDenied,
            "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters.",
        )
    })?;
    if now > until {
        return Err(S3Error::new(Code::AccessDenied, "Request has expired."));
    }
    if target.param("AWSAccessKeyId") != Some(&keys.access_key) {
        return Err(Code::InvalidAccessKeyId.into());
    }
    let text = string_to_sign(method, target, headers, expires.as_bytes(), "");
    let claimed = target.param("Signature").unwrap_or_default();
    check(keys, &text, claimed)
}

/// Verifies the signature in the header `Authorization: AWS KEY:SIGNATURE`, of which `claim` is what
/// follows the scheme. Returns when it was made, in seconds since 1970.
///
/// # Errors
/// `AuthorizationHeaderMalformed`, `AccessDenied` without a date, `InvalidAccessKeyId`,
/// `SignatureDoesNotMatch`.
pub(crate) fn verify_header(
    keys: &KeyPair,
    claim: &str,
    method: &str,
    target: &Target,
    headers: &Headers<'_, '_>,
) -> S3Result<u64> {
    let (key, claimed) = claim.trim().rsplit_once(':').ok_or_else(|| {
        S3Error::new(
            Code::AuthorizationHeaderMalformed,
            "The authorization header must be AWS ACCESS-KEY:SIGNATURE.",
        )
    })?;
    // A date among the signed headers takes the place of `Date`.
    let (date, signed) = match headers.bytes(Name::AmzDate) {
        Some(date) => (Some(date), &b""[..]),
        None => {
            let date = headers.bytes(Name::Date);
            (date, date.unwrap_or_default())
        }
    };
    let time = date.and_then(|date| match date.strip_suffix(b"+0000") {
        // Old clients write GMT as an offset.
        Some(date) => date::parse_http(&[date, b"GMT"].concat()),
        None => date::parse_http(date).or_else(|| date::parse_basic(date)),
    });
    let time = time.ok_or_else(|| {
        S3Error::new(
            Code::AccessDenied,
            "AWS authentication requires a valid Date or x-amz-date header.",
        )
    })?;
    if key != keys.access_key {
        return Err(Code::InvalidAccessKeyId.into());
    }
    let checked = |end| {
        let text = string_to_sign(method, target, headers, signed, end);
        check(keys, &text, claimed)
    };
    // boto3 signs `/bucket/` where it sends `/bucket`.
    let shorter = target.key().is_empty() && !target.path().ends_with(b"/");
    match checked("") {
        Err(_) if shorter => checked("/"),
        outcome => outcome,
    }
    .map(|()| time)
}

/// Compares the signature of `text` with the claimed one.
fn check(keys: &KeyPair, text: &[u8], claimed: &str) -> S3Result<()> {
    let claimed = BASE64.decode(claimed).unwrap_or_default();
    let mut mac = Hmac::<Sha1>::new_from_slice(keys.secret_key.as_bytes())
        .map_err(|_| S3Error::from(Code::InternalError))?;
    mac.update(text);
    // `verify_slice` compares in constant time.
    mac.verify_slice(&claimed)
        .map_err(|_| Code::SignatureDoesNotMatch.into())
}

/// `end` is added to the path.
fn string_to_sign(
    method: &str,
    target: &Target,
    headers: &Headers<'_, '_>,
    date: &[u8],
    end: &str,
) -> Vec<u8> {
    let mut out = method.as_bytes().to_vec();
    for name in [Name::ContentMd5, Name::ContentType] {
        out.push(b'\n');
        out.extend_from_slice(headers.bytes(name).unwrap_or_default());
    }
    out.push(b'\n');
    out.extend_from_slice(date);
    out.push(b'\n');
    let mut signed: Vec<(String, &[u8])> = Vec::new();
    for header in headers.all() {
        let name = header.name.to_ascii_lowercase();
        if name.starts_with("x-amz-") {
            signed.push((name, header.value.trim_ascii()));
        }
    }
    signed.sort();
    let mut last = "";
    for (name, value) in &signed {
        if last == name {
            out.pop();
            out.push(b',');
        } else {
            out.extend_from_slice(name.as_bytes());
            out.push(b':');
        }
        out.extend_from_slice(value);
        out.push(b'\n');
        last = name;
    }
    if target.is_virtual_host() {
        out.push(b'/');
        out.extend_from_slice(target.bucket().as_bytes());
    }
    push_key(&mut out, target.path());
    out.extend_from_slice(end.as_bytes());
    let mut separator = b'?';
    for name in SUBRESOURCES {
        let Some(value) = target.param(name) else {
            continue;
        };
        out.push(separator);
        separator = b'&';
        out.extend_from_slice(name.as_bytes());
        if !value.is_empty() {
            out.push(b'=');
            out.extend_from_slice(value.as_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::list;

    /// The key pair of the examples in the Amazon S3 developer guide.
    fn keys() -> KeyPair {
        KeyPair {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        }
    }

    /// The host and URL of "Query string request authentication alternative".
    fn presigned(url: &str, now: u64) -> Result<(), Code> {
        let mut target = Target::default();
        target.parse(url, Some("johnsmith")).unwrap();
        assert!(is_presigned(&target));
        verify(&keys(), "GET", &target, &Headers::new(&[]).unwrap(), now).map_err(|e| e.code)
    }

    /// The examples of "Signing and authenticating REST requests".
    #[test]
    fn the_documented_headers_verify() {
        let verified = |method: &str, url: &str, all: &[(&str, &str)], claim: &str| {
            let mut target = Target::default();
            target.parse(url, Some("johnsmith")).unwrap();
            let all = list(all);
            let headers = Headers::new(&all).unwrap();
            let claim = ["AKIAIOSFODNN7EXAMPLE:", claim].concat();
            verify_header(&keys(), &claim, method, &target, &headers).map_err(|e| e.code)
        };
        let date = ("Date", "Tue, 27 Mar 2007 19:36:42 +0000");
        let get = "bWq2s1WEIj+Ydj0vQ697zp+IXMU=";
        let photo = "/photos/puppy.jpg";
        assert_eq!(verified("GET", photo, &[date], get), Ok(1_175_024_202));
        let put = [
            ("Content-Type", "image/jpeg"),
            ("Date", "Tue, 27 Mar 2007 21:15:45 +0000"),
        ];
        let signature = "MyyxeRY7whkBe+bq8fHCL/2kKUg=";
        assert!(verified("PUT", photo, &put, signature).is_ok());
        let acl = ("Date", "Tue, 27 Mar 2007 19:44:46 +0000");
        let signature = "c2WLPFtWHVgbEmeEG93a4cG37dM=";
        assert!(verified("GET", "/?acl", &[acl], signature).is_ok());
        // The same bucket by its path, signed with a slash at its end.
        let mut target = Target::default();
        target.parse("/johnsmith?acl", None).unwrap();
        let fields = [acl];
        let all = list(&fields);
        let headers = Headers::new(&all).unwrap();
        let claim = ["AKIAIOSFODNN7EXAMPLE:", signature].concat();
        assert!(verify_header(&keys(), &claim, "GET", &target, &headers).is_ok());
        for (method, all, claim, code) in [
            ("HEAD", &[date][..], get, Code::SignatureDoesNotMatch),
            ("GET", &[acl], get, Code::SignatureDoesNotMatch),
            ("GET", &[], get, Code::AccessDenied),
            ("GET", &[date], "x:y", Code::InvalidAccessKeyId),
        ] {
            assert_eq!(verified(method, photo, all, claim), Err(code), "{code:?}");
        }
    }

    #[test]
    fn the_documented_example_verifies() {
        let url = "/photos/puppy.jpg?AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620";
        assert_eq!(presigned(url, 1_175_139_620), Ok(()));
        for (url, now, code) in [
            (url.to_owned(), 1_175_139_621, Code::AccessDenied),
            (
                url.replace("puppy", "kitty"),
                0,
                Code::SignatureDoesNotMatch,
            ),
            (url.replace("9620", "9621"), 0, Code::SignatureDoesNotMatch),
            (format!("{url}&acl"), 0, Code::SignatureDoesNotMatch),
            (url.replace("AKIA", "AKIB"), 0, Code::InvalidAccessKeyId),
            (url.replace("&Expires", "&Expire"), 0, Code::AccessDenied),
        ] {
            assert_eq!(presigned(&url, now), Err(code), "{url}");
        }
    }

    #[test]
    fn subresources_are_sorted() {
        assert!(SUBRESOURCES.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
