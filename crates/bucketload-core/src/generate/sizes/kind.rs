//! One size law of any kind, before its sizes are clamped.

use super::chunked::Chunked;
use super::continuous::Continuous;
use super::emg::Emg;
use super::mixture::{Histogram, Mixture};
use super::ranked::Ranked;
use super::sides::Sides;
use crate::generate::LawError;
use crate::generate::elementary::{exp, ln};
use crate::generate::math::integrate;
use crate::generate::rng::Draws;
use crate::plan::SizeKind;

/// One law, before clamping.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Const(u64),
    /// First value and number of values.
    Uniform(u64, u64),
    Continuous(Continuous),
    Emg(Box<Emg>),
    Ranked(Box<Ranked>),
    Mixture(Mixture),
    Histogram(Histogram),
    Chunked(Box<Chunked>),
    Sides(Sides),
}

impl Kind {
    pub(super) fn new(kind: &SizeKind) -> Result<Self, LawError> {
        Ok(match *kind {
            SizeKind::Const { bytes } => Self::Const(bytes),
            SizeKind::Uniform { a, b } => {
                if a > b || b - a == u64::MAX {
                    let reason = format!("is {b}, must be at least a = {a} and below 2^64 - 1");
                    return Err(LawError::new("b", reason));
                }
                Self::Uniform(a, b - a + 1)
            }
            SizeKind::Emg { mu, sigma, tau } => Self::Emg(Box::new(Emg::new(mu, sigma, tau)?)),
            SizeKind::Loguniform { .. }
            | SizeKind::Lognormal { .. }
            | SizeKind::TruncLognormal { .. }
            | SizeKind::BoundedPareto { .. } => Self::Continuous(Continuous::new(kind)?),
            SizeKind::Zipf { .. } | SizeKind::ZipfMandelbrot { .. } => {
                Self::Ranked(Box::new(Ranked::new(kind)?))
            }
            SizeKind::Mixture { ref parts } => Self::Mixture(Mixture::new(parts)?),
            SizeKind::Histogram { ref bins } => Self::Histogram(Histogram::new(bins)?),
            SizeKind::Chunked { ref files, chunk } => {
                Self::Chunked(Box::new(Chunked::new(files, chunk)?))
            }
            SizeKind::Sides {
                record,
                stdev,
                offset,
            } => Self::Sides(Sides::new(record, stdev, offset)?),
        })
    }

    #[inline]
    pub(super) fn sample(&self, draws: &mut Draws) -> u64 {
        match self {
            Self::Const(bytes) => *bytes,
            _ => self.draw(draws),
        }
    }

    /// Like [`Kind::sample`], but not inlined, because the most common law needs none of this code.
    #[inline(never)]
    fn draw(&self, draws: &mut Draws) -> u64 {
        match self {
            Self::Const(bytes) => *bytes,
            Self::Uniform(first, n) => first + draws.below(*n),
            Self::Continuous(law) => round(law.quantile(draws.next_open())),
            Self::Emg(law) => round(law.sample(draws)),
            Self::Ranked(law) => law.sample(draws),
            Self::Mixture(law) => law.sample(draws),
            Self::Histogram(law) => law.sample(draws),
            Self::Chunked(law) => law.sample(draws),
            Self::Sides(law) => law.sample(draws),
        }
    }

    /// The smallest size whose distribution function reaches `u`.
    pub(super) fn quantile(&self, u: f64) -> u64 {
        match self {
            Self::Const(bytes) => *bytes,
            Self::Uniform(first, n) => first + ((u * *n as f64) as u64).min(n - 1),
            Self::Continuous(law) => round(law.quantile(u)),
            Self::Emg(law) => round(law.quantile(u)),
            Self::Ranked(law) => law.quantile(u),
            Self::Mixture(law) => law.quantile(u),
            Self::Histogram(law) => law.quantile(u),
            Self::Chunked(law) => law.quantile(u),
            Self::Sides(law) => {
                let (low, high) = law.support();
                smallest(low, high, |size| law.cdf(size) >= u)
            }
        }
    }

    /// P(size ≤ x).
    pub(super) fn cdf(&self, x: u64) -> f64 {
        match self {
            Self::Const(bytes) => f64::from(u8::from(*bytes <= x)),
            Self::Uniform(first, _) if x < *first => 0.0,
            Self::Uniform(first, n) => ((x - first + 1) as f64 / *n as f64).min(1.0),
            Self::Continuous(law) => law.cdf(x as f64 + 0.5),
            Self::Emg(law) => law.cdf(x as f64 + 0.5),
            Self::Ranked(law) => law.cdf(x),
            Self::Mixture(law) => law.cdf(x),
            Self::Histogram(law) => law.cdf(x),
            Self::Chunked(law) => law.cdf(x),
            Self::Sides(law) => law.cdf(x),
        }
    }

    /// Mean of the size clamped to `min..=max`.
    pub(super) fn clamped_mean(&self, min: u64, max: u64) -> f64 {
        match self {
            Self::Const(bytes) => (*bytes).clamp(min, max) as f64,
            Self::Uniform(first, n) => {
                // Uniform on [first - 1/2, last + 1/2], which rounds to the same integers.
                let low = *first as f64 - 0.5;
                let width = *n as f64;
                let survival = |x: f64| 1.0 - ((x - low) / width).clamp(0.0, 1.0);
                mean_of_survival(survival, (low, low + width), min, max)
            }
            Self::Continuous(law) => mean_of_survival(|x| law.survival(x), law.support(), min, max),
            Self::Emg(law) => mean_of_survival(
                |x| law.survival(x),
                (f64::NEG_INFINITY, f64::INFINITY),
                min,
                max,
            ),
            Self::Ranked(law) => law.clamped_mean(min, max),
            Self::Mixture(law) => law.clamped_mean(min, max),
            Self::Histogram(law) => law.clamped_mean(min, max),
            Self::Chunked(law) => law.clamped_mean(min, max),
            Self::Sides(law) => match law.support() {
                (low, high) if min <= low && max >= high => law.mean(),
                (low, high) => {
                    let survival = |x: f64| 1.0 - law.cdf(x as u64);
                    mean_of_survival(survival, (low as f64, high as f64), min, max)
                }
            },
        }
    }

    /// Smallest and largest size that can occur before clamping.
    pub(super) fn support(&self) -> (u64, u64) {
        match self {
            Self::Const(bytes) => (*bytes, *bytes),
            Self::Uniform(first, n) => (*first, first + (n - 1)),
            Self::Continuous(law) => {
                let (low, high) = law.support();
                (round(low), round(high))
            }
            Self::Emg(_) => (0, u64::MAX),
            Self::Ranked(law) => law.support(),
            Self::Mixture(law) => law.support(),
            Self::Histogram(law) => law.support(),
            Self::Chunked(law) => law.support(),
            Self::Sides(law) => law.support(),
        }
    }
}

/// The nearest whole number of bytes; 0 for negative values.
#[inline]
fn round(x: f64) -> u64 {
    (x + 0.5) as u64
}

/// Mean of X clamped to `min..=max`: min plus the integral of P(X > x) from min to max, taken over ln x if
/// the law spans decades. Relative accuracy about 1e-6.
pub(super) fn mean_of_survival(
    survival: impl Fn(f64) -> f64,
    (low, high): (f64, f64),
    min: u64,
    max: u64,
) -> f64 {
    const PANELS: u32 = 400;
    let from = (min as f64).max(low.min(max as f64));
    let to = (max as f64).min(high.max(from));
    let bend = to.min(from.max(1.0));
    let linear = integrate(&survival, from, bend, 1);
    let decades = integrate(
        |t| {
            let x = exp(t);
            x * survival(x)
        },
        ln(bend.max(f64::MIN_POSITIVE)),
        ln(to.max(f64::MIN_POSITIVE)),
        PANELS,
    );
    from + linear + decades
}

/// The smallest size in `low..=high` that `reaches` accepts, or `high`. Bisection, on the logarithm while the
/// bracket spans more than a factor of 4.
pub(super) fn smallest(mut low: u64, mut high: u64, reaches: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let mid = if high / 4 > low.max(1) {
            (((low.max(1) as f64) * (high as f64)).sqrt() as u64).clamp(low, high - 1)
        } else {
            low + (high - low) / 2
        };
        if reaches(mid) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    low
}
