//! The zipf family: P(k) ~ (v + k)^-s for k = 0..n, any s > 0, any v > 0.
//!
//! Weights are kept as w(k) = (1 + k/v)^-s, so that w(0) = 1 and neither a large shift nor a large
//! exponent costs digits. [`PowerSum`] gives partial sums of the weights in constant time (distribution function,
//! quantiles, theoretical shares); [`PowerLaw`] adds exact sampling by rejection-inversion
//! (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 1996). Neither keeps anything per value of k.

use super::LawError;
use super::elementary::{exp, exp_m1, ln, ln_1p, pow};
use super::rng::Draws;

/// Terms summed directly; beyond them the Euler-Maclaurin tail is exact to rounding.
const DIRECT: u64 = 64;

/// Below this, 1 - s is treated as 0: the power integral differs from the logarithm by less than
/// rounding over the whole range of 64-bit ranks.
const LOG_LIMIT: f64 = 1e-12;

/// ∫ (1 + d)^-s from d = 0: a power or, for s = 1, the logarithm. Distances are in units of v.
#[derive(Clone, Copy, Debug)]
struct Integral {
    q: f64,
    inv_q: f64,
}

impl Integral {
    fn new(s: f64) -> Self {
        let q = 1.0 - s;
        let q = if q.abs() < LOG_LIMIT { 0.0 } else { q };
        Self {
            q,
            inv_q: if q == 0.0 { 0.0 } else { 1.0 / q },
        }
    }

    #[inline]
    fn at(self, d: f64) -> f64 {
        let t = ln_1p(d);
        if self.q == 0.0 {
            t
        } else {
            exp_m1(self.q * t) * self.inv_q
        }
    }

    /// As [`Integral::inverse`], faster, for sampling: cell boundaries move by up to 1e-12 of their
    /// distance from -v, which moves no probability by more than that.
    #[inline]
    fn inverse_for_sampling(self, area: f64) -> f64 {
        if self.q.abs() < 1e-3 {
            self.inverse(area)
        } else {
            exp(ln((1.0 + self.q * area).max(0.0)) * self.inv_q) - 1.0
        }
    }

    /// The `d` with `at(d) == area`.
    #[inline]
    fn inverse(self, area: f64) -> f64 {
        if self.q == 0.0 {
            exp_m1(area)
        } else {
            exp_m1(ln_1p((self.q * area).max(-1.0)) * self.inv_q)
        }
    }
}

/// Partial sums of w(k) = (1 + k/v)^-s.
#[derive(Clone, Debug)]
pub struct PowerSum {
    s: f64,
    v: f64,
    integral: Integral,
    /// `direct[m]` = w(0) + … + w(m-1).
    direct: Box<[f64; DIRECT as usize + 1]>,
    /// Integral and correction at k = DIRECT - 1/2.
    tail_area: f64,
    tail_correction: f64,
}

impl PowerSum {
    /// Sums for exponent `s` (any sign, so that moments can be formed) and shift `v` > 0.
    #[must_use]
    pub fn new(s: f64, v: f64) -> Self {
        let integral = Integral::new(s);
        let mut direct = Box::new([0.0; DIRECT as usize + 1]);
        for k in 0..DIRECT as usize {
            direct[k + 1] = direct[k] + pow(1.0 + k as f64 / v, -s);
        }
        let start = DIRECT as f64 - 0.5;
        Self {
            s,
            v,
            integral,
            direct,
            tail_area: v * integral.at(start / v),
            tail_correction: correction(s, v, start),
        }
    }

    /// w(0) + … + w(m-1), to about 1e-14 relative (for s up to 10; for larger s the tail itself is
    /// below that).
    ///
    /// Beyond 64 terms by the Euler-Maclaurin formula in its midpoint form (Olver, "Asymptotics
    /// and Special Functions", chapter 8): the integral between half-integers, corrected by the
    /// odd derivatives at its ends.
    #[must_use]
    pub fn partial(&self, m: u64) -> f64 {
        if m <= DIRECT {
            return self.direct[m as usize];
        }
        let end = m as f64 - 0.5;
        let area = self.v * self.integral.at(end / self.v) - self.tail_area;
        let correction = correction(self.s, self.v, end) - self.tail_correction;
        self.direct[DIRECT as usize] + area + correction
    }

    /// The smallest m in 1..=n with `partial(m) >= sum`, or `n`.
    fn terms_to_reach(&self, sum: f64, n: u64) -> u64 {
        let head = &self.direct[..=(n.min(DIRECT) as usize)];
        if n <= DIRECT || sum <= head[DIRECT as usize] {
            return (head.partition_point(|&c| c < sum) as u64).clamp(1, n);
        }
        // The correction at the far end is below 1/50 of a term, so this is off by at most one.
        let area = sum - head[DIRECT as usize] + self.tail_area + self.tail_correction;
        let x = self.v * self.integral.inverse(area / self.v);
        let mut m = ((x + 0.5).ceil() as u64).clamp(DIRECT + 1, n);
        while m > DIRECT + 1 && self.partial(m - 1) >= sum {
            m -= 1;
        }
        while m < n && self.partial(m) < sum {
            m += 1;
        }
        m
    }
}

/// Derivative terms of the midpoint Euler-Maclaurin formula for f(k) = (1 + k/v)^-s: -f'/24 plus
/// 7/5760 of the third derivative minus 31/967680 of the fifth.
fn correction(s: f64, v: f64, k: f64) -> f64 {
    let x = v + k;
    let first = s / x * pow(x / v, -s);
    let third = first * (s + 1.0) * (s + 2.0) / (x * x);
    let fifth = third * (s + 3.0) * (s + 4.0) / (x * x);
    first / 24.0 - 7.0 * third / 5760.0 + 31.0 * fifth / 967_680.0
}

/// A discrete power law on 0..n.
#[derive(Clone, Debug)]
pub struct PowerLaw {
    n: u64,
    sum: PowerSum,
    total: f64,
    inv_v: f64,
    /// Areas are integrals in units of v: where the region of k = 0 ends (at 1/2) …
    first_end: f64,
    /// … where that region begins …
    area_low: f64,
    /// … and where that of k = n - 1 ends.
    area_high: f64,
    /// Candidates at most this far below their integer are accepted without a test.
    quick: f64,
}

impl PowerLaw {
    /// P(k) ~ (v + k)^-s for k in 0..n.
    ///
    /// # Errors
    /// When `n` is 0, or `s` or `v` is not a positive number.
    pub fn new(n: u64, s: f64, v: f64) -> Result<Self, LawError> {
        if n == 0 {
            return Err(LawError::new("n", "is 0, must be at least 1"));
        }
        super::positive("s", s)?;
        super::positive("v", v)?;
        if s > 100.0 {
            return Err(LawError::new("s", format!("is {s}, must be at most 100")));
        }
        let sum = PowerSum::new(s, v);
        let integral = sum.integral;
        let inv_v = 1.0 / v;
        let first_end = integral.at(0.5 * inv_v);
        let second_low = integral.at(1.5 * inv_v) - inv_v * pow(1.0 + inv_v, -s);
        let quick = 1.0 - v * integral.inverse(second_low);
        Ok(Self {
            n,
            total: sum.partial(n),
            inv_v,
            first_end,
            area_low: first_end - inv_v,
            area_high: integral.at((n as f64 - 0.5) * inv_v),
            quick,
            sum,
        })
    }

    /// Number of values.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// One value.
    #[inline]
    pub fn sample(&self, draws: &mut Draws) -> u64 {
        self.sample_within(draws, self.n, self.area_high)
    }

    /// One value of the law restricted to 0..n for any `n` ≥ 1, even above that of the law.
    #[inline]
    pub fn sample_below(&self, draws: &mut Draws, n: u64) -> u64 {
        let area_high = self.sum.integral.at((n as f64 - 0.5) * self.inv_v);
        self.sample_within(draws, n, area_high)
    }

    #[inline]
    fn sample_within(&self, draws: &mut Draws, n: u64, area_high: f64) -> u64 {
        let PowerSum { s, v, integral, .. } = self.sum;
        loop {
            let area = self.area_low + (area_high - self.area_low) * draws.next_unit();
            // All of the first region belongs to 0: no inversion needed.
            if area <= self.first_end || n == 1 {
                return 0;
            }
            let x = v * integral.inverse_for_sampling(area);
            let k = ((x + 0.5) as u64).clamp(1, n - 1);
            let near = k as f64;
            if near - x <= self.quick {
                return k;
            }
            let weight = self.inv_v * pow(1.0 + near * self.inv_v, -s);
            if area >= integral.at((near + 0.5) * self.inv_v) - weight {
                return k;
            }
        }
    }

    /// P(K < m).
    #[must_use]
    pub fn share_below(&self, m: u64) -> f64 {
        if m >= self.n {
            1.0
        } else {
            self.sum.partial(m) / self.total
        }
    }

    /// The smallest k with P(K ≤ k) ≥ u.
    #[must_use]
    pub fn quantile(&self, u: f64) -> u64 {
        self.sum.terms_to_reach(u * self.total, self.n) - 1
    }

    /// 1 / Σ p²: the number of equally likely values with the same collision probability.
    #[must_use]
    pub fn effective_values(&self) -> f64 {
        self.total * self.total / PowerSum::new(2.0 * self.sum.s, self.sum.v).partial(self.n)
    }

    /// Σ over k < m of (v + k)·P(K = k).
    pub(crate) fn moment_below(&self, m: u64) -> f64 {
        self.sum.v * PowerSum::new(self.sum.s - 1.0, self.sum.v).partial(m.min(self.n)) / self.total
    }

    /// Shift.
    pub(crate) const fn v(&self) -> f64 {
        self.sum.v
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{PowerLaw, PowerSum};
    use crate::generate::rng::{Draws, Purpose, Stream};

    fn direct(s: f64, v: f64, m: u64) -> f64 {
        // Smallest terms first, so that rounding stays below the tolerance.
        (0..m).rev().map(|k| (1.0 + k as f64 / v).powf(-s)).sum()
    }

    #[test]
    fn partial_sums_equal_direct_sums() {
        for s in [
            -1.0,
            -0.3,
            0.05,
            0.5,
            0.99,
            1.0,
            1.0 + 1e-9,
            1.5036,
            3.0,
            9.0,
        ] {
            for v in [0.2, 1.0, 2.0, 2349.0, 1e9] {
                let sums = PowerSum::new(s, v);
                for m in [1, 63, 64, 65, 66, 1000, 100_000] {
                    let (got, want) = (sums.partial(m), direct(s, v, m));
                    assert!((got / want - 1.0).abs() < 1e-12, "{s} {v} {m} {got} {want}");
                }
            }
        }
    }

    /// ζ(2) = π²/6; the harmonic number of 10^9 is known to 20 digits.
    #[test]
    fn known_sums() {
        let zeta2 = PowerSum::new(2.0, 1.0).partial(1_000_000_000) + 1e-9;
        assert!((zeta2 - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-14);
        let harmonic = PowerSum::new(1.0, 1.0).partial(1_000_000_000);
        assert!((harmonic - 21.300_481_502_347_944).abs() < 1e-13);
    }

    #[test]
    fn bad_parameters_are_refused() {
        for (n, s, v) in [
            (0, 1.0, 1.0),
            (5, 0.0, 1.0),
            (5, 1.0, 0.0),
            (5, f64::NAN, 1.0),
        ] {
            assert!(PowerLaw::new(n, s, v).is_err());
        }
    }

    /// Chi-square of the sampler against exact probabilities, at shapes that use each branch.
    #[test]
    fn samples_have_the_exact_probabilities() {
        for (case, (n, s, v)) in [
            (12, 0.3, 1.0),
            (12, 1.0, 1.0),
            (12, 2.5, 1.0),
            (12, 0.7, 0.1),
            (12, 1.5, 2.0),
            (2, 0.5, 0.05),
        ]
        .into_iter()
        .enumerate()
        {
            let law = PowerLaw::new(n, s, v).unwrap();
            let mut cells = vec![0f64; n as usize];
            let draws_made = 50_000;
            for i in 0..draws_made {
                let stream = Stream::new(Purpose::Key, 0, case as u16);
                cells[law.sample(&mut Draws::new(17, stream, i)) as usize] += 1.0;
            }
            let chi2: f64 = (0..n)
                .map(|k| {
                    let p = law.share_below(k + 1) - law.share_below(k);
                    let expected = p * draws_made as f64;
                    (cells[k as usize] - expected).powi(2) / expected
                })
                .sum();
            // 0.9999 quantile of chi-square with 11 degrees of freedom is 37.4.
            assert!(chi2 < 37.4, "case {case}: {chi2}");
        }
    }

    proptest! {
        #[test]
        fn quantile_inverts_the_shares(
            n in 1u64..5_000_000, s in 0.05f64..4.0, v in 0.1f64..50.0, u in 0.0f64..1.0,
        ) {
            let law = PowerLaw::new(n, s, v).unwrap();
            let k = law.quantile(u);
            prop_assert!(k < n);
            prop_assert!(law.share_below(k + 1) >= u - 1e-12);
            prop_assert!(k == 0 || law.share_below(k) <= u + 1e-12);
        }

        #[test]
        fn samples_stay_in_range(
            n in 1u64..u64::MAX >> 1, s in 0.05f64..4.0, v in 0.01f64..50.0, index in any::<u64>(),
        ) {
            let law = PowerLaw::new(n, s, v).unwrap();
            let mut draws = Draws::new(1, Stream::new(Purpose::Key, 0, 0), index);
            prop_assert!(law.sample(&mut draws) < n);
            prop_assert!(law.sample_below(&mut draws, n / 3 + 1) < n / 3 + 1);
        }
    }
}
