//! The blocks of a trace of inference requests (Mooncake's), and what a cache without limits would hit.

use std::collections::HashSet;

use bucketload_core::trace::{Batch, RecordStream, TraceOp};

use crate::canonical::CanonicalTrace;
use crate::error::TraceError;

/// Most distinct blocks that are counted: their numbers are kept in memory, some 20 bytes each.
const MOST_BLOCKS: usize = 64 << 20;

/// Counts over all requests of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BlockStatistics {
    /// Requests.
    pub requests: u64,
    /// Blocks that the requests list.
    pub listed: u64,
    /// Different blocks.
    pub distinct: u64,
    /// Listed blocks that an earlier request listed too: hits of a cache that keeps everything.
    pub hits: u64,
    /// Those of them before the first miss of their request. Only these save computation.
    pub prefix_hits: u64,
    /// Tokens of all listed blocks.
    pub tokens: u64,
    /// Tokens of the prefix hits.
    pub prefix_hit_tokens: u64,
    /// Tokens of the different blocks, each counted when it is first listed.
    pub distinct_tokens: u64,
    /// Most blocks of a request.
    pub most_blocks: u64,
}

impl BlockStatistics {
    /// Hits per listed block, from 0 to 1; 0 for an empty trace.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.listed.max(1) as f64
    }
}

/// Counts the blocks of `trace`. Records of one line are one request.
///
/// # Errors
/// When the trace cannot be read, has another operation than reads, or has too many different blocks for memory.
pub fn block_statistics(trace: &CanonicalTrace) -> Result<BlockStatistics, TraceError> {
    let mut stream = trace.records()?;
    let mut found = BlockStatistics::default();
    let mut known: HashSet<u64> = HashSet::new();
    let (mut line, mut missed, mut blocks) = (None, false, 0);
    let mut batch = Batch::new();
    let failed = |error: bucketload_core::trace::TraceError| TraceError::Option(error.to_string());
    while stream.next_batch(&mut batch).map_err(failed)? {
        for recorded in batch.iter() {
            let record = recorded.record;
            if record.op != TraceOp::Get {
                return Err(TraceError::Option(format!(
                    "the trace has no blocks: its first {} is no request of a key-value cache; use a trace in the format \
                     mooncake",
                    record.op.name()
                )));
            }
            if line != Some(record.src) {
                (line, missed, blocks) = (Some(record.src), false, 0);
                found.requests += 1;
            }
            blocks += 1;
            found.most_blocks = found.most_blocks.max(blocks);
            found.listed += 1;
            let tokens = record.known_size().unwrap_or(0);
            found.tokens += tokens;
            if known.insert(record.key_hash) {
                found.distinct += 1;
                found.distinct_tokens += tokens;
                missed = true;
            } else {
                found.hits += 1;
                found.prefix_hits += u64::from(!missed);
                found.prefix_hit_tokens += if missed { 0 } else { tokens };
            }
            if known.len() > MOST_BLOCKS {
                return Err(TraceError::Option(format!(
                    "the trace has more than {MOST_BLOCKS} different blocks; use a part of it (--window)"
                )));
            }
        }
    }
    Ok(found)
}
