//! A cache of head shapes. A server answers the same kind of request with the same fields in the
//! same order; only dates, identifiers and the body's length differ. Each thread keeps the shapes of
//! recent heads:
//!
//! ```text
//! HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 14:00:00 GMT\r\nContent-Length: 4096\r\n\r\n
//! =========================~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~====================####====   =  equal
//!                                                                      ~  any value  #  a digit
//! ```
//!
//! A head that fits a shape parses to the same result, except for the length. One pass over its
//! bytes, 32 at a time, checks the fit for a third of the cost of [`super::scan`].

use std::cell::RefCell;
use std::ops::Range;

use super::scan::{ParsedHead, Scanned, short_decimal};
use super::wide::in_value;

/// Number of shapes kept per thread.
const SHAPES: usize = 4;
/// Number of bytes compared at once.
const STEP: usize = 32;
/// Longer heads are not kept. In bytes.
const MAX_LEN: usize = 1024;
const STEPS: usize = MAX_LEN / STEP;
/// When no shape ever fits, only one head in this many is learned.
const LEARN_EVERY: u32 = 256;

thread_local! {
    static CACHE: RefCell<ShapeCache> = const { RefCell::new(ShapeCache::NEW) };
}

/// Parses the head at the start of `bytes`, if it fits a cached shape.
#[inline]
pub(super) fn recall(bytes: &[u8]) -> Option<ParsedHead> {
    CACHE.with_borrow_mut(|cache| cache.recall(bytes))
}

/// Caches the shape of a head that was not recalled.
pub(super) fn learn(head: &[u8], scanned: &Scanned) {
    CACHE.with_borrow_mut(|cache| cache.learn(head, scanned));
}

struct ShapeCache {
    shapes: [Shape; SHAPES],
    /// Number of shapes in use, from the front.
    used: usize,
    /// Index of the shape to replace next.
    next: usize,
    /// Number of heads that were not recalled.
    misses: u32,
}

/// A head, padded to a multiple of [`STEP`]. The arrays have a fixed size because shapes are replaced
/// on the request path, which must not allocate.
struct Shape {
    len: usize,
    bytes: [[u8; STEP]; STEPS],
    /// 0xff where a fitting head may differ.
    free: [[u8; STEP]; STEPS],
    /// Position of the digits of `Content-Length`; empty without that field.
    digits: Range<usize>,
    parsed: ParsedHead,
}

impl ShapeCache {
    const NEW: Self = Self {
        shapes: [const { Shape::NEW }; SHAPES],
        used: 0,
        next: 0,
        misses: 0,
    };

    #[inline]
    fn recall(&mut self, bytes: &[u8]) -> Option<ParsedHead> {
        self.shapes[..self.used]
            .iter()
            .find_map(|shape| shape.read(bytes))
    }

    #[cold]
    fn learn(&mut self, head: &[u8], scanned: &Scanned) {
        self.misses = self.misses.wrapping_add(1);
        let due = self.misses.is_power_of_two() || self.misses.is_multiple_of(LEARN_EVERY);
        if due && self.shapes[self.next].learn(head, scanned).is_some() {
            self.next = (self.next + 1) % SHAPES;
            self.used = (self.used + 1).min(SHAPES);
        }
    }
}

impl Shape {
    const NEW: Self = Self {
        len: 0,
        bytes: [[0; STEP]; STEPS],
        free: [[0; STEP]; STEPS],
        digits: 0..0,
        parsed: ParsedHead::EMPTY,
    };

    /// Becomes the shape of `head`. Returns `None` if `head` is unsuitable; the shape then fits
    /// nothing.
    fn learn(&mut self, head: &[u8], scanned: &Scanned) -> Option<()> {
        let len = scanned.head.len;
        self.len = 0;
        let head = head.get(..len).filter(|_| len <= MAX_LEN)?;
        // The range in a `Content-Range` changes from answer to answer.
        if scanned.fields.ranges > 0 || scanned.fields.lengths > 1 {
            return None;
        }
        let bytes = self.bytes.as_flattened_mut();
        bytes.fill(0);
        bytes[..len].copy_from_slice(head);
        let free = self.free.as_flattened_mut();
        free.fill(0);
        self.digits = 0..0;
        let mut at = 0;
        for line in head.split_inclusive(|&b| b == b'\n') {
            if let Some(colon) = line.iter().position(|&b| b == b':')
                && at > 0
            {
                let (name, value) = (&line[..colon], at + colon + 1..at + line.len() - 2);
                if name.eq_ignore_ascii_case(b"content-length") {
                    let is_digit = |b: &u8| b.is_ascii_digit();
                    let from = value.start + head[value.clone()].iter().position(is_digit)?;
                    let end = from + head[from..].iter().position(|b| !is_digit(b))?;
                    free[from..end].fill(0xff);
                    self.digits = from..end;
                } else if !["connection", "transfer-encoding"]
                    .iter()
                    .any(|n| name.eq_ignore_ascii_case(n.as_bytes()))
                {
                    free[value].fill(0xff);
                }
            }
            at += line.len();
        }
        self.parsed = scanned.head;
        self.len = len;
        Some(())
    }

    #[inline]
    fn read(&self, bytes: &[u8]) -> Option<ParsedHead> {
        let head = bytes.get(..self.len)?;
        // Rejects most heads of another shape early, and any head if the shape is empty.
        if !head.ends_with(b"\r\n\r\n") || !self.fits(head) {
            return None;
        }
        let mut parsed = self.parsed;
        if !self.digits.is_empty() {
            parsed.framing.length = Some(short_decimal(&head[self.digits.clone()])?);
        }
        Some(parsed)
    }

    #[inline]
    fn fits(&self, head: &[u8]) -> bool {
        let (chunks, rest) = head.as_chunks();
        let mut steps = self.bytes.iter().zip(&self.free);
        for (new, (old, free)) in chunks.iter().zip(&mut steps) {
            if differs(new, old, free) {
                return false;
            }
        }
        let mut last = [0; STEP];
        last[..rest.len()].copy_from_slice(rest);
        let fits = |(old, free)| !differs(&last, old, free);
        rest.is_empty() || steps.next().is_some_and(fits)
    }
}

/// True if any byte that is not free differs from the old one, or any free byte cannot be part of a
/// value.
#[inline]
fn differs(new: &[u8; STEP], old: &[u8; STEP], free: &[u8; STEP]) -> bool {
    // No early exit, so that the compiler can use vectors.
    let mut bad = 0;
    for i in 0..STEP {
        let other = new[i] ^ old[i];
        let no_value = if in_value(new[i]) { 0 } else { 0xff };
        bad |= (other & !free[i]) | (no_value & free[i]);
    }
    bad != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::scan::{self, ParsedHead};
    use super::ShapeCache;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: x\r\nDate: Fri, 20 Nov 2026 14:00:00 GMT\r\n\
        x-amz-request-id: 58A9B038CF9F38E2\r\nConnection: keep-alive\r\nContent-Length: 4096\r\n\r\n";

    fn scan(bytes: &[u8]) -> Option<ParsedHead> {
        scan::scan(bytes).map(|scanned| scanned.head)
    }

    fn learn(cache: &mut ShapeCache, head: &str) {
        cache.learn(head.as_bytes(), &scan::scan(head.as_bytes()).unwrap());
    }

    /// A cache that has learned `head`.
    fn cache_of(head: &str) -> ShapeCache {
        let mut cache = ShapeCache::NEW;
        learn(&mut cache, head);
        cache
    }

    #[test]
    fn a_head_that_differs_only_in_values_is_recalled() {
        let mut cache = cache_of(HEAD);
        let next = HEAD
            .replace("14:00:00", "14:00:01")
            .replace("38E2", "38E3")
            .replace("4096", "1234");
        for rest in ["", "body", &"b".repeat(100)] {
            let bytes = format!("{next}{rest}");
            let parsed = cache.recall(bytes.as_bytes()).unwrap();
            assert_eq!(
                (parsed.framing.length, parsed.len),
                (Some(1234), HEAD.len())
            );
            assert_eq!(Some(parsed), scan(bytes.as_bytes()));
        }
    }

    #[test]
    fn relevant_bytes_must_be_the_same() {
        let mut cache = cache_of(HEAD);
        for (from, to) in [
            ("200", "404"),
            ("keep-alive", "close     "),
            ("Server: x", "Server; x"),
            ("Server: x", "Server:\u{1}x"),
            ("4096", "40x6"),
            ("4096", "409"),
            ("14:00:00 GMT", "14:00:0\r\n: x"),
            ("x-amz-request-id", "content-range   "),
            ("\r\n\r\n", "\r\nA"),
        ] {
            let other = HEAD.replace(from, to);
            assert_eq!(cache.recall(other.as_bytes()), None, "{to:?}");
        }
        for cut in 0..HEAD.len() {
            assert_eq!(cache.recall(&HEAD.as_bytes()[..cut]), None);
        }
    }

    #[test]
    fn several_shapes_are_kept_and_misses_are_few() {
        let mut cache = ShapeCache::NEW;
        let heads: Vec<String> = (1..=3)
            .map(|n| HEAD.replace("4096", &"1".repeat(n)))
            .collect();
        for _ in 0..3 {
            for head in &heads {
                if cache.recall(head.as_bytes()).is_none() {
                    learn(&mut cache, head);
                }
            }
        }
        for head in &heads {
            assert_eq!(cache.recall(head.as_bytes()), scan(head.as_bytes()));
        }
        assert!(cache.misses < 6, "{}", cache.misses);
    }

    proptest! {
        /// Any recalled result equals that of a scan.
        #[test]
        fn agrees_with_the_scan(
            flips in prop::collection::vec(any::<(u16, u8)>(), 0..4),
            digits in "[0-9]{4}", rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut cache =  cache_of(HEAD);
            let mut bytes = HEAD.replace("4096", &digits).into_bytes();
            bytes.extend_from_slice(&rest);
            for (at, byte) in flips {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
            if let Some(parsed) = cache.recall(&bytes) {
                prop_assert_eq!(Some(parsed), scan(&bytes));
            }
        }
    }
}
