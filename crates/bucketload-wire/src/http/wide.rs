//! Classifying bytes, sixteen at a time.
//!
//! Uses SSE2 on x86-64, where every processor has it, and works byte by byte elsewhere. Tests check
//! that both agree.

/// Number of bytes classified at once.
pub(super) const WIDTH: usize = 16;

/// True for a byte that [`super::scan`] accepts in the name of a field. HTTP allows others, which
/// are rare.
pub(super) const fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// True for a byte that may occur in a value: anything but control characters. (HTTP also allows a
/// tab, which is left to the caller.)
pub(super) const fn in_value(byte: u8) -> bool {
    (byte >= 0x20) & (byte != 0x7f)
}

/// Position of the first byte that is not [`in_name`], or [`WIDTH`].
#[inline]
pub(super) fn first_not_in_name(chunk: &[u8; WIDTH]) -> usize {
    #[cfg(target_arch = "x86_64")]
    let at = sse2::first_not_in_name(chunk);
    #[cfg(not(target_arch = "x86_64"))]
    let at = first(chunk, |b| !in_name(b));
    at
}

/// Position of the first byte that is not [`in_value`], or [`WIDTH`].
#[inline]
pub(super) fn first_not_in_value(chunk: &[u8; WIDTH]) -> usize {
    #[cfg(target_arch = "x86_64")]
    let at = sse2::first_not_in_value(chunk);
    #[cfg(not(target_arch = "x86_64"))]
    let at = first(chunk, |b| !in_value(b));
    at
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn first(chunk: &[u8; WIDTH], outside: impl Fn(u8) -> bool) -> usize {
    let found = chunk.iter().position(|&b| outside(b));
    found.unwrap_or(WIDTH)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_sub_epi8,
    };

    use super::WIDTH;

    /// Position of the first set bit of the 16-bit mask, or 16.
    #[inline]
    fn first_set(mask: i32) -> usize {
        (mask | 1 << WIDTH).trailing_zeros() as usize
    }

    #[inline]
    pub(super) fn first_not_in_name(chunk: &[u8; WIDTH]) -> usize {
        // SAFETY: SSE2 is part of x86-64; the load reads the 16 bytes of `chunk` and needs no
        // alignment.
        let inside = unsafe {
            let bytes = _mm_loadu_si128(chunk.as_ptr().cast());
            // Matches `count` consecutive bytes from `from` on.
            let range = |bytes: __m128i, from: u8, count: i8| {
                let offset = _mm_sub_epi8(bytes, _mm_set1_epi8(from.cast_signed()));
                _mm_cmpeq_epi8(_mm_min_epu8(offset, _mm_set1_epi8(count - 1)), offset)
            };
            let is = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
            let letter = range(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), b'a', 26);
            let other = _mm_or_si128(is(b'-'), is(b'_'));
            let inside = _mm_or_si128(_mm_or_si128(letter, range(bytes, b'0', 10)), other);
            _mm_movemask_epi8(inside)
        };
        first_set(!inside)
    }

    #[inline]
    pub(super) fn first_not_in_value(chunk: &[u8; WIDTH]) -> usize {
        // SAFETY: as above.
        let outside = unsafe {
            let bytes = _mm_loadu_si128(chunk.as_ptr().cast());
            let low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
            let delete = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
            _mm_movemask_epi8(_mm_or_si128(low, delete))
        };
        first_set(outside)
    }
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, first, first_not_in_name, first_not_in_value, in_name, in_value};

    #[test]
    fn both_versions_agree_on_every_byte_at_every_position() {
        for at in 0..WIDTH {
            for byte in 0..=255u8 {
                let mut chunk = [b'x'; WIDTH];
                chunk[at] = byte;
                chunk[WIDTH - 1 - at / 2] = b'\r';
                let name = first(&chunk, |b| !in_name(b));
                let value = first(&chunk, |b| !in_value(b));
                assert_eq!(first_not_in_name(&chunk), name, "{byte} at {at}");
                assert_eq!(first_not_in_value(&chunk), value, "{byte} at {at}");
            }
        }
        assert_eq!(first_not_in_name(b"Content_Length-0"), WIDTH);
        assert_eq!(first_not_in_value(b"text/html; a=\"b\""), WIDTH);
    }
}
