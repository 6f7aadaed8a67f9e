//! Conversion between the histograms of core and the lines of an HdrHistogram interval log
//! (V2 format, deflated, base64), which other HdrHistogram tools read.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bucketload_core::histogram::Histogram;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// First lines of a log. Times are seconds since the run's epoch; the maximum column is in
/// milliseconds, as the divisor says.
pub(super) const HEADER: &str = "#[Histogram log format version 1.3]\n\
    #[Values in nanoseconds, times in seconds since the run's epoch]\n\
    #[MaxValueDivisor: 1000000.000]\n\
    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// Largest value of the layout, in nanoseconds: the last bucket of [`Histogram`].
const HIGHEST: u64 = (1 << 42) - 1;

/// Writes log lines, reusing its buffers.
pub(super) struct Encoder {
    hdr: Hdr<u64>,
    serializer: V2DeflateSerializer,
    binary: Vec<u8>,
    text: String,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self {
            hdr: Hdr::new_with_bounds(1, HIGHEST, 3).expect("valid bounds"),
            serializer: V2DeflateSerializer::new(),
            binary: Vec::new(),
            text: String::new(),
        }
    }

    /// Appends the line of `histogram` to `out`; nothing when it is empty.
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
        self.hdr.reset();
        for (index, count) in histogram.buckets() {
            // The layouts are the same, so every bucket lies inside the bounds.
            self.hdr
                .record_n(Histogram::lowest_of(index), count)
                .expect("bucket inside the bounds");
        }
        self.binary.clear();
        self.serializer
            .serialize(&self.hdr, &mut self.binary)
            .expect("a histogram of fixed bounds fits into memory");
        self.text.clear();
        // Writing to a String cannot fail.
        let _ = write!(
            self.text,
            "Tag={tag},{:.9},{:.9},{:.6},",
            start_ns as f64 / 1e9,
            (end_ns - start_ns) as f64 / 1e9,
            histogram.max_ns() as f64 / 1e6
        );
        STANDARD.encode_string(&self.binary, &mut self.text);
        self.text.push('\n');
        out.extend_from_slice(self.text.as_bytes());
    }
}

/// Reads log lines, reusing its buffers.
pub(super) struct Decoder {
    deserializer: Deserializer,
    binary: Vec<u8>,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            deserializer: Deserializer::new(),
            binary: Vec::new(),
        }
    }

    /// Adds the histogram encoded as `base64` to `into`. `None` when it cannot be decoded.
    pub(super) fn add(&mut self, base64: &str, into: &mut Histogram) -> Option<()> {
        self.binary.clear();
        STANDARD.decode_vec(base64, &mut self.binary).ok()?;
        let hdr: Hdr<u64> = self
            .deserializer
            .deserialize(&mut self.binary.as_slice())
            .ok()?;
        for bucket in hdr.iter_recorded() {
            into.record_n(
                bucket.value_iterated_to(),
                bucket.count_since_last_iteration(),
            );
        }
        Some(())
    }
}

/// Splits a log line into tag and encoded histogram. `None` for comments and torn lines.
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
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;

    use super::{Decoder, Encoder, HEADER, split};

    proptest! {
        #[test]
        fn buckets_survive(values in prop::collection::vec(0u64..u64::MAX, 1..200), shift in 0u32..60) {
            let mut h = Histogram::new();
            values.iter().for_each(|v| h.record(v >> shift));
            let mut out = Vec::new();
            Encoder::new().line(&mut out, format_args!("0/1/get/service"), 5, 1_000_000_005, &h);
            let text = String::from_utf8(out).unwrap();
            let (tag, encoded) = split(text.trim_end()).unwrap();
            prop_assert_eq!(tag, "0/1/get/service");
            let mut back = Histogram::new();
            Decoder::new().add(encoded, &mut back).unwrap();
            back.set_exact(h.sum_ns(), h.min_ns(), h.max_ns());
            prop_assert_eq!(back, h);
        }
    }

    #[test]
    fn a_foreign_reader_understands_the_log() {
        let mut h = Histogram::new();
        [1_000_000, 2_000_000, 9_000_000]
            .into_iter()
            .for_each(|v| h.record(v));
        let mut out = HEADER.as_bytes().to_vec();
        Encoder::new().line(
            &mut out,
            format_args!("0/0/get/response"),
            2_500_000_000,
            3_500_000_000,
            &h,
        );
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
    fn torn_lines_are_refused() {
        let mut h = Histogram::new();
        h.record(77_777);
        let mut out = Vec::new();
        Encoder::new().line(&mut out, format_args!("t"), 0, 1, &h);
        let text = String::from_utf8(out).unwrap();
        let (_, encoded) = split(text.trim_end()).unwrap();
        let mut back = Histogram::new();
        assert!(
            Decoder::new()
                .add(&encoded[..encoded.len() / 2], &mut back)
                .is_none()
        );
        assert!(split("Tag=a,1,2").is_none() && split("#[StartTime: 1]").is_none());
    }
}
