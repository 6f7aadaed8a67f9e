//! Distribution and variation of the throughput (docs/spec/statistics.md section 9).

use bucketload_core::stats::bootstrap::excess_dispersion;
use bucketload_core::stats::moments::{Moments, index_of_dispersion};
use bucketload_core::stats::normality::GaussianFit;
use bucketload_core::tally::FINE_BINS;

use super::bins::Counts;
use crate::result::{Dispersion, HistBin, ThroughputDistribution};

/// Number of bins needed for a statement about the shape.
const ENOUGH: usize = 60;
/// Length of a bootstrap block, and the longest time scale of dispersion, seconds.
const BLOCK_S: f64 = 10.0;

/// Describes the bins of the measured window; `None` with fewer than two.
pub(crate) fn describe(bins: &[Counts], open_loop: bool) -> Option<ThroughputDistribution> {
    // A shorter last bin would look slower.
    let longest = bins.iter().map(|b| b.len_ns).max()?;
    let bins: Vec<&Counts> = bins
        .iter()
        .filter(|b| b.len_ns * 100 >= longest * 99)
        .collect();
    if bins.len() < 2 {
        return None;
    }
    let bin_s = longest as f64 / 1e9;
    let block = (BLOCK_S / bin_s).round().max(1.0) as usize;
    let column = |value: fn(&Counts) -> u64| -> Vec<f64> {
        bins.iter().map(|b| b.per_s(value(b))).collect()
    };
    let (ops, bytes) = (column(|b| b.ok), column(|b| b.bytes));
    let (offered, offered_bytes) = (column(|b| b.offered), column(|b| b.offered_bytes));
    let sum = |value: fn(&Counts) -> u64| -> u64 { bins.iter().map(|b| value(b)).sum() };
    // Sizes that are not known in advance are missing in what was offered. What fell due before the window may end in it,
    // hence the margin.
    let knows_bytes = sum(|b| b.offered_bytes) >= sum(|b| b.bytes) / 5 * 4;
    let moves_bytes = bytes.iter().any(|&b| b > 0.0);
    let shown = if moves_bytes { &bytes } else { &ops };
    let excess = |done: &[f64], wanted: &[f64]| {
        open_loop
            .then(|| excess_dispersion(done, wanted, block))
            .flatten()
    };
    Some(ThroughputDistribution {
        unit: if moves_bytes { "bytes/s" } else { "ops/s" }.to_owned(),
        bin_s,
        moments: Moments::of(shown),
        histogram: histogram(shown),
        gaussian: GaussianFit::of(shown),
        enough: shown.len() >= ENOUGH,
        excess_bytes: excess(&bytes, &offered_bytes).filter(|_| knows_bytes),
        excess_ops: excess(&ops, &offered),
        dispersion: dispersion(&bins, bin_s, open_loop),
    })
}

/// Bins of equal width, about √n of them.
fn histogram(x: &[f64]) -> Vec<HistBin> {
    let low = x.iter().copied().fold(f64::INFINITY, f64::min);
    let high = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low == high {
        return vec![HistBin {
            from: low,
            to: high,
            count: x.len() as u64,
        }];
    }
    let bars = ((x.len() as f64).sqrt().ceil() as usize).clamp(5, 50);
    let width = (high - low) / bars as f64;
    let mut counts = vec![0; bars];
    for v in x {
        counts[(((v - low) / width) as usize).min(bars - 1)] += 1;
    }
    counts
        .into_iter()
        .enumerate()
        .map(|(i, count)| HistBin {
            from: low + width * i as f64,
            to: low + width * (i + 1) as f64,
            count,
        })
        .collect()
}

/// Dispersion at a hundredth and a tenth of an interval, from the recorded squares.
fn fine_dispersion(bins: &[&Counts], open_loop: bool) -> Vec<Dispersion> {
    let fine_ns = bins.first().map_or(0, |b| b.fine_ns);
    if fine_ns == 0 || bins.iter().any(|b| b.fine_ns != fine_ns) {
        return Vec::new();
    }
    let sum = |of: fn(&Counts) -> u64| bins.iter().map(|b| of(b)).sum::<u64>() as f64;
    let intervals = sum(|b| b.intervals);
    // (Σc² - (Σc)²/n) / (n - 1) over the mean Σc/n.
    let index = |squares: f64, total: f64, n: f64| {
        (n >= 2.0 && total > 0.0)
            .then(|| (squares - total * total / n).max(0.0) / (n - 1.0) / (total / n))
    };
    let windows = FINE_BINS as f64 * intervals;
    let row = |window_s, n, offered: f64, completed: f64| Dispersion {
        window_s,
        offered: index(offered, sum(|b| b.offered), n).filter(|_| open_loop),
        completed: index(completed, sum(|b| b.ok), n),
    };
    let fine_s = fine_ns as f64 / 1e9;
    vec![
        row(
            fine_s,
            windows,
            sum(|b| b.offered_squares[0]),
            sum(|b| b.completed_squares[0]),
        ),
        row(
            10.0 * fine_s,
            windows / 10.0,
            sum(|b| b.offered_squares[1]),
            sum(|b| b.completed_squares[1]),
        ),
    ]
}

/// Dispersion at all time scales: within a bin, at its length, at one second and at ten.
fn dispersion(bins: &[&Counts], bin_s: f64, open_loop: bool) -> Vec<Dispersion> {
    let column =
        |value: fn(&Counts) -> u64| -> Vec<f64> { bins.iter().map(|b| value(b) as f64).collect() };
    let (done, offered) = (column(|b| b.ok), column(|b| b.offered));
    let mut groups: Vec<usize> = [bin_s, 1.0, BLOCK_S]
        .into_iter()
        .filter(|&w| w >= bin_s * 0.99)
        .map(|w| (w / bin_s).round().max(1.0) as usize)
        .collect();
    groups.dedup();
    let coarse = groups.into_iter().map(|group| Dispersion {
        window_s: group as f64 * bin_s,
        offered: open_loop
            .then(|| index_of_dispersion(&offered, group))
            .flatten(),
        completed: index_of_dispersion(&done, group),
    });
    fine_dispersion(bins, open_loop)
        .into_iter()
        .chain(coarse)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{describe, histogram};
    use crate::analyze::bins::Counts;

    fn bins(n: u64) -> Vec<Counts> {
        (0..n)
            .map(|i| Counts {
                len_ns: 1_000_000_000,
                intervals: 1,
                offered: 100 + i % 7,
                offered_bytes: (100 + i % 7) * 10,
                ok: 100 + i % 7,
                bytes: (100 + i % 7) * 10,
                ..Counts::default()
            })
            .collect()
    }

    #[test]
    fn a_store_that_follows_the_schedule_adds_nothing() {
        let d = describe(&bins(70), true).unwrap();
        assert_eq!((d.unit.as_str(), d.bin_s, d.enough), ("bytes/s", 1.0, true));
        assert_eq!(d.moments.mean, 1030.0);
        assert_eq!(d.excess_bytes.unwrap().ratio, 1.0);
        assert_eq!(d.dispersion.len(), 2);
        assert_eq!(d.dispersion[0].offered, d.dispersion[0].completed);
        assert_eq!(d.histogram.iter().map(|b| b.count).sum::<u64>(), 70);
        assert_eq!(describe(&bins(70), false).unwrap().excess_bytes, None);
        assert_eq!(describe(&bins(1), true), None);
        let mut unknown = bins(70);
        unknown.iter_mut().for_each(|b| b.offered_bytes /= 10);
        let d = describe(&unknown, true).unwrap();
        assert_eq!(d.excess_bytes, None);
        assert!(d.excess_ops.is_some());
    }

    #[test]
    fn short_time_scales_use_the_recorded_squares() {
        // Each second has 100 operations, all in one of its hundred bins.
        let clustered: Vec<Counts> = bins(70)
            .into_iter()
            .map(|b| Counts {
                offered: 100,
                ok: 100,
                fine_ns: 10_000_000,
                // An even stream: one operation per bin, ten per ten bins.
                offered_squares: [100, 1000],
                completed_squares: [10_000, 10_000],
                ..b
            })
            .collect();
        let d = describe(&clustered, true).unwrap().dispersion;
        let windows: Vec<f64> = d.iter().map(|d| d.window_s).collect();
        assert_eq!(windows, [0.01, 0.1, 1.0, 10.0]);
        assert_eq!((d[0].offered, d[1].offered), (Some(0.0), Some(0.0)));
        // n = 7000, mean 1, Σc² = 70·10⁴: (700 000 - 7000)/6999.
        assert!((d[0].completed.unwrap() - 693_000.0 / 6_999.0).abs() < 1e-9);
        // n = 700, mean 10: (700 000 - 70 000)/699/10.
        assert!((d[1].completed.unwrap() - 630_000.0 / 6_990.0).abs() < 1e-9);
        let mut partly = clustered;
        partly[3].fine_ns = 0;
        assert_eq!(describe(&partly, true).unwrap().dispersion.len(), 2);
    }

    #[test]
    fn a_short_last_bin_is_ignored() {
        let mut b = bins(30);
        b.push(Counts {
            len_ns: 400_000_000,
            ok: 1,
            bytes: 10,
            ..Counts::default()
        });
        assert_eq!(describe(&b, true).unwrap().moments.n, 30);
    }

    #[test]
    fn bars_cover_the_range() {
        let bars = histogram(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((bars[0].from, bars.last().unwrap().to), (1.0, 5.0));
        assert_eq!(bars.iter().map(|b| b.count).sum::<u64>(), 5);
        assert_eq!(histogram(&[2.0; 4]).len(), 1);
    }
}
