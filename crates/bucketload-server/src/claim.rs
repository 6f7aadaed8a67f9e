//! The claims of a signed request: key, scope, date, signed headers, signature, and how the signature
//! covers the payload. This module only parses them; `sigv4` checks them.

use std::ops::Range;

use bucketload_s3::date;
use bucketload_s3::encode::parse_hex32;
use bucketload_s3::sigv4::{ALGORITHM, Hash};

use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};

/// How the signature covers the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadAuth {
    /// It does not.
    Unsigned,
    /// By the payload's SHA-256.
    Sha256(Hash),
    /// By a signature on each chunk of an `aws-chunked` body, and on its trailer if there is one.
    SignedChunks { trailer: bool },
    /// It does not; the body is `aws-chunked` with a trailer.
    UnsignedChunks,
}

/// The parsed signature of a request.
pub(super) struct Claim<'a> {
    pub(super) access_key: &'a str,
    /// `YYYYMMDD/region/s3/aws4_request`.
    pub(super) scope: &'a str,
    pub(super) date: &'a str,
    pub(super) signed_headers: &'a str,
    pub(super) signature: &'a str,
    pub(super) amz_date: &'a str,
    /// Lifetime of a presigned URL, in seconds.
    pub(super) expires: Option<u64>,
}

/// Splits `ACCESS-KEY/YYYYMMDD/REGION/s3/aws4_request` into key, scope and date.
pub(super) fn split_credential(credential: &str) -> Option<(&str, &str, &str)> {
    // The access key may contain slashes, so count from the right.
    let (at, _) = credential.rmatch_indices('/').nth(3)?;
    let scope = &credential[at + 1..];
    let date = scope
        .get(..8)
        .filter(|date| date.bytes().all(|c| c.is_ascii_digit()))?;
    (scope.as_bytes()[8] == b'/').then_some((&credential[..at], scope, date))
}

/// Length of a signature in hexadecimal digits.
const SIGNATURE: usize = 64;

/// Reads `Authorization` headers and caches the last one: until midnight, the headers of one client
/// differ only in the signature at their end.
#[derive(Debug, Default)]
pub(super) struct AuthorizationReader {
    /// The last header up to its signature.
    prefix: Vec<u8>,
    /// The positions of its parts.
    parts: Parts<Range<usize>>,
}

/// The parts of the header except the signature.
#[derive(Clone, Debug, Default)]
struct Parts<T> {
    access_key: T,
    scope: T,
    date: T,
    signed_headers: T,
}

impl AuthorizationReader {
    /// Reads the header `value`. `date_text` is the buffer for the date if only `Date` gives it.
    ///
    /// # Errors
    /// The S3 error for a malformed header.
    pub(super) fn read<'a>(
        &mut self,
        value: &'a str,
        headers: &Headers<'_, 'a>,
        date_text: &'a mut [u8; 16],
    ) -> S3Result<Claim<'a>> {
        let known = value.len() == self.prefix.len() + SIGNATURE
            && value.as_bytes().starts_with(&self.prefix);
        let (parts, signature) = if known {
            let part = |range: &Range<usize>| value.get(range.clone()).unwrap_or_default();
            let parts = Parts {
                access_key: part(&self.parts.access_key),
                scope: part(&self.parts.scope),
                date: part(&self.parts.date),
                signed_headers: part(&self.parts.signed_headers),
            };
            (parts, value.get(self.prefix.len()..).unwrap_or_default())
        } else {
            let (parts, signature) = parse_authorization(value)?;
            self.remember(value, &parts, signature);
            (parts, signature)
        };
        let amz_date = match headers.text(Name::AmzDate)? {
            Some(date) => date,
            None => http_date_as_amz(headers.bytes(Name::Date), date_text)?,
        };
        Ok(Claim {
            access_key: parts.access_key,
            scope: parts.scope,
            date: parts.date,
            signed_headers: parts.signed_headers,
            signature,
            amz_date,
            expires: None,
        })
    }

    fn remember(&mut self, value: &str, parts: &Parts<&str>, signature: &str) {
        self.prefix.clear();
        if signature.len() != SIGNATURE || !value.ends_with(signature) {
            return;
        }
        let end = value.len() - SIGNATURE;
        self.prefix.extend_from_slice(&value.as_bytes()[..end]);
        // Every part is a slice of `value`.
        let range = |part: &str| {
            let start = part.as_ptr() as usize - value.as_ptr() as usize;
            start..start + part.len()
        };
        self.parts = Parts {
            access_key: range(parts.access_key),
            scope: range(parts.scope),
            date: range(parts.date),
            signed_headers: range(parts.signed_headers),
        };
    }
}

/// Splits the header into its parts and the signature.
fn parse_authorization(value: &str) -> S3Result<(Parts<&str>, &str)> {
    let malformed = |text: &'static str| S3Error::new(Code::AuthorizationHeaderMalformed, text);
    let rest = value.strip_prefix(ALGORITHM).ok_or_else(|| {
        S3Error::new(
            Code::InvalidArgument,
            "Unsupported Authorization Type: only AWS4-HMAC-SHA256 is served.",
        )
    })?;
    let (mut credential, mut signed_headers, mut signature) = (None, None, None);
    for part in rest.split(',') {
        match part.trim().split_once('=') {
            Some(("Credential", value)) => credential = Some(value),
            Some(("SignedHeaders", value)) => signed_headers = Some(value),
            Some(("Signature", value)) => signature = Some(value),
            _ => return Err(malformed("The authorization header holds an unknown part.")),
        }
    }
    let (Some(credential), Some(signed_headers), Some(signature)) =
        (credential, signed_headers, signature)
    else {
        return Err(malformed(
            "The authorization header needs Credential, SignedHeaders and Signature.",
        ));
    };
    let (access_key, scope, date) = split_credential(credential).ok_or_else(|| {
        malformed("The credential must be ACCESS-KEY/YYYYMMDD/REGION/s3/aws4_request.")
    })?;
    let parts = Parts {
        access_key,
        scope,
        date,
        signed_headers,
    };
    Ok((parts, signature))
}

/// The `Date` header in the format of `x-amz-date`, for clients that send only `Date`.
fn http_date_as_amz<'a>(date: Option<&[u8]>, out: &'a mut [u8; 16]) -> S3Result<&'a str> {
    let missing = || {
        S3Error::new(
            Code::AccessDenied,
            "AWS authentication requires a valid Date or x-amz-date header.",
        )
    };
    *out = date::basic(date.and_then(date::parse_http).ok_or_else(missing)?);
    std::str::from_utf8(out).map_err(|_| missing())
}

/// Reads `x-amz-content-sha256`.
pub(super) fn payload_auth(value: Option<&[u8]>) -> S3Result<PayloadAuth> {
    Ok(match value {
        None | Some(b"UNSIGNED-PAYLOAD") => PayloadAuth::Unsigned,
        Some(b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD") => PayloadAuth::SignedChunks { trailer: false },
        Some(b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER") => PayloadAuth::SignedChunks { trailer: true },
        Some(b"STREAMING-UNSIGNED-PAYLOAD-TRAILER") => PayloadAuth::UnsignedChunks,
        Some(hex) => PayloadAuth::Sha256(parse_hex32(hex).ok_or_else(|| {
            S3Error::new(
                Code::InvalidArgument,
                "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, \
                 STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, STREAMING-UNSIGNED-PAYLOAD-TRAILER or a SHA-256 in lower-case hex.",
            )
        })?),
    })
}
