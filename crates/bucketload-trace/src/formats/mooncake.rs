//! Traces of Mooncake, a key-value cache for language models (docs/spec/ai-kvcache.md section 3): JSON lines
//! `{"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [block, ...]}`.
//!
//! Each block of a request becomes a read of the object that the block's number names. All reads of a request have
//! its instant and its line number; `part` is the position of the block, `upload` the number of blocks. Sizes are in
//! tokens: `--size-factor` makes them bytes.

use serde::Deserialize;

use super::{Emit, Importer, MS};
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::json::Int;
use bucketload_core::trace::TraceOp;

/// Tokens of a whole block.
pub const MOONCAKE_BLOCK_TOKENS: i64 = 512;

#[derive(Deserialize)]
struct Line {
    timestamp: Int,
    input_length: Int,
    output_length: Int,
    hash_ids: Vec<Int>,
}

/// The importer.
#[derive(Debug, Default)]
pub(super) struct Mooncake {
    record: ParsedRecord,
}

impl Importer for Mooncake {
    fn read(&mut self, line: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let line: Line = super::from_json(line)?;
        let at = Some(line.timestamp.0).filter(|ms| *ms >= 0);
        let ts_ns = at
            .and_then(|ms| ms.checked_mul(MS))
            .ok_or(DropReason::BadTimestamp)?;
        let (tokens, blocks) = (line.input_length.0, &line.hash_ids);
        let expected = (tokens.max(0) as u64).div_ceil(MOONCAKE_BLOCK_TOKENS as u64);
        let negative = line.output_length.0 < 0 || blocks.iter().any(|id| id.0 < 0);
        if tokens < 0 || negative || expected != blocks.len() as u64 {
            return Err(DropReason::BadNumber);
        }
        if blocks.len() > usize::from(u16::MAX) {
            return Err(DropReason::TooLong);
        }
        if blocks.is_empty() {
            return Err(DropReason::NoKey);
        }
        for (i, id) in blocks.iter().enumerate() {
            let r = &mut self.record;
            r.clear();
            r.ts_ns = ts_ns;
            r.op = TraceOp::Get;
            (r.part, r.upload) = (i as u16, blocks.len() as u64);
            r.key.extend_from_slice(id.0.to_string().as_bytes());
            r.size = (tokens - i as i64 * MOONCAKE_BLOCK_TOKENS).min(MOONCAKE_BLOCK_TOKENS);
            emit(r);
        }
        Ok(())
    }
}
