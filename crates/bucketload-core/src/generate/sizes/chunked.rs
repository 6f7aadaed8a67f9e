//! Chunks of files: each file of a law is cut into whole chunks and a rest, and every chunk is an
//! object of its own.
//!
//! ```text
//!  file of 10 MiB, chunks of 4 MiB:   4 MiB │ 4 MiB │ 2 MiB
//! ```
//!
//! The law is that of a chunk chosen at random among all chunks of many files: a file of n chunks
//! counts n times. With F the law of the files and c the chunk,
//! `P(chunk ≤ x) = Σ_j (F(jc + x) - F(jc)) / E[n]` for x < c, and `E[n] = 1 + Σ_{j ≥ 1} (1 - F(jc))`.

use super::kind::{Kind, mean_of_survival};
use crate::generate::LawError;
use crate::generate::rng::Draws;
use crate::plan::SizeKind;

/// Most chunks of a file: bounds the sums and the draws of a sample.
const MOST: u64 = 256;

/// Chunks of the files of a law.
#[derive(Clone, Debug)]
pub(super) struct Chunked {
    files: Kind,
    chunk: u64,
    /// Chunks of the largest file.
    most: u64,
    /// Expected chunks of a file.
    mean_chunks: f64,
}

impl Chunked {
    pub(super) fn new(files: &SizeKind, chunk: u64) -> Result<Self, LawError> {
        if chunk == 0 {
            return Err(LawError::new("chunk", "is 0, must be at least 1 byte"));
        }
        let files = Kind::new(files).map_err(|e| e.within("files"))?;
        let most = files.support().1.div_ceil(chunk).max(1);
        if most > MOST {
            let reason = format!(
                "is {chunk}: the largest file has {most} chunks, at most {MOST} are possible; \
                 enlarge the chunks or bound the files"
            );
            return Err(LawError::new("chunk", reason));
        }
        let beyond = (1..most).map(|j| 1.0 - files.cdf(j * chunk));
        let mean_chunks = 1.0 + beyond.sum::<f64>();
        Ok(Self {
            files,
            chunk,
            most,
            mean_chunks,
        })
    }

    /// A file is drawn until a number below the most chunks hits one of its own; that chunk is the
    /// result, so every chunk of every file is equally likely.
    #[inline]
    pub(super) fn sample(&self, draws: &mut Draws) -> u64 {
        loop {
            let file = self.files.sample(draws);
            let chunks = file.div_ceil(self.chunk).max(1);
            let at = draws.below(self.most);
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
        let rests = (1..self.most).map(|j| {
            let whole = j * self.chunk;
            self.files.cdf(whole + x) - self.files.cdf(whole)
        });
        (self.files.cdf(x) + rests.sum::<f64>()) / self.mean_chunks
    }

    /// Bisection, on the logarithm while the bracket spans more than a factor of 4.
    pub(super) fn quantile(&self, u: f64) -> u64 {
        let (mut low, mut high) = self.support();
        while low < high {
            let mid = if high / 4 > low.max(1) {
                ((low.max(1) as f64 * high as f64).sqrt() as u64).clamp(low, high - 1)
            } else {
                low + (high - low) / 2
            };
            if self.cdf(mid) >= u {
                high = mid;
            } else {
                low = mid + 1;
            }
        }
        low
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
        // A rest may have any size from 1 byte on where there are files of several chunks.
        let low = if self.most > 1 { low.min(1) } else { low };
        (low, high.min(self.chunk))
    }
}
