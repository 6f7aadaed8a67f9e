//! Entity tags of received bodies, and the checks of announced size and MD5.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use md5::{Digest, Md5};

use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::types::PutOptions;

/// Largest object in S3, in bytes.
pub(crate) const MAX_OBJECT_BYTES: u64 = 5 << 40;

/// How a store computes the entity tags of objects and parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EtagMode {
    /// The MD5 of the content, as S3 does by default. Costs about 1.5 ns per byte.
    #[default]
    Md5,
    /// Unique per version and independent of the content, marked so that clients do not mistake it for
    /// an MD5 ([`ETag::opaque`]). Costs nothing. A body whose MD5 the client announces has that MD5 as its tag.
    Opaque,
}

/// Makes tags for one store.
#[derive(Debug)]
pub(crate) struct Tagger {
    mode: EtagMode,
    seed: u64,
    next: AtomicU64,
}

impl Tagger {
    pub(crate) fn new(mode: EtagMode) -> Self {
        // A random seed makes the tags of two runs differ.
        Self {
            mode,
            seed: RandomState::new().hash_one(0),
            next: AtomicU64::new(0),
        }
    }

    fn opaque(&self) -> ETag {
        let mut digest = [0; 16];
        digest[..8].copy_from_slice(&self.seed.to_be_bytes());
        let version = self.next.fetch_add(1, Ordering::Relaxed);
        digest[8..].copy_from_slice(&version.to_be_bytes());
        ETag::opaque(digest)
    }

    /// The tag of content that the store has not seen; `None` if tags depend on the content.
    pub(crate) fn unseen(&self) -> Option<ETag> {
        (self.mode == EtagMode::Opaque).then(|| self.opaque())
    }

    /// Starts a body.
    pub(crate) fn body(&self, options: &PutOptions) -> BodyCheck {
        // An announced MD5 is checked anyway, so it can be the tag.
        let opaque = self.unseen().filter(|_| options.content_md5.is_none());
        BodyCheck {
            md5: opaque.is_none().then(Md5::new),
            opaque,
            options: *options,
            written: 0,
        }
    }
}

/// Counts and digests one body.
#[derive(Debug)]
pub(crate) struct BodyCheck {
    options: PutOptions,
    opaque: Option<ETag>,
    md5: Option<Md5>,
    written: u64,
}

impl BodyCheck {
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn update(&mut self, data: &[u8]) -> Result<()> {
        let written = self.written + data.len() as u64;
        if let Some(announced) = self.options.size
            && written > announced
        {
            return Err(StoreError::IncompleteBody { announced, written });
        }
        if written > MAX_OBJECT_BYTES {
            return Err(StoreError::EntityTooLarge {
                maximum: MAX_OBJECT_BYTES,
            });
        }
        self.written = written;
        if let Some(md5) = &mut self.md5 {
            md5.update(data);
        }
        Ok(())
    }

    /// Whether the bytes are needed for an MD5.
    pub(crate) const fn needs_bytes(&self) -> bool {
        self.md5.is_some()
    }

    /// Counts bytes that were copied unseen; the digest is then meaningless.
    pub(crate) const fn skip(&mut self, len: u64) {
        self.written += len;
    }

    /// Checks size and MD5; returns size and tag.
    pub(crate) fn finish(self) -> Result<(u64, ETag)> {
        if let Some(announced) = self.options.size
            && announced != self.written
        {
            return Err(StoreError::IncompleteBody {
                announced,
                written: self.written,
            });
        }
        let digest: Option<[u8; 16]> = self.md5.map(|md5| md5.finalize().into());
        if self.options.content_md5.is_some() && self.options.content_md5 != digest {
            return Err(StoreError::BadDigest);
        }
        let etag = self.opaque.or(digest.map(ETag::from_md5));
        Ok((self.written, etag.ok_or(StoreError::BadDigest)?))
    }
}
