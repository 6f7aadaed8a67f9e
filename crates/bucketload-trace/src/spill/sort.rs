//! External merge sort by (instant, line number), stable, with bounded memory.
//!
//! Records pass through a window: when it is full it is sorted, and only the earliest quarter
//! leaves it. So a log whose disorder is smaller than the window (servers write a line when a request
//! ends, some merge the lines of several hosts) becomes one run, which is written and read once. Input
//! in any other order becomes runs that are merged.

use crate::error::TraceError;
use crate::rec::Rec;

use super::{Merge, Spill, Stream, reduce};

/// Encoded records that are sorted in memory, bytes: some 200,000 short ones.
const BUFFER: usize = 20 << 20;
/// Of a full window, one part in so many leaves it.
const LEAVES: usize = 4;

struct Item {
    order: (i64, u64),
    start: u32,
    len: u32,
}

/// Takes records in any order and gives them back sorted.
pub(crate) struct Sorter {
    spill: Spill,
    text: Vec<u8>,
    /// What a window keeps, on its way to the front of `text`.
    kept: Vec<u8>,
    items: Vec<Item>,
    runs: Vec<Stream>,
    /// The largest order written into the last run.
    last: Option<(i64, u64)>,
    sorted: bool,
    /// Whether the last write began a run, and whether it emptied the window.
    began: bool,
    emptied: bool,
    records: u64,
    buffer: usize,
}

impl Sorter {
    pub(crate) fn new(spill: Spill) -> Self {
        Self::with_buffer(spill, BUFFER)
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

    pub(crate) fn push(&mut self, rec: &Rec) -> Result<(), TraceError> {
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

    /// Records taken so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Writes the earliest part of the window, or `all` of it.
    fn write(&mut self, all: bool) -> Result<(), TraceError> {
        let Some(_) = self.items.first() else {
            return Ok(());
        };
        if !self.sorted {
            // Stable: equal orders stay as they came.
            self.items.sort_by_key(|item| item.order);
        }
        let begins = self.last.is_none_or(|last| self.items[0].order < last);
        // Two runs in a row: the disorder is larger than the window, whose whole content then makes
        // the longest run. After that the window gets its next chance.
        let whole = all || self.sorted || begins && self.began && !self.emptied;
        let leaving = match whole {
            true => self.items.len(),
            false => self.items.len().div_ceil(LEAVES),
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

    /// Takes the first `leaving` items out of the window.
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

    /// The records in order.
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
    use crate::rec::Rec;

    fn rec(ts_ns: i64, src: u64, key: u64) -> Rec {
        let mut rec = Rec::default();
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
            let mut rec = Rec::default();
            while merged.next(&mut rec).unwrap() {
                let i = String::from_utf8(rec.key.clone()).unwrap().parse().unwrap();
                found.push((rec.order(), i));
            }
            assert!(found == expected, "{n} records, buffer {buffer}");
        }
    }

    #[test]
    fn disorder_within_the_window_is_one_run_and_a_jump_back_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::with_buffer(Spill::new(dir.path()).unwrap(), 100_000);
        let mut expected = Vec::new();
        for i in 0..40_000u64 {
            let late = bucketload_core::generate::rng::mix64(i) % 400;
            let rec = rec((i % 20_000 + late) as i64, i, i);
            expected.push(rec.order());
            sorter.push(&rec).unwrap();
        }
        // The second pass over the same time begins while some of the first is in the window.
        assert!(
            (2..=5).contains(&sorter.runs.len()),
            "{}",
            sorter.runs.len()
        );
        assert_eq!(sorter.records(), 40_000);
        expected.sort_unstable();
        let mut merged = sorter.finish().unwrap();
        let mut rec = Rec::default();
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
