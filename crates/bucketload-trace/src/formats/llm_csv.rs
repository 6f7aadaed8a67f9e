//! Traces of language models without blocks (docs/spec/ai-kvcache.md section 3): the Azure LLM inference traces of
//! 2023 and 2024, and BurstGPT. Separated by commas, with a header whose columns are found by name.
//!
//! Each request becomes a write of a new object, whose size is the number of tokens that the model read:
//! `--size-factor` makes it bytes. The traces do not say which requests share a prefix.

use super::{Emit, Importer, SECOND};
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::{signed, split_csv};
use crate::text::time::{decimal, rfc3339};
use bucketload_core::trace::TraceOp;

/// The names of the columns that a trace must have, and the form of its instants.
#[derive(Debug)]
pub(super) struct Names {
    time: &'static [u8],
    input: &'static [u8],
    output: &'static [u8],
    instant: fn(&[u8]) -> Option<i64>,
}

/// Azure's traces: dates with fractions of a second.
pub(super) const AZURE: Names = Names {
    time: b"TIMESTAMP",
    input: b"ContextTokens",
    output: b"GeneratedTokens",
    instant: rfc3339,
};

/// BurstGPT: seconds since the beginning of the trace.
pub(super) const BURSTGPT: Names = Names {
    time: b"Timestamp",
    input: b"Request tokens",
    output: b"Response tokens",
    instant: seconds,
};

fn seconds(text: &[u8]) -> Option<i64> {
    decimal(text, SECOND).filter(|ns| *ns >= 0)
}

/// The importer.
#[derive(Debug)]
pub(super) struct LlmCsv {
    names: Names,
    /// Indices of the columns of [`Names`], once the header is read.
    columns: Option<[usize; 3]>,
    spans: Vec<(usize, usize)>,
    record: ParsedRecord,
    line: u64,
}

impl LlmCsv {
    pub(super) fn new(names: Names) -> Self {
        Self {
            names,
            columns: None,
            spans: Vec::new(),
            record: ParsedRecord::default(),
            line: 0,
        }
    }

    fn header(&self, line: &[u8]) -> Option<[usize; 3]> {
        let name = |&(a, b): &(usize, usize)| line[a..b].trim_ascii();
        let at = |wanted: &[u8]| self.spans.iter().position(|span| name(span) == wanted);
        let names = &self.names;
        Some([at(names.time)?, at(names.input)?, at(names.output)?])
    }
}

impl Importer for LlmCsv {
    fn start_file(&mut self) {
        (self.columns, self.line) = (None, 0);
    }

    fn read(&mut self, line: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        self.line += 1;
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if !split_csv(line, b',', &mut self.spans) {
            return Err(DropReason::Truncated);
        }
        let Some(columns) = self.columns else {
            self.columns = self.header(line);
            return self.columns.map(drop).ok_or(DropReason::Malformed);
        };
        let value = |at: usize| {
            let &(a, b) = self.spans.get(at).ok_or(DropReason::Truncated)?;
            Ok(line[a..b].trim_ascii())
        };
        let tokens = |at: usize| {
            let count = signed(value(at)?).filter(|n| *n >= 0);
            count.ok_or(DropReason::BadNumber)
        };
        let time = value(columns[0])?;
        let ts_ns = (self.names.instant)(time).ok_or(DropReason::BadTimestamp)?;
        let (input, _) = (tokens(columns[1])?, tokens(columns[2])?);
        let r = &mut self.record;
        r.clear();
        r.ts_ns = ts_ns;
        r.op = TraceOp::Put;
        // The instant keeps requests of several files apart.
        r.key
            .extend_from_slice(format!("{ts_ns}-{}", self.line).as_bytes());
        r.size = input;
        emit(r);
        Ok(())
    }
}
