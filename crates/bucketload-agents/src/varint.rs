//! Numbers of variable length (LEB128): seven bits per byte, lowest first; a set high bit means that more
//! bytes follow.

/// Appends `value`.
#[inline]
pub(crate) fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number (ZigZag: the sign is the lowest bit).
#[inline]
pub(crate) fn put_signed(value: i64, out: &mut Vec<u8>) {
    put(((value << 1) ^ (value >> 63)) as u64, out);
}

/// Appends a string with its length.
pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    put(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Reads values back; every method returns `None` if the bytes end too early or are malformed.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that fits into a smaller type.
    #[inline]
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len: usize = self.small()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Reader, put, put_signed, put_text};

    proptest! {
        #[test]
        fn numbers_and_texts_survive(a in any::<u64>(), b in any::<i64>(), text in ".{0,40}") {
            let mut out = Vec::new();
            put(a, &mut out);
            put_signed(b, &mut out);
            put_text(&text, &mut out);
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.number(), Some(a));
            prop_assert_eq!(reader.signed(), Some(b));
            prop_assert_eq!(reader.text(), Some(text.as_str()));
            prop_assert!(reader.is_empty());
            for cut in 0..out.len() {
                let mut reader = Reader(&out[..cut]);
                let mut all = || Some((reader.number()?, reader.signed()?, reader.text()?));
                prop_assert!(all().is_none());
            }
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader(&bytes);
            while reader.number().is_some() {}
            let _ = Reader(&bytes).text();
        }
    }
}
