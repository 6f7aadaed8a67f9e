//! Collects what the fits need in one pass over a trace, in bounded memory. Uses of each key are counted per partition of
//! the keys, from a temporary file.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use bucketload_core::trace::TraceOp;

use super::arrivals::Observer;
use super::popularity::Spectrum;
use crate::canonical::CanonicalTrace;
use crate::error::TraceError;
use crate::named_record::{NamedRecord, get, put};
use crate::prepare::SizeSketch;
use crate::spill::{Spill, Stream};

/// Number of keys that are counted at the same time.
const MAX_KEYS: u64 = 250_000;

/// The statistics of a trace.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Number of requests by kind.
    pub(super) kinds: BTreeMap<Kind, u64>,
    pub(super) arrivals: Observer,
    /// Sizes of the objects read, per request.
    pub(super) read_sizes: SizeSketch,
    pub(super) write_sizes: SizeSketch,
    pub(super) range_lengths: SizeSketch,
    /// Number of ranges that begin at a multiple of 4 KiB.
    pub(super) aligned: u64,
    /// Largest part size of uploads.
    pub(super) part: u64,
    /// Spectra of reads and of overwrites per key.
    pub(super) reads: Spectrum,
    pub(super) overwrites: Spectrum,
    /// Number of writes to keys that had not appeared before.
    pub(super) fresh: u64,
    /// Number of reads of keys that the trace had written.
    pub(super) read_back: u64,
    /// Number of further keys of bulk deletes.
    pub(super) bulk_keys: u64,
}

/// The kinds of requests that a workload distinguishes.
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

pub(super) fn observe(trace: &CanonicalTrace, temp: &Path) -> Result<Observed, TraceError> {
    let mut seen = Observed::default();
    let partitions = (trace.summary().keys / MAX_KEYS + 1).next_power_of_two();
    let mut spill = Spill::for_streams(temp, partitions as usize)?;
    let mut streams: Vec<Stream> = vec![Stream::default(); partitions as usize];
    let mut input = trace.records()?;
    let mut rec = NamedRecord::default();
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
        // The highest bits select the partition.
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

fn kind(rec: &NamedRecord) -> Option<Kind> {
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

/// The uses of a key.
#[derive(Default)]
struct KeyUses {
    reads: u64,
    overwrites: u64,
    written: bool,
    seen: bool,
}

impl Observed {
    fn count_keys(&mut self, spill: &Spill, stream: &Stream) -> Result<(), TraceError> {
        let mut keys: HashMap<u64, KeyUses> = HashMap::new();
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
                // A write after a delete creates a new object.
                _ => {
                    *key = KeyUses {
                        reads: key.reads,
                        overwrites: key.overwrites,
                        ..KeyUses::default()
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
