//! Conversion between core's histograms and the lines of an HdrHistogram interval log, which other HdrHistogram
//! tools can read.
//!
//! The encoding is the published V2 format (HdrHistogram, `AbstractHistogram.encodeIntoByteBuffer`): a header of
//! 40 bytes, then the counts as ZigZag LEB128 numbers of at most 9 bytes, where a negative number stands for that
//! many empty buckets. All of it is deflated by zlib, preceded by a header of 8 bytes, and encoded in base64. Both
//! histograms have the same layout, so buckets are copied one to one; only the range in use is walked.
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bucketload_core::histogram::{BUCKETS, Histogram};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// First lines of a log. Times are seconds since the run's epoch; the divisor makes the maximum column
/// milliseconds.
pub(super) const HEADER: &str = "#[Histogram log format version 1.3]\n\
    #[Values in nanoseconds, times in seconds since the run's epoch]\n\
    #[MaxValueDivisor: 1000000.000]\n\
    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// Cookies of the V2 encoding: the base, plus 0x10 for 8-byte words in the counts.
const PLAIN_COOKIE: u32 = 0x1c84_9303 | 0x10;
const DEFLATED_COOKIE: u32 = 0x1c84_9304 | 0x10;
/// Bytes before the counts.
const PLAIN_HEADER: usize = 40;
const DEFLATED_HEADER: usize = 8;
/// Largest value of the layout, in nanoseconds: the last bucket of [`Histogram`].
const HIGHEST: u64 = (1 << 42) - 1;
/// Largest plausible count of a bucket: the sum of all buckets cannot overflow 64 bits.
const MAX_COUNT: i64 = 1 << 48;
/// Largest encoding of all buckets.
const MAX_PLAIN: usize = PLAIN_HEADER + BUCKETS * 9;

/// Writes log lines, reusing its buffers.
pub(super) struct Encoder {
    deflate: Compress,
    plain: Vec<u8>,
    deflated: Vec<u8>,
    text: String,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self {
            deflate: Compress::new(Compression::fast(), true),
            plain: Vec::new(),
            deflated: Vec::new(),
            text: String::new(),
        }
    }

    /// Appends the line of `histogram` to `out`; nothing if it is empty.
    pub(super) fn line(
        &mut self,
        out: &mut Vec<u8>,
        tag: std::fmt::Arguments<'_>,
        start_ns: u64,
        end_ns: u64,
        histogram: &Histogram,
    ) {
        if histogram.is_empty() {
            return;
        }
        encode(histogram, &mut self.plain);
        self.compress();
        self.text.clear();
        STANDARD.encode_string(&self.deflated, &mut self.text);
        // Writing to a Vec cannot fail.
        let _ = writeln!(
            out,
            "Tag={tag},{:.9},{:.9},{:.6},{}",
            start_ns as f64 / 1e9,
            (end_ns - start_ns) as f64 / 1e9,
            histogram.max_ns() as f64 / 1e6,
            self.text
        );
    }

    /// Deflates `self.plain` into `self.deflated`, after its header.
    fn compress(&mut self) {
        self.deflate.reset();
        self.deflated.clear();
        self.deflated.extend(DEFLATED_COOKIE.to_be_bytes());
        self.deflated.extend([0; 4]);
        loop {
            let done = self.deflate.total_in() as usize;
            self.deflated.reserve(self.plain.len() / 2 + 64);
            let status = self
                .deflate
                .compress_vec(
                    &self.plain[done..],
                    &mut self.deflated,
                    FlushCompress::Finish,
                )
                .expect("compression has no invalid input");
            if status == Status::StreamEnd {
                break;
            }
        }
        let length = (self.deflated.len() - DEFLATED_HEADER) as u32;
        self.deflated[4..DEFLATED_HEADER].copy_from_slice(&length.to_be_bytes());
    }
}

/// The V2 encoding of `histogram`.
fn encode(histogram: &Histogram, out: &mut Vec<u8>) {
    out.clear();
    out.extend(PLAIN_COOKIE.to_be_bytes());
    out.extend([0; 4]);
    out.extend(0u32.to_be_bytes()); // normalising index offset
    out.extend(3u32.to_be_bytes()); // significant digits
    out.extend(1u64.to_be_bytes()); // lowest discernible value
    out.extend(HIGHEST.to_be_bytes());
    out.extend(1f64.to_be_bytes()); // conversion ratio
    let mut next = 0;
    for (index, count) in histogram.buckets() {
        match index - next {
            0 => {}
            1 => out.push(0),
            empty => leb128(-(empty as i64), out),
        }
        leb128(count as i64, out);
        next = index + 1;
    }
    let length = (out.len() - PLAIN_HEADER) as u32;
    out[4..8].copy_from_slice(&length.to_be_bytes());
}

/// ZigZag LEB128 in which a ninth byte carries eight bits.
fn leb128(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            return out.push(rest as u8);
        }
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Reads one number; `None` if the bytes end too early.
fn read_leb128(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for i in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if i == 8 {
            value |= u64::from(byte) << 56;
            break;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Reads log lines, reusing its buffers.
pub(super) struct Decoder {
    inflate: Decompress,
    deflated: Vec<u8>,
    plain: Vec<u8>,
    buckets: Vec<(usize, u64)>,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            inflate: Decompress::new(true),
            deflated: Vec::new(),
            plain: Vec::new(),
            buckets: Vec::new(),
        }
    }

    /// The buckets of the histogram encoded as `base64`: index and count, ascending. `None` if it cannot be decoded or its
    /// layout differs from [`Histogram`]'s.
    pub(super) fn decode(&mut self, base64: &str) -> Option<&[(usize, u64)]> {
        self.deflated.clear();
        self.buckets.clear();
        STANDARD.decode_vec(base64, &mut self.deflated).ok()?;
        self.decompress()?;
        let header = self.plain.get(..PLAIN_HEADER)?;
        let word = |at: usize| header[at..at + 4].try_into().map(u32::from_be_bytes).ok();
        let long = |at: usize| header[at..at + 8].try_into().map(u64::from_be_bytes).ok();
        let same_layout = word(0)? == PLAIN_COOKIE
            && word(8)? == 0
            && word(12)? == 3
            && long(16)? == 1
            && long(24)? <= HIGHEST;
        let length = word(4)? as usize;
        if !same_layout || self.plain.len() < PLAIN_HEADER + length {
            return None;
        }
        let mut bytes = &self.plain[PLAIN_HEADER..PLAIN_HEADER + length];
        let mut index = 0usize;
        while !bytes.is_empty() {
            let number = read_leb128(&mut bytes)?;
            if number < 0 {
                index = index.checked_add(usize::try_from(number.unsigned_abs()).ok()?)?;
            } else {
                if index >= BUCKETS || number > MAX_COUNT {
                    return None;
                }
                if number > 0 {
                    self.buckets.push((index, number as u64));
                }
                index += 1;
            }
        }
        Some(&self.buckets)
    }

    fn decompress(&mut self) -> Option<()> {
        let header = self.deflated.get(..4)?;
        if header != DEFLATED_COOKIE.to_be_bytes() {
            return None;
        }
        self.inflate.reset(true);
        self.plain.clear();
        loop {
            let done = DEFLATED_HEADER + self.inflate.total_in() as usize;
            let before = self.plain.len();
            self.plain.reserve(1024.max(self.deflated.len() * 4));
            let status = self
                .inflate
                .decompress_vec(
                    self.deflated.get(done..)?,
                    &mut self.plain,
                    FlushDecompress::Finish,
                )
                .ok()?;
            if status == Status::StreamEnd {
                return Some(());
            }
            // A truncated stream makes no progress; a forged one would never end.
            if self.plain.len() == before || self.plain.len() > MAX_PLAIN {
                return None;
            }
        }
    }
}

/// Splits a log line into tag and encoded histogram. `None` for comments and truncated lines.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("Tag=")?;
    let mut fields = rest.splitn(5, ',');
    let tag = fields.next()?;
    let (_start, _length, _max) = (fields.next()?, fields.next()?, fields.next()?);
    Some((tag, fields.next()?))
}

#[cfg(test)]
mod tests {
    use bucketload_core::histogram::Histogram;
    use hdrhistogram::Histogram as Hdr;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
    use proptest::prelude::*;

    use super::{Decoder, Encoder, HEADER, leb128, read_leb128, split};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    fn encoded(h: &Histogram) -> String {
        let mut out = Vec::new();
        Encoder::new().line(
            &mut out,
            format_args!("0/1/get/service"),
            5,
            1_000_000_005,
            h,
        );
        let text = String::from_utf8(out).unwrap();
        let (tag, encoded) = split(text.trim_end()).unwrap();
        assert_eq!(tag, "0/1/get/service");
        encoded.to_owned()
    }

    /// The histogram in `base64`, with the exact figures of `h`.
    fn decoded(base64: &str, h: &Histogram) -> Option<Histogram> {
        let mut back = Histogram::new();
        let mut decoder = Decoder::new();
        let buckets = decoder.decode(base64)?.iter().copied();
        assert!(back.add_buckets(buckets, h.sum_ns(), h.min_ns(), h.max_ns()));
        Some(back)
    }

    fn of(values: &[u64], shift: u32) -> Histogram {
        let mut h = Histogram::new();
        values.iter().for_each(|v| h.record(v >> shift));
        h
    }

    proptest! {
        #[test]
        fn buckets_survive(values in prop::collection::vec(0u64..u64::MAX, 1..200), shift in 0u32..60) {
            let h = of(&values, shift);
            prop_assert_eq!(decoded(&encoded(&h), &h), Some(h));
        }

        /// The reference implementation reads our encoding, and vice versa.
        #[test]
        fn agrees_with_the_reference(values in prop::collection::vec(0u64..1 << 42, 1..100), shift in 0u32..40) {
            let h = of(&values, shift);
            let mut reference = Hdr::<u64>::new_with_bounds(1, (1 << 42) - 1, 3).unwrap();
            values.iter().for_each(|v| reference.record(v >> shift).unwrap());
            let bytes = STANDARD.decode(encoded(&h)).unwrap();
            let read: Hdr<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            prop_assert_eq!(&read, &reference);
            let mut bytes = Vec::new();
            V2DeflateSerializer::new().serialize(&reference, &mut bytes).unwrap();
            prop_assert_eq!(decoded(&STANDARD.encode(bytes), &h), Some(h));
        }

        #[test]
        fn numbers_survive(value in any::<i64>()) {
            let mut out = Vec::new();
            leb128(value, &mut out);
            prop_assert!(out.len() <= 9);
            prop_assert_eq!(read_leb128(&mut out.as_slice()), Some(value));
            prop_assert_eq!(read_leb128(&mut &out[..out.len() - 1]), None);
        }

        #[test]
        fn arbitrary_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Decoder::new().decode(&STANDARD.encode(&bytes));
            let mut forged = super::DEFLATED_COOKIE.to_be_bytes().to_vec();
            forged.extend(bytes);
            prop_assert!(Decoder::new().decode(&STANDARD.encode(&forged)).is_none());
        }
    }

    #[test]
    fn the_reference_reader_understands_the_log() {
        let h = of(&[1_000_000, 2_000_000, 9_000_000], 0);
        let mut out = HEADER.as_bytes().to_vec();
        let tag = format_args!("0/0/get/response");
        Encoder::new().line(&mut out, tag, 2_500_000_000, 3_500_000_000, &h);
        let entries: Vec<_> = IntervalLogIterator::new(&out)
            .filter_map(Result::ok)
            .collect();
        let found = entries.iter().find_map(|entry| match entry {
            LogEntry::Interval(i) => Some(i),
            _ => None,
        });
        let interval = found.expect("an interval");
        assert_eq!(interval.tag().unwrap().as_str(), "0/0/get/response");
        assert_eq!(interval.start_timestamp().as_millis(), 2500);
        assert_eq!(interval.max(), 9.0);
    }

    #[test]
    fn truncated_lines_are_refused() {
        let text = encoded(&of(&[77_777], 0));
        let half = &text[..text.len() / 2];
        assert!(Decoder::new().decode(half).is_none());
        assert!(split("Tag=a,1,2").is_none() && split("#[StartTime: 1]").is_none());
    }
}
