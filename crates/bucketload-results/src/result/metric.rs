//! Metrics: figures of operations that users name in studies and objectives, and by which runs are compared.

use bucketload_core::stats::decide::Better;
use serde::{Deserialize, Serialize};

use super::PhaseResult;
use super::figure::{Figure, Source};
use crate::kit::Unit;

/// What is known about operations of one class (or all) in one phase. Metrics are computed from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations that succeeded, per second.
    pub ops_per_s: f64,
    /// Object bytes of these, per second.
    pub bytes_per_s: f64,
    /// Mean response time, nanoseconds; 0 without operations, like the others.
    pub mean_ns: f64,
    /// Shortest response time, nanoseconds.
    pub min_ns: f64,
    /// Longest response time, nanoseconds.
    pub max_ns: f64,
    /// Percentiles 50, 95, 99, 99.9 of the response time, nanoseconds; `None` with too few values beyond it.
    pub quantiles_ns: [Option<f64>; 4],
    /// Mean time to the first byte, nanoseconds; `None` if it was not recorded.
    pub first_byte_ns: Option<f64>,
    /// CPU time of the client per operation, microseconds; of all classes together.
    pub cpu_us_per_op: Option<f64>,
    /// For a grid: operations per second from the first start of a process to the last end.
    pub wall_ops_per_s: Option<f64>,
    /// For a grid: object bytes per second over the same time.
    pub wall_bytes_per_s: Option<f64>,
}

impl Figures {
    /// All operations of `phase`, without their times.
    #[must_use]
    pub fn of_phase(phase: &PhaseResult) -> Self {
        Self {
            ok: phase.totals.ok,
            failed: phase.totals.failed,
            ops_per_s: phase.rates.ops_per_s.mean,
            bytes_per_s: phase.rates.bytes_per_s.mean,
            cpu_us_per_op: phase.client.cpu_us_per_op,
            ..Self::default()
        }
    }
}

/// From the list of metrics: [`Metric`], with its name for users, and its figure, with its name in files.
macro_rules! metrics {
    ($(#[doc = $doc:literal] $metric:ident $name:literal: $id:literal, $title:literal, $unit:ident, $better:ident, |$m:ident| $value:expr;)+) => {
        /// A metric of a run, for a class of operations in a phase.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Metric {
            $(#[doc = $doc] #[serde(rename = $name)] $metric,)+
        }

        static FIGURES: &[Figure<Figures>] = &[
            $(Figure::new($id, $title, Unit::$unit, Source::Number(|$m: &Figures| $value)).brief($name).better(Better::$better).doc($doc),)+
        ];

        impl Metric {
            /// Every metric.
            pub const ALL: &'static [Self] = &[$(Self::$metric,)+];
        }
    };
}

metrics! {
    /// Successful operations per second.
    Throughput "throughput": "ops_per_s", "throughput", PerS, Higher, |m| Some(m.ops_per_s);
    /// Object bytes per second; none, rather than 0, for operations that move no bytes.
    Bandwidth "bandwidth": "bytes_per_s", "bandwidth", BytesPerS, Higher, |m| Some(m.bytes_per_s).filter(|b| *b > 0.0);
    /// Mean response time.
    Mean "mean": "mean_ns", "mean response time", Ns, Lower, |m| (m.ok > 0).then_some(m.mean_ns);
    /// Median response time.
    P50 "p50": "p50_ns", "median response time", Ns, Lower, |m| m.quantiles_ns[0];
    /// 95th percentile of the response time.
    P95 "p95": "p95_ns", "p95 response time", Ns, Lower, |m| m.quantiles_ns[1];
    /// 99th percentile of the response time.
    P99 "p99": "p99_ns", "p99 response time", Ns, Lower, |m| m.quantiles_ns[2];
    /// 99.9th percentile of the response time.
    P999 "p999": "p999_ns", "p99.9 response time", Ns, Lower, |m| m.quantiles_ns[3];
    /// Mean time to the first byte.
    FirstByte "first-byte": "first_byte_ns", "mean time to first byte", Ns, Lower, |m| m.first_byte_ns;
    /// Share of failed operations.
    Errors "errors": "error_share", "share of failed operations", Share, Lower, |m| {
        let ended = m.ok + m.failed;
        (ended > 0).then(|| m.failed as f64 / ended as f64)
    };
    /// CPU time of the client per operation.
    ClientCpu "client-cpu": "client_cpu_us_per_op", "client CPU time per operation", UsPerOp, Lower, |m| m.cpu_us_per_op;
    /// Operations of all processes of a grid over the time from the first start to the last end.
    WallThroughput "wall-throughput": "wall_ops_per_s", "throughput from first start to last end", PerS, Higher, |m| m.wall_ops_per_s;
    /// Bytes of all processes of a grid over the time from the first start to the last end.
    WallBandwidth "wall-bandwidth": "wall_bytes_per_s", "bandwidth from first start to last end", BytesPerS, Higher, |m| {
        m.wall_bytes_per_s.filter(|b| *b > 0.0)
    };
}

impl Metric {
    /// True if only grids have it.
    #[must_use]
    pub const fn is_of_grids(self) -> bool {
        matches!(self, Self::WallThroughput | Self::WallBandwidth)
    }
}

impl std::ops::Deref for Metric {
    type Target = Figure<Figures>;

    fn deref(&self) -> &Self::Target {
        &FIGURES[*self as usize]
    }
}
