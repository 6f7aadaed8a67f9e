//! The part of Protocol Buffers' encoding that Hadoop's two protocols need: varints, lengths and fixed
//! numbers, decoded in place and encoded into a buffer (protobuf.dev, "Encoding").

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A varint, or a fixed number as its bits.
    Number(u64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The number; 0 for bytes.
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(_) => 0,
        }
    }

    /// The bytes; empty for a number.
    pub(super) const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Number(_) => b"",
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The bytes as text; empty if they are not UTF-8.
    pub(super) fn text(self) -> &'a str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

/// The message does not follow the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The fields of a message, in encoding order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = field(&mut self.0);
        if field.is_none() {
            self.0 = b"";
        }
        Some(field.ok_or(Malformed))
    }
}

#[inline]
fn field<'a>(at: &mut &'a [u8]) -> Option<(u32, Value<'a>)> {
    let tag = varint(at)?;
    let value = match tag & 7 {
        0 => Value::Number(varint(at)?),
        1 => Value::Number(u64::from_le_bytes(*at.split_off(..8)?.first_chunk()?)),
        2 => {
            let length = usize::try_from(varint(at)?).ok()?;
            Value::Bytes(at.split_off(..length)?)
        }
        5 => {
            let bits = u32::from_le_bytes(*at.split_off(..4)?.first_chunk()?);
            Value::Number(u64::from(bits))
        }
        _ => return None,
    };
    Some((u32::try_from(tag >> 3).ok()?, value))
}

/// Removes a varint from the front of `at`; `None` if it is incomplete or too long.
#[inline]
pub(super) fn varint(at: &mut &[u8]) -> Option<u64> {
    // Nearly all varints are tags and short lengths.
    if let [byte @ ..0x80, rest @ ..] = *at {
        let value = u64::from(*byte);
        *at = rest;
        return Some(value);
    }
    long_varint(at)
}

fn long_varint(at: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (i, &byte) in at.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *at = &at[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Removes a length-prefixed message from the front of `at`; `None` if it is incomplete.
pub(super) fn delimited<'a>(at: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = *at;
    let length = usize::try_from(varint(&mut rest)?).ok()?;
    let message = rest.split_off(..length)?;
    *at = rest;
    Some(message)
}

/// Encoded size of `value` as a varint.
pub(super) const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Encoded size of a field with a number below 16 and `length` bytes.
pub(super) const fn bytes_len(length: usize) -> usize {
    1 + varint_len(length as u64) + length
}

/// Appends a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the number `value` as field `field`, below 16.
pub(super) fn put_number(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3);
    put_varint(out, value);
}

/// Appends the head of field `field`, below 16, for `length` bytes that follow.
pub(super) fn put_head(out: &mut Vec<u8>, field: u8, length: usize) {
    out.push(field << 3 | 2);
    put_varint(out, length as u64);
}

/// Appends `bytes` as field `field`, below 16.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    put_head(out, field, bytes.len());
    out.extend_from_slice(bytes);
}

/// A signed number in zigzag form (`sint32`).
pub(super) const fn zigzag(value: i32) -> u64 {
    ((value << 1) ^ (value >> 31)) as u32 as u64
}

#[cfg(test)]
mod tests {
    use super::{
        Fields, Malformed, Value, bytes_len, delimited, put_bytes, put_number, put_varint, varint,
        varint_len, zigzag,
    };

    #[test]
    fn values_round_trip() {
        for value in [0, 1, 127, 128, 300, 16_383, 16_384, 1 << 35, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value), "{value}");
            let mut at = &out[..];
            assert_eq!((varint(&mut at), at), (Some(value), &b""[..]));
            assert_eq!(varint(&mut &out[..out.len() - 1]), None);
        }
        // The examples of the encoding's description.
        let mut out = Vec::new();
        put_number(&mut out, 1, 150);
        put_bytes(&mut out, 2, b"testing");
        assert_eq!(out, b"\x08\x96\x01\x12\x07testing");
        assert_eq!(out.len(), 3 + bytes_len(7));
        let fields: Vec<_> = Fields(&out).map(Result::unwrap).collect();
        assert_eq!(
            fields,
            [(1, Value::Number(150)), (2, Value::Bytes(b"testing"))]
        );
        assert_eq!([0, -1, 1, -3].map(zigzag), [0, 1, 2, 5]);
    }

    #[test]
    fn fixed_numbers_are_read() {
        let text = b"\x09\x01\0\0\0\0\0\0\x80\x25\x02\0\0\0";
        let fields: Vec<_> = Fields(text).map(Result::unwrap).collect();
        assert_eq!(
            fields,
            [(1, Value::Number((1 << 63) + 1)), (4, Value::Number(2))]
        );
    }

    #[test]
    fn incomplete_messages_are_malformed() {
        for text in [&b"\x08"[..], b"\x12\x05abc", b"\x0b", b"\x09abc", b"\xff"] {
            let found: Vec<_> = Fields(text).collect();
            assert_eq!(found.last(), Some(&Err(Malformed)), "{text:?}");
        }
        assert_eq!(delimited(&mut &b"\x03ab"[..]), None);
        let mut at = &b"\x02abc"[..];
        assert_eq!((delimited(&mut at), at), (Some(&b"ab"[..]), &b"c"[..]));
    }
}
