//! Poisson arrivals whose intensity varies: constant, steps, a linear ramp, or random per slot.
//!
//! A unit-rate Poisson process (exponential gaps E_0, E_1, …) is mapped through the inverse of the integrated
//! intensity Λ: arrival i is due where Λ(t) = E_0 + … + E_i. Λ consists of segments with constant or linear
//! intensity:
//!
//! ```text
//!  intensity ▲      ┌──────┐         a gap of size E covers the area E,
//!            │ ┌────┘▒▒▒▒▒▒└───┐     across as many segments as needed
//!            │ │    │▒▒▒▒▒▒│▒▒ └────
//!            └─┴────┴──────┴────────▶ t
//! ```
//!
//! Within a slot of constant rate R, this is exactly "Poisson(R·slot) arrivals at sorted uniform instants",
//! without storing or sorting them.

use super::{Instant, NS, Words};
use crate::generate::elementary::{exp, ln};
use crate::generate::math::normal_quantile;
use crate::plan::ArrivalLaw;

/// The intensity over time, in arrivals per nanosecond.
#[derive(Clone, Debug)]
pub(super) enum Intensity {
    Constant {
        rate: f64,
    },
    /// Linear from `from` to `to` within `over_ns`, then constant.
    Ramp {
        from: f64,
        to: f64,
        over_ns: u64,
    },
    Steps {
        rates: Box<[f64]>,
        step_ns: u64,
    },
    /// exp(mu + sigma·Z_j) in slot j; `mean` is its expectation.
    Random {
        mean: f64,
        mu: f64,
        sigma: f64,
        slot_ns: u64,
        words: Words,
    },
}

/// A period with linear intensity.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Intensity at its start, per nanosecond.
    rate: f64,
    /// Change of the intensity, per nanosecond squared.
    slope: f64,
    start_ns: u64,
    /// `u64::MAX` for the last segment.
    end_ns: u64,
}

impl Intensity {
    /// The intensity of a checked law; constant 0 for laws that are not Poisson-like.
    pub(super) fn new(law: &ArrivalLaw, words: Words) -> Self {
        match *law {
            ArrivalLaw::Poisson { rate } => Self::Constant { rate: rate / NS },
            ArrivalLaw::Ramp { from, to, over_ns } => Self::Ramp {
                from: from / NS,
                to: to / NS,
                over_ns,
            },
            ArrivalLaw::Steps { ref rates, step_ns } => Self::Steps {
                rates: rates.iter().map(|rate| rate / NS).collect(),
                step_ns,
            },
            ArrivalLaw::LognormalRate { rate, cv, slot_ns } => {
                let variance = ln(1.0 + cv * cv);
                Self::Random {
                    mean: rate / NS,
                    mu: ln(rate / NS) - 0.5 * variance,
                    sigma: variance.sqrt(),
                    slot_ns,
                    words,
                }
            }
            _ => Self::Constant { rate: 0.0 },
        }
    }

    /// The segment with index `index`; indices past the last one return the last.
    fn segment(&mut self, index: u64) -> Segment {
        let flat = |rate, start_ns, end_ns| Segment {
            rate,
            slope: 0.0,
            start_ns,
            end_ns,
        };
        match self {
            Self::Constant { rate } => flat(*rate, 0, u64::MAX),
            Self::Ramp { from, to, over_ns } if index == 0 && *over_ns > 0 => Segment {
                rate: *from,
                slope: (*to - *from) / *over_ns as f64,
                start_ns: 0,
                end_ns: *over_ns,
            },
            Self::Ramp { to, over_ns, .. } => flat(*to, *over_ns, u64::MAX),
            Self::Steps { rates, step_ns } => {
                let last = rates.len() as u64 - 1;
                let index = index.min(last);
                let start = index.saturating_mul(*step_ns);
                let end = if index == last {
                    u64::MAX
                } else {
                    start.saturating_add(*step_ns)
                };
                flat(rates[index as usize], start, end)
            }
            Self::Random {
                mu,
                sigma,
                slot_ns,
                words,
                ..
            } => {
                let rate = exp(*mu + *sigma * normal_quantile(words.next_open(index)));
                let start = index.saturating_mul(*slot_ns);
                flat(rate, start, start.saturating_add(*slot_ns))
            }
        }
    }

    /// Expected number of arrivals before `t_ns`.
    pub(super) fn expected(&self, t_ns: u64) -> f64 {
        match self {
            Self::Constant { rate } => rate * t_ns as f64,
            Self::Ramp { from, to, over_ns } => {
                let over = *over_ns as f64;
                let inside = t_ns.min(*over_ns) as f64;
                let slope = if over > 0.0 { (to - from) / over } else { 0.0 };
                inside * (from + 0.5 * slope * inside) + to * (t_ns as f64 - inside)
            }
            Self::Steps { rates, step_ns } => {
                let mut left = t_ns;
                let mut sum = 0.0;
                for (i, rate) in rates.iter().enumerate() {
                    let time = if i + 1 == rates.len() {
                        left
                    } else {
                        left.min(*step_ns)
                    };
                    sum += rate * time as f64;
                    left -= time;
                }
                sum
            }
            Self::Random { mean, .. } => mean * t_ns as f64,
        }
    }
}

/// The arrivals of a Poisson process with varying intensity.
#[derive(Clone, Debug)]
pub(super) struct Modulated {
    intensity: Intensity,
    words: Words,
    now: Instant,
    index: u64,
    segment: Segment,
}

impl Modulated {
    pub(super) fn new(mut intensity: Intensity, words: Words) -> Self {
        let segment = intensity.segment(0);
        Self {
            intensity,
            words,
            now: Instant::default(),
            index: 0,
            segment,
        }
    }

    /// The due instant of arrival `seq`; `None` once the intensity stays 0.
    #[inline]
    pub(super) fn step(&mut self, seq: u64) -> Option<u64> {
        let mut area = -ln(self.words.next_open(seq));
        loop {
            let left = self.now.until(self.segment.end_ns);
            let Segment { rate, slope, .. } = self.segment;
            if slope == 0.0 {
                let gap = area / rate;
                // This is also false for a rate of 0, where the gap is infinite.
                if gap < left {
                    self.now.advance(gap);
                    return Some(self.now.whole_ns);
                }
                area -= rate * left;
            } else {
                let elapsed =
                    (self.now.whole_ns - self.segment.start_ns) as f64 + self.now.fraction;
                let here = (rate + slope * elapsed).max(0.0);
                let rest = (left * (here + 0.5 * slope * left)).max(0.0);
                if area < rest {
                    // The root of slope/2·t² + here·t = area, in the form that avoids cancellation.
                    let root = (here * here + 2.0 * slope * area).max(0.0).sqrt();
                    self.now.advance((2.0 * area / (here + root)).min(left));
                    return Some(self.now.whole_ns);
                }
                area -= rest;
            }
            area = area.max(0.0);
            if self.segment.end_ns == u64::MAX {
                return None;
            }
            self.now = Instant::at(self.segment.end_ns);
            self.index += 1;
            self.segment = self.intensity.segment(self.index);
        }
    }
}
