//! Multiple comparisons in one report: Holm's step-down procedure, with weights.

/// Adjusted p-values of `tests`, given as (p-value, weight). Rejecting the tests with an adjusted value of at
/// most α keeps the probability of any false rejection below α, whatever the dependence (Holm 1979; with
/// unequal weights Benjamini and Hochberg 1997). Weights are relative and positive; a test with a larger
/// weight keeps more power. NaN counts as 1.
#[must_use]
pub fn holm(tests: &[(f64, f64)]) -> Vec<f64> {
    let p = |i: usize| if tests[i].0.is_nan() { 1.0 } else { tests[i].0 };
    let weight = |i: usize| tests[i].1.max(f64::MIN_POSITIVE);
    let mut order: Vec<usize> = (0..tests.len()).collect();
    order.sort_by(|&i, &j| (p(i) / weight(i)).total_cmp(&(p(j) / weight(j))));
    let mut left: f64 = (0..tests.len()).map(weight).sum();
    let mut adjusted = vec![1.0; tests.len()];
    let mut largest: f64 = 0.0;
    for i in order {
        largest = largest.max((p(i) * left / weight(i)).min(1.0));
        adjusted[i] = largest;
        left -= weight(i);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::holm;
    use crate::stats::testing::Noise;

    #[test]
    fn equal_weights_give_the_textbook_values() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") = 0.03 0.06 0.06 0.02.
        let got = holm(&[(0.01, 1.0), (0.04, 1.0), (0.03, 1.0), (0.005, 1.0)]);
        for (got, expected) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - expected).abs() < 1e-12, "{got}");
        }
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[(f64::NAN, 1.0), (0.9, 1.0)])[0], 1.0);
    }

    #[test]
    fn weight_is_passed_on_once_a_test_is_rejected() {
        // 0.01 at weight 0.8 is adjusted by 1/0.8; the other tests then share the full weight.
        let got = holm(&[(0.01, 0.8), (0.02, 0.1), (0.5, 0.1)]);
        assert!((got[0] - 0.0125).abs() < 1e-12);
        assert!((got[1] - 0.04).abs() < 1e-12);
        assert!((got[2] - 0.5).abs() < 1e-12);
    }

    #[test]
    fn false_rejections_stay_below_alpha() {
        let mut noise = Noise::new(77);
        let weights = [0.8, 0.05, 0.05, 0.05, 0.05];
        let trials = 20_000;
        let false_alarms = (0..trials)
            .filter(|_| {
                let tests: Vec<_> = weights.iter().map(|&w| (noise.uniform(), w)).collect();
                holm(&tests).iter().any(|&p| p <= 0.05)
            })
            .count();
        // Independent tests: 1 - prod(1 - 0.05 w) = 0.0494; 4 standard errors are 0.006.
        let share = false_alarms as f64 / f64::from(trials);
        assert!((0.043..0.056).contains(&share), "{share}");
    }
}
