//! Fits the arrival process: constant, Poisson, log-normal gaps, or a log-normal rate.
//!
//! The law is chosen by the index of dispersion of counts over windows of several lengths, and by the coefficient of
//! variation of the gaps. The values of a candidate are measured on a schedule drawn from it, not computed, so that both
//! sides are estimated the same way.

use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::plan::ArrivalLaw;
use bucketload_workload::spec::law::ArrivalSpec;
use serde::Serialize;

use crate::error::TraceError;
use crate::prepare::Summary;

const MS: i64 = 1_000_000;
/// Window lengths, nanoseconds.
const WINDOWS: [i64; 9] = [
    10 * MS,
    100 * MS,
    1_000 * MS,
    2_000 * MS,
    5_000 * MS,
    10_000 * MS,
    60_000 * MS,
    600_000 * MS,
    3_600_000 * MS,
];
/// Minimum number of windows for a dispersion.
const MIN_WINDOWS: u64 = 20;
/// Maximum number of arrivals drawn from a candidate.
const MAX_DRAWN: u64 = 400_000;

/// Statistics of the counts for one window length.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    current: u64,
    index: i64,
    n: u64,
    sum: f64,
    squares: f64,
}

/// Collects statistics of arrivals, in order.
#[derive(Clone, Debug)]
pub(super) struct Observer {
    windows: [Window; WINDOWS.len()],
    last_ns: Option<i64>,
    gaps: u64,
    gap_mean: f64,
    gap_m2: f64,
    arrivals: u64,
}

impl Default for Observer {
    fn default() -> Self {
        Self {
            windows: [Window::default(); WINDOWS.len()],
            last_ns: None,
            gaps: 0,
            gap_mean: 0.0,
            gap_m2: 0.0,
            arrivals: 0,
        }
    }
}

impl Observer {
    /// Adds `times` arrivals at an instant of 0 or more.
    pub(super) fn add(&mut self, ts_ns: i64, times: u64) {
        for (window, len) in self.windows.iter_mut().zip(WINDOWS) {
            window.advance(ts_ns / len);
            window.current += times;
        }
        if let Some(last) = self.last_ns.replace(ts_ns) {
            self.gap((ts_ns - last) as f64);
        }
        for _ in 1..times.min(1000) {
            self.gap(0.0);
        }
        self.arrivals += times;
    }

    /// Updates the moments of the gaps (Welford).
    fn gap(&mut self, gap: f64) {
        self.gaps += 1;
        let delta = gap - self.gap_mean;
        self.gap_mean += delta / self.gaps as f64;
        self.gap_m2 += delta * (gap - self.gap_mean);
    }

    /// Ends the observation at `end_ns`; windows that end later do not count.
    pub(super) fn finish(&mut self, end_ns: i64) {
        for (window, len) in self.windows.iter_mut().zip(WINDOWS) {
            window.advance(end_ns / len);
        }
    }

    fn gap_cv(&self) -> f64 {
        let variance = self.gap_m2 / (self.gaps.max(2) - 1) as f64;
        if self.gap_mean > 0.0 {
            variance.sqrt() / self.gap_mean
        } else {
            0.0
        }
    }
}

impl Window {
    fn advance(&mut self, index: i64) {
        if index == self.index {
            return;
        }
        let count = self.current as f64;
        self.sum += count;
        self.squares += count * count;
        // The windows in between are empty.
        self.n += (index - self.index) as u64;
        (self.index, self.current) = (index, 0);
    }

    fn mean(&self) -> f64 {
        self.sum / self.n.max(1) as f64
    }

    /// Variance over mean; `None` with too few windows or arrivals.
    fn dispersion(&self) -> Option<f64> {
        if self.n < MIN_WINDOWS || self.mean() < 0.5 {
            return None;
        }
        let n = self.n as f64;
        let variance = (self.squares - self.sum * self.sum / n) / (n - 1.0);
        Some(variance / self.mean())
    }
}

/// Index of dispersion of counts at one window length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dispersion {
    /// Length of the window, nanoseconds.
    pub window_ns: i64,
    /// Number of windows behind the recorded value.
    pub windows: u64,
    /// Recorded value.
    pub recorded: f64,
    /// Value of a schedule drawn from the law; `None` if that was too short.
    pub fitted: Option<f64>,
}

/// A candidate law.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// The law as it is written in a workload.
    pub law: String,
    /// Root mean square of the logarithms of recorded over fitted dispersion and gap variation; 0.1 is about 10 %.
    pub misfit: f64,
}

/// A fitted arrival law, with its goodness of fit.
#[derive(Clone, Debug, Serialize)]
pub struct ArrivalFit {
    /// The law as it is written in a workload.
    pub law: String,
    /// Arrivals per second.
    pub rate: f64,
    /// As in [`Candidate::misfit`].
    pub misfit: f64,
    /// Recorded coefficient of variation of the gaps; `None` if the clock is coarser than the mean gap.
    pub gap_cv_recorded: Option<f64>,
    /// Coefficient of variation of the law's gaps.
    pub gap_cv_fitted: f64,
    /// Dispersion at several window lengths.
    pub dispersion: Vec<Dispersion>,
    /// All candidates, best first.
    pub candidates: Vec<Candidate>,
}

/// Fits a law to the observed arrivals.
pub(super) fn fit(seen: &Observer, summary: &Summary, seed: u64) -> Result<ArrivalFit, TraceError> {
    let span_s = summary.span_ns as f64 / 1e9;
    // n arrivals have n - 1 gaps.
    let rate = (seen.arrivals.max(2) - 1) as f64 / span_s;
    let rate = round(rate);
    // Spread instants of a coarse clock say nothing about gaps, or about windows below a tick.
    let fine = summary.resolution_ns as f64 <= 1e9 / rate;
    let usable = |i: usize| {
        seen.windows[i]
            .dispersion()
            .filter(|_| fine || WINDOWS[i] >= 2 * summary.resolution_ns)
    };
    let gap_cv = fine.then(|| seen.gap_cv());
    let mut tried: Vec<(f64, ArrivalLaw, Observer)> = Vec::new();
    for law in laws(rate, gap_cv, &usable) {
        let drawn = draw(&law, seed, rate, summary.span_ns)?;
        let mut misfit = Misfit::default();
        if let Some(cv) = gap_cv {
            misfit.add(cv, drawn.gap_cv());
        }
        for i in 0..WINDOWS.len() {
            if let (Some(recorded), Some(fitted)) = (usable(i), drawn.windows[i].dispersion()) {
                misfit.add(recorded, fitted);
            }
        }
        tried.push((misfit.value(), law, drawn));
    }
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    // A law with a fitted parameter must be clearly better than one without.
    let best = tried.iter().position(|(misfit, law, _)| {
        matches!(
            law,
            ArrivalLaw::Poisson { .. } | ArrivalLaw::Constant { .. }
        ) && *misfit <= tried[0].0 + 0.1
    });
    let (misfit, law, drawn) = &tried[best.unwrap_or(0)];
    let rows = (0..WINDOWS.len()).filter_map(|i| {
        Some(Dispersion {
            window_ns: WINDOWS[i],
            windows: seen.windows[i].n,
            recorded: usable(i)?,
            fitted: drawn.windows[i].dispersion(),
        })
    });
    let text = |law: &ArrivalLaw| ArrivalSpec { law: law.clone() }.to_string();
    Ok(ArrivalFit {
        law: text(law),
        rate,
        misfit: *misfit,
        gap_cv_recorded: gap_cv,
        gap_cv_fitted: drawn.gap_cv(),
        dispersion: rows.collect(),
        candidates: tried
            .iter()
            .map(|(misfit, law, _)| Candidate {
                law: text(law),
                misfit: *misfit,
            })
            .collect(),
    })
}

/// Rounds to five digits, more than a trace can resolve.
fn round(x: f64) -> f64 {
    let unit = 10f64.powf(x.abs().max(1e-9).log10().floor() - 4.0);
    (x / unit).round() * unit
}

/// The candidate laws.
fn laws(
    rate: f64,
    gap_cv: Option<f64>,
    dispersion: &impl Fn(usize) -> Option<f64>,
) -> Vec<ArrivalLaw> {
    let mut laws = vec![ArrivalLaw::Constant { rate }, ArrivalLaw::Poisson { rate }];
    // Independent log-normal gaps: the dispersion of long windows is cv² (docs/spec/scenarios.md section 1.3).
    let mut cvs: Vec<f64> = gap_cv.into_iter().collect();
    cvs.extend((0..WINDOWS.len()).filter_map(dispersion).map(f64::sqrt));
    for cv in cvs
        .into_iter()
        .map(round)
        .filter(|cv| (0.05..20.0).contains(cv))
    {
        laws.push(ArrivalLaw::LognormalGaps { rate, cv });
    }
    // A log-normal rate per slot: over a slot the dispersion is 1 + rate * slot * cv².
    for i in 1..WINDOWS.len() {
        let Some(idc) = dispersion(i).filter(|idc| *idc > 1.2) else {
            continue;
        };
        let slot_ns = WINDOWS[i];
        let cv = round(((idc - 1.0) / (rate * slot_ns as f64 / 1e9)).sqrt());
        if (0.01..20.0).contains(&cv) {
            let slot_ns = slot_ns as u64;
            laws.push(ArrivalLaw::LognormalRate { rate, cv, slot_ns });
        }
    }
    laws
}

/// Draws a schedule of the trace's length, or of at most [`MAX_DRAWN`] arrivals, and observes it.
fn draw(law: &ArrivalLaw, seed: u64, rate: f64, span_ns: i64) -> Result<Observer, TraceError> {
    let schedule = Schedule::new(seed, 0, 0, law)
        .map_err(|e| TraceError::Option(format!("a fitted law cannot be drawn from: {e}")))?;
    let end = span_ns.min((MAX_DRAWN as f64 / rate * 1e9) as i64);
    let mut seen = Observer::default();
    for arrival in schedule.arrivals() {
        let due = i64::try_from(arrival.due_ns).unwrap_or(i64::MAX);
        if due >= end {
            break;
        }
        seen.add(due, 1);
    }
    seen.finish(end);
    Ok(seen)
}

/// Root mean square of the logarithms of ratios.
#[derive(Default)]
struct Misfit {
    sum: f64,
    n: f64,
}

impl Misfit {
    fn add(&mut self, recorded: f64, fitted: f64) {
        // The offset keeps the dispersion 0 of a constant stream finite: differences far below 0.05 do not matter.
        let log = ((recorded + 0.05) / (fitted + 0.05)).ln();
        self.sum += log * log;
        self.n += 1.0;
    }

    fn value(&self) -> f64 {
        if self.n > 0.0 {
            (self.sum / self.n).sqrt()
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::generate::arrivals::Schedule;
    use bucketload_core::plan::ArrivalLaw;

    use super::{ArrivalFit, Observer, fit};
    use crate::prepare::Summary;

    fn fitted(law: &ArrivalLaw, seconds: i64) -> ArrivalFit {
        let schedule = Schedule::new(99, 0, 0, law).unwrap();
        let mut seen = Observer::default();
        let span_ns = seconds * 1_000_000_000;
        let arrivals = schedule.arrivals().map(|a| a.due_ns as i64);
        arrivals
            .take_while(|&ts| ts < span_ns)
            .for_each(|ts| seen.add(ts, 1));
        seen.finish(span_ns);
        let summary = Summary {
            span_ns,
            resolution_ns: 1,
            ..Summary::default()
        };
        fit(&seen, &summary, 1).unwrap()
    }

    #[test]
    fn laws_are_identified() {
        let rate = 200.0;
        let constant = fitted(&ArrivalLaw::Constant { rate }, 300);
        assert!(constant.law.starts_with("constant"), "{constant:?}");
        let poisson = fitted(&ArrivalLaw::Poisson { rate }, 300);
        assert!(poisson.law.starts_with("poisson"), "{poisson:?}");
        assert!((poisson.rate / rate - 1.0).abs() < 0.02);
        let gaps = fitted(&ArrivalLaw::LognormalGaps { rate, cv: 2.0 }, 600);
        assert!(gaps.law.starts_with("lognormal("), "{gaps:?}");
        assert!((gaps.gap_cv_fitted / 2.0 - 1.0).abs() < 0.1, "{gaps:?}");
        let slot_ns = 1_000_000_000;
        let cox = fitted(
            &ArrivalLaw::LognormalRate {
                rate,
                cv: 0.5,
                slot_ns,
            },
            2000,
        );
        assert!(
            cox.law.starts_with("lognormal-rate(") && cox.misfit < 0.2,
            "{cox:?}"
        );
        let second = cox
            .dispersion
            .iter()
            .find(|row| row.window_ns == 1_000_000_000)
            .unwrap();
        // 1 + 200 * 0.25 = 51; its standard error from 2000 slots of a log-normal rate is 5 %.
        assert!((second.recorded / 51.0 - 1.0).abs() < 0.2, "{second:?}");
        assert!(
            (second.fitted.unwrap() / second.recorded - 1.0).abs() < 0.2,
            "{second:?}"
        );
    }
}
