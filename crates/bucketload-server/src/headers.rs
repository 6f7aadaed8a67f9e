//! The headers of a request.
//!
//! httparse splits the head; [`Headers`] then records the position of each header that the server
//! knows, so handlers look headers up without scanning or allocating.

use super::error::{Code, S3Error, S3Result};

/// Maximum number of headers in one request.
pub(crate) const MAX_HEADERS: usize = 128;

/// Declares [`Name`] with the lower-case text of each header.
macro_rules! names {
    ($($variant:ident $text:literal,)*) => {
        /// A header that some handler reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Name { $($variant,)* }

        impl Name {
            const COUNT: usize = [$(Self::$variant,)*].len();

            /// The header called `lower` (in lower case).
            #[allow(non_upper_case_globals, reason = "the constants carry the variants' names")]
            fn of(lower: &[u8]) -> Option<Self> {
                $(const $variant: &[u8] = $text.as_bytes();)*
                match lower { $($variant => Some(Self::$variant),)* _ => None }
            }

            /// The header's name in lower case.
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

names! {
    AccessControlHeaders "access-control-request-headers",
    AccessControlMethod "access-control-request-method",
    Acl "x-amz-acl",
    AmzDate "x-amz-date",
    Authorization "authorization",
    BypassGovernance "x-amz-bypass-governance-retention",
    CacheControl "cache-control",
    ChecksumAlgorithm "x-amz-checksum-algorithm",
    ChecksumCrc32 "x-amz-checksum-crc32",
    ChecksumCrc32c "x-amz-checksum-crc32c",
    ChecksumCrc64nvme "x-amz-checksum-crc64nvme",
    ChecksumMode "x-amz-checksum-mode",
    ChecksumSha1 "x-amz-checksum-sha1",
    ChecksumSha256 "x-amz-checksum-sha256",
    ChecksumType "x-amz-checksum-type",
    Connection "connection",
    ContentDisposition "content-disposition",
    ContentEncoding "content-encoding",
    ContentLanguage "content-language",
    ContentLength "content-length",
    ContentMd5 "content-md5",
    ContentSha256 "x-amz-content-sha256",
    ContentType "content-type",
    CopySource "x-amz-copy-source",
    CopySourceIfMatch "x-amz-copy-source-if-match",
    CopySourceIfModifiedSince "x-amz-copy-source-if-modified-since",
    CopySourceIfNoneMatch "x-amz-copy-source-if-none-match",
    CopySourceIfUnmodifiedSince "x-amz-copy-source-if-unmodified-since",
    CopySourceRange "x-amz-copy-source-range",
    CopySseAlgorithm "x-amz-copy-source-server-side-encryption-customer-algorithm",
    CopySseKey "x-amz-copy-source-server-side-encryption-customer-key",
    CopySseKeyMd5 "x-amz-copy-source-server-side-encryption-customer-key-md5",
    Date "date",
    DecodedContentLength "x-amz-decoded-content-length",
    Expect "expect",
    Expires "expires",
    GrantFullControl "x-amz-grant-full-control",
    GrantRead "x-amz-grant-read",
    GrantReadAcp "x-amz-grant-read-acp",
    GrantWrite "x-amz-grant-write",
    GrantWriteAcp "x-amz-grant-write-acp",
    Host "host",
    IfMatch "if-match",
    IfMatchModified "x-amz-if-match-last-modified-time",
    IfMatchSize "x-amz-if-match-size",
    IfModifiedSince "if-modified-since",
    IfNoneMatch "if-none-match",
    IfUnmodifiedSince "if-unmodified-since",
    MaxParts "x-amz-max-parts",
    MetadataDirective "x-amz-metadata-directive",
    ObjectAttributes "x-amz-object-attributes",
    ObjectLock "x-amz-bucket-object-lock-enabled",
    ObjectLockMode "x-amz-object-lock-mode",
    ObjectLockLegalHold "x-amz-object-lock-legal-hold",
    ObjectLockUntil "x-amz-object-lock-retain-until-date",
    ObjectOwnership "x-amz-object-ownership",
    Origin "origin",
    PartNumberMarker "x-amz-part-number-marker",
    Range "range",
    SdkChecksumAlgorithm "x-amz-sdk-checksum-algorithm",
    SecurityToken "x-amz-security-token",
    ServerSideEncryption "x-amz-server-side-encryption",
    SnowballAutoExtract "x-amz-meta-snowball-auto-extract",
    SseCustomerAlgorithm "x-amz-server-side-encryption-customer-algorithm",
    SseCustomerKey "x-amz-server-side-encryption-customer-key",
    SseCustomerKeyMd5 "x-amz-server-side-encryption-customer-key-md5",
    SseKmsKeyId "x-amz-server-side-encryption-aws-kms-key-id",
    StorageClass "x-amz-storage-class",
    Tagging "x-amz-tagging",
    TaggingDirective "x-amz-tagging-directive",
    Trailer "x-amz-trailer",
    TransferEncoding "transfer-encoding",
    WriteOffset "x-amz-write-offset-bytes",
}

/// The parsed headers of one request, borrowed from the receive buffer.
#[derive(Debug)]
pub(crate) struct Headers<'h, 'b> {
    all: &'h [httparse::Header<'b>],
    /// Position + 1 of each [`Name`] in `all`; 0 if it is missing.
    at: [u8; Name::COUNT],
    /// Whether a header starts with `x-amz-meta-`.
    pub(crate) has_user_metadata: bool,
}

impl<'h, 'b> Headers<'h, 'b> {
    /// Indexes `all`.
    ///
    /// # Errors
    /// `InvalidRequest` if a header that must be unique is repeated.
    pub(crate) fn new(all: &'h [httparse::Header<'b>]) -> S3Result<Self> {
        let mut headers = Self {
            all,
            at: [0; Name::COUNT],
            has_user_metadata: false,
        };
        let mut lower = [0; 64];
        for (position, header) in all.iter().enumerate().take(MAX_HEADERS) {
            let name = header.name.as_bytes();
            let Some(lower) = lower.get_mut(..name.len()) else {
                continue;
            };
            for (low, byte) in lower.iter_mut().zip(name) {
                *low = byte.to_ascii_lowercase();
            }
            headers.has_user_metadata |= lower.starts_with(b"x-amz-meta-");
            let Some(name) = Name::of(lower) else {
                continue;
            };
            let slot = &mut headers.at[name as usize];
            if *slot == 0 {
                *slot = position as u8 + 1;
            } else if must_be_unique(name) {
                return Err(S3Error::new(
                    Code::InvalidRequest,
                    format!("The header {} is given more than once.", name.text()),
                ));
            }
        }
        Ok(headers)
    }

    /// Every header in the order of the request.
    pub(crate) fn all(&self) -> &'h [httparse::Header<'b>] {
        self.all
    }

    /// The value of `name` as sent, without surrounding white space.
    pub(crate) fn bytes(&self, name: Name) -> Option<&'b [u8]> {
        let position = usize::from(self.at[name as usize]).checked_sub(1)?;
        Some(self.all[position].value.trim_ascii())
    }

    /// Whether the request has the header `name`.
    pub(crate) fn has(&self, name: Name) -> bool {
        self.at[name as usize] != 0
    }

    /// Forgets the header `name`: from here on, the request lacks it.
    pub(crate) fn forget(&mut self, name: Name) {
        self.at[name as usize] = 0;
    }

    /// The value of `name`; `None` if it is missing or empty.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not UTF-8.
    pub(crate) fn text(&self, name: Name) -> S3Result<Option<&'b str>> {
        let Some(bytes) = self.bytes(name).filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(S3Error::new(
                Code::InvalidArgument,
                format!("The header {} is not UTF-8.", name.text()),
            )),
        }
    }

    /// The value of `name` as a number.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not a plain decimal number.
    pub(crate) fn number(&self, name: Name) -> S3Result<Option<u64>> {
        let Some(bytes) = self.bytes(name) else {
            return Ok(None);
        };
        match parse_u64(bytes) {
            Some(number) => Ok(Some(number)),
            None => Err(S3Error::new(
                Code::InvalidArgument,
                format!("The header {} is not a number.", name.text()),
            )),
        }
    }

    /// Whether the comma-separated list in `name` contains `token`, ignoring case. Several headers of that name are one
    /// list (RFC 9110, section 5.3).
    pub(crate) fn lists(&self, name: Name, token: &str) -> bool {
        let Some(first) = usize::from(self.at[name as usize]).checked_sub(1) else {
            return false;
        };
        let same = self.all[first..]
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name.text()));
        same.flat_map(|header| header.value.split(|&c| c == b','))
            .any(|t| t.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Names (in lower case) and values of the `x-amz-meta-` headers, without that prefix.
    pub(crate) fn user_metadata(&self) -> impl Iterator<Item = (String, &'b [u8])> {
        self.all.iter().filter_map(|header| {
            let name = header.name.to_ascii_lowercase();
            let name = name.strip_prefix("x-amz-meta-")?;
            Some((name.to_owned(), header.value.trim_ascii()))
        })
    }
}

/// Headers whose repetition could change the meaning of the request: framing, identity, content.
const fn must_be_unique(name: Name) -> bool {
    matches!(
        name,
        Name::Host
            | Name::ContentLength
            | Name::TransferEncoding
            | Name::Authorization
            | Name::AmzDate
            | Name::ContentSha256
            | Name::DecodedContentLength
            | Name::Range
            | Name::CopySource
    )
}

/// Reads a plain decimal number of at most 19 digits.
pub(crate) fn parse_u64(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 19 {
        return None;
    }
    bytes.iter().try_fold(0u64, |n, c| {
        c.is_ascii_digit()
            .then(|| n.wrapping_mul(10).wrapping_add(u64::from(c - b'0')))
    })
}

/// The raw headers of a test request.
#[cfg(test)]
pub(crate) fn list<'a>(headers: &'a [(&str, &str)]) -> Vec<httparse::Header<'a>> {
    headers
        .iter()
        .map(|(name, value)| httparse::Header {
            name,
            value: value.as_bytes(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &'static str, value: &'static [u8]) -> httparse::Header<'static> {
        httparse::Header { name, value }
    }

    #[test]
    fn headers_are_found_in_any_case() {
        let all = [
            header("HOST", b" h "),
            header("X-Amz-Meta-Colour", b"red"),
            header("Connection", b"keep-alive, Close"),
            header("content-length", b"12"),
            header("Range", b"\xff"),
            header("x-amz-object-attributes", b"ETag"),
            header("X-Amz-Object-Attributes", b"Checksum,ObjectSize"),
        ];
        let h = Headers::new(&all).unwrap();
        for token in ["ETag", "objectsize"] {
            assert!(h.lists(Name::ObjectAttributes, token));
        }
        assert!(!h.lists(Name::ObjectAttributes, "ObjectParts"));
        assert_eq!(h.bytes(Name::Host), Some(&b"h"[..]));
        assert_eq!(h.number(Name::ContentLength), Ok(Some(12)));
        assert!(h.lists(Name::Connection, "close"));
        assert!(!h.lists(Name::Connection, "clos"));
        assert!(h.has_user_metadata);
        assert_eq!(
            h.user_metadata().collect::<Vec<_>>(),
            [("colour".to_owned(), &b"red"[..])]
        );
        assert_eq!(h.text(Name::Range).unwrap_err().code, Code::InvalidArgument);
        assert_eq!(h.text(Name::Date), Ok(None));
    }

    #[test]
    fn framing_headers_must_not_repeat() {
        let all = [
            header("Content-Length", b"1"),
            header("content-length", b"2"),
        ];
        assert_eq!(Headers::new(&all).unwrap_err().code, Code::InvalidRequest);
        let all = [header("accept", b"1"), header("accept", b"2")];
        assert!(Headers::new(&all).is_ok());
    }

    #[test]
    fn numbers_are_strict() {
        assert_eq!(
            parse_u64(b"9223372036854775807"),
            Some(9_223_372_036_854_775_807)
        );
        for bad in [
            &b""[..],
            b"-1",
            b"+1",
            b"1 ",
            b"0x1",
            b"99999999999999999999",
        ] {
            assert_eq!(parse_u64(bad), None);
        }
    }
}
