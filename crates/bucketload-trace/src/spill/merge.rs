//! Merges sorted streams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::TraceError;
use crate::named_record::NamedRecord;

use super::{Reader, Spill, Stream};

/// Sort key of a record, then index of its stream, so that merging is stable.
type Head = Reverse<((i64, u64), usize)>;

/// Sorted streams, merged into one.
pub(crate) struct Merge {
    readers: Vec<Reader>,
    heads: Vec<NamedRecord>,
    heap: BinaryHeap<Head>,
}

/// Merges sorted and finished streams of `spill` until few enough are left. Equal records keep the order of their
/// streams.
pub(crate) fn reduce(spill: &mut Spill, streams: &mut Vec<Stream>) -> Result<(), TraceError> {
    while streams.len() > spill.fan_in() {
        let mut merged = Vec::new();
        for group in streams.chunks(spill.fan_in()) {
            let mut out = Stream::default();
            let mut input = Merge::new(spill, group)?;
            let mut rec = NamedRecord::default();
            while input.next(&mut rec)? {
                spill.push(&mut out, &rec)?;
            }
            spill.finish(&mut out)?;
            merged.push(out);
        }
        *streams = merged;
    }
    Ok(())
}

impl Merge {
    /// Merges streams, at most as many as [`reduce`] leaves.
    pub(crate) fn new(spill: &Spill, streams: &[Stream]) -> Result<Self, TraceError> {
        let mut merge = Self {
            readers: Vec::new(),
            heads: Vec::new(),
            heap: BinaryHeap::new(),
        };
        for stream in streams {
            let mut reader = spill.read(stream);
            let mut head = NamedRecord::default();
            if reader.next(&mut head)? {
                merge
                    .heap
                    .push(Reverse((head.order(), merge.readers.len())));
                merge.readers.push(reader);
                merge.heads.push(head);
            }
        }
        Ok(merge)
    }

    /// The next record; `false` at the end.
    pub(crate) fn next(&mut self, rec: &mut NamedRecord) -> Result<bool, TraceError> {
        let Some(Reverse((_, i))) = self.heap.pop() else {
            return Ok(false);
        };
        std::mem::swap(rec, &mut self.heads[i]);
        if self.readers[i].next(&mut self.heads[i])? {
            self.heap.push(Reverse((self.heads[i].order(), i)));
        }
        Ok(true)
    }
}
