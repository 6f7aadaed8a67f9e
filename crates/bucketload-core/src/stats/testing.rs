//! Seeded noise for statistical tests.

use crate::generate::rng::mix64;

/// A reproducible stream of random numbers.
pub(crate) struct Noise {
    seed: u64,
    counter: u64,
}

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed: mix64(seed),
            counter: 0,
        }
    }

    /// Uniform on (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.counter += 1;
        ((mix64(self.seed ^ mix64(self.counter)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `n` independent values with the given mean and coefficient of variation.
    pub(crate) fn series(&mut self, n: usize, mean: f64, cv: f64) -> Vec<f64> {
        (0..n).map(|_| mean * (1.0 + cv * self.normal())).collect()
    }

    /// First-order autoregressive noise with mean 0, standard deviation `sd` and lag-1
    /// autocorrelation `rho`.
    pub(crate) fn ar1(&mut self, n: usize, rho: f64, sd: f64) -> Vec<f64> {
        let mut x = self.normal() * sd;
        (0..n)
            .map(|_| {
                x = rho * x + (1.0 - rho * rho).sqrt() * sd * self.normal();
                x
            })
            .collect()
    }
}
