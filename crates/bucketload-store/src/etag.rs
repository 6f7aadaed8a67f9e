//! Entity tags: 16 bytes and a part count, formatted as in S3 without quotes: `hex` for an object
//! written in one piece, `hex-N` for one assembled from N parts.

use std::fmt;
use std::str::FromStr;

use md5::{Digest, Md5};

/// An entity tag. Equal tags of one key mean equal content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ETag {
    digest: [u8; 16],
    parts: u32,
}

/// The text is not an entity tag that a store could have issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an entity tag of this store")]
pub struct ParseETagError;

impl ETag {
    /// The tag of an object whose MD5 is `digest`.
    #[must_use]
    pub const fn from_md5(digest: [u8; 16]) -> Self {
        Self { digest, parts: 0 }
    }

    /// A tag that is not an MD5 of the content. It has the suffix `-1`, which tells clients not to
    /// compare it with an MD5.
    #[must_use]
    pub const fn opaque(digest: [u8; 16]) -> Self {
        Self { digest, parts: 1 }
    }

    /// The tag of an object assembled from parts: the MD5 of the parts' digests, and their number.
    ///
    /// # Panics
    /// If there are 2^32 parts or more.
    #[must_use]
    pub fn of_parts(parts: &[Self]) -> Self {
        let mut md5 = Md5::new();
        for part in parts {
            md5.update(part.digest);
        }
        Self {
            digest: md5.finalize().into(),
            parts: u32::try_from(parts.len()).expect("fewer than 2^32 parts"),
        }
    }

    /// The tag of the object with this tag after a body with the tag `more` was appended to it, which
    /// makes `parts` parts. It is as unique as the tags of both, and costs no look at the content.
    #[must_use]
    pub(crate) fn extended(self, more: Self, parts: u32) -> Self {
        Self {
            parts,
            ..Self::of_parts(&[self, more])
        }
    }

    /// The MD5 of the content, if the tag is one.
    #[must_use]
    pub const fn md5(&self) -> Option<[u8; 16]> {
        if self.parts == 0 {
            Some(self.digest)
        } else {
            None
        }
    }

    /// Digest and part count, for serialisation.
    #[must_use]
    pub const fn to_raw(self) -> ([u8; 16], u32) {
        (self.digest, self.parts)
    }

    /// The inverse of [`to_raw`](Self::to_raw).
    #[must_use]
    pub const fn from_raw(digest: [u8; 16], parts: u32) -> Self {
        Self { digest, parts }
    }

    /// The text without quotes, in a buffer on the stack, for hot paths that must not allocate.
    #[must_use]
    pub fn text(&self) -> ETagText {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = ETagText {
            bytes: [0; 43],
            len: 32,
        };
        for (i, byte) in self.digest.iter().enumerate() {
            text.bytes[2 * i] = HEX[usize::from(byte >> 4)];
            text.bytes[2 * i + 1] = HEX[usize::from(byte & 15)];
        }
        if self.parts > 0 {
            let mut digits = [0_u8; 10];
            let mut first = digits.len();
            let mut rest = self.parts;
            while rest > 0 {
                first -= 1;
                digits[first] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            text.bytes[32] = b'-';
            let count = digits.len() - first;
            text.bytes[33..33 + count].copy_from_slice(&digits[first..]);
            text.len = 33 + count;
        }
        text
    }
}

/// The text of an [`ETag`], on the stack.
#[derive(Clone, Copy)]
pub struct ETagText {
    bytes: [u8; 43],
    len: usize,
}

impl ETagText {
    /// The text, without quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The text as bytes, without quotes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

impl FromStr for ETag {
    type Err = ParseETagError;

    /// Parses `hex` or `hex-N` in either case, with or without double quotes.
    fn from_str(text: &str) -> Result<Self, ParseETagError> {
        let text = match text.strip_prefix('"') {
            Some(inner) => inner.strip_suffix('"').ok_or(ParseETagError)?,
            None => text,
        };
        let (hex, parts) = match text.split_once('-') {
            Some((_, count)) if count.starts_with(['0', '+']) => return Err(ParseETagError),
            Some((hex, count)) => (hex, count.parse().map_err(|_| ParseETagError)?),
            None => (text, 0),
        };
        let hex: &[u8; 32] = hex.as_bytes().try_into().map_err(|_| ParseETagError)?;
        let mut digest = [0; 16];
        for (i, pair) in hex.chunks_exact(2).enumerate() {
            let high = (pair[0] as char).to_digit(16).ok_or(ParseETagError)?;
            let low = (pair[1] as char).to_digit(16).ok_or(ParseETagError)?;
            digest[i] = (high * 16 + low) as u8;
        }
        Ok(Self { digest, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_tag_of_parts_is_the_md5_of_their_digests() {
        // The MD5 of the empty string twice, then the MD5 of those 32 bytes.
        let empty: ETag = "d41d8cd98f00b204e9800998ecf8427e".parse().unwrap();
        assert_eq!(
            ETag::of_parts(&[empty, empty]).to_string(),
            "5873dd45edd01f09c1ef2e7819369e8e-2"
        );
    }

    #[test]
    fn foreign_texts_are_refused() {
        for text in [
            "",
            "\"",
            "abc",
            "\"d41d8cd98f00b204e9800998ecf8427e",
            "d41d8cd98f00b204e9800998ecf8427e-",
            "d41d8cd98f00b204e9800998ecf8427e-0",
            "d41d8cd98f00b204e9800998ecf8427e-+1",
            "d41d8cd98f00b204e9800998ecf8427g",
        ] {
            assert_eq!(text.parse::<ETag>(), Err(ParseETagError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_and_tag_round_trip(digest: [u8; 16], parts: u32) {
            let tag = ETag { digest, parts };
            prop_assert_eq!(tag.to_string().parse::<ETag>(), Ok(tag));
            prop_assert_eq!(format!("\"{tag}\"").to_uppercase().parse::<ETag>(), Ok(tag));
        }
    }
}
