//! What a report shows of an experiment: figures, tables and the metrics in them.

use serde::{Deserialize, Serialize};

/// A figure of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Figure {
    /// What it looks like.
    pub kind: FigureKind,
    /// What it shows; each kind has its usual metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Operation class, such as `get`; empty for all together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Phase of the workload, or the beginning of its name with `*`; empty for the measuring ones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Headline; empty for one made of the above.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}

/// Kinds of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A metric over the swept values, a line per target, with intervals.
    #[default]
    Curve,
    /// As `curve`, with the fit of the Universal Scalability Law.
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
    /// Requests and bytes per data node of the store, where placement is known, else by key.
    LoadBalance,
    /// Latency under even and skewed popularity side by side.
    Hotspot,
    /// Confirmed capacity per target with its bracket.
    Capacity,
    /// Efficiency per process (node) against one.
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

    /// As written in a study.
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
    /// What its rows and columns are.
    pub kind: TableKind,
    /// What a cell holds; each kind has its usual metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Operation class, such as `get`; empty for all together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Phase of the workload, or the beginning of its name with `*`; empty for the measuring ones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Caption; empty for one made of the above.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}

/// Kinds of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// A row per target: throughput, bandwidth, latencies, errors, verdict.
    #[default]
    Summary,
    /// A row per swept value, a column per target.
    Ladder,
    /// A row per class and target: minimum, mean, percentiles, maximum.
    Latency,
    /// A row per class and metric: the baseline's value, and multiples of it per target.
    Multiples,
    /// OSSperf's Tables 4 and 5: a row per size, columns for upload and download.
    Ossperf,
    /// Parameters of the Universal Scalability Law per target.
    Scaling,
    /// Capacity, bracket and what limited it per target.
    Capacity,
    /// IO500's phases and scores.
    Io500,
    /// MD-Workbench's rates and quantiles.
    MdWorkbench,
    /// The grid: a row per files x bytes, columns per system and number of processes.
    Grid,
    /// Indices of load balance.
    LoadBalance,
    /// What the client costs: throughput, latency and CPU time per operation.
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

    /// As written in a study.
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

/// A figure of a run, of a class of operations in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Successful operations per second.
    Throughput,
    /// Bytes of objects per second.
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

    /// Whether only grids have it.
    #[must_use]
    pub const fn is_of_grids(self) -> bool {
        matches!(self, Self::WallThroughput | Self::WallBandwidth)
    }

    /// As written in a study.
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
