//! A least-squares line through equally spaced values, with the significance of its slope.

use serde::{Deserialize, Serialize};

use super::dist::t_two_sided_p;
use super::moments::mean;

/// A fitted line y = intercept + slope · i, i = 0, 1, 2, …
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Value at i = 0.
    pub intercept: f64,
    /// Change per step.
    pub slope: f64,
    /// Two-sided p-value of the hypothesis that the slope is 0 (t test, n - 2 degrees of freedom).
    pub p_value: f64,
}

/// Ordinary least squares through `y` at 0, 1, 2, … (Draper and Smith, *Applied Regression Analysis*, chapter
/// 1). `None` with fewer than three values. The p-value assumes independent errors: pass the batch means, not
/// the raw bins, of a correlated series.
#[must_use]
pub fn fit_line(y: &[f64]) -> Option<Line> {
    if y.len() < 3 {
        return None;
    }
    let n = y.len() as f64;
    let (x_mean, y_mean) = ((n - 1.0) / 2.0, mean(y));
    let sxx = n * (n * n - 1.0) / 12.0;
    let sxy: f64 = y
        .iter()
        .enumerate()
        .map(|(i, v)| (i as f64 - x_mean) * (v - y_mean))
        .sum();
    let slope = sxy / sxx;
    let intercept = y_mean - slope * x_mean;
    let rss: f64 = y
        .iter()
        .enumerate()
        .map(|(i, v)| (v - intercept - slope * i as f64).powi(2))
        .sum();
    // Rounding leaves a residue of about 1e-16 of the values; below this floor the line is exact.
    let scale = y.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let floor = (scale * 1e-13).powi(2) * n;
    let p_value = if rss <= floor {
        if (slope * n).abs() <= scale * 1e-12 {
            1.0
        } else {
            0.0
        }
    } else {
        t_two_sided_p(slope / (rss / (n - 2.0) / sxx).sqrt(), n - 2.0)
    };
    Some(Line {
        intercept,
        slope,
        p_value,
    })
}

#[cfg(test)]
mod tests {
    use super::fit_line;
    use crate::stats::testing::Noise;

    #[test]
    fn known_fit() {
        // scipy.stats.linregress(range(5), [1, 3, 2, 5, 4]): slope 0.8, intercept 1.4, p 0.104088.
        let line = fit_line(&[1.0, 3.0, 2.0, 5.0, 4.0]).unwrap();
        assert!((line.slope - 0.8).abs() < 1e-12 && (line.intercept - 1.4).abs() < 1e-12);
        assert!((line.p_value - 0.104_088).abs() < 1e-6, "{}", line.p_value);
    }

    #[test]
    fn exact_lines_and_constants() {
        let ramp: Vec<f64> = (0..50).map(|i| 7.0 + 0.25 * f64::from(i)).collect();
        let line = fit_line(&ramp).unwrap();
        assert!((line.slope - 0.25).abs() < 1e-12 && line.p_value == 0.0);
        assert_eq!(fit_line(&[4.2; 30]).unwrap().p_value, 1.0);
        assert_eq!(fit_line(&[1.0, 2.0]), None);
    }

    #[test]
    fn p_values_are_uniform_without_a_trend() {
        let mut noise = Noise::new(3);
        let hits = (0..4000)
            .filter(|_| fit_line(&noise.series(20, 100.0, 0.1)).unwrap().p_value < 0.05)
            .count();
        // Binomial(4000, 0.05): 200 ± 4 · 13.8.
        assert!((145..=255).contains(&hits), "{hits}");
    }
}
