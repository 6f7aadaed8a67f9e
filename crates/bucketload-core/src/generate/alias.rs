//! Chooses among weighted alternatives in constant time.

use super::LawError;

/// Walker's alias table, built by Vose's method (IEEE Trans. Software Eng. 17, 1991).
#[derive(Clone, Debug)]
pub(crate) struct AliasTable {
    /// Per column: the probability of choosing the column itself, and the alternative.
    columns: Box<[(f64, u32)]>,
    scale: f64,
}

impl AliasTable {
    /// Builds a table for `weights`, which need not add up to 1. `field` names them in errors.
    pub(crate) fn new(weights: &[f64], field: &str) -> Result<Self, LawError> {
        if weights.is_empty() {
            return Err(LawError::new(field, "is empty, needs at least one entry"));
        }
        if let Some(bad) = weights.iter().find(|w| !w.is_finite() || **w < 0.0) {
            let reason = format!("has a weight of {bad}, weights must be 0 or more");
            return Err(LawError::new(field, reason));
        }
        let total: f64 = weights.iter().sum();
        if total <= 0.0 || !total.is_finite() {
            let reason = format!("has weights that add up to {total}, must be more than 0");
            return Err(LawError::new(field, reason));
        }
        let n = weights.len();
        let mut columns: Vec<(f64, u32)> = weights
            .iter()
            .enumerate()
            .map(|(i, w)| (w * n as f64 / total, i as u32))
            .collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&i| columns[i].0 < 1.0);
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            columns[s].1 = l as u32;
            columns[l].0 -= 1.0 - columns[s].0;
            if columns[l].0 < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        // The remaining columns differ from 1 only by rounding; a weight of 0 must stay 0.
        let heaviest = (0..n).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
        for i in small.into_iter().chain(large) {
            columns[i] = match heaviest {
                Some(other) if weights[i] == 0.0 => (0.0, other as u32),
                _ => (1.0, i as u32),
            };
        }
        Ok(Self {
            columns: columns.into_boxed_slice(),
            scale: n as f64,
        })
    }

    /// The alternative that `u` from [0, 1) selects.
    #[inline]
    pub(crate) fn choose(&self, u: f64) -> usize {
        let x = u * self.scale;
        let column = (x as usize).min(self.columns.len() - 1);
        let (keep, other) = self.columns[column];
        if x - (column as f64) < keep {
            column
        } else {
            other as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::AliasTable;

    proptest! {
        /// The measure of the set of `u` that selects an alternative is its weight.
        #[test]
        fn probabilities_are_the_weights(weights in prop::collection::vec(0.0f64..5.0, 1..40)) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let table = AliasTable::new(&weights, "w").unwrap();
            let mut mass = vec![0.0; weights.len()];
            for (i, &(keep, other)) in table.columns.iter().enumerate() {
                mass[i] += keep;
                mass[other as usize] += 1.0 - keep;
            }
            for (m, w) in mass.iter().zip(&weights) {
                prop_assert!((m / weights.len() as f64 - w / total).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn an_alternative_of_weight_zero_is_never_chosen() {
        let table = AliasTable::new(&[0.0, 1.0, 0.0, 3.0], "w").unwrap();
        for i in 0..1000 {
            assert!([1, 3].contains(&table.choose(f64::from(i) / 1000.0)));
        }
        assert!(AliasTable::new(&[], "w").is_err());
        assert!(AliasTable::new(&[0.0], "w").is_err());
        assert!(AliasTable::new(&[1.0, -1.0], "w").is_err());
    }
}
