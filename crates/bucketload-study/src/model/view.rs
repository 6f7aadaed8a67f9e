//! The figures and tables that a report shows of an experiment, and their metrics.

use serde::{Deserialize, Serialize};

/// A figure of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Figure {
    /// Its kind.
    pub kind: FigureKind,
    /// Its metric; each kind has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Operation class, such as `get`; empty for all together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Phase of the workload, or a prefix of its name with `*`; empty for the measuring ones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Headline; empty to derive it from the above.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}

/// Kinds of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A metric over the swept values, one line per target, with intervals.
    #[default]
    Curve,
    /// Like `curve`, with the fit of the Universal Scalability Law.
    Scaling,
    /// A metric per target (and value) as bars with intervals.
    Bars,
    /// Multiples of the baseline as bars with intervals of the ratio.
    Multiples,
    /// Histogram of throughput per second with the fitted Gaussian.
    ThroughputPdf,
    /// Cumulative distribution of latency, logarithmic axis.
    LatencyCdf,
    /// Density of latency, logarithmic axis.
    LatencyDensity,
    /// Requests per data node of the store if the placement is known, else per key.
    LoadBalance,
    /// Latency under even and skewed popularity side by side.
    Hotspot,
    /// Confirmed capacity per target with its bracket.
    Capacity,
    /// Efficiency per process (node) relative to one.
    Efficiency,
}

impl FigureKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Curve,
        Self::Scaling,
        Self::Bars,
        Self::Multiples,
        Self::ThroughputPdf,
        Self::LatencyCdf,
        Self::LatencyDensity,
        Self::LoadBalance,
        Self::Hotspot,
        Self::Capacity,
        Self::Efficiency,
    ];

    /// The name as written in a study.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Curve => "curve",
            Self::Scaling => "scaling",
            Self::Bars => "bars",
            Self::Multiples => "multiples",
            Self::ThroughputPdf => "throughput-pdf",
            Self::LatencyCdf => "latency-cdf",
            Self::LatencyDensity => "latency-density",
            Self::LoadBalance => "load-balance",
            Self::Hotspot => "hotspot",
            Self::Capacity => "capacity",
            Self::Efficiency => "efficiency",
        }
    }
}

/// A table of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Table {
    /// Its kind.
    pub kind: TableKind,
    /// Metric of its cells; each kind has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Operation class, such as `get`; empty for all together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Phase of the workload, or a prefix of its name with `*`; empty for the measuring ones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Caption; empty to derive it from the above.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}

/// Kinds of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// One row per target: throughput, bandwidth, latencies, errors, verdict.
    #[default]
    Summary,
    /// One row per swept value, one column per target.
    Ladder,
    /// One row per class and target: minimum, mean, percentiles, maximum.
    Latency,
    /// One row per class and metric: the baseline's value, and multiples of it per target.
    Multiples,
    /// OSSperf's Tables 4 and 5: one row per size, columns for upload and download.
    Ossperf,
    /// Parameters of the Universal Scalability Law per target.
    Scaling,
    /// Capacity, bracket and limiting factor per target.
    Capacity,
    /// IO500's phases and scores.
    Io500,
    /// MD-Workbench's rates and quantiles.
    MdWorkbench,
    /// The grid: one row per files x bytes, one column per system and number of processes.
    Grid,
    /// Indices of load balance.
    LoadBalance,
    /// Cost of the client: throughput, latency and CPU time per operation.
    Clients,
    /// Every cell with its verdict.
    Verdicts,
}

impl TableKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Summary,
        Self::Ladder,
        Self::Latency,
        Self::Multiples,
        Self::Ossperf,
        Self::Scaling,
        Self::Capacity,
        Self::Io500,
        Self::MdWorkbench,
        Self::Grid,
        Self::LoadBalance,
        Self::Clients,
        Self::Verdicts,
    ];

    /// The name as written in a study.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Ladder => "ladder",
            Self::Latency => "latency",
            Self::Multiples => "multiples",
            Self::Ossperf => "ossperf",
            Self::Scaling => "scaling",
            Self::Capacity => "capacity",
            Self::Io500 => "io500",
            Self::MdWorkbench => "md-workbench",
            Self::Grid => "grid",
            Self::LoadBalance => "load-balance",
            Self::Clients => "clients",
            Self::Verdicts => "verdicts",
        }
    }
}

/// A metric of a run, for a class of operations in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Successful operations per second.
    Throughput,
    /// Object bytes per second.
    Bandwidth,
    /// Mean response time.
    Mean,
    /// Median response time.
    P50,
    /// 95th percentile of the response time.
    P95,
    /// 99th percentile of the response time.
    P99,
    /// 99.9th percentile of the response time.
    P999,
    /// Mean time to the first byte.
    FirstByte,
    /// Share of failed operations.
    Errors,
    /// CPU time of the client per operation.
    ClientCpu,
    /// Operations of all processes of a grid over the time from the first start to the last end.
    WallThroughput,
    /// Bytes of all processes of a grid over the time from the first start to the last end.
    WallBandwidth,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 12] = [
        Self::Throughput,
        Self::Bandwidth,
        Self::Mean,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::FirstByte,
        Self::Errors,
        Self::ClientCpu,
        Self::WallThroughput,
        Self::WallBandwidth,
    ];

    /// True if only grids have it.
    #[must_use]
    pub const fn is_of_grids(self) -> bool {
        matches!(self, Self::WallThroughput | Self::WallBandwidth)
    }

    /// The name as written in a study.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Bandwidth => "bandwidth",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::FirstByte => "first-byte",
            Self::Errors => "errors",
            Self::ClientCpu => "client-cpu",
            Self::WallThroughput => "wall-throughput",
            Self::WallBandwidth => "wall-bandwidth",
        }
    }
}
