//! Reference distributions: Student's t and the standard normal.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

fn student(df: f64) -> StudentsT {
    assert!(df > 0.0, "degrees of freedom {df} are not positive");
    // Location 0 and scale 1 are always valid; the degrees of freedom were checked above.
    StudentsT::new(0.0, 1.0, df).expect("valid parameters of Student's t")
}

/// The `p`-quantile of Student's t with `df` degrees of freedom.
///
/// # Panics
/// If `df` is not positive or `p` is outside 0..=1.
#[must_use]
pub fn t_quantile(p: f64, df: f64) -> f64 {
    student(df).inverse_cdf(p)
}

/// Two-sided p-value of a t statistic with `df` degrees of freedom. An infinite statistic has p-value 0; an
/// undefined one (0/0: no effect and no noise) has 1.
///
/// # Panics
/// If `df` is not positive.
#[must_use]
pub fn t_two_sided_p(t: f64, df: f64) -> f64 {
    if t.is_nan() {
        1.0
    } else if t.is_infinite() {
        0.0
    } else {
        2.0 * student(df).cdf(-t.abs())
    }
}

/// Φ(x), the distribution function of the standard normal.
#[must_use]
pub fn normal_cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

#[cfg(test)]
mod tests {
    use super::{normal_cdf, t_quantile, t_two_sided_p};

    #[test]
    fn t_quantiles_match_published_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2.
        for (p, df, expected) in [
            (0.975, 1.0, 12.706),
            (0.975, 4.0, 2.776),
            (0.975, 19.0, 2.093),
            (0.995, 18.0, 2.878),
            (0.975, 100.0, 1.984),
            (0.99, 30.0, 2.457),
        ] {
            let got = t_quantile(p, df);
            assert!((got - expected).abs() < 6e-4, "t({p}, {df}) = {got}");
            assert!((t_quantile(1.0 - p, df) + got).abs() < 1e-6);
        }
    }

    #[test]
    fn p_values_invert_quantiles() {
        for df in [3.0, 19.0, 250.0] {
            let t = t_quantile(0.995, df);
            assert!((t_two_sided_p(t, df) - 0.01).abs() < 1e-7);
            assert!((t_two_sided_p(-t, df) - 0.01).abs() < 1e-7);
        }
        assert_eq!(t_two_sided_p(f64::INFINITY, 5.0), 0.0);
        assert_eq!(t_two_sided_p(f64::NAN, 5.0), 1.0);
    }

    #[test]
    fn normal_distribution_function() {
        assert!((normal_cdf(1.959_963_985) - 0.975).abs() < 1e-9);
        assert!((normal_cdf(-3.0) - 0.001_349_898).abs() < 1e-9);
    }
}
