//! What the readers of a training read ([`TrainPlan`], docs/spec/ai-training.md section 4).
//!
//! The order of samples in an epoch is a permutation of the objects; the samples of an object follow one another. Each
//! reader goes through a contiguous part of this order, batch by batch, and reads what the next batch lacks.

use super::permute::Permutation;
use super::rng::mix64;
use crate::op::ByteRange;
use crate::plan::TrainPlan;
use crate::plan::train::TrainRead;

/// The reads of a training.
#[derive(Clone, Debug)]
pub struct TrainGen {
    plan: TrainPlan,
    seed: u64,
    keyset: u16,
    /// First byte of each column that is read, within a row.
    starts: Vec<u64>,
}

/// A read: an object, or a range of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Index of the object in its key set.
    pub object: u64,
    /// The range; `None` for the whole object.
    pub range: Option<ByteRange>,
}

impl TrainGen {
    /// The reads of `plan` on key set `keyset` of a run with `seed`.
    #[must_use]
    pub fn new(plan: TrainPlan, seed: u64, keyset: u16) -> Self {
        let starts = match &plan.read {
            TrainRead::Columns { row, widths, .. } => {
                let gap = row.saturating_sub(widths.iter().sum());
                let mut before = 0;
                let starts = widths.iter().zip(0u64..).map(|(width, column)| {
                    let start = before + gap * column / widths.len() as u64;
                    before += width;
                    start
                });
                starts.collect()
            }
            TrainRead::Whole | TrainRead::Ranges { .. } => Vec::new(),
        };
        Self {
            plan,
            seed,
            keyset,
            starts,
        }
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &TrainPlan {
        &self.plan
    }

    /// The order of objects in an epoch.
    #[must_use]
    pub fn order(&self, epoch: u32) -> Permutation {
        let seed = mix64(self.seed ^ mix64(u64::from(epoch) + 1));
        Permutation::new(seed, self.keyset, self.plan.objects)
    }

    /// What reader `reader` of accelerator `accelerator` reads in epoch `epoch`.
    #[must_use]
    pub fn reads(&self, epoch: u32, accelerator: u32, reader: u32) -> Reads<'_> {
        let (first, len) = self.plan.part(accelerator, reader);
        Reads {
            of: self,
            order: self.order(epoch),
            at: first,
            until: first,
            end: first + len,
            place: None,
            object: 0,
            size: 0,
            read_to: 0,
            column: 0,
        }
    }
}

/// The reads of one reader in one epoch.
#[derive(Clone, Debug)]
pub struct Reads<'a> {
    of: &'a TrainGen,
    order: Permutation,
    /// The next sample, as a position in the order of the epoch.
    at: u64,
    /// End of the batch.
    until: u64,
    /// End of the reader's part.
    end: u64,
    /// Place of the current object in the order.
    place: Option<u64>,
    object: u64,
    /// Its size, where ranges need it.
    size: u64,
    /// Bytes or rows of the object that have been read, from its start.
    read_to: u64,
    /// The next column of the row group.
    column: usize,
}

impl Reads<'_> {
    /// Goes on to the next batch; `false` if there is none.
    pub fn batch(&mut self) -> bool {
        let more = self.until < self.end;
        self.until = (self.until + self.of.plan.batch).min(self.end);
        more
    }

    /// The next read that the batch needs; `None` once it is complete. `size_of` tells the bytes of an object.
    pub fn next(&mut self, size_of: impl Fn(u64) -> u64) -> Option<Read> {
        let samples = self.of.plan.samples;
        while self.at < self.until {
            let place = self.at / samples;
            let within = self.at - place * samples;
            let opened = self.place != Some(place);
            if opened {
                self.place = Some(place);
                self.object = self.order.apply(place);
            }
            // The samples of this object that the batch needs end here.
            let wanted = (self.until - place * samples).min(samples);
            let read = match &self.of.plan.read {
                TrainRead::Whole => opened.then_some(None),
                TrainRead::Ranges { bytes } => {
                    if opened {
                        self.size = size_of(self.object);
                        // Part of an object: from the range in which its first sample begins.
                        let start = share(within, samples, self.size, u128::div_euclid);
                        self.read_to = start / bytes * bytes;
                    }
                    let need = share(wanted, samples, self.size, u128::div_ceil);
                    (self.read_to < need).then(|| {
                        let offset = self.read_to;
                        let len = (self.size - offset).min(*bytes);
                        self.read_to += len;
                        Some(ByteRange { offset, len })
                    })
                }
                TrainRead::Columns { row, group, widths } => {
                    if opened {
                        self.read_to = within / group * group;
                        self.column = 0;
                    }
                    (self.read_to < wanted).then(|| {
                        let rows = (samples - self.read_to).min(*group);
                        let base = self.read_to * row;
                        let range = ByteRange {
                            offset: base + self.of.starts[self.column] * rows,
                            len: widths[self.column] * rows,
                        };
                        self.column += 1;
                        if self.column == widths.len() {
                            self.column = 0;
                            self.read_to += rows;
                        }
                        Some(range)
                    })
                }
            };
            match read {
                Some(range) => {
                    return Some(Read {
                        object: self.object,
                        range,
                    });
                }
                None => self.at = place * samples + wanted,
            }
        }
        None
    }
}

/// `size · sample / samples` bytes, divided by `divide`.
fn share(sample: u64, samples: u64, size: u64, divide: fn(u128, u128) -> u128) -> u64 {
    let bytes = divide(u128::from(sample) * u128::from(size), u128::from(samples));
    // At most `size`, because the sample is at most the last.
    u64::try_from(bytes).unwrap_or(size)
}

#[cfg(test)]
mod tests {
    use super::{ByteRange, Read, TrainGen};
    use crate::plan::TrainPlan;
    use crate::plan::train::TrainRead;

    fn plan() -> TrainPlan {
        TrainPlan {
            accelerators: 2,
            readers: 4,
            ahead: 1,
            batch: 7,
            computation_ns: 323_000_000,
            epochs: 5,
            steps: 0,
            objects: 168,
            samples: 1,
            record: 146_600_628.0,
            read: TrainRead::Whole,
            mark: 0.9,
        }
    }

    fn all(plan: &TrainPlan, epoch: u32, size: u64) -> Vec<Vec<Read>> {
        let train = TrainGen::new(plan.clone(), 3, 0);
        let mut out = Vec::new();
        for accelerator in 0..plan.accelerators {
            let mut own = Vec::new();
            for reader in 0..plan.readers {
                let mut reads = train.reads(epoch, accelerator, reader);
                let mut batches = 0;
                while reads.batch() {
                    batches += 1;
                    while let Some(read) = reads.next(|_| size) {
                        own.push(read);
                    }
                }
                assert_eq!(batches, plan.batches(reader).0);
            }
            out.push(own);
        }
        out
    }

    #[test]
    fn every_accelerator_makes_as_many_steps_and_the_rest_is_left_out() {
        assert_eq!(plan().steps(), 12);
        let uneven = TrainPlan {
            objects: 181,
            ..plan()
        };
        assert_eq!(uneven.steps(), 12);
        let limited = TrainPlan { steps: 3, ..plan() };
        assert_eq!(limited.steps(), 3);
        let of_files = TrainPlan {
            objects: 1024,
            samples: 1251,
            batch: 400,
            accelerators: 8,
            ..plan()
        };
        assert_eq!(of_files.steps(), 1024 * 1251 / 400 / 8);
        // 13 batches of 4 readers: one has one more, and their parts follow one another.
        let thirteen = TrainPlan {
            objects: 13 * 14,
            ..plan()
        };
        let batches: Vec<_> = (0..4).map(|reader| thirteen.batches(reader)).collect();
        assert_eq!(batches, [(4, 0), (3, 4), (3, 7), (3, 10)]);
    }

    #[test]
    fn an_epoch_reads_every_object_once_in_an_order_of_its_own() {
        let plan = plan();
        let (first, second) = (all(&plan, 0, 1), all(&plan, 1, 1));
        for epoch in [&first, &second] {
            let mut objects: Vec<u64> = epoch.iter().flatten().map(|read| read.object).collect();
            assert!(epoch.iter().all(|own| own.len() == 84));
            objects.sort_unstable();
            assert_eq!(objects, (0..168).collect::<Vec<_>>());
        }
        assert_ne!(first, second);
        assert_eq!(first, all(&plan, 0, 1));
    }

    #[test]
    fn objects_of_many_samples_are_read_once_by_a_reader() {
        let plan = TrainPlan {
            accelerators: 1,
            readers: 2,
            batch: 400,
            objects: 64,
            samples: 1251,
            ..plan()
        };
        // 200 steps of 400 samples: 100 per reader, 40,000 samples, which touch 32 objects each.
        assert_eq!(plan.steps(), 200);
        assert_eq!(all(&plan, 0, 1)[0].len(), 32 + 33);
        assert_eq!(plan.requests(1.0), 5.0 * 65.0);
    }

    #[test]
    fn ranges_follow_one_another_as_far_as_the_batch_needs() {
        let plan = TrainPlan {
            accelerators: 1,
            readers: 1,
            batch: 2,
            objects: 2,
            samples: 4,
            read: TrainRead::Ranges { bytes: 30 },
            ..plan()
        };
        let train = TrainGen::new(plan.clone(), 3, 0);
        let mut reads = train.reads(0, 0, 0);
        let mut batches = Vec::new();
        while reads.batch() {
            let mut ranges = Vec::new();
            while let Some(read) = reads.next(|_| 100) {
                let range = read.range.unwrap();
                ranges.push((range.offset, range.len));
            }
            batches.push(ranges);
        }
        let halves = [vec![(0, 30), (30, 30)], vec![(60, 30), (90, 10)]];
        assert_eq!(batches, [halves.clone(), halves].concat());
        assert_eq!(plan.requests(100.0), 5.0 * 8.0);
    }

    /// Section 4: 40 of 200 columns, 160 of 761 bytes per row, row groups of 6144 rows.
    #[test]
    fn column_chunks_lie_within_their_row_group() {
        let widths = vec![4, 8, 2, 1];
        let plan = TrainPlan {
            accelerators: 1,
            readers: 1,
            batch: 16_384,
            objects: 1,
            samples: 65_536,
            read: TrainRead::Columns {
                row: 61,
                group: 6144,
                widths: widths.clone(),
            },
            ..plan()
        };
        let reads = &all(&plan, 0, 61 * 65_536)[0];
        // 10 whole row groups and one of 4096 rows.
        assert_eq!(reads.len(), 11 * 4);
        let first = reads[0].range.unwrap();
        assert_eq!((first.offset, first.len), (0, 4 * 6144));
        // The 46 bytes of other columns are spread: 11 before the second column.
        let second = reads[1].range.unwrap();
        assert_eq!((second.offset, second.len), (15 * 6144, 8 * 6144));
        let last = reads[43].range.unwrap();
        assert_eq!(last.len, 4096);
        let end = |range: ByteRange| range.offset + range.len;
        assert!(end(last) <= 61 * 65_536);
        let total: u64 = reads.iter().map(|read| read.range.unwrap().len).sum();
        assert_eq!(total, 15 * 65_536);
        assert_eq!(plan.needed(), 15.0);
        assert_eq!(plan.requests(0.0), 5.0 * 44.0);
    }
}
