//! Kolmogorov-Smirnov distance: the largest gap between two distribution functions.

/// Largest distance between the empirical distribution function of `sorted` and `cdf`; 0 for an empty sample.
/// Where `cdf` jumps, its value must include the jump and that of `cdf_below` must not.
///
/// # Panics
/// If `sorted` is not ascending (debug builds).
#[must_use]
pub fn distance_to(
    sorted: &[f64],
    cdf: impl Fn(f64) -> f64,
    cdf_below: impl Fn(f64) -> f64,
) -> f64 {
    debug_assert!(sorted.is_sorted());
    let n = sorted.len() as f64;
    let mut worst = 0.0f64;
    let mut i = 0;
    while i < sorted.len() {
        let value = sorted[i];
        let below = i as f64 / n;
        while i < sorted.len() && sorted[i] == value {
            i += 1;
        }
        let at = i as f64 / n;
        worst = worst
            .max((at - cdf(value)).abs())
            .max((below - cdf_below(value)).abs());
    }
    worst
}

/// The distance that a sample of `n` values of the given law exceeds with probability 1 %, 1.628/√n
/// (Smirnov's asymptotic form; accurate enough above n = 50).
#[must_use]
pub fn critical_1_percent(n: u64) -> f64 {
    1.628 / (n.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::{critical_1_percent, distance_to};
    use crate::stats::dist::normal_cdf;
    use crate::stats::testing::Noise;

    #[test]
    fn known_distances() {
        let uniform = |x: f64| x.clamp(0.0, 1.0);
        assert!((distance_to(&[0.5], uniform, uniform) - 0.5).abs() < 1e-12);
        assert!((distance_to(&[0.25, 0.75], uniform, uniform) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_jump_of_the_law_is_not_a_distance() {
        // Always 7: the law's distribution function jumps from 0 to 1 there.
        let d = distance_to(&[7.0; 10], |x| f64::from(x >= 7.0), |x| f64::from(x > 7.0));
        assert_eq!(d, 0.0);
    }

    #[test]
    fn critical_value_is_exceeded_rarely() {
        let mut noise = Noise::new(95);
        let exceeded = (0..1000)
            .filter(|_| {
                let mut x: Vec<f64> = (0..200).map(|_| noise.normal()).collect();
                x.sort_unstable_by(f64::total_cmp);
                distance_to(&x, normal_cdf, normal_cdf) > critical_1_percent(200)
            })
            .count();
        // Binomial(1000, 0.01): at most 10 + 4 · 3.1.
        assert!(exceeded <= 23, "{exceeded}");
    }
}
