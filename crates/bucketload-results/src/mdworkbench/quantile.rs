//! The seven statistics of a latency vector (docs/spec/io500-mdworkbench.md section B.3).

/// Minimum, first quartile, median, third quartile, 90 %, 99 %, maximum.
pub type Seven = [f32; 7];

/// The seven statistics of `sorted` timings, seconds; zeros if there are none.
///
/// The index of a quantile is `round(q·(n−1) + 0.49)`, as in IOR's version; the median of an even number of values is
/// the mean of the middle two.
#[must_use]
pub fn seven(sorted: &[f32]) -> Seven {
    let Some(last) = sorted.len().checked_sub(1) else {
        return [0.0; 7];
    };
    let at = |q: f64| sorted[((q * last as f64 + 0.49).round() as usize).min(last)];
    let middle = sorted.len() / 2;
    let median = match sorted.len() % 2 {
        0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    };
    [
        sorted[0],
        at(0.25),
        median,
        at(0.75),
        at(0.9),
        at(0.99),
        sorted[last],
    ]
}

#[cfg(test)]
mod tests {
    use super::seven;

    #[test]
    fn indices_match_the_original() {
        let values: Vec<f32> = (0..10u8).map(f32::from).collect();
        // 0.25·9 + 0.49 = 2.74, 0.75·9 + 0.49 = 7.24, 0.9·9 + 0.49 = 8.59, 0.99·9 + 0.49 = 9.4
        assert_eq!(seven(&values), [0.0, 3.0, 4.5, 7.0, 9.0, 9.0, 9.0]);
        assert_eq!(seven(&[2.0]), [2.0; 7]);
        // 0.25 + 0.49 rounds to 1.
        assert_eq!(seven(&[1.0, 3.0]), [1.0, 3.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(seven(&[]), [0.0; 7]);
    }
}
