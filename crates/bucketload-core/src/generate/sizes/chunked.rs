//! Chunks of files: each file drawn from a law is cut into whole chunks and a remainder, and every chunk is a
//! separate object.
//!
//! ```text
//!  file of 10 MiB, chunks of 4 MiB:   4 MiB │ 4 MiB │ 2 MiB
//! ```
//!
//! The law is that of a chunk chosen at random among all chunks of many files: a file of n chunks counts n
//! times. With F the law of the files and c the chunk, `P(chunk ≤ x) = Σ_j (F(jc + x) - F(jc)) / E[n]` for x
//! < c, and `E[n] = 1 + Σ_{j ≥ 1} (1 - F(jc))`.

use super::kind::{Kind, mean_of_survival, smallest};
use crate::generate::LawError;
use crate::generate::rng::Draws;
use crate::plan::SizeKind;

/// Maximum number of chunks per file: bounds the sums and the draws of a sample.
const MAX_CHUNKS: u64 = 256;

/// Chunks of the files of a law.
#[derive(Clone, Debug)]
pub(super) struct Chunked {
    files: Kind,
    chunk: u64,
    /// Number of chunks of the largest file.
    max_chunks: u64,
    /// Expected number of chunks per file.
    mean_chunks: f64,
}

impl Chunked {
    pub(super) fn new(files: &SizeKind, chunk: u64) -> Result<Self, LawError> {
        if chunk == 0 {
            return Err(LawError::new("chunk", "is 0, must be at least 1 byte"));
        }
        let files = Kind::new(files).map_err(|e| e.within("files"))?;
        let max_chunks = files.support().1.div_ceil(chunk).max(1);
        if max_chunks > MAX_CHUNKS {
            let reason = format!(
                "is {chunk}: the largest file would have {max_chunks} chunks, the maximum is {MAX_CHUNKS}; \
                 enlarge the chunks or bound the files"
            );
            return Err(LawError::new("chunk", reason));
        }
        let beyond = (1..max_chunks).map(|j| 1.0 - files.cdf(j * chunk));
        let mean_chunks = 1.0 + beyond.sum::<f64>();
        Ok(Self {
            files,
            chunk,
            max_chunks,
            mean_chunks,
        })
    }

    /// Draws a file and a number below the maximum number of chunks until the number hits one of the file's
    /// chunks. That chunk is the result, so every chunk of every file is equally likely.
    #[inline]
    pub(super) fn sample(&self, draws: &mut Draws) -> u64 {
        loop {
            let file = self.files.sample(draws);
            let chunks = file.div_ceil(self.chunk).max(1);
            let at = draws.below(self.max_chunks);
            if at + 1 < chunks {
                return self.chunk;
            }
            if at < chunks {
                return file - at * self.chunk;
            }
        }
    }

    pub(super) fn cdf(&self, x: u64) -> f64 {
        if x >= self.chunk {
            return 1.0;
        }
        let rests = (1..self.max_chunks).map(|j| {
            let whole = j * self.chunk;
            self.files.cdf(whole + x) - self.files.cdf(whole)
        });
        (self.files.cdf(x) + rests.sum::<f64>()) / self.mean_chunks
    }

    pub(super) fn quantile(&self, u: f64) -> u64 {
        let (low, high) = self.support();
        smallest(low, high, |x| self.cdf(x) >= u)
    }

    pub(super) fn clamped_mean(&self, min: u64, max: u64) -> f64 {
        let (low, high) = self.support();
        if min <= low && max >= high {
            return self.files.clamped_mean(0, u64::MAX) / self.mean_chunks;
        }
        let survival = |x: f64| 1.0 - self.cdf(x.max(0.0) as u64);
        mean_of_survival(survival, (low as f64, high as f64), min, max)
    }

    pub(super) fn support(&self) -> (u64, u64) {
        let (low, high) = self.files.support();
        // With files of several chunks, a remainder may have any size from 1 byte.
        let low = if self.max_chunks > 1 { low.min(1) } else { low };
        (low, high.min(self.chunk))
    }
}
