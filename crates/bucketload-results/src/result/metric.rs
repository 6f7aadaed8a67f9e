//! Metrics: figures of operations that users name in studies and objectives, and by which runs are compared.

use bucketload_core::ai::{AiFigure, AiFigures};
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
    /// Figures of training, checkpoints or a cache.
    pub ai: AiFigures,
}

impl Figures {
    /// A figure of training, checkpoints or a cache.
    fn of(&self, figure: AiFigure) -> Option<f64> {
        self.ai.get(&figure).copied()
    }

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
    /// Utilisation of the accelerators of a training, as DLIO computes it.
    Au "au": "au_share", "accelerator utilisation", Share, Higher, |m| m.of(AiFigure::Au);
    /// Samples per second of all accelerators, as DLIO computes them.
    Samples "samples": "samples_per_s", "samples", PerS, Higher, |m| m.of(AiFigure::Samples);
    /// Input of all accelerators, from nominal record sizes.
    InputRate "input-rate": "input_bytes_per_s", "input", BytesPerS, Higher, |m| m.of(AiFigure::InputRate);
    /// Bytes of a written checkpoint over the time from the common barrier to its last byte.
    CheckpointWrite "checkpoint-write": "checkpoint_write_bytes_per_s", "checkpoint write", BytesPerS, Higher, |m| m.of(AiFigure::CheckpointWrite);
    /// From the common barrier to the last byte of a written checkpoint.
    CheckpointWriteTime "checkpoint-write-time": "checkpoint_write_ns", "time to write a checkpoint", Ns, Lower, |m| m.of(AiFigure::CheckpointWriteTime);
    /// Bytes of a read checkpoint over the time from the common barrier to its last byte.
    CheckpointRead "checkpoint-read": "checkpoint_read_bytes_per_s", "checkpoint read", BytesPerS, Higher, |m| m.of(AiFigure::CheckpointRead);
    /// From the common barrier to the last byte of a read checkpoint.
    CheckpointReadTime "checkpoint-read-time": "checkpoint_read_ns", "time to read a checkpoint", Ns, Lower, |m| m.of(AiFigure::CheckpointReadTime);
    /// Bytes of a written checkpoint over the time of its slowest rank, as DLIO computes it.
    DlioWrite "dlio-write": "dlio_write_bytes_per_s", "checkpoint write (DLIO)", BytesPerS, Higher, |m| m.of(AiFigure::DlioWrite);
    /// Time of the slowest rank of a written checkpoint, as DLIO computes it.
    DlioWriteTime "dlio-write-time": "dlio_write_ns", "time of the slowest writing rank (DLIO)", Ns, Lower, |m| m.of(AiFigure::DlioWriteTime);
    /// Bytes of a read checkpoint over the time of its slowest rank, as DLIO computes it.
    DlioRead "dlio-read": "dlio_read_bytes_per_s", "checkpoint read (DLIO)", BytesPerS, Higher, |m| m.of(AiFigure::DlioRead);
    /// Time of the slowest rank of a read checkpoint, as DLIO computes it.
    DlioReadTime "dlio-read-time": "dlio_read_ns", "time of the slowest reading rank (DLIO)", Ns, Lower, |m| m.of(AiFigure::DlioReadTime);
    /// Share of the blocks of a cache that were found before the first miss of their request.
    HitRatio "hit-ratio": "hit_ratio", "block hit ratio", Share, Higher, |m| m.of(AiFigure::HitRatio);
    /// The same of tokens.
    TokenHitRatio "token-hit-ratio": "token_hit_ratio", "token hit ratio", Share, Higher, |m| m.of(AiFigure::TokenHitRatio);
    /// Median time of loading the cached blocks of a request.
    LoadP50 "load-p50": "load_p50_ns", "median load time", Ns, Lower, |m| m.of(AiFigure::LoadP50);
    /// 99th percentile of the time of loading the cached blocks of a request.
    LoadP99 "load-p99": "load_p99_ns", "p99 load time", Ns, Lower, |m| m.of(AiFigure::LoadP99);
    /// Share of the requests of a cache that were loaded within the first target of their class.
    Attainment "slo-attainment": "slo_attainment_share", "requests within their target", Share, Higher, |m| m.of(AiFigure::Attainment);
}

impl Metric {
    /// The figure of training, checkpoints or a cache that it is; `None` for figures of operations.
    #[must_use]
    pub fn ai(self) -> Option<AiFigure> {
        AiFigure::from_name(self.brief)
    }

    /// The metric of a figure of training, checkpoints or a cache.
    ///
    /// # Panics
    /// If there is none; a test excludes that.
    #[must_use]
    pub fn of_ai(figure: AiFigure) -> Self {
        let mut all = Self::ALL.iter();
        let found = all.find(|metric| metric.brief == figure.name());
        *found.expect("every figure is a metric")
    }

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

#[cfg(test)]
mod tests {
    use bucketload_core::ai::AiFigure;
    use bucketload_core::stats::decide::Better;

    use super::Metric;
    use crate::result::ai;

    #[test]
    fn every_figure_of_an_application_is_a_metric() {
        for figure in AiFigure::ALL {
            let metric = Metric::of_ai(*figure);
            assert_eq!(metric.ai(), Some(*figure));
            assert_eq!(metric.unit, ai::unit(*figure));
            let lower = metric.better == Some(Better::Lower);
            assert_eq!(lower, figure.is_ceiling(), "{figure}");
        }
        assert_eq!(Metric::P99.ai(), None);
    }
}
