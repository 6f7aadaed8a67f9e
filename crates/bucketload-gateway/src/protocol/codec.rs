//! Encoding of numbers, strings and lists. Lengths and counts are LEB128 varints, so small ones take one byte.
//!
//! A [`Decoder`] never allocates by an announced length, so memory is bounded by the size of the frame.

/// The bytes violate the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Maximum length of a list: the parts of an upload ([`bucketload_store::MAX_PARTS`]). Items take more space in memory
/// than in a frame, so the size of frames alone would be a weak bound.
const MAX_LIST: u64 = bucketload_store::MAX_PARTS as u64;

/// A value with an encoding.
pub(crate) trait Value<'a>: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads a value.
    fn take(decoder: &mut Decoder<'a>) -> Result<Self, Malformed>;
}

/// Declares structures encoded as their fields in this order.
macro_rules! fields {
    ($($name:ty { $($field:ident),* $(,)? })*) => {$(
        impl<'a> Value<'a> for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
                Ok(Self { $($field: Value::take(decoder)?),* })
            }
        }
    )*};
}
pub(crate) use fields;

/// No bytes.
impl Value<'_> for () {
    fn put(&self, _: &mut Vec<u8>) {}

    fn take(_: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}

impl Value<'_> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match decoder.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag is neither 0 nor 1")),
        }
    }
}

impl Value<'_> for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut number = *self;
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = decoder.byte()?;
            let bits = Self::from(byte & 0x7f);
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
}

impl Value<'_> for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        u64::from(*self).put(out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Self::try_from(u64::take(decoder)?).map_err(|_| Malformed("a number has more than 32 bits"))
    }
}

/// A page size, saturated to `u32`.
impl Value<'_> for usize {
    fn put(&self, out: &mut Vec<u8>) {
        u32::try_from(*self).unwrap_or(u32::MAX).put(out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(u32::take(decoder)? as Self)
    }
}

impl<const N: usize> Value<'_> for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(decoder.bytes(N)?);
        Ok(array)
    }
}

impl<'a> Value<'a> for &'a str {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let length = u64::take(decoder)?;
        let length = usize::try_from(length).map_err(|_| Malformed("a string is too long"))?;
        std::str::from_utf8(decoder.bytes(length)?).map_err(|_| Malformed("a string is not UTF-8"))
    }
}

impl Value<'_> for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_str().put(out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        <&str>::take(decoder).map(str::to_owned)
    }
}

/// A flag, followed by the value if there is one.
impl<'a, T: Value<'a>> Value<'a> for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        match bool::take(decoder)? {
            true => T::take(decoder).map(Some),
            false => Ok(None),
        }
    }
}

/// Appends a list.
pub(crate) fn put_list<'a, T: Value<'a>>(list: &[T], out: &mut Vec<u8>) {
    (list.len() as u64).put(out);
    list.iter().for_each(|item| item.put(out));
}

/// A list of at most [`MAX_LIST`] items.
impl<'a, T: Value<'a>> Value<'a> for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }

    fn take(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        decoder.list(MAX_LIST)
    }
}

impl<'a, A: Value<'a>, B: Value<'a>> Value<'a> for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        Ok((A::take(decoder)?, B::take(decoder)?))
    }
}

/// Decodes a value that must take up all of `bytes`.
pub(crate) fn decode_all<'a, T: Value<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    let mut decoder = Decoder::new(bytes);
    let value = T::take(&mut decoder)?;
    decoder.end()?;
    Ok(value)
}

/// Decodes values from a byte slice.
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

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    /// Decodes a list of at most `max` items.
    pub(crate) fn list<T: Value<'a>>(&mut self, max: u64) -> Result<Vec<T>, Malformed> {
        let count = u64::take(self)?;
        if count > max {
            return Err(Malformed("a list is longer than allowed"));
        }
        // Reserves nothing: items in memory are larger than their bytes.
        (0..count).map(|_| T::take(self)).collect()
    }

    /// Checks that all bytes have been read.
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
            let values = ((number, text), (list, Some(number)));
            values.put(&mut out);
            prop_assert_eq!(decode_all(&out), Ok(values));
        }
    }

    #[test]
    fn truncated_and_oversized_values_are_rejected() {
        let number = decode_all::<u64>;
        assert!(number(&[0xff; 10]).is_err());
        assert!(number(&[0x80]).is_err());
        assert_eq!(
            number(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            Ok(u64::MAX)
        );
        assert!(decode_all::<&str>(&[5, b'a']).is_err());
        assert!(decode_all::<&str>(&[1, 0xff]).is_err());
        assert!(decode_all::<Vec<bool>>(&[0xff, 0x7f]).is_err());
        assert!(decode_all::<bool>(&[2]).is_err());
        assert!(decode_all::<()>(&[0]).is_err());
    }

    #[test]
    fn values_have_these_bytes() {
        let mut out = Vec::new();
        ((300_u64, "ab"), (Some(7_u32), vec![true])).put(&mut out);
        (usize::MAX, [9_u8, 8]).put(&mut out);
        assert_eq!(
            out,
            [
                0xac, 2, 2, b'a', b'b', 1, 7, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 9, 8
            ]
        );
    }
}
