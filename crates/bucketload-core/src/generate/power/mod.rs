//! The Zipf family: P(k) ~ (v + k)^-s for k = 0..n, any s > 0, any v > 0.
//!
//! Weights are stored as w(k) = (1 + k/v)^-s, so w(0) = 1 and neither a large shift nor a large exponent
//! loses digits. [`PowerSum`] computes partial sums of the weights in constant time (distribution function,
//! quantiles, theoretical shares). [`PowerLaw`] adds exact sampling by rejection-inversion (Hörmann and
//! Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS
//! 1996). Neither stores anything per value of k.

mod sum;

pub use self::sum::PowerSum;
use super::LawError;
use super::elementary::pow;
use super::rng::Draws;

/// A discrete power law on 0..n.
#[derive(Clone, Debug)]
pub struct PowerLaw {
    n: u64,
    sum: PowerSum,
    total: f64,
    inv_v: f64,
    /// Areas are integrals in units of v. This is where the region of k = 0 ends (at 1/2).
    first_end: f64,
    /// Where the region of k = 0 begins.
    area_low: f64,
    /// Where the region of k = n - 1 ends.
    area_high: f64,
    /// Candidates at most this far below their integer are accepted without a test.
    quick: f64,
}

impl PowerLaw {
    /// P(k) ~ (v + k)^-s for k in 0..n.
    ///
    /// # Errors
    /// If `n` is 0, or `s` or `v` is not a positive number.
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

    /// Draws one value.
    #[inline]
    pub fn sample(&self, draws: &mut Draws) -> u64 {
        self.sample_within(draws, self.n, self.area_high)
    }

    /// Draws one value of the law restricted to 0..n for any `n` ≥ 1, even above the law's own n.
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
            // The whole first region belongs to 0, so no inversion is needed.
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

    use super::PowerLaw;
    use crate::generate::rng::{Draws, Purpose, Stream};

    #[test]
    fn bad_parameters_are_rejected() {
        for (n, s, v) in [
            (0, 1.0, 1.0),
            (5, 0.0, 1.0),
            (5, 1.0, 0.0),
            (5, f64::NAN, 1.0),
        ] {
            assert!(PowerLaw::new(n, s, v).is_err());
        }
    }

    /// Chi-square of the sampler against exact probabilities, for shapes that exercise each branch.
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
