//! Percent-encoding by the rules of SigV4, hexadecimal and decimal digits. Allocates only to grow the output.
//!
//! "URI encode every byte except the unreserved characters 'A'-'Z', 'a'-'z', '0'-'9', '-', '.',
//! '_' and '~'; the space is %20; encode the forward slash everywhere except in the object key
//! name" (Amazon S3 API Reference, "Signature Calculations for the Authorization Header").

const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";

/// The bytes that need no escaping: bit 0 in keys, bit 1 in queries.
const PLAIN: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') {
            table[byte] = 3;
        } else if b == b'/' {
            table[byte] = 1;
        }
        byte += 1;
    }
    table
};

/// True if `byte` is unreserved (RFC 3986, section 2.3). All other bytes are escaped.
#[inline]
#[must_use]
pub const fn is_unreserved(byte: u8) -> bool {
    PLAIN[byte as usize] & 2 != 0
}

/// Appends an object key for use in a path: escapes everything but unreserved characters and `/`.
#[inline]
pub fn push_key(out: &mut Vec<u8>, key: impl AsRef<[u8]>) {
    push_encoded(out, key.as_ref(), 1);
}

/// Appends a query value: escapes everything but unreserved characters.
#[inline]
pub fn push_query(out: &mut Vec<u8>, value: impl AsRef<[u8]>) {
    push_encoded(out, value.as_ref(), 2);
}

/// A key as [`push_key`] writes it.
#[must_use]
pub fn key_text(key: impl AsRef<[u8]>) -> String {
    encoded(key.as_ref(), 1)
}

/// A query value as [`push_query`] writes it.
#[must_use]
pub fn query_text(value: impl AsRef<[u8]>) -> String {
    encoded(value.as_ref(), 2)
}

fn encoded(bytes: &[u8], mask: u8) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    push_encoded(&mut out, bytes, mask);
    // Percent-encoded text is ASCII.
    String::from_utf8(out).unwrap_or_default()
}

#[inline]
fn push_encoded(out: &mut Vec<u8>, bytes: &[u8], mask: u8) {
    // Benchmark keys rarely need escaping: one scan, one copy.
    if is_plain(bytes, mask) {
        out.extend_from_slice(bytes);
    } else {
        push_escaped(out, bytes, mask);
    }
}

/// True if nothing needs escaping. Texts of 16 bytes or more are checked 16 bytes at a time.
#[inline]
fn is_plain(bytes: &[u8], mask: u8) -> bool {
    let Some(last) = bytes.last_chunk::<16>() else {
        return bytes.iter().all(|&b| PLAIN[usize::from(b)] & mask != 0);
    };
    // A slash is plain in keys only; a zero byte never is.
    let except = if mask & 1 != 0 { 0 } else { b'/' };
    let plain = |chunk: &[u8; 16]| {
        // No early exit, so the compiler can vectorize the loop.
        let mut bad = 0;
        for &b in chunk {
            let letter = (b | 0x20).wrapping_sub(b'a') < 26;
            // `-`, `.`, `/` and the digits are consecutive.
            let digit = b.wrapping_sub(b'-') < 13;
            let plain = (letter | digit | (b == b'_') | (b == b'~')) & (b != except);
            bad |= u8::from(!plain);
        }
        bad == 0
    };
    bytes.as_chunks().0.iter().all(plain) && plain(last)
}

#[cold]
fn push_escaped(out: &mut Vec<u8>, bytes: &[u8], mask: u8) {
    for &b in bytes {
        if PLAIN[usize::from(b)] & mask != 0 {
            out.push(b);
        } else {
            push_byte(out, b);
        }
    }
}

/// Appends one byte, escaped.
pub fn push_byte(out: &mut Vec<u8>, byte: u8) {
    let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
    out.extend_from_slice(&[b'%', HEX_UPPER[high], HEX_UPPER[low]]);
}

/// The value of a hexadecimal digit, in lower or upper case.
const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Appends `text` percent-decoded; turns `+` into a space if `plus` is set. Malformed escapes are copied unchanged.
///
/// # Errors
/// When there are malformed escapes: the length of `out` before the first one.
pub fn push_decoded(out: &mut Vec<u8>, text: &[u8], plus: bool) -> Result<(), usize> {
    let (mut at, mut sound) = (0, Ok(()));
    while let Some(&byte) = text.get(at) {
        let nibble = |n: usize| text.get(at + n).copied().and_then(digit);
        match byte {
            b'%' => match (nibble(1), nibble(2)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    at += 2;
                }
                _ => {
                    sound = sound.and(Err(out.len()));
                    out.push(byte);
                }
            },
            b'+' if plus => out.push(b' '),
            _ => out.push(byte),
        }
        at += 1;
    }
    sound
}

/// Percent-decodes `text` and turns `+` into a space, since some servers write spaces that way in listings. Malformed
/// escapes stay unchanged; invalid UTF-8 becomes replacement characters.
#[must_use]
pub fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    // Malformed escapes are kept.
    let _ = push_decoded(&mut out, text.as_bytes(), true);
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// 64 lowercase hexadecimal digits of a SHA-256 value. Written so the compiler can vectorize it.
#[inline]
#[must_use]
pub fn hex32(bytes: &[u8; 32]) -> [u8; 64] {
    let digit = |n: u8| n + b'0' + u8::from(n > 9) * (b'a' - b'0' - 10);
    let (mut high, mut low, mut out) = ([0; 32], [0; 32], [0; 64]);
    for i in 0..32 {
        high[i] = digit(bytes[i] >> 4);
        low[i] = digit(bytes[i] & 15);
    }
    for i in 0..32 {
        out[2 * i] = high[i];
        out[2 * i + 1] = low[i];
    }
    out
}

/// The two lowercase hexadecimal digits of `byte`.
#[must_use]
pub const fn hex_pair(byte: u8) -> [u8; 2] {
    [
        HEX_LOWER[(byte >> 4) as usize],
        HEX_LOWER[(byte & 15) as usize],
    ]
}

/// Reads 64 lowercase hexadecimal digits.
#[must_use]
pub fn parse_hex32(text: &[u8]) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != 32 || !rest.is_empty() || text.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(pairs) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

/// Writes the decimal digits of `value` to the end of `digits` and returns them.
#[inline]
pub fn decimal(digits: &mut [u8; 20], mut value: u64) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &digits[at..];
        }
    }
}

/// Appends `value` in decimal.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(decimal(&mut [0; 20], value));
}

/// Number of hexadecimal digits of `value`.
#[must_use]
pub fn hex_len(value: u64) -> u32 {
    (64 - value.max(1).leading_zeros()).div_ceil(4)
}

/// Appends `value` in lowercase hexadecimal.
pub fn push_hex(out: &mut Vec<u8>, value: u64) {
    for i in (0..hex_len(value)).rev() {
        out.push(HEX_LOWER[(value >> (4 * i)) as usize & 15]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        decode, hex_pair, hex32, parse_hex32, push_decimal, push_decoded, push_hex, push_key,
        push_query,
    };

    fn key(text: &str) -> String {
        let mut out = Vec::new();
        push_key(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_are_escaped_by_the_rules() {
        assert_eq!(key("a/b//c.txt"), "a/b//c.txt");
        assert_eq!(key("a b+c%2f~"), "a%20b%2Bc%252f~");
        assert_eq!(key("\u{e4}\u{1F600}"), "%C3%A4%F0%9F%98%80");
        let mut out = Vec::new();
        push_query(&mut out, "a/b=c&d");
        assert_eq!(out, b"a%2Fb%3Dc%26d");
    }

    #[test]
    fn malformed_escapes_are_kept() {
        assert_eq!(decode("a%2"), "a%2");
        assert_eq!(decode("%zz+%41"), "%zz A");
        let mut out = Vec::new();
        assert_eq!(push_decoded(&mut out, b"a%2Bb+c%20d", false), Ok(()));
        assert_eq!(push_decoded(&mut out, b" 100%%4", false), Err(11));
        assert_eq!(out, b"a+b+c d 100%%4");
    }

    #[test]
    fn long_and_short_texts_are_checked_alike() {
        for byte in 0..=255u8 {
            for mask in [1, 2] {
                let want = super::PLAIN[usize::from(byte)] & mask != 0;
                for at in [0, 15, 16, 19] {
                    let mut text = [b'x'; 20];
                    text[at] = byte;
                    assert_eq!(super::is_plain(&text, mask), want, "{byte} at {at}");
                }
                assert_eq!(super::is_plain(&[byte], mask), want);
            }
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(text in "\\PC{0,64}") {
            prop_assert_eq!(decode(&key(&text)), text);
        }

        #[test]
        fn digits_agree_with_the_formatter(value in any::<u64>(), shift in 0u32..64, bytes in any::<[u8; 32]>()) {
            let value = value >> shift;
            let (mut decimal, mut hex) = (Vec::new(), Vec::new());
            push_decimal(&mut decimal, value);
            push_hex(&mut hex, value);
            prop_assert_eq!(decimal, value.to_string().into_bytes());
            prop_assert_eq!(hex, format!("{value:x}").into_bytes());
            let want: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            prop_assert_eq!(&hex32(&bytes)[..], want.as_bytes());
            prop_assert_eq!(bytes.map(hex_pair).concat(), want.as_bytes());
            prop_assert_eq!(parse_hex32(&hex32(&bytes)), Some(bytes));
            prop_assert_eq!(parse_hex32(&want.as_bytes()[1..]), None);
        }
    }
}
