//! Heads that look like the last ones. A server answers the same kind of request with the same
//! fields in the same order; what differs are dates, identifiers and the body's length. A thread
//! keeps the shapes of the last heads:
//!
//! ```text
//! HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 14:00:00 GMT\r\nContent-Length: 4096\r\n\r\n
//! =========================~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~====================####====   =  equal
//!                                                                      ~  any value  #  a digit
//! ```
//!
//! A head that fits one says what that one said, but for the length. One pass over its bytes finds
//! that out, 32 at a time, for a third of what [`super::scan`] needs.

use std::cell::RefCell;
use std::ops::Range;

use super::scan::{Scanned, short_decimal};
use super::wide::in_value;

/// Shapes kept per thread.
const SHAPES: usize = 4;
/// Bytes compared together.
const STEP: usize = 32;
/// Longer heads are not kept, in bytes.
const MAX_LEN: usize = 1024;
const STEPS: usize = MAX_LEN / STEP;
/// Where no shape ever fits, one head in so many is kept.
const PATIENCE: u32 = 256;

thread_local! {
    static KNOWN: RefCell<Known> = const { RefCell::new(Known::NEW) };
}

/// What the head at the start of `bytes` says, if it looks like one of the last.
#[inline]
pub(super) fn recall(bytes: &[u8]) -> Option<Scanned> {
    KNOWN.with_borrow_mut(|known| known.recall(bytes))
}

/// Keeps the shape of a head that was not recalled.
pub(super) fn learn(head: &[u8], scanned: &Scanned) {
    KNOWN.with_borrow_mut(|known| known.learn(head, scanned));
}

struct Known {
    shapes: [Shape; SHAPES],
    /// Shapes in use, from the front.
    used: usize,
    /// The place to use next.
    next: usize,
    /// Heads that were not recalled.
    misses: u32,
}

/// A head, padded to a multiple of [`STEP`]. Nothing is allocated: shapes come and go at any time.
struct Shape {
    len: usize,
    bytes: [[u8; STEP]; STEPS],
    /// 0xff where a head that fits may differ.
    free: [[u8; STEP]; STEPS],
    /// Where the digits of `Content-Length` stand; empty without it.
    digits: Range<usize>,
    said: Scanned,
}

impl Known {
    const NEW: Self = Self {
        shapes: [const { Shape::NEW }; SHAPES],
        used: 0,
        next: 0,
        misses: 0,
    };

    #[inline]
    fn recall(&mut self, bytes: &[u8]) -> Option<Scanned> {
        self.shapes[..self.used]
            .iter()
            .find_map(|shape| shape.read(bytes))
    }

    #[cold]
    fn learn(&mut self, head: &[u8], scanned: &Scanned) {
        self.misses = self.misses.wrapping_add(1);
        let due = self.misses.is_power_of_two() || self.misses.is_multiple_of(PATIENCE);
        if due && self.shapes[self.next].take_after(head, scanned).is_some() {
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
        said: Scanned::NONE,
    };

    /// Becomes the shape of `head`; `None`, and no shape of anything, if it cannot.
    fn take_after(&mut self, head: &[u8], scanned: &Scanned) -> Option<()> {
        let &Scanned { len, fields, .. } = scanned;
        self.len = 0;
        let head = head.get(..len).filter(|_| len <= MAX_LEN)?;
        // The position of a range changes from answer to answer.
        if fields.ranges > 0 || fields.lengths > 1 {
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
        self.said = *scanned;
        self.len = len;
        Some(())
    }

    #[inline]
    fn read(&self, bytes: &[u8]) -> Option<Scanned> {
        let head = bytes.get(..self.len)?;
        // Ends most comparisons with another shape, and any with none.
        if !head.ends_with(b"\r\n\r\n") || !self.fits(head) {
            return None;
        }
        let mut said = self.said;
        if !self.digits.is_empty() {
            said.framing.length = Some(short_decimal(&head[self.digits.clone()])?);
        }
        Some(said)
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

/// Whether a byte is neither the old one nor, where any value is free, part of a value.
#[inline]
fn differs(new: &[u8; STEP], old: &[u8; STEP], free: &[u8; STEP]) -> bool {
    // Without an early end, so that the compiler can use vectors.
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

    use super::super::scan::scan;
    use super::Known;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: x\r\nDate: Fri, 20 Nov 2026 14:00:00 GMT\r\n\
        x-amz-request-id: 58A9B038CF9F38E2\r\nConnection: keep-alive\r\nContent-Length: 4096\r\n\r\n";

    /// A memory that has met `head`.
    fn met(head: &str) -> Known {
        let mut known = Known::NEW;
        known.learn(head.as_bytes(), &scan(head.as_bytes()).unwrap());
        known
    }

    #[test]
    fn what_differs_in_values_only_is_recalled() {
        let mut known = met(HEAD);
        let next = HEAD
            .replace("14:00:00", "14:00:01")
            .replace("38E2", "38E3")
            .replace("4096", "1234");
        for rest in ["", "body", &"b".repeat(100)] {
            let bytes = format!("{next}{rest}");
            let said = known.recall(bytes.as_bytes()).unwrap();
            assert_eq!((said.framing.length, said.len), (Some(1234), HEAD.len()));
            assert_eq!(Some(said), scan(bytes.as_bytes()));
        }
    }

    #[test]
    fn what_matters_must_be_the_same() {
        let mut known = met(HEAD);
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
            assert_eq!(known.recall(other.as_bytes()), None, "{to:?}");
        }
        for cut in 0..HEAD.len() {
            assert_eq!(known.recall(&HEAD.as_bytes()[..cut]), None);
        }
    }

    #[test]
    fn several_shapes_are_kept_and_the_patience_ends() {
        let mut known = Known::NEW;
        let heads: Vec<String> = (1..=3)
            .map(|n| HEAD.replace("4096", &"1".repeat(n)))
            .collect();
        for _ in 0..3 {
            for head in &heads {
                let scanned = scan(head.as_bytes()).unwrap();
                if known.recall(head.as_bytes()).is_none() {
                    known.learn(head.as_bytes(), &scanned);
                }
            }
        }
        for head in &heads {
            assert_eq!(known.recall(head.as_bytes()), scan(head.as_bytes()));
        }
        assert!(known.misses < 6, "{}", known.misses);
    }

    proptest! {
        /// Whatever is recalled is what a scan finds.
        #[test]
        fn agrees_with_the_scan(
            flips in prop::collection::vec(any::<(u16, u8)>(), 0..4),
            digits in "[0-9]{4}", rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut known = met(HEAD);
            let mut bytes = HEAD.replace("4096", &digits).into_bytes();
            bytes.extend_from_slice(&rest);
            for (at, byte) in flips {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
            if let Some(said) = known.recall(&bytes) {
                prop_assert_eq!(Some(said), scan(&bytes));
            }
        }
    }
}
