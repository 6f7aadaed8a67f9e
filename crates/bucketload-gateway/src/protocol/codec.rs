//! Numbers, texts and lists as bytes. Lengths and counts are LEB128 varints, so that short ones cost a byte.
//!
//! A [`Decoder`] never believes a length: it takes only what is there, so that memory is bounded by the frame.

/// The bytes are not what the protocol says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Most items of a list: the parts of an upload ([`bucketload_store::MAX_PARTS`]). Items take more room in memory
/// than in a frame, so that the limit of frames alone would not bound it well.
const MAX_LIST: u64 = bucketload_store::MAX_PARTS as u64;

/// Appends a number.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a text.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends whether there is a value, and the value.
pub(crate) fn put_option<T>(
    out: &mut Vec<u8>,
    value: Option<&T>,
    put: impl FnOnce(&mut Vec<u8>, &T),
) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

/// Appends a list.
pub(crate) fn put_list<T>(out: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_number(out, list.len() as u64);
    list.iter().for_each(|item| put(out, item));
}

/// Reads from the beginning of bytes.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(Malformed("a frame ends within a value"))?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("a number has more than 64 bits"))
    }

    pub(crate) fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number has more than 32 bits"))
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let length =
            usize::try_from(self.number()?).map_err(|_| Malformed("a text is too long"))?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    pub(crate) fn option<T>(
        &mut self,
        value: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        match self.flag()? {
            true => value(self).map(Some),
            false => Ok(None),
        }
    }

    /// A list of at most [`MAX_LIST`] items.
    pub(crate) fn list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        self.long_list(MAX_LIST, item)
    }

    /// A list of at most `most` items.
    pub(crate) fn long_list<T>(
        &mut self,
        most: u64,
        item: impl Fn(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.number()?;
        if count > most {
            return Err(Malformed("a list is longer than allowed"));
        }
        // Nothing is reserved: items in memory are larger than their bytes.
        (0..count).map(|_| item(self)).collect()
    }

    /// Everything must have been read.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Malformed("a frame has more than its values")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_round_trip(number: u64, text in ".*", list: Vec<u64>) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            put_text(&mut out, &text);
            put_list(&mut out, &list, |out, n| put_number(out, *n));
            put_option(&mut out, Some(&number), |out, n| put_number(out, *n));
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(decoder.number(), Ok(number));
            prop_assert_eq!(decoder.text(), Ok(&*text));
            prop_assert_eq!(decoder.list(|d| d.number()), Ok(list));
            prop_assert_eq!(decoder.option(|d| d.number()), Ok(Some(number)));
            prop_assert_eq!(decoder.end(), Ok(()));
        }
    }

    #[test]
    fn what_is_not_there_is_not_believed() {
        assert!(Decoder::new(&[0xff; 10]).number().is_err());
        assert!(Decoder::new(&[0x80]).number().is_err());
        assert_eq!(
            Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).number(),
            Ok(u64::MAX)
        );
        assert!(Decoder::new(&[5, b'a']).text().is_err());
        assert!(Decoder::new(&[1, 0xff]).text().is_err());
        assert!(Decoder::new(&[0xff, 0x7f]).list(|d| d.byte()).is_err());
        assert!(Decoder::new(&[2]).flag().is_err());
        assert!(Decoder::new(&[0]).end().is_err());
    }
}
