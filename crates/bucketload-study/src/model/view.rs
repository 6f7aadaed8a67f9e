//! The figures and tables that a report shows of an experiment, and their metrics.

use bucketload_results::result::metric::Metric;
use serde::{Deserialize, Serialize};

use super::named;

/// A figure of the report.
pub type Figure = View<FigureKind>;

/// A table of the report.
pub type Table = View<TableKind>;

/// A figure or table of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct View<Kind> {
    /// Its kind.
    pub kind: Kind,
    /// Its metric; each kind has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Operation class, such as `get`; empty for all together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Phase of the workload, or a prefix of its name with `*`; empty for the measuring ones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Headline or caption; empty to derive it from the above.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}

named! {
    /// Kinds of figures.
    #[derive(Default)]
    FigureKind {
        /// A metric over the swept values, one line per target, with intervals.
        #[default]
        Curve => "curve",
        /// Like `curve`, with the fit of the Universal Scalability Law.
        Scaling => "scaling",
        /// A metric per target (and value) as bars with intervals.
        Bars => "bars",
        /// Multiples of the baseline as bars with intervals of the ratio.
        Multiples => "multiples",
        /// Histogram of throughput per second with the fitted Gaussian.
        ThroughputPdf => "throughput-pdf",
        /// Cumulative distribution of latency, logarithmic axis.
        LatencyCdf => "latency-cdf",
        /// Density of latency, logarithmic axis.
        LatencyDensity => "latency-density",
        /// Requests per data node of the store if the placement is known, else per key.
        LoadBalance => "load-balance",
        /// Latency under even and skewed popularity side by side.
        Hotspot => "hotspot",
        /// Confirmed capacity per target with its bracket.
        Capacity => "capacity",
        /// Efficiency per process (node) relative to one.
        Efficiency => "efficiency",
    }
}

named! {
    /// Kinds of tables.
    #[derive(Default)]
    TableKind {
        /// One row per target: throughput, bandwidth, latencies, errors, verdict.
        #[default]
        Summary => "summary",
        /// One row per swept value, one column per target.
        Ladder => "ladder",
        /// One row per class and target: minimum, mean, percentiles, maximum.
        Latency => "latency",
        /// One row per class and metric: the baseline's value, and multiples of it per target.
        Multiples => "multiples",
        /// OSSperf's Tables 4 and 5: one row per size, columns for upload and download.
        Ossperf => "ossperf",
        /// Parameters of the Universal Scalability Law per target.
        Scaling => "scaling",
        /// Capacity, bracket and limiting factor per target.
        Capacity => "capacity",
        /// IO500's phases and scores.
        Io500 => "io500",
        /// MD-Workbench's rates and quantiles.
        MdWorkbench => "md-workbench",
        /// The grid: one row per files x bytes, one column per system and number of processes.
        Grid => "grid",
        /// Indices of load balance.
        LoadBalance => "load-balance",
        /// Cost of the client: throughput, latency and CPU time per operation.
        Clients => "clients",
        /// The benchmark's own columns: training, checkpoints and caches as MLPerf Storage lists them.
        Mlperf => "mlperf",
        /// Every cell with its verdict.
        Verdicts => "verdicts",
    }
}
