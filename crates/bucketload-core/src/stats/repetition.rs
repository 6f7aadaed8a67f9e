//! How many repetitions to make at each level (Kalibera and Jones, "Rigorous benchmarking in reasonable
//! time", ISMM 2013; docs/spec/statistics.md section 4).
//!
//! Levels: 1 = values within a run, 2 = runs, 3 = deployments. Variation that arises at a high level cannot
//! be averaged away by repeating at a lower one, however cheap that is.

use serde::{Deserialize, Serialize};

use super::dist::t_quantile;
use super::moments::{Moments, mean};

/// A plan of repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetitions {
    /// Variance that arises at each level, lowest first; a negative estimate means that none was seen.
    pub variances: Vec<f64>,
    /// Best number of repetitions at each level below the highest, at least 1.
    pub below_top: Vec<u64>,
    /// Repetitions at the highest level that achieve the wanted half-width of the mean's 95 % interval.
    pub top: u64,
}

/// Plans repetitions from a pilot with two levels. `runs` holds the values of each run. `cost` is the cost of
/// one more value and of one more run (including start, warm-up and pause), in any common unit. `half_width`
/// is the wanted half-width as a share of the mean. `None` with fewer than two runs, runs of fewer than two
/// values, a mean of 0, or costs or a half-width that are not positive.
#[must_use]
pub fn two_levels(runs: &[Vec<f64>], cost: [f64; 2], half_width: f64) -> Option<Repetitions> {
    let deployments = [runs.to_vec()];
    let within = within_runs(&deployments)?;
    let means: Vec<f64> = runs.iter().map(|run| mean(run)).collect();
    let between = Moments::of(&means);
    let per_run = harmonic_size(&deployments);
    let t2 = between.sd * between.sd - within / per_run;
    let below = optimal(cost[0], cost[1], within, t2)?;
    // Variance of a run's mean when it has `below` values.
    let one = t2.max(0.0) + within / below as f64;
    Some(Repetitions {
        variances: vec![within, t2],
        below_top: vec![below],
        top: top(one, mean(&means), half_width, runs.len())?,
    })
}

/// Plans repetitions from a pilot with three levels: deployments contain runs, and runs contain values.
/// `cost` is that of one more value, run and deployment. See [`two_levels`].
#[must_use]
pub fn three_levels(
    deployments: &[Vec<Vec<f64>>],
    cost: [f64; 3],
    half_width: f64,
) -> Option<Repetitions> {
    if deployments.len() < 2 || deployments.iter().any(|d| d.len() < 2) {
        return None;
    }
    let within = within_runs(deployments)?;
    let means: Vec<Vec<f64>> = deployments
        .iter()
        .map(|runs| runs.iter().map(|run| mean(run)).collect())
        .collect();
    let s2 = mean(
        &means
            .iter()
            .map(|m| Moments::of(m).sd.powi(2))
            .collect::<Vec<_>>(),
    );
    let grand: Vec<f64> = means.iter().map(|m| mean(m)).collect();
    let s3 = Moments::of(&grand).sd.powi(2);
    let runs = deployments.len() as f64 / means.iter().map(|m| 1.0 / m.len() as f64).sum::<f64>();
    let t2 = s2 - within / harmonic_size(deployments);
    let t3 = s3 - s2 / runs;
    let r1 = optimal(cost[0], cost[1], within, t2)?;
    let r2 = optimal(cost[1], cost[2], t2, t3)?;
    let one = t3.max(0.0) + (t2.max(0.0) + within / r1 as f64) / r2 as f64;
    Some(Repetitions {
        variances: vec![within, t2, t3],
        below_top: vec![r1, r2],
        top: top(one, mean(&grand), half_width, deployments.len())?,
    })
}

/// S₁² = T₁²: mean variance within runs.
fn within_runs(deployments: &[Vec<Vec<f64>>]) -> Option<f64> {
    let runs: Vec<&Vec<f64>> = deployments.iter().flatten().collect();
    if runs.len() < 2 || runs.iter().any(|run| run.len() < 2) {
        return None;
    }
    let variances: Vec<f64> = runs.iter().map(|run| Moments::of(run).sd.powi(2)).collect();
    Some(mean(&variances))
}

/// Harmonic mean of the number of values per run.
fn harmonic_size(deployments: &[Vec<Vec<f64>>]) -> f64 {
    let runs: Vec<f64> = deployments
        .iter()
        .flatten()
        .map(|run| 1.0 / run.len() as f64)
        .collect();
    1.0 / mean(&runs)
}

/// r_i = ceil(sqrt(c_{i+1}/c_i · T_i²/T_{i+1}²)). One repetition suffices if no variance arises at the level
/// itself. If none arises above it, more repetitions of the cheap level always pay off: as many as one
/// repetition above costs.
fn optimal(cost: f64, above: f64, variance: f64, variance_above: f64) -> Option<u64> {
    let positive = |x: f64| x > 0.0 && x.is_finite();
    if !positive(cost) || !positive(above) {
        return None;
    }
    if variance <= 0.0 {
        return Some(1);
    }
    let cost_ratio = above / cost;
    let best = if variance_above <= 0.0 {
        cost_ratio
    } else {
        (cost_ratio * variance / variance_above).sqrt()
    };
    Some((best.ceil() as u64).clamp(1, 1_000_000))
}

/// Smallest n with t(n-1) · sqrt(variance / n) ≤ half_width · mean, at least 2.
fn top(variance: f64, mean: f64, half_width: f64, pilot: usize) -> Option<u64> {
    if mean == 0.0 || half_width.is_nan() || half_width <= 0.0 || pilot < 2 {
        return None;
    }
    let wanted = half_width * mean.abs();
    (2..=100_000u64)
        .find(|&n| t_quantile(0.975, n as f64 - 1.0) * (variance / n as f64).sqrt() <= wanted)
}

#[cfg(test)]
mod tests {
    use super::{three_levels, two_levels};
    use crate::stats::testing::Noise;

    #[test]
    fn repetitions_go_to_the_level_where_variation_arises() {
        let mut noise = Noise::new(14);
        // 5 % between runs, 10 % within: one second costs 1, one more run 20.
        let runs: Vec<Vec<f64>> = (0..200)
            .map(|_| {
                let level = 100.0 * (1.0 + 0.05 * noise.normal());
                (0..30).map(|_| level + 10.0 * noise.normal()).collect()
            })
            .collect();
        let plan = two_levels(&runs, [1.0, 20.0], 0.02).unwrap();
        // T1² = 100, T2² = 25: sqrt(20 · 4) = 8.9.
        assert!((8..=11).contains(&plan.below_top[0]), "{plan:?}");
        assert!((plan.variances[1] - 25.0).abs() < 8.0, "{plan:?}");
        // sqrt(25 + 100/9) = 6.0 per run; t · 6.0 / sqrt(n) ≤ 2 from about n = 38.
        assert!((28..=50).contains(&plan.top), "{plan:?}");
    }

    #[test]
    fn a_level_without_variation_of_its_own_needs_one_repetition() {
        let mut noise = Noise::new(15);
        let deployments: Vec<Vec<Vec<f64>>> = (0..3)
            .map(|_| {
                let level = 100.0 + 20.0 * noise.normal();
                (0..3).map(|_| vec![level, level]).collect()
            })
            .collect();
        let plan = three_levels(&deployments, [1.0, 10.0, 100.0], 0.1).unwrap();
        assert_eq!(plan.below_top, [1, 1]);
        assert!(plan.top > 3, "{plan:?}");
    }

    #[test]
    fn a_pilot_without_repetition_gives_no_plan() {
        assert_eq!(two_levels(&[vec![1.0, 2.0]], [1.0, 1.0], 0.1), None);
        assert_eq!(two_levels(&[vec![1.0], vec![2.0]], [1.0, 1.0], 0.1), None);
        let runs = [vec![1.0, 2.0], vec![2.0, 3.0]];
        assert_eq!(two_levels(&runs, [0.0, 1.0], 0.1), None);
        assert_eq!(two_levels(&runs, [1.0, 1.0], 0.0), None);
        assert!(two_levels(&runs, [1.0, 1.0], 0.5).is_some());
    }
}
