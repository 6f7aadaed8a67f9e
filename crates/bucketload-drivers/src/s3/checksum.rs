//! Checksums of object content in S3's format: base64 of the big-endian value, in a header or in the trailer of a
//! chunked body. Computed before the timed start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use md5::Md5;
use sha1::{Digest, Sha1};

use super::config::ChecksumAlgorithm;
use crate::http::span::Span;

impl ChecksumAlgorithm {
    /// Name of the header or trailer that carries the value.
    pub(crate) const fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    /// Name in `x-amz-checksum-algorithm`.
    pub(crate) const fn api_name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// Name of the element that carries a part's value.
    pub(crate) const fn element(self) -> &'static str {
        match self {
            Self::Crc32 => "ChecksumCRC32",
            Self::Crc32c => "ChecksumCRC32C",
            Self::Crc64Nvme => "ChecksumCRC64NVME",
            Self::Sha1 => "ChecksumSHA1",
            Self::Sha256 => "ChecksumSHA256",
        }
    }

    /// Length of the value in base64.
    pub(crate) const fn encoded_len(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 8,
            Self::Crc64Nvme => 12,
            Self::Sha1 => 28,
            Self::Sha256 => 44,
        }
    }

    /// The checksum of `span`.
    pub(crate) fn of(self, span: Span<'_>) -> Base64 {
        let crc = |algorithm| {
            let mut digest = crc_fast::Digest::new(algorithm);
            span.each(|bytes| digest.update(bytes));
            digest.finalize()
        };
        match self {
            Self::Crc32 => Base64::new(&(crc(CrcAlgorithm::Crc32IsoHdlc) as u32).to_be_bytes()),
            Self::Crc32c => Base64::new(&(crc(CrcAlgorithm::Crc32Iscsi) as u32).to_be_bytes()),
            Self::Crc64Nvme => Base64::new(&crc(CrcAlgorithm::Crc64Nvme).to_be_bytes()),
            Self::Sha1 => {
                let mut hash = Sha1::new();
                span.each(|bytes| hash.update(bytes));
                Base64::new(&hash.finalize())
            }
            Self::Sha256 => Base64::new(&span.sha256()),
        }
    }
}

/// A value in base64, without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base64 {
    text: [u8; 44],
    len: usize,
}

impl Base64 {
    /// Encodes at most 32 bytes.
    fn new(bytes: &[u8]) -> Self {
        let mut text = [0; 44];
        // 32 bytes become 44 characters, so the buffer is always large enough.
        let len = STANDARD.encode_slice(bytes, &mut text).unwrap_or(0);
        Self { text, len }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

/// The value of `Content-MD5` for a body in memory.
pub(crate) fn content_md5(body: &[u8]) -> Base64 {
    Base64::new(&Md5::digest(body))
}

#[cfg(test)]
mod tests {
    use bucketload_core::payload::{Arena, PayloadKind};

    use super::{Base64, ChecksumAlgorithm, Span, content_md5};

    fn text(value: Base64) -> String {
        String::from_utf8(value.as_bytes().to_vec()).unwrap()
    }

    /// The checksums of 32 zero bytes. Those of SHA-1 and SHA-256 come from another implementation.
    #[test]
    fn values_of_zeros() {
        let arena = Arena::new(PayloadKind::Zeros, 0);
        let content = arena.content(0, 0, 0, 32);
        let span = Span::whole(&content);
        // CRC-32C of 32 zero bytes is 0x8A9136AA (RFC 3720, appendix B.4).
        let want = Base64::new(&0x8a91_36aa_u32.to_be_bytes());
        assert_eq!(ChecksumAlgorithm::Crc32c.of(span), want);
        // CRC-32 of 32 zero bytes is 0x190A55AD.
        let want = Base64::new(&0x190a_55ad_u32.to_be_bytes());
        assert_eq!(ChecksumAlgorithm::Crc32.of(span), want);
        let sha1 = text(ChecksumAlgorithm::Sha1.of(span));
        assert_eq!(sha1, "3oqEe/+MND1puFOiFebud17y75Y=");
        let sha256 = text(ChecksumAlgorithm::Sha256.of(span));
        assert_eq!(sha256, "Zmh6rfhivXdsj8GLjp+OIAiXFIVu4jOzkCpZHQ1fKSU=");
    }

    #[test]
    fn crc64nvme_check_value() {
        // CRC-64/NVME of "123456789" is 0xAE8B14860A799888 (NVM Express specification).
        let value = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, b"123456789");
        assert_eq!(value, 0xae8b_1486_0a79_9888);
        assert_eq!(text(Base64::new(&value.to_be_bytes())), "rosUhgp5mIg=");
        assert_eq!(text(content_md5(b"")), "1B2M2Y8AsgTpgAmY7PhCfg==");
    }

    #[test]
    fn a_span_covers_exactly_its_bytes() {
        let arena = Arena::new(PayloadKind::Random, 5);
        let content = arena.content(0, 9, 0, 700_000);
        let mut whole = vec![0; 700_000];
        content.fill(0, &mut whole);
        for (offset, len) in [(0, 700_000), (262_140, 40), (100, 0), (699_999, 1)] {
            let mut seen = Vec::new();
            let span = Span {
                content: &content,
                offset,
                len,
            };
            span.each(|bytes| seen.extend_from_slice(bytes));
            assert_eq!(seen, &whole[offset as usize..(offset + len) as usize]);
            for algorithm in ChecksumAlgorithm::ALL {
                assert_eq!(algorithm.of(span).as_bytes().len(), algorithm.encoded_len());
            }
        }
    }
}
