//! The rates of a phase: as means with their intervals, and over time.

use bucketload_core::stats::batch::{Estimate, estimate};

use super::bins::Counts;
use super::fold;
use super::scan::PhaseScan;
use crate::result::{Rates, Series};

/// Limit on the points of a series for display.
const SERIES_POINTS: usize = 2000;

/// The rates of a phase.
pub(super) fn rates(bins: &[Counts]) -> Rates {
    let mean = |count: fn(&Counts) -> u64| rate(bins, count, |b| b.len_ns);
    Rates {
        ops_per_s: mean(|b| b.ok),
        bytes_per_s: mean(|b| b.bytes),
        offered_ops_per_s: mean(|b| b.offered).mean,
        offered_bytes_per_s: mean(|b| b.offered_bytes).mean,
        failed_per_s: mean(|b| b.failed).mean,
    }
}

/// Estimates a rate: the exact mean over all bins, with the interval from the bins' rates.
pub(super) fn rate<B>(
    bins: &[B],
    count: impl Fn(&B) -> u64,
    len_ns: impl Fn(&B) -> u64,
) -> Estimate {
    let longest = bins.iter().map(&len_ns).max().unwrap_or(0);
    let per_s: Vec<f64> = bins
        .iter()
        // A short last bin must not weigh as much as a whole one.
        .filter(|b| len_ns(b) * 100 >= longest * 99)
        .map(|b| count(b) as f64 * 1e9 / len_ns(b).max(1) as f64)
        .collect();
    let total: u64 = bins.iter().map(&count).sum();
    let time: u64 = bins.iter().map(&len_ns).sum();
    Estimate {
        mean: if time == 0 {
            0.0
        } else {
            total as f64 * 1e9 / time as f64
        },
        ..estimate(&per_s)
    }
}

/// The time series of a phase for display.
pub(super) fn series(scan: &PhaseScan) -> Series {
    let bins = scan.series.bins();
    let group = bins.len().div_ceil(SERIES_POINTS).max(1);
    let mut series = Series {
        intervals_per_point: scan.series.stride() * group as u64,
        ..Series::default()
    };
    for bin in fold::regroup(bins, group) {
        let seconds = bin.start_ns.saturating_sub(scan.start_ns) as f64 / 1e9;
        series.t_s.push(seconds);
        series.offered_ops_per_s.push(bin.per_s(bin.offered));
        series.ops_per_s.push(bin.per_s(bin.ok));
        series.failed_per_s.push(bin.per_s(bin.failed));
        series
            .offered_bytes_per_s
            .push(bin.per_s(bin.offered_bytes));
        series.bytes_per_s.push(bin.per_s(bin.bytes));
        series.in_flight.push(bin.mean_in_flight());
        series.backlog_s.push(bin.backlog_ns as f64 / 1e9);
        series
            .sessions
            .push(bin.sessions as f64 / bin.intervals.max(1) as f64);
        series.jobs.push(bin.mean_jobs());
        series.machine_busy.push(if bin.total_ns == 0 {
            0.0
        } else {
            bin.busy_ns as f64 / bin.total_ns as f64
        });
        series.late_p99_ms.push(bin.late_p99_ns as f64 / 1e6);
    }
    series
}
