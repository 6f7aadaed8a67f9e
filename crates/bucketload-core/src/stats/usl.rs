//! How throughput scales with concurrency or nodes: the Universal Scalability Law.
//!
//! ```text
//! X(N) = gamma N / (1 + alpha (N-1) + beta N (N-1))
//! ```
//!
//! gamma is the throughput of a single unit, alpha the contention, beta the cost of coherency. The peak is at
//! N* = sqrt((1-alpha)/beta) (Gunther, *Guerrilla Capacity Planning*, chapter 4; docs/spec/statistics.md
//! section 7). The three parameters are fitted by least squares of relative residuals (weights 1/X²) under
//! gamma > 0, 0 ≤ alpha ≤ 1, beta ≥ 0; the intervals come from a parametric bootstrap. Fewer than six
//! distinct N, or a range below 32, cannot support three parameters; then only the efficiency X(N)/(N X(1))
//! is reported.

use serde::{Deserialize, Serialize};

use crate::generate::rng::{mix64, unit};

/// Minimum number of distinct N for a fit.
pub const MIN_DISTINCT: usize = 6;
/// Minimum ratio of the largest to the smallest N for a fit.
pub const MIN_FACTOR: f64 = 32.0;
/// The law is not extrapolated beyond this multiple of the largest measured N.
pub const EXTRAPOLATE: f64 = 2.0;
/// Number of bootstrap resamples.
const RESAMPLES: u64 = 1000;
/// Maximum number of Gauss-Newton steps; about five suffice.
const STEPS: usize = 50;

/// A run: its concurrency or number of nodes, and its throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Workers, endpoints or nodes.
    pub n: f64,
    /// Throughput, per second.
    pub x: f64,
}

/// A fitted figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// The estimate.
    pub value: f64,
    /// Percentile interval of the parametric bootstrap.
    pub ci: (f64, f64),
}

impl Fitted {
    /// Whether the interval excludes 0: only then is a coefficient worth reporting.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        self.ci.0 > 0.0
    }
}

/// The law fitted to a set of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UslFit {
    /// Throughput of a single unit.
    pub gamma: Fitted,
    /// Contention.
    pub alpha: Fitted,
    /// Coherency.
    pub beta: Fitted,
    /// N of the highest throughput; infinite without coherency.
    pub peak_n: Fitted,
    /// The highest throughput; gamma/alpha if there is no peak, infinite for a straight line.
    pub peak_x: Fitted,
    /// Standard deviation of the relative residuals.
    pub residual_sd: f64,
    /// Largest measured N.
    pub largest_n: f64,
    /// Number of runs used.
    pub runs: u64,
}

/// Throughput per unit, relative to that of the smallest N.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Workers, endpoints or nodes.
    pub n: f64,
    /// Mean throughput, per second.
    pub x: f64,
    /// (X(N)/N) / (X(N0)/N0), N0 the smallest N: 1 is linear scaling.
    pub efficiency: f64,
}

#[derive(Clone, Copy, Debug)]
struct Law {
    gamma: f64,
    alpha: f64,
    beta: f64,
}

impl Law {
    fn at(self, n: f64) -> f64 {
        self.gamma * n / (1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0))
    }

    fn peak_n(self) -> f64 {
        if self.beta > 0.0 {
            ((1.0 - self.alpha) / self.beta).sqrt().max(1.0)
        } else {
            f64::INFINITY
        }
    }

    fn peak_x(self) -> f64 {
        let n = self.peak_n();
        match (n.is_finite(), self.alpha > 0.0) {
            (true, _) => self.at(n),
            (false, true) => self.gamma / self.alpha,
            (false, false) => f64::INFINITY,
        }
    }

    fn loss(self, points: &[Point]) -> f64 {
        points
            .iter()
            .map(|p| ((p.x - self.at(p.n)) / p.x).powi(2))
            .sum()
    }

    fn is_feasible(self) -> bool {
        self.gamma > 0.0
            && self.gamma.is_finite()
            && (0.0..=1.0).contains(&self.alpha)
            && self.beta >= 0.0
            && self.beta.is_finite()
    }
}

impl UslFit {
    /// The law's throughput at `n`; `None` beyond twice the largest measured N.
    #[must_use]
    pub fn at(&self, n: f64) -> Option<f64> {
        let law = Law {
            gamma: self.gamma.value,
            alpha: self.alpha.value,
            beta: self.beta.value,
        };
        (n <= EXTRAPOLATE * self.largest_n).then(|| law.at(n))
    }

    /// N and throughput of the peak, if the runs support it: coherency is distinct from 0 and the peak lies
    /// within twice the largest measured N.
    #[must_use]
    pub fn peak(&self) -> Option<(Fitted, Fitted)> {
        let near = self.peak_n.value <= EXTRAPOLATE * self.largest_n;
        (near && self.beta.is_distinct()).then_some((self.peak_n, self.peak_x))
    }
}

/// Mean throughput per unit at each N, relative to the smallest N. Empty without runs.
#[must_use]
pub fn efficiency(points: &[Point]) -> Vec<Efficiency> {
    let means: Vec<Point> = distinct(points)
        .into_iter()
        .map(|n| {
            let at: Vec<f64> = points.iter().filter(|p| p.n == n).map(|p| p.x).collect();
            Point {
                n,
                x: super::moments::mean(&at),
            }
        })
        .collect();
    let Some(first) = means.first().copied() else {
        return Vec::new();
    };
    means
        .iter()
        .map(|p| Efficiency {
            n: p.n,
            x: p.x,
            efficiency: (p.x / p.n) / (first.x / first.n),
        })
        .collect()
}

fn distinct(points: &[Point]) -> Vec<f64> {
    let mut n: Vec<f64> = points.iter().map(|p| p.n).collect();
    n.sort_unstable_by(f64::total_cmp);
    n.dedup();
    n
}

/// Fits the law to runs; the same data always give the same intervals. `None` if the data do not support a
/// fit (fewer than six distinct N, a range below 32), or if a run has no throughput or N below 1.
#[must_use]
pub fn fit(points: &[Point]) -> Option<UslFit> {
    let n = distinct(points);
    let (first, last) = (*n.first()?, *n.last()?);
    let sound = points
        .iter()
        .all(|p| p.n >= 1.0 && p.x > 0.0 && p.x.is_finite());
    if n.len() < MIN_DISTINCT || last < MIN_FACTOR * first || !sound {
        return None;
    }
    let law = least_squares(points)?;
    let freedom = points.len() as f64 - 3.0;
    let residual_sd = (law.loss(points) / freedom).sqrt();
    let mut drawn = Vec::new();
    let mut resample = points.to_vec();
    for b in 0..RESAMPLES {
        for (i, (point, given)) in resample.iter_mut().zip(points).enumerate() {
            let noise = 1.0 + residual_sd * normal(b, i as u64);
            // Throughput stays positive whatever the noise.
            point.x = law.at(given.n) * noise.max(1e-3);
        }
        drawn.extend(least_squares(&resample));
    }
    let fitted = |figure: fn(Law) -> f64| {
        let mut values: Vec<f64> = drawn.iter().map(|&law| figure(law)).collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |q: f64| values[((q * values.len() as f64) as usize).min(values.len() - 1)];
        Fitted {
            value: figure(law),
            ci: (at(0.025), at(0.975)),
        }
    };
    if drawn.is_empty() {
        return None;
    }
    Some(UslFit {
        gamma: fitted(|law| law.gamma),
        alpha: fitted(|law| law.alpha),
        beta: fitted(|law| law.beta),
        peak_n: fitted(Law::peak_n),
        peak_x: fitted(Law::peak_x),
        residual_sd,
        largest_n: last,
        runs: points.len() as u64,
    })
}

/// A standard normal number for point `i` of resample `b` (Box and Muller 1958).
fn normal(b: u64, i: u64) -> f64 {
    let word = |stream: u64| mix64(mix64(b << 20 | i) ^ mix64(stream));
    let radius = (-2.0 * (1.0 - unit(word(1))).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(word(2))).cos()
}

/// The best law within the bounds. The optimum is either inside or on a bound, so each combination of
/// coefficients held at a bound is fitted without bounds, and the best feasible fit wins.
fn least_squares(points: &[Point]) -> Option<Law> {
    let fixed = [
        (None, None),
        (Some(0.0), None),
        (None, Some(0.0)),
        (Some(0.0), Some(0.0)),
        (Some(1.0), None),
        (Some(1.0), Some(0.0)),
    ];
    fixed
        .into_iter()
        .filter_map(|(alpha, beta)| gauss_newton(points, alpha, beta))
        .filter(|law| law.is_feasible())
        .min_by(|a, b| a.loss(points).total_cmp(&b.loss(points)))
}

/// Least squares of relative residuals with some coefficients fixed. Starts from the linear form N/X = (1 +
/// alpha (N-1) + beta N (N-1))/gamma, whose residuals are the same to first order.
fn gauss_newton(points: &[Point], alpha: Option<f64>, beta: Option<f64>) -> Option<Law> {
    let start = linear(points, alpha, beta)?;
    let mut law = start;
    for _ in 0..STEPS {
        let mut normal = Normal::default();
        for p in points {
            let model = law.at(p.n);
            let divisor = 1.0 + law.alpha * (p.n - 1.0) + law.beta * p.n * (p.n - 1.0);
            // Derivatives of model/x by ln gamma, alpha and beta.
            let scaled = model / p.x;
            normal.add(
                [
                    scaled,
                    if alpha.is_some() {
                        0.0
                    } else {
                        -scaled * (p.n - 1.0) / divisor
                    },
                    if beta.is_some() {
                        0.0
                    } else {
                        -scaled * p.n * (p.n - 1.0) / divisor
                    },
                ],
                1.0 - scaled,
            );
        }
        let [d_gamma, d_alpha, d_beta] = normal.solve([false, alpha.is_some(), beta.is_some()])?;
        let before = law.loss(points);
        // Halve the step until the loss does not increase.
        let mut part = 1.0;
        let next = loop {
            let next = Law {
                gamma: law.gamma * (part * d_gamma).exp(),
                alpha: law.alpha + part * d_alpha,
                beta: law.beta + part * d_beta,
            };
            if next.loss(points) <= before || part < 1e-6 {
                break next;
            }
            part /= 2.0;
        };
        if next.loss(points).is_nan() {
            return None;
        }
        let gain = before - next.loss(points);
        law = next;
        if gain.abs() <= 1e-14 * before.max(1e-30) {
            break;
        }
    }
    Some(law)
}

fn linear(points: &[Point], alpha: Option<f64>, beta: Option<f64>) -> Option<Law> {
    let mut normal = Normal::default();
    for p in points {
        // Relative residuals: all terms are weighted with X/N.
        let w = p.x / p.n;
        let fixed =
            1.0 + alpha.unwrap_or(0.0) * (p.n - 1.0) + beta.unwrap_or(0.0) * p.n * (p.n - 1.0);
        normal.add(
            [
                w * fixed,
                if alpha.is_some() {
                    0.0
                } else {
                    w * (p.n - 1.0)
                },
                if beta.is_some() {
                    0.0
                } else {
                    w * p.n * (p.n - 1.0)
                },
            ],
            1.0,
        );
    }
    let [a, b, c] = normal.solve([false, alpha.is_some(), beta.is_some()])?;
    (a > 0.0).then(|| Law {
        gamma: 1.0 / a,
        alpha: alpha.unwrap_or(b / a),
        beta: beta.unwrap_or(c / a),
    })
}

/// Normal equations of up to three unknowns.
#[derive(Default)]
struct Normal {
    matrix: [[f64; 3]; 3],
    right: [f64; 3],
}

impl Normal {
    fn add(&mut self, row: [f64; 3], target: f64) {
        for i in 0..3 {
            for j in 0..3 {
                self.matrix[i][j] += row[i] * row[j];
            }
            self.right[i] += row[i] * target;
        }
    }

    /// The unknowns, 0 for fixed ones (Gaussian elimination on the matrix scaled to a unit diagonal, because
    /// the coefficients differ by orders of magnitude). `None` if they are not determined.
    fn solve(mut self, fixed: [bool; 3]) -> Option<[f64; 3]> {
        let free: Vec<usize> = (0..3).filter(|&i| !fixed[i]).collect();
        let scale = self.matrix;
        let scale = |i: usize| scale[i][i].sqrt();
        if free.iter().any(|&i| scale(i).is_nan() || scale(i) <= 0.0) {
            return None;
        }
        for &i in &free {
            for &j in &free {
                self.matrix[i][j] /= scale(i) * scale(j);
            }
            self.right[i] /= scale(i);
        }
        for (at, &i) in free.iter().enumerate() {
            if self.matrix[i][i].abs() < 1e-13 {
                return None;
            }
            for &k in &free[at + 1..] {
                let factor = self.matrix[k][i] / self.matrix[i][i];
                for &j in &free[at..] {
                    self.matrix[k][j] -= factor * self.matrix[i][j];
                }
                self.right[k] -= factor * self.right[i];
            }
        }
        let mut solution = [0.0; 3];
        for (at, &i) in free.iter().enumerate().rev() {
            let rest: f64 = free[at + 1..]
                .iter()
                .map(|&j| self.matrix[i][j] * solution[j])
                .sum();
            solution[i] = (self.right[i] - rest) / self.matrix[i][i];
        }
        for &i in &free {
            solution[i] /= scale(i);
        }
        Some(solution)
    }
}

#[cfg(test)]
mod tests {
    use super::{Law, Point, efficiency, fit};
    use crate::stats::testing::Noise;

    const N: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

    fn points(law: Law, sd: f64, noise: &mut Noise) -> Vec<Point> {
        N.map(|n| Point {
            n,
            x: law.at(n) * (1.0 + sd * noise.normal()),
        })
        .to_vec()
    }

    const LAW: Law = Law {
        gamma: 1000.0,
        alpha: 0.03,
        beta: 1e-4,
    };

    #[test]
    fn exact_data_reproduce_the_law() {
        let found = fit(&points(LAW, 0.0, &mut Noise::new(1))).unwrap();
        assert!((found.gamma.value - 1000.0).abs() < 1e-6, "{found:?}");
        assert!((found.alpha.value - 0.03).abs() < 1e-9, "{found:?}");
        assert!((found.beta.value - 1e-4).abs() < 1e-11, "{found:?}");
        // sqrt(0.97/1e-4) = 98.49.
        assert!((found.peak_n.value - 98.488_578).abs() < 1e-4, "{found:?}");
        assert!(found.peak().is_some());
        assert!((found.at(256.0).unwrap() - LAW.at(256.0)).abs() < 1e-3);
        assert_eq!(found.at(257.0), None);
    }

    /// docs/spec/statistics.md section 7: eight points from 1 to 128 with 2 % noise gave alpha 0.0308 (true
    /// 0.03), beta 1.02e-4 (1.0e-4), N* 97.6 (98.5).
    #[test]
    fn noisy_data_recover_it_within_the_published_error() {
        let mut noise = Noise::new(2);
        let (mut alpha, mut beta, mut peak, mut covered) = (0.0, 0.0, 0.0, [0; 3]);
        const TRIALS: u32 = 40;
        for _ in 0..TRIALS {
            let found = fit(&points(LAW, 0.02, &mut noise)).unwrap();
            alpha += found.alpha.value / f64::from(TRIALS);
            beta += found.beta.value / f64::from(TRIALS);
            peak += found.peak_n.value / f64::from(TRIALS);
            let inside = |ci: (f64, f64), truth: f64| u32::from(ci.0 <= truth && truth <= ci.1);
            covered[0] += inside(found.alpha.ci, 0.03);
            covered[1] += inside(found.beta.ci, 1e-4);
            covered[2] += inside(found.peak_n.ci, 98.49);
        }
        assert!((alpha - 0.03).abs() < 0.0012, "{alpha}");
        assert!((beta - 1e-4).abs() < 4e-6, "{beta}");
        assert!((peak - 98.49).abs() < 1.5, "{peak}");
        // The percentile bootstrap with five degrees of freedom covers slightly less than its nominal 95 %:
        // at least 85 %, less four standard errors of 40 trials (22 %).
        assert!(covered.iter().all(|&c| c >= 26), "{covered:?}");
    }

    #[test]
    fn bounds_hold() {
        // Superlinear scaling: neither contention nor negative contention.
        let better: Vec<Point> = N.map(|n| Point { n, x: n.powf(1.05) }).to_vec();
        let found = fit(&better).unwrap();
        assert_eq!((found.alpha.value, found.beta.value), (0.0, 0.0));
        assert!(found.peak_n.value.is_infinite() && found.peak().is_none());
        // A constant throughput is pure contention.
        let flat: Vec<Point> = N.map(|n| Point { n, x: 50.0 }).to_vec();
        let found = fit(&flat).unwrap();
        assert!((found.alpha.value - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.peak_x.value - 50.0).abs() < 1e-3, "{found:?}");
        // Amdahl's law has no coherency: its interval does not exclude 0.
        let amdahl = Law { beta: 0.0, ..LAW };
        let found = fit(&points(amdahl, 0.02, &mut Noise::new(3))).unwrap();
        assert!(
            found.alpha.is_distinct() && !found.beta.is_distinct(),
            "{found:?}"
        );
        assert!(found.peak().is_none());
    }

    #[test]
    fn few_points_support_no_law() {
        let all = points(LAW, 0.0, &mut Noise::new(1));
        assert!(fit(&all[..5]).is_none(), "five distinct N");
        assert!(fit(&all[2..]).is_some(), "six from 4 to 128");
        let narrow: Vec<Point> = (1..=16)
            .map(|n| Point {
                n: f64::from(n),
                x: f64::from(n),
            })
            .collect();
        assert!(fit(&narrow).is_none(), "a factor of 16");
        let mut dead = all.clone();
        dead[3].x = 0.0;
        assert!(fit(&dead).is_none());
        // Three node counts of a published experiment: efficiencies instead.
        let three = [(1.0, 100.0), (1.0, 120.0), (2.0, 165.0), (4.0, 220.0)];
        let three = three.map(|(n, x)| Point { n, x });
        let e: Vec<f64> = efficiency(&three).iter().map(|e| e.efficiency).collect();
        assert_eq!(e, [1.0, 0.75, 0.5]);
        assert!(efficiency(&[]).is_empty());
    }
}
