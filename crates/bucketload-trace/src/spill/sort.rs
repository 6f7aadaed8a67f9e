//! External merge sort by (instant, line number), stable, with bounded memory.
//!
//! Sorted stretches of the input become one run, so that a log that is in order already is only
//! written and read once.

use crate::error::TraceError;
use crate::rec::Rec;

use super::{Merge, Spill, Stream, reduce};

/// Encoded records that are sorted in memory, bytes.
const BUFFER: usize = 12 << 20;

struct Item {
    order: (i64, u64),
    start: u32,
    len: u32,
}

/// Takes records in any order and gives them back sorted.
pub(crate) struct Sorter {
    spill: Spill,
    text: Vec<u8>,
    items: Vec<Item>,
    runs: Vec<Stream>,
    /// The largest order written into the last run.
    last: Option<(i64, u64)>,
    sorted: bool,
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
            items: Vec::new(),
            runs: Vec::new(),
            last: None,
            sorted: true,
            buffer,
        }
    }

    pub(crate) fn push(&mut self, rec: &Rec) -> Result<(), TraceError> {
        let order = rec.order();
        self.sorted &= self.items.last().is_none_or(|item| item.order <= order);
        let start = self.text.len();
        rec.encode(true, &mut self.text);
        // The buffer is some 12 MiB, so offsets and lengths fit.
        self.items.push(Item {
            order,
            start: start as u32,
            len: (self.text.len() - start) as u32,
        });
        // An item counts as much as a short record.
        if self.text.len() + self.items.len() * size_of::<Item>() >= self.buffer {
            self.write_run()?;
        }
        Ok(())
    }

    fn write_run(&mut self) -> Result<(), TraceError> {
        let Some(_) = self.items.first() else {
            return Ok(());
        };
        if !self.sorted {
            // Stable: equal orders stay as they came.
            self.items.sort_by_key(|item| item.order);
        }
        let first = self.items[0].order;
        if self.last.is_none_or(|last| first < last) {
            if let Some(run) = self.runs.last_mut() {
                self.spill.finish(run)?;
            }
            self.runs.push(Stream::default());
        }
        if let Some(run) = self.runs.last_mut() {
            for item in &self.items {
                let (start, len) = (item.start as usize, item.len as usize);
                self.spill
                    .push_encoded(run, &self.text[start..start + len])?;
            }
        }
        self.last = self.items.last().map(|item| item.order);
        self.text.clear();
        self.items.clear();
        self.sorted = true;
        Ok(())
    }

    /// The records in order.
    pub(crate) fn finish(mut self) -> Result<Merge, TraceError> {
        self.write_run()?;
        (self.text, self.items) = (Vec::new(), Vec::new());
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
