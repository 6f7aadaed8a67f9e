//! The exponentially modified Gaussian, N(mu, sigma²) + Exp(mean tau), and its inverse.
//!
//! F(x) = Φ(z) - exp(-(x-mu)/tau + sigma²/(2 tau²))·Φ(z - sigma/tau) with z = (x-mu)/sigma has no closed
//! inverse. As a function of y = ln(u/(1-u)) the quantile is smooth over the whole range (a straight line in
//! the exponential tail, a square root in the Gaussian one), so it is tabulated at equal steps of y and
//! interpolated by cubic Hermite pieces from exact values and slopes:
//!
//! ```text
//!   u ──logit──> y ──cell, Hermite──> x ──(only where the table is too coarse) Newton──> x
//! ```

use crate::generate::elementary::{exp, ln, ln_1p};
use crate::generate::math::{erfcx, normal_cdf, normal_quantile};
use crate::generate::rng::Draws;
use crate::generate::{LawError, positive};

/// The logit of 1 - 2^-53, the largest u below 1, is 36.7.
const Y_MAX: f64 = 37.0;
/// Number of table cells: 64 KiB.
const CELLS: usize = 4096;
/// Accuracy of the quantile relative to max(|x|, sigma/1000).
const ACCURACY: f64 = 1e-9;

/// An exponentially modified Gaussian with tabulated inverse.
#[derive(Clone, Debug)]
pub struct Emg {
    mu: f64,
    sigma: f64,
    tau: f64,
    /// Quantile and its slope times the cell width, at y = -Y_MAX + i·width.
    nodes: Box<[[f64; 2]]>,
    /// Whether the table alone misses the required accuracy.
    refine: bool,
}

/// Survival function, distribution function and density at one point.
struct PointValues {
    survival: f64,
    cdf: f64,
    density: f64,
}

impl Emg {
    /// The law with Gaussian part N(mu, sigma²) and exponential part of mean tau.
    ///
    /// # Errors
    /// If `sigma` or `tau` is not a positive number or `mu` is not a number.
    pub fn new(mu: f64, sigma: f64, tau: f64) -> Result<Self, LawError> {
        if !mu.is_finite() {
            return Err(LawError::new("mu", format!("is {mu}, must be a number")));
        }
        positive("sigma", sigma)?;
        positive("tau", tau)?;
        let mut emg = Self {
            mu,
            sigma,
            tau,
            nodes: Box::default(),
            refine: false,
        };
        let width = 2.0 * Y_MAX / CELLS as f64;
        // A lower bound for every quantile, because the exponential part is positive.
        let mut x = mu + sigma * normal_quantile(1.0 / (1.0 + exp(Y_MAX)));
        let mut nodes = Vec::with_capacity(CELLS + 1);
        for i in 0..=CELLS {
            let y = width * i as f64 - Y_MAX;
            x = emg.solve(y, x);
            nodes.push([x, emg.slope(x, y) * width]);
        }
        emg.nodes = nodes.into_boxed_slice();
        emg.refine = (0..CELLS).any(|i| {
            let y = width * (i as f64 + 0.5) - Y_MAX;
            let x = emg.interpolate(y);
            (emg.newton(x, Tail::at_logit(y)) - x).abs()
                > 0.5 * ACCURACY * x.abs().max(1e-3 * sigma)
        });
        Ok(emg)
    }

    fn at(&self, x: f64) -> PointValues {
        let z = (x - self.mu) / self.sigma;
        let ratio = self.sigma / self.tau;
        let b = z - ratio;
        // exp(-z·ratio + ratio²/2)·Φ(b); for b < 0 rewritten with erfcx, because the exponential overflows
        // where Φ underflows.
        let product = if b < 0.0 {
            0.5 * exp(-0.5 * z * z) * erfcx(-b * std::f64::consts::FRAC_1_SQRT_2)
        } else {
            exp(ratio * (0.5 * ratio - z)) * normal_cdf(b)
        };
        PointValues {
            survival: normal_cdf(-z) + product,
            cdf: normal_cdf(z) - product,
            density: product / self.tau,
        }
    }

    /// P(X ≤ x).
    #[must_use]
    pub fn cdf(&self, x: f64) -> f64 {
        self.at(x).cdf.max(0.0)
    }

    /// P(X > x).
    #[must_use]
    pub fn survival(&self, x: f64) -> f64 {
        self.at(x).survival
    }

    /// Draws one value: the sum of the two draws that define the law.
    #[inline]
    pub fn sample(&self, draws: &mut Draws) -> f64 {
        let gaussian = normal_quantile(draws.next_open());
        self.mu + self.sigma * gaussian - self.tau * ln(draws.next_open())
    }

    /// The x with F(x) = u, accurate to 1e-9 relative to max(|x|, sigma/1000). At the ends of the unit
    /// interval the values are finite; less than 2^-53 of the law lies beyond them.
    #[inline]
    #[must_use]
    pub fn quantile(&self, u: f64) -> f64 {
        let y = ln(u / (1.0 - u)).clamp(-Y_MAX, Y_MAX);
        let x = self.interpolate(y);
        if !self.refine {
            return x;
        }
        // The table is accurate to 1e-6 or better, so one quadratic step suffices.
        self.newton(x, Tail::at_logit(y))
    }

    #[inline]
    fn interpolate(&self, y: f64) -> f64 {
        let position = (y + Y_MAX) * (CELLS as f64 / (2.0 * Y_MAX));
        let cell = (position as usize).min(CELLS - 1);
        let t = position - cell as f64;
        let ([x0, m0], [x1, m1]) = (self.nodes[cell], self.nodes[cell + 1]);
        // Cubic Hermite polynomial in Horner form.
        let rise = x1 - x0;
        x0 + t * (m0 + t * (3.0 * rise - 2.0 * m0 - m1 + t * (m0 + m1 - 2.0 * rise)))
    }

    /// dx/dy at the quantile x of logit y: u(1-u)/f(x).
    fn slope(&self, x: f64, y: f64) -> f64 {
        let at = self.at(x);
        // In the far tails u(1-u)/f is a ratio of tiny numbers; use the tail that is accurate.
        let tail = if y < 0.0 { at.cdf } else { at.survival };
        tail / at.density / (1.0 + exp(-y.abs()))
    }

    /// One Newton step on the logarithm of the smaller tail.
    #[inline]
    fn newton(&self, x: f64, tail: Tail) -> f64 {
        let at = self.at(x);
        match tail {
            Tail::Lower(log) => x + (log - ln(at.cdf.max(f64::MIN_POSITIVE))) * at.cdf / at.density,
            Tail::Upper(log) => x - (log - ln(at.survival)) * at.survival / at.density,
        }
    }

    /// Newton steps from `x` until they no longer matter. The logarithms of both tails are concave (because
    /// the density is log-concave), so the iteration converges from any start after one step.
    fn solve(&self, y: f64, mut x: f64) -> f64 {
        for _ in 0..100 {
            let next = self.newton(x, Tail::at_logit(y));
            let step = (next - x).abs();
            x = next;
            if step <= 1e-12 * x.abs().max(1e-3 * self.sigma) {
                break;
            }
        }
        x
    }
}

/// The smaller of the two tails that a quantile cuts off, as the logarithm of its probability.
#[derive(Clone, Copy)]
enum Tail {
    Lower(f64),
    Upper(f64),
}

impl Tail {
    /// For u = 1/(1 + e^-y): ln u below the median, ln(1-u) above.
    #[inline]
    fn at_logit(y: f64) -> Self {
        let log = -y.abs() - ln_1p(exp(-y.abs()));
        if y < 0.0 {
            Self::Lower(log)
        } else {
            Self::Upper(log)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Emg;

    /// Bisection on F (lower half) or 1 - F (upper half).
    fn bisect(emg: &Emg, u: f64) -> f64 {
        let spread = emg.sigma + emg.tau;
        let (mut low, mut high) = (emg.mu - 60.0 * spread, emg.mu + 60.0 * spread);
        for _ in 0..200 {
            let mid = 0.5 * (low + high);
            let above = if u < 0.5 {
                emg.cdf(mid) >= u
            } else {
                emg.survival(mid) <= 1.0 - u
            };
            if above { high = mid } else { low = mid }
        }
        0.5 * (low + high)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn quantile_agrees_with_bisection(
            mu in -1e5f64..1e6, sigma in 1f64..1e5, ratio in -3f64..3.0,
            us in prop::collection::vec(1e-9f64..0.999_999_999, 20),
        ) {
            let emg = Emg::new(mu, sigma, sigma * 10f64.powf(ratio)).unwrap();
            for u in us {
                let (got, want) = (emg.quantile(u), bisect(&emg, u));
                let tolerance = 1e-9 * want.abs().max(1e-3 * sigma);
                prop_assert!((got - want).abs() <= tolerance, "u={u}: {got} {want} refine={}", emg.refine);
            }
        }
    }

    #[test]
    fn the_default_law_needs_no_refinement() {
        let kib = 1024.0;
        let emg = Emg::new(32.0 * kib, 8.0 * kib, 93.98 * kib).unwrap();
        assert!(!emg.refine);
        for i in 1..2000 {
            let u = f64::from(i) / 2000.0;
            let (got, want) = (emg.quantile(u), bisect(&emg, u));
            assert!((got / want - 1.0).abs() < 1e-9, "{u} {got} {want}");
        }
    }

    #[test]
    fn ends_are_finite_and_ordered() {
        let emg = Emg::new(10.0, 1.0, 100.0).unwrap();
        let ends = [0.0, 1e-300, 0.5, 1.0 - f64::EPSILON / 2.0, 1.0].map(|u| emg.quantile(u));
        assert!(ends.iter().all(|x| x.is_finite()));
        assert!(ends.is_sorted(), "{ends:?}");
    }
}
