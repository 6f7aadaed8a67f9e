//! External merge sort by (instant, line number), stable, with bounded memory.
//!
//! Records pass through a window. When the window is full, it is sorted, and only the earliest quarter is written.
//! A log whose disorder is smaller than the window thus becomes one run, written and read once: servers write a line
//! when a request ends, and some merge the lines of several hosts. Input in any other order becomes several runs,
//! which are merged.

use crate::error::TraceError;
use crate::named_record::NamedRecord;

use super::{Merge, Spill, Stream, reduce};

/// Size of the window of encoded records, bytes: some 200,000 short records.
const WINDOW_BYTES: usize = 20 << 20;
/// Fraction of a full window that is written: one part of this many.
const WINDOW_PARTS: usize = 4;

struct Item {
    order: (i64, u64),
    start: u32,
    len: u32,
}

/// Sorts records that arrive in any order.
pub(crate) struct Sorter {
    spill: Spill,
    text: Vec<u8>,
    /// Scratch buffer for the records that stay in the window.
    kept: Vec<u8>,
    items: Vec<Item>,
    runs: Vec<Stream>,
    /// The largest sort key written into the last run.
    last: Option<(i64, u64)>,
    sorted: bool,
    /// Whether the last write began a new run, and whether it emptied the window.
    began: bool,
    emptied: bool,
    records: u64,
    buffer: usize,
}

impl Sorter {
    pub(crate) fn new(spill: Spill) -> Self {
        Self::with_buffer(spill, WINDOW_BYTES)
    }

    fn with_buffer(spill: Spill, buffer: usize) -> Self {
        Self {
            spill,
            text: Vec::with_capacity(buffer + (64 << 10)),
            kept: Vec::new(),
            items: Vec::new(),
            runs: Vec::new(),
            last: None,
            sorted: true,
            began: false,
            emptied: false,
            records: 0,
            buffer,
        }
    }

    pub(crate) fn push(&mut self, rec: &NamedRecord) -> Result<(), TraceError> {
        let order = rec.order();
        self.sorted &= self.items.last().is_none_or(|item| item.order <= order);
        let start = self.text.len();
        rec.encode(true, &mut self.text);
        // The window is some 20 MiB, so offsets and lengths fit.
        self.items.push(Item {
            order,
            start: start as u32,
            len: (self.text.len() - start) as u32,
        });
        self.records += 1;
        // An item counts as much as a short record.
        if self.text.len() + self.items.len() * size_of::<Item>() >= self.buffer {
            self.write(false)?;
        }
        Ok(())
    }

    /// Number of records so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Writes the earliest part of the window, or `all` of it.
    fn write(&mut self, all: bool) -> Result<(), TraceError> {
        let Some(_) = self.items.first() else {
            return Ok(());
        };
        if !self.sorted {
            // The sort is stable: records with equal keys keep their order.
            self.items.sort_by_key(|item| item.order);
        }
        let begins = self.last.is_none_or(|last| self.items[0].order < last);
        // After two new runs in a row, the disorder is larger than the window, so writing the whole window makes the
        // longest run. The next window is again written in part.
        let whole = all || self.sorted || begins && self.began && !self.emptied;
        let leaving = match whole {
            true => self.items.len(),
            false => self.items.len().div_ceil(WINDOW_PARTS),
        };
        if begins {
            if let Some(run) = self.runs.last_mut() {
                self.spill.finish(run)?;
            }
            self.runs.push(Stream::default());
        }
        let Some(run) = self.runs.last_mut() else {
            return Ok(());
        };
        for item in &self.items[..leaving] {
            let (start, len) = (item.start as usize, item.len as usize);
            self.spill
                .push_encoded(run, &self.text[start..start + len])?;
            self.last = Some(item.order);
        }
        (self.began, self.emptied) = (begins, whole);
        self.keep(leaving);
        Ok(())
    }

    /// Removes the first `leaving` items from the window.
    fn keep(&mut self, leaving: usize) {
        self.items.drain(..leaving);
        self.kept.clear();
        for item in &mut self.items {
            let (start, len) = (item.start as usize, item.len as usize);
            // A window is some 20 MiB, so offsets fit.
            item.start = self.kept.len() as u32;
            self.kept.extend_from_slice(&self.text[start..start + len]);
        }
        std::mem::swap(&mut self.text, &mut self.kept);
        self.sorted = true;
    }

    /// Returns the records in order.
    pub(crate) fn finish(mut self) -> Result<Merge, TraceError> {
        self.write(true)?;
        (self.text, self.kept, self.items) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(run) = self.runs.last_mut() {
            self.spill.finish(run)?;
        }
        reduce(&mut self.spill, &mut self.runs)?;
        Merge::new(&self.spill, &self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::{Sorter, Spill};
    use crate::named_record::NamedRecord;

    fn rec(ts_ns: i64, src: u64, key: u64) -> NamedRecord {
        let mut rec = NamedRecord::default();
        rec.base.ts_ns = ts_ns;
        rec.base.src = src;
        rec.key = key.to_string().into_bytes();
        rec
    }

    #[test]
    fn sorting_is_stable_whatever_the_number_of_runs() {
        let dir = tempfile::tempdir().unwrap();
        for (n, buffer) in [(0, 1000), (10, 1 << 20), (20_000, 2_000), (20_000, 40_000)] {
            let mut sorter = Sorter::with_buffer(Spill::new(dir.path()).unwrap(), buffer);
            let mut expected = Vec::new();
            for i in 0..n {
                // Few different instants and sources, so that many are equal.
                let hash = bucketload_core::generate::rng::mix64(i);
                let rec = rec((hash % 50) as i64 - 25, hash >> 32 & 1, i);
                expected.push((rec.order(), i));
                sorter.push(&rec).unwrap();
            }
            expected.sort();
            let mut merged = sorter.finish().unwrap();
            let mut found = Vec::new();
            let mut rec = NamedRecord::default();
            while merged.next(&mut rec).unwrap() {
                let i = String::from_utf8(rec.key.clone()).unwrap().parse().unwrap();
                found.push((rec.order(), i));
            }
            assert!(found == expected, "{n} records, buffer {buffer}");
        }
    }

    #[test]
    fn disorder_within_the_window_makes_one_run_and_a_jump_back_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::with_buffer(Spill::new(dir.path()).unwrap(), 100_000);
        let mut expected = Vec::new();
        for i in 0..40_000u64 {
            let late = bucketload_core::generate::rng::mix64(i) % 400;
            let rec = rec((i % 20_000 + late) as i64, i, i);
            expected.push(rec.order());
            sorter.push(&rec).unwrap();
        }
        // The second pass over the same time begins while the window still holds part of the first.
        assert!(
            (2..=5).contains(&sorter.runs.len()),
            "{}",
            sorter.runs.len()
        );
        assert_eq!(sorter.records(), 40_000);
        expected.sort_unstable();
        let mut merged = sorter.finish().unwrap();
        let mut rec = NamedRecord::default();
        for order in expected {
            assert!(merged.next(&mut rec).unwrap());
            assert_eq!(rec.order(), order);
        }
        assert!(!merged.next(&mut rec).unwrap());
    }

    #[test]
    fn sorted_input_is_one_run() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::with_buffer(Spill::new(dir.path()).unwrap(), 2000);
        for i in 0..5000 {
            sorter.push(&rec(i / 3, i as u64, 0)).unwrap();
        }
        assert_eq!(sorter.runs.len(), 1);
        assert!(sorter.spill.bytes() < 5000 * 12);
    }
}
