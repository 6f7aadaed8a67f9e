//! Think time of closed loops, as a function of worker and iteration.

use super::LawError;
use super::elementary::ln;
use super::rng::{Draws, Purpose, Stream};
use crate::plan::GapLaw;

/// Pauses between the operations of a closed loop's workers.
#[derive(Clone, Copy, Debug)]
pub struct ThinkTime {
    law: GapLaw,
    seed: u64,
    stream: Stream,
}

impl ThinkTime {
    /// Pauses by `law` for work `work` of phase `phase` (indices in the plan) of a run with `seed`.
    ///
    /// # Errors
    /// If a uniform law's longest pause is shorter than its shortest.
    ///
    /// # Panics
    /// If `phase` is not below [`Stream::MAX_PHASES`].
    pub fn new(seed: u64, phase: u16, work: u16, law: GapLaw) -> Result<Self, LawError> {
        if let GapLaw::Uniform { min_ns, max_ns } = law
            && min_ns > max_ns
        {
            let reason = format!("is {max_ns}, must be at least min_ns = {min_ns}");
            return Err(LawError::new("think.max_ns", reason));
        }
        Ok(Self {
            law,
            seed,
            stream: Stream::new(Purpose::Think, phase, work),
        })
    }

    /// The pause of `worker` (over all agents) after its `iteration`-th operation, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn pause_ns(&self, worker: u32, iteration: u64) -> u64 {
        // One block (two words) per worker and iteration. The rejection step of the uniform law rarely needs
        // more, and the probability of reaching the next worker's block is negligible.
        let mut draws = Draws::from_draw(self.seed, self.stream, iteration, worker);
        match self.law {
            GapLaw::None => 0,
            GapLaw::Constant { ns } => ns,
            GapLaw::Exponential { mean_ns } => {
                (-ln(draws.next_open()) * mean_ns as f64).round() as u64
            }
            GapLaw::Uniform { min_ns, max_ns } => match (max_ns - min_ns).checked_add(1) {
                Some(n) => min_ns + draws.below(n),
                None => draws.next_u64(),
            },
        }
    }

    /// Mean pause, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        match self.law {
            GapLaw::None => 0.0,
            GapLaw::Constant { ns } => ns as f64,
            GapLaw::Exponential { mean_ns } => mean_ns as f64,
            GapLaw::Uniform { min_ns, max_ns } => 0.5 * (min_ns as f64 + max_ns as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ThinkTime;
    use crate::plan::GapLaw;

    fn mean_and_sd(law: GapLaw) -> (f64, f64, ThinkTime) {
        let think = ThinkTime::new(4, 1, 0, law).unwrap();
        let pauses: Vec<f64> = (0..200_000)
            .map(|i| think.pause_ns(i % 7, u64::from(i / 7)) as f64)
            .collect();
        let n = pauses.len() as f64;
        let mean = pauses.iter().sum::<f64>() / n;
        let variance = pauses.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt(), think)
    }

    #[test]
    fn pauses_follow_their_law() {
        // Four standard errors of the mean: sd / sqrt(200 000) · 4.
        let (mean, sd, think) = mean_and_sd(GapLaw::Exponential { mean_ns: 1_000_000 });
        assert!((mean - think.mean_ns()).abs() < 9_000.0, "{mean}");
        assert!((sd / 1e6 - 1.0).abs() < 0.02, "{sd}");
        let (mean, sd, think) = mean_and_sd(GapLaw::Uniform {
            min_ns: 10,
            max_ns: 20,
        });
        assert!((mean - think.mean_ns()).abs() < 0.03, "{mean}");
        assert!((sd - 10f64.sqrt()).abs() < 0.03, "{sd}");
        assert_eq!(mean_and_sd(GapLaw::Constant { ns: 5 }).0, 5.0);
        assert_eq!(mean_and_sd(GapLaw::None).0, 0.0);
    }

    #[test]
    fn workers_and_iterations_differ_and_repeat() {
        let law = GapLaw::Uniform {
            min_ns: 0,
            max_ns: u64::MAX,
        };
        let think = ThinkTime::new(4, 1, 0, law).unwrap();
        let mut seen = std::collections::HashSet::new();
        for worker in 0..50 {
            for iteration in 0..50 {
                assert!(seen.insert(think.pause_ns(worker, iteration)));
                assert_eq!(
                    think.pause_ns(worker, iteration),
                    think.pause_ns(worker, iteration)
                );
            }
        }
        assert!(
            ThinkTime::new(
                1,
                0,
                0,
                GapLaw::Uniform {
                    min_ns: 2,
                    max_ns: 1
                }
            )
            .is_err()
        );
    }
}
