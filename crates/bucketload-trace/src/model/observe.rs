//! One pass over a trace: what the fits need, in memory that does not grow with it. How often each
//! key was used is counted per partition of the keys, from a temporary file.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use bucketload_core::trace::TraceOp;

use super::arrivals::Observer;
use super::popularity::Spectrum;
use crate::canonical::Canonical;
use crate::error::TraceError;
use crate::prepare::SizeSketch;
use crate::rec::{Rec, get, put};
use crate::spill::{Spill, Stream};

/// Keys that are counted at a time.
const KEYS: u64 = 250_000;

/// What a trace does.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Requests by kind.
    pub(super) kinds: BTreeMap<Kind, u64>,
    pub(super) arrivals: Observer,
    /// Sizes of the objects that are read, by request.
    pub(super) read_sizes: SizeSketch,
    pub(super) write_sizes: SizeSketch,
    pub(super) range_lengths: SizeSketch,
    /// Ranges that begin at a multiple of 4 KiB.
    pub(super) aligned: u64,
    /// Part sizes of uploads, largest.
    pub(super) part: u64,
    /// Keys by the number of their reads, and by that of their overwrites.
    pub(super) reads: Spectrum,
    pub(super) overwrites: Spectrum,
    /// Writes of keys that nothing was known of before.
    pub(super) fresh: u64,
    /// Reads of keys that the trace wrote before.
    pub(super) read_back: u64,
    /// Keys of bulk deletes.
    pub(super) bulk_keys: u64,
}

/// The kinds of requests that a workload tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Get,
    RangeGet,
    Head,
    Put,
    Multipart,
    Delete,
    DeleteMany,
    List,
    Copy,
}

const READ: u64 = 0;
const WRITE: u64 = 1;
const DELETE: u64 = 2;

pub(super) fn observe(trace: &Canonical, temp: &Path) -> Result<Observed, TraceError> {
    let mut seen = Observed::default();
    let partitions = (trace.summary().keys / KEYS + 1).next_power_of_two();
    let mut spill = Spill::for_streams(temp, partitions as usize)?;
    let mut streams: Vec<Stream> = vec![Stream::default(); partitions as usize];
    let mut input = trace.records()?;
    let mut rec = Rec::default();
    let mut bytes = Vec::new();
    while input.next(&mut rec)? {
        let r = &rec.base;
        let times = u64::from(r.repeat);
        let Some(kind) = kind(&rec) else { continue };
        *seen.kinds.entry(kind).or_insert(0) += times;
        seen.arrivals.add(r.ts_ns, times);
        let size = r.size.max(0) as u64;
        let used = match kind {
            Kind::Get | Kind::RangeGet | Kind::Head => {
                if kind != Kind::Head {
                    seen.read_sizes.add_times(size, times);
                }
                if let Some(range) = r.range().filter(|_| kind == Kind::RangeGet) {
                    seen.range_lengths.add_times(range.len, times);
                    seen.aligned += if range.offset % 4096 == 0 { times } else { 0 };
                }
                READ
            }
            Kind::Put | Kind::Multipart => {
                seen.write_sizes.add_times(size, times);
                seen.part = seen.part.max(if kind == Kind::Multipart {
                    r.len.max(0) as u64
                } else {
                    0
                });
                WRITE
            }
            Kind::Delete | Kind::DeleteMany => {
                seen.bulk_keys += rec.more.len() as u64;
                DELETE
            }
            Kind::List | Kind::Copy => continue,
        };
        // The highest bits choose the partition.
        let part = (u128::from(r.key_hash) * u128::from(partitions)) >> 64;
        bytes.clear();
        bytes.extend_from_slice(&r.key_hash.to_le_bytes());
        put(times << 2 | used, &mut bytes);
        spill.push_encoded(&mut streams[part as usize], &bytes)?;
    }
    for stream in &mut streams {
        spill.finish(stream)?;
    }
    for stream in &streams {
        seen.count_keys(&spill, stream)?;
    }
    seen.arrivals.finish(trace.summary().span_ns);
    Ok(seen)
}

fn kind(rec: &Rec) -> Option<Kind> {
    Some(match rec.base.op {
        TraceOp::Get if rec.base.range().is_some() => Kind::RangeGet,
        TraceOp::Get => Kind::Get,
        TraceOp::Head => Kind::Head,
        TraceOp::Put => Kind::Put,
        TraceOp::MpuComplete => Kind::Multipart,
        TraceOp::Delete => Kind::Delete,
        TraceOp::MultiDelete => Kind::DeleteMany,
        TraceOp::List => Kind::List,
        TraceOp::Copy => Kind::Copy,
        TraceOp::MpuInit | TraceOp::MpuPart | TraceOp::MpuAbort | TraceOp::Other => return None,
    })
}

/// What happened to a key.
#[derive(Default)]
struct Uses {
    reads: u64,
    overwrites: u64,
    written: bool,
    seen: bool,
}

impl Observed {
    fn count_keys(&mut self, spill: &Spill, stream: &Stream) -> Result<(), TraceError> {
        let mut keys: HashMap<u64, Uses> = HashMap::new();
        let mut reader = spill.read(stream);
        while let Some(bytes) = reader.next_encoded()? {
            let Some((hash, mut rest)) = bytes.split_first_chunk::<8>() else {
                continue;
            };
            let (hash, word) = (u64::from_le_bytes(*hash), get(&mut rest).unwrap_or(0));
            let (times, used) = (word >> 2, word & 3);
            let key = keys.entry(hash).or_default();
            match used {
                READ => {
                    key.reads += times;
                    self.read_back += if key.written { times } else { 0 };
                }
                WRITE => {
                    let fresh = u64::from(!key.seen);
                    self.fresh += fresh;
                    key.overwrites += times - fresh;
                    key.written = true;
                }
                // A write after a delete creates the object anew.
                _ => {
                    *key = Uses {
                        reads: key.reads,
                        overwrites: key.overwrites,
                        ..Uses::default()
                    }
                }
            }
            key.seen = used != DELETE;
        }
        for key in keys.values() {
            self.reads.add(key.reads);
            self.overwrites.add(key.overwrites);
        }
        Ok(())
    }
}
