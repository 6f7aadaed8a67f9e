//! The study's formulas (docs/spec/cs597-grid.md section 3).
//!
//! N processes move F files of S bytes each; process i takes T_i seconds:
//!
//! ```text
//!  A_mean = N·F·S / mean(T_i)       what the study prints, MiB/s
//!  A_slow = N·F·S / max(T_i)
//!  A_wall = N·F·S / (latest end − earliest start)
//!  A_sum  = Σ F·S / T_i             always A_wall ≤ A_slow ≤ A_mean ≤ A_sum
//! ```
//!
//! The R figures count files instead of bytes.

use serde::Serialize;

use crate::units::MIB;

/// The figures of one step. Steps that move no bytes have 0 MiB/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Processes.
    pub processes: u64,
    /// Mean of T_i, seconds.
    pub mean_s: f64,
    /// Largest T_i, seconds.
    pub max_s: f64,
    /// Latest end minus earliest start, seconds.
    pub wall_s: f64,
    /// Coefficient of variation of T_i (standard deviation of the sample over the mean).
    pub cv: f64,
    /// Largest T_i over the mean.
    pub max_over_mean: f64,
    /// From the mean of the times, MiB/s.
    pub a_mean: f64,
    /// From the slowest process, MiB/s.
    pub a_slow: f64,
    /// As an outside observer sees it, MiB/s.
    pub a_wall: f64,
    /// Sum of the processes' rates, MiB/s.
    pub a_sum: f64,
    /// From the mean of the times, files/s.
    pub r_mean: f64,
    /// From the slowest process, files/s.
    pub r_slow: f64,
    /// As an outside observer sees it, files/s.
    pub r_wall: f64,
    /// Sum of the processes' rates, files/s.
    pub r_sum: f64,
}

impl Figures {
    /// The figures of processes that each moved `files` files of `bytes` bytes (a fraction where some failed)
    /// in the times `t_s`, within `wall_s` seconds. All zero without processes or times.
    #[must_use]
    pub fn of(files: f64, bytes: u64, t_s: &[f64], wall_s: f64) -> Self {
        let n = t_s.len() as f64;
        let mean = t_s.iter().sum::<f64>() / n;
        let max = t_s.iter().copied().fold(0.0, f64::max);
        if t_s.is_empty() || mean <= 0.0 {
            return Self::default();
        }
        let square = |t: &f64| (t - mean) * (t - mean);
        let variance = match t_s.len() {
            1 => 0.0,
            _ => t_s.iter().map(square).sum::<f64>() / (n - 1.0),
        };
        let sum: f64 = t_s.iter().filter(|t| **t > 0.0).map(|t| files / t).sum();
        let mib = bytes as f64 / MIB;
        // A clock that did not advance must not give an infinite rate.
        let rate = |s: f64| if s > 0.0 { n * files / s } else { 0.0 };
        Self {
            processes: t_s.len() as u64,
            mean_s: mean,
            max_s: max,
            wall_s,
            cv: variance.sqrt() / mean,
            max_over_mean: max / mean,
            a_mean: rate(mean) * mib,
            a_slow: rate(max) * mib,
            a_wall: rate(wall_s) * mib,
            a_sum: sum * mib,
            r_mean: rate(mean),
            r_slow: rate(max),
            r_wall: rate(wall_s),
            r_sum: sum,
        }
    }

    /// The mean of each figure over the trials; `None` without trials.
    #[must_use]
    pub fn mean(trials: &[Self]) -> Option<Self> {
        let n = trials.len() as f64;
        let over = |figure: fn(&Self) -> f64| trials.iter().map(figure).sum::<f64>() / n;
        let first = trials.first()?;
        Some(Self {
            processes: first.processes,
            mean_s: over(|f| f.mean_s),
            max_s: over(|f| f.max_s),
            wall_s: over(|f| f.wall_s),
            cv: over(|f| f.cv),
            max_over_mean: over(|f| f.max_over_mean),
            a_mean: over(|f| f.a_mean),
            a_slow: over(|f| f.a_slow),
            a_wall: over(|f| f.a_wall),
            a_sum: over(|f| f.a_sum),
            r_mean: over(|f| f.r_mean),
            r_slow: over(|f| f.r_slow),
            r_wall: over(|f| f.r_wall),
            r_sum: over(|f| f.r_sum),
        })
    }

    /// A_mean over A_slow (the same for files).
    #[must_use]
    pub fn mean_over_slow(&self) -> f64 {
        if self.r_slow > 0.0 {
            self.r_mean / self.r_slow
        } else {
            1.0
        }
    }
}
