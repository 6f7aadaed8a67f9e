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
/// Longer heads are not kept, in bytes.
const MAX_LEN: usize = 1024;
/// Bytes compared together.
const STEP: usize = 32;
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
    shapes: [Option<Box<Shape>>; SHAPES],
    /// The place to use next.
    next: usize,
    /// Heads that were not recalled.
    misses: u32,
}

/// A head, padded to a multiple of [`STEP`].
struct Shape {
    len: usize,
    bytes: Vec<[u8; STEP]>,
    /// 0xff where a head that fits may differ.
    free: Vec<[u8; STEP]>,
    /// Where the digits of `Content-Length` stand; empty without it.
    digits: Range<usize>,
    said: Scanned,
}

impl Known {
    const NEW: Self = Self {
        shapes: [const { None }; SHAPES],
        next: 0,
        misses: 0,
    };

    #[inline]
    fn recall(&mut self, bytes: &[u8]) -> Option<Scanned> {
        for at in 0..SHAPES {
            let Some(shape) = &self.shapes[at] else {
                return None;
            };
            if let Some(said) = shape.read(bytes) {
                // What is seen often moves to the front.
                self.shapes.swap(at, at.saturating_sub(1));
                return Some(said);
            }
        }
        None
    }

    #[cold]
    fn learn(&mut self, head: &[u8], scanned: &Scanned) {
        self.misses = self.misses.wrapping_add(1);
        if (self.misses.is_power_of_two() || self.misses.is_multiple_of(PATIENCE))
            && let Some(shape) = Shape::of(head, scanned)
        {
            self.shapes[self.next] = Some(Box::new(shape));
            self.next = (self.next + 1) % SHAPES;
        }
    }
}

impl Shape {
    fn of(head: &[u8], scanned: &Scanned) -> Option<Self> {
        let &Scanned { len, fields, .. } = scanned;
        let head = head.get(..len).filter(|_| len <= MAX_LEN)?;
        // The position of a range changes from answer to answer.
        if fields.ranges > 0 || fields.lengths > 1 {
            return None;
        }
        let mut free = vec![0; len];
        let mut digits = 0..0;
        let mut at = 0;
        for line in head.split_inclusive(|&b| b == b'\n') {
            if let Some(colon) = line.iter().position(|&b| b == b':')
                && at > 0
            {
                let (name, value) = (&line[..colon], at + colon + 1..at + line.len() - 2);
                if name.eq_ignore_ascii_case(b"content-length") {
                    let is_digit = |b: &u8| b.is_ascii_digit();
                    let from = value.start + head[value.clone()].iter().position(is_digit)?;
                    digits = from..from + head[from..].iter().position(|b| !is_digit(b))?;
                    free[digits.clone()].fill(0xff);
                } else if !["connection", "transfer-encoding"]
                    .iter()
                    .any(|n| name.eq_ignore_ascii_case(n.as_bytes()))
                {
                    free[value].fill(0xff);
                }
            }
            at += line.len();
        }
        let padded = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bytes.resize(len.next_multiple_of(STEP), 0);
            bytes.as_chunks().0.to_vec()
        };
        Some(Self {
            len,
            bytes: padded(head),
            free: padded(&free),
            digits,
            said: *scanned,
        })
    }

    #[inline]
    fn read(&self, bytes: &[u8]) -> Option<Scanned> {
        let head = bytes.get(..self.len)?;
        // Ends most comparisons with another shape.
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
        let mut last = [0; STEP];
        last[..rest.len()].copy_from_slice(rest);
        let shape = self.bytes.iter().zip(&self.free);
        let heads = chunks.iter().chain((!rest.is_empty()).then_some(&last));
        let mut bad = [0; STEP];
        for (new, (old, free)) in heads.zip(shape) {
            for i in 0..STEP {
                let other = new[i] ^ old[i];
                let no_value = if in_value(new[i]) { 0 } else { 0xff };
                bad[i] |= (other & !free[i]) | (no_value & free[i]);
            }
        }
        bad.iter().fold(0, |all, b| all | b) == 0
    }
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
