//! Checksums of object content in the forms that Azure Blob Storage accepts. Computed before the
//! timed start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use md5::{Digest, Md5};

use crate::http::span::Span;

use super::config::ContentChecksum;

/// A value in base64, without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base64 {
    text: [u8; 44],
    len: usize,
}

impl Base64 {
    /// Encodes at most 32 bytes.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut text = [0; 44];
        // 32 bytes make 44 characters: the buffer is never too small.
        let len = STANDARD.encode_slice(bytes, &mut text).unwrap_or(0);
        Self { text, len }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

impl ContentChecksum {
    /// The checksum of `span`.
    pub(super) fn of(self, span: Span<'_>) -> Base64 {
        match self {
            Self::Md5 => {
                let mut hash = Md5::new();
                span.each(|bytes| hash.update(bytes));
                Base64::new(&hash.finalize())
            }
            Self::Crc64 => {
                let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme);
                span.each(|bytes| digest.update(bytes));
                // The least significant byte comes first, unlike in S3's header.
                Base64::new(&digest.finalize().to_le_bytes())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::payload::{Arena, PayloadKind};

    use super::{Base64, ContentChecksum, CrcAlgorithm, Span};

    #[test]
    fn the_checksum_matches_the_service() {
        // What the service answered to a Put Blob of these bytes, as recorded in the tests of the
        // public SDK for JavaScript (storage-blob, syncuploadfromurl).
        let value = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, b"Hello World");
        assert_eq!(
            Base64::new(&value.to_le_bytes()).as_bytes(),
            b"YeJLfssylmU="
        );
    }

    #[test]
    fn a_checksum_covers_exactly_its_span() {
        let arena = Arena::new(PayloadKind::Zeros, 0);
        let content = arena.content(0, 0, 0, 16);
        let span = Span {
            content: &content,
            offset: 3,
            len: 0,
        };
        // MD5 of nothing (RFC 1321, appendix A.5).
        assert_eq!(
            ContentChecksum::Md5.of(span).as_bytes(),
            b"1B2M2Y8AsgTpgAmY7PhCfg=="
        );
        assert_eq!(ContentChecksum::Crc64.of(span).as_bytes(), b"AAAAAAAAAAA=");
        let mut bytes = [0; 16];
        content.fill(0, &mut bytes);
        let sent = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &bytes);
        let whole = ContentChecksum::Crc64.of(Span::whole(&content));
        assert_eq!(whole, Base64::new(&sent.to_le_bytes()));
    }
}
