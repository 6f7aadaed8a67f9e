//! Partial sums of power weights in constant time.

use crate::generate::elementary::{exp, exp_m1, ln, ln_1p, pow};

/// Number of terms summed directly; beyond them the Euler-Maclaurin tail is exact to rounding.
const DIRECT: u64 = 64;

/// Below this, 1 - s is treated as 0: the power integral then differs from the logarithm by less than
/// rounding over the whole range of 64-bit ranks.
const LOG_LIMIT: f64 = 1e-12;

/// ∫ (1 + d)^-s from d = 0: a power or, for s = 1, the logarithm. Distances are in units of v.
#[derive(Clone, Copy, Debug)]
pub(super) struct Integral {
    q: f64,
    inv_q: f64,
}

impl Integral {
    pub(super) fn new(s: f64) -> Self {
        let q = 1.0 - s;
        let q = if q.abs() < LOG_LIMIT { 0.0 } else { q };
        Self {
            q,
            inv_q: if q == 0.0 { 0.0 } else { 1.0 / q },
        }
    }

    #[inline]
    pub(super) fn at(self, d: f64) -> f64 {
        let t = ln_1p(d);
        if self.q == 0.0 {
            t
        } else {
            exp_m1(self.q * t) * self.inv_q
        }
    }

    /// A faster version of [`Integral::inverse`] for sampling. Cell boundaries move by up to 1e-12 of their
    /// distance from -v, and no probability moves by more than that.
    #[inline]
    pub(super) fn inverse_for_sampling(self, area: f64) -> f64 {
        if self.q.abs() < 1e-3 {
            self.inverse(area)
        } else {
            exp(ln((1.0 + self.q * area).max(0.0)) * self.inv_q) - 1.0
        }
    }

    /// The `d` with `at(d) == area`.
    #[inline]
    pub(super) fn inverse(self, area: f64) -> f64 {
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
    pub(super) s: f64,
    pub(super) v: f64,
    pub(super) integral: Integral,
    /// `direct[m]` = w(0) + … + w(m-1).
    direct: Box<[f64; DIRECT as usize + 1]>,
    /// Integral and correction at k = DIRECT - 1/2.
    tail_area: f64,
    tail_correction: f64,
}

impl PowerSum {
    /// Sums for exponent `s` (of any sign, so that moments can be computed) and shift `v` > 0.
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

    /// w(0) + … + w(m-1), with a relative accuracy of about 1e-14 (for s up to 10; for larger s the tail
    /// itself is below that).
    ///
    /// Beyond 64 terms it uses the Euler-Maclaurin formula in its midpoint form (Olver, "Asymptotics and
    /// Special Functions", chapter 8): the integral between half-integers, corrected by the odd derivatives
    /// at its ends.
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
    pub(super) fn terms_to_reach(&self, sum: f64, n: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::PowerSum;

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
}
