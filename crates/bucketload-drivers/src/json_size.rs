//! Extracts one number from a JSON document without keeping the document: the size that a store reports for an object.

use crate::http::sink::Sink;

/// Searches a document for the number in the member `size` while the document arrives; the first one counts.
pub(crate) struct Size {
    digits: [u8; 20],
    len: usize,
    state: usize,
}

/// The member that [`Size`] looks for.
const MEMBER: &[u8] = b"\"size\"";

impl Size {
    pub(crate) const fn new() -> Self {
        Self {
            digits: [0; 20],
            len: 0,
            state: 0,
        }
    }

    /// The size, if the response has one.
    pub(crate) fn get(&self) -> Option<u64> {
        std::str::from_utf8(&self.digits[..self.len])
            .ok()?
            .parse()
            .ok()
    }
}

impl Sink for Size {
    fn wants_body(&self) -> bool {
        true
    }

    // The document has the quoted name, a colon, and digits that may be quoted. There is one state per byte of the name,
    // then one each for the text before the digits, for the digits, and for the rest.
    fn data(&mut self, bytes: &[u8]) {
        const BEFORE: usize = MEMBER.len();
        const WITHIN: usize = BEFORE + 1;
        const BEHIND: usize = BEFORE + 2;
        for &byte in bytes {
            self.state = match (self.state, byte) {
                (BEFORE | WITHIN, b'0'..=b'9') if self.len < self.digits.len() => {
                    self.digits[self.len] = byte;
                    self.len += 1;
                    WITHIN
                }
                (BEFORE, b' ' | b':' | b'"' | b'\n' | b'\r' | b'\t') => BEFORE,
                (BEFORE, _) => 0,
                (WITHIN.., _) => BEHIND,
                (at, byte) if byte == MEMBER[at] => at + 1,
                (_, b'"') => 1,
                _ => 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Size;
    use crate::http::sink::Sink;

    fn size(pieces: &[&[u8]]) -> Option<u64> {
        let mut size = Size::new();
        for piece in pieces {
            size.data(piece);
        }
        size.get()
    }

    #[test]
    fn sizes_are_found_however_they_arrive() {
        assert_eq!(size(&[b"{\n  \"size\": \"1234\"\n}"]), Some(1234));
        assert_eq!(size(&[b"{\"si", b"ze\"", b":\"12", b"34\"}"]), Some(1234));
        assert_eq!(
            size(&[b"{\"name\":\"\"size\",\"size\":\"0\",\"x\":\"9\"}"]),
            Some(0)
        );
        assert_eq!(size(&[b"{\"size\":77,\"generation\":\"5\"}"]), Some(77));
        assert_eq!(size(&[b"{\"name\":\"size\",\"size\":\"7\"}"]), Some(7));
        assert_eq!(size(&[b"{}"]), None);
        assert_eq!(size(&[b"{\"size\":\"99999999999999999999999\"}"]), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            size(&[&bytes]);
        }
    }
}
