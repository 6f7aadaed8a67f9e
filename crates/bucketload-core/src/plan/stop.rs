//! When a phase may end before its limits: once a figure is precise enough.

use serde::{Deserialize, Serialize};

use crate::capacity::{Bound, Objective, Statistic, Timing};
use crate::op::OpClass;

/// The stopping rule of docs/spec/statistics.md section 3.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Shortest measured window, nanoseconds.
    pub min_window_ns: u64,
    /// Largest half-width of the confidence interval of the figure, as a share of its mean.
    pub half_width: f64,
    /// Highest percentile that needs at least 100 observations beyond it, such as 0.99.
    pub quantile: f64,
    /// The figure whose interval counts.
    #[serde(default, skip_serializing_if = "StopFigure::is_throughput")]
    pub figure: StopFigure,
}

/// A figure whose confidence interval can end a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopFigure {
    /// Operations that succeeded, per second.
    #[default]
    Throughput,
    /// A mean or a percentile of a duration.
    Duration {
        /// The operation class; `None` for all operations together.
        class: Option<OpClass>,
        /// The duration.
        of: Timing,
        /// The mean or the percentile; the largest value has no interval.
        statistic: Statistic,
    },
}

impl StopFigure {
    /// Whether it is the throughput.
    #[must_use]
    pub fn is_throughput(&self) -> bool {
        matches!(self, Self::Throughput)
    }

    /// Reads `throughput`, or a mean or percentile as an SLO names it, such as `p99` or `get.ttfb.mean`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == "throughput" {
            return Some(Self::Throughput);
        }
        let objective: Objective = format!("{name}<1s").parse().ok()?;
        match objective.bound {
            Bound::Duration { of, statistic, .. } if statistic != Statistic::Max => {
                Some(Self::Duration {
                    class: objective.class,
                    of,
                    statistic,
                })
            }
            _ => None,
        }
    }

    /// Its name, as [`Self::parse`] reads it.
    #[must_use]
    pub fn name(&self) -> String {
        match *self {
            Self::Throughput => "throughput".to_owned(),
            Self::Duration {
                class,
                of,
                statistic,
            } => Objective {
                class,
                bound: Bound::Duration {
                    of,
                    statistic,
                    ns: 1,
                },
                inclusive: false,
            }
            .metric(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StopFigure;

    #[test]
    fn figures_are_named_as_in_objectives() {
        for name in ["throughput", "p99", "get.p99.9", "put.ttfb.p50", "mean"] {
            assert_eq!(StopFigure::parse(name).unwrap().name(), name);
        }
        for name in ["max", "errors", "p100", "", "p99<1s", "fast"] {
            assert_eq!(StopFigure::parse(name), None, "{name}");
        }
    }
}
