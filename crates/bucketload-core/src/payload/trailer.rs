//! COSBench's integrity trailer (docs/spec/cosbench.md section 1.11): the last 40 bytes of an object are `!!!!`, the
//! MD5 of all bytes before them in hexadecimal, `!!!!`.
//!
//! An object thus proves its own integrity, regardless of when and by whom it was written. MD5 detects
//! damage, not tampering.

use md5::{Digest, Md5};

use super::Content;

/// Length of the trailer, bytes. Objects must be longer to have one.
pub const TRAILER_LEN: usize = 40;
/// What the trailer begins and ends with.
const MARK: &[u8; 4] = b"!!!!";
/// Bytes passed to the hash at a time, read from the object's own segments.
const STEP: usize = 256 * 1024;

/// The bytes of a trailer.
pub type Trailer = [u8; TRAILER_LEN];

fn trailer(hash: Md5) -> Trailer {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut out = [b'!'; TRAILER_LEN];
    let digits = out[MARK.len()..].chunks_exact_mut(2);
    for (pair, byte) in digits.zip(hash.finalize()) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    out
}

impl Content<'_> {
    /// The content's trailer; `None` if the content is too short for one. Reads all of the content: never
    /// call it in a timed window.
    #[must_use]
    pub fn trailer(&self) -> Option<Trailer> {
        let hashed = self.size.checked_sub(TRAILER_LEN as u64)?;
        if hashed == 0 {
            return None;
        }
        let mut hash = Md5::new();
        let mut at = 0;
        while at < hashed {
            let max = usize::try_from(hashed - at).unwrap_or(STEP).min(STEP);
            let segment = self.segment(at, max);
            hash.update(segment.as_bytes());
            at += segment.as_bytes().len() as u64;
        }
        Some(trailer(hash))
    }
}

/// Result of a trailer check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailerStatus {
    /// There is no trailer.
    None,
    /// The preceding bytes match the checksum.
    Valid,
    /// The preceding bytes do not match.
    Invalid,
}

/// Consumes an object piece by piece and checks it against its trailer. Keeps 40 bytes.
#[derive(Clone, Debug)]
pub struct TrailerCheck {
    hash: Md5,
    /// The last bytes so far, which may be the trailer.
    held: Trailer,
    len: usize,
}

impl Default for TrailerCheck {
    fn default() -> Self {
        Self {
            hash: Md5::new(),
            held: [0; TRAILER_LEN],
            len: 0,
        }
    }
}

impl TrailerCheck {
    /// Feeds the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let past = (self.len + bytes.len()).saturating_sub(TRAILER_LEN);
        // Bytes that cannot be part of the trailer, oldest first.
        let held = past.min(self.len);
        self.hash.update(&self.held[..held]);
        self.held.copy_within(held..self.len, 0);
        self.len -= held;
        let (hashed, rest) = bytes.split_at(past - held);
        self.hash.update(hashed);
        self.held[self.len..self.len + rest.len()].copy_from_slice(rest);
        self.len += rest.len();
    }

    /// Returns the result for everything fed so far, and starts over.
    pub fn finish(&mut self) -> TrailerStatus {
        let Self { hash, held, len } = std::mem::take(self);
        if len < TRAILER_LEN || !held.starts_with(MARK) {
            return TrailerStatus::None;
        }
        match trailer(hash) == held {
            true => TrailerStatus::Valid,
            false => TrailerStatus::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{TRAILER_LEN, TrailerCheck, TrailerStatus};
    use crate::payload::{Arena, PayloadKind};

    /// RFC 1321: the MD5 of "message digest".
    #[test]
    fn the_form_is_cosbenchs() {
        let object = b"message digest!!!!f96b697d7cb7938d525a2f31aaf161d0!!!!";
        let mut check = TrailerCheck::default();
        check.feed(object);
        assert_eq!(check.finish(), TrailerStatus::Valid);
        check.feed(&object[1..]);
        assert_eq!(check.finish(), TrailerStatus::Invalid);
        check.feed(&object[..object.len() - 1]);
        assert_eq!(check.finish(), TrailerStatus::None);
        assert_eq!(check.finish(), TrailerStatus::None);
    }

    #[test]
    fn short_objects_have_none() {
        let arena = Arena::new(PayloadKind::Random, 5);
        for size in [0, 1, 39, 40] {
            assert_eq!(arena.content(0, 1, 0, size).trailer(), None, "{size}");
        }
        assert!(arena.content(0, 1, 0, 41).trailer().is_some());
    }

    proptest! {
        #[test]
        fn an_object_with_a_trailer_is_whole_until_a_byte_changes(
            size in 41u64..700_000, zeros in any::<bool>(), cuts in prop::collection::vec(0.0f64..1.0, 0..6),
            flip in 0.0f64..1.0,
        ) {
            let kind = if zeros { PayloadKind::Zeros } else { PayloadKind::Random };
            let arena = Arena::new(kind, 5);
            let content = arena.content(0, 9, 0, size);
            let trailer = content.trailer().unwrap();
            let content = content.with_trailer(&trailer);
            let mut whole = vec![0; size as usize];
            prop_assert_eq!(content.fill(0, &mut whole), size as usize);
            prop_assert_eq!(&whole[size as usize - TRAILER_LEN..], &trailer[..]);
            prop_assert_eq!(content.verify(0, &whole), Ok(()));
            let mut cuts: Vec<usize> = cuts.iter().map(|c| (c * size as f64) as usize).collect();
            cuts.extend([0, size as usize]);
            cuts.sort_unstable();
            let judge = |whole: &[u8]| {
                let mut check = TrailerCheck::default();
                cuts.windows(2).for_each(|cut| check.feed(&whole[cut[0]..cut[1]]));
                check.finish()
            };
            prop_assert_eq!(judge(&whole), TrailerStatus::Valid);
            let at = ((flip * size as f64) as usize).min(whole.len() - 1);
            whole[at] ^= 1;
            prop_assert_ne!(judge(&whole), TrailerStatus::Valid);
            prop_assert_eq!(content.verify(0, &whole), Err(at as u64));
        }
    }
}
