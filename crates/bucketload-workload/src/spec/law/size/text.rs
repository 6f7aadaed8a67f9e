//! Size laws as text in the compact notation.

use std::fmt;

use super::{SizeSpec, natural_bounds};
use bucketload_core::plan::SizeKind;
use bucketload_core::units::{format_size, format_size_f64};

impl fmt::Display for SizeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let law = &self.0;
        let (min, max) = natural_bounds(&law.law);
        if (law.min, law.max) == (min, max) {
            return match &law.law {
                SizeKind::Const { bytes } => f.write_str(&format_size(*bytes)),
                kind => write_law(kind, "", f),
            };
        }
        let bounds = format!("min={}, max={}", format_size(law.min), format_size(law.max));
        write_law(&law.law, &bounds, f)
    }
}

/// Writes a law with the additional arguments `more`.
fn write_law(law: &SizeKind, more: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = format_size_f64;
    match law {
        SizeKind::Const { bytes } => write!(f, "const({}", format_size(*bytes))?,
        SizeKind::Uniform { a, b } => {
            write!(f, "uniform({}, {}", format_size(*a), format_size(*b))?;
        }
        SizeKind::Loguniform { a, b } => write!(f, "loguniform({}, {}", size(*a), size(*b))?,
        SizeKind::Emg { mu, sigma, tau } => {
            write!(f, "emg({}, {}, {}", size(*mu), size(*sigma), size(*tau))?;
        }
        SizeKind::Lognormal { mu, sigma } => write!(f, "lognormal({mu}, {sigma}")?,
        SizeKind::TruncLognormal { mu, sigma, cap } => {
            write!(f, "trunc-lognormal({mu}, {sigma}, {}", size(*cap))?;
        }
        SizeKind::Zipf { n, s, unit, align } => {
            write!(f, "zipf({n}, {s}, {}", format_size(*unit))?;
            if !align {
                f.write_str(", align=false")?;
            }
        }
        SizeKind::ZipfMandelbrot {
            n,
            s,
            v,
            unit,
            offset,
        } => {
            write!(f, "zipf-mandelbrot({n}, {s}, {v}, {}", format_size(*unit))?;
            if *offset > 0 {
                write!(f, ", offset={}", format_size(*offset))?;
            }
        }
        SizeKind::Sides {
            record,
            stdev,
            offset,
        } => {
            write!(f, "sides({}, {}", size(*record), size(*stdev))?;
            if *offset > 0 {
                write!(f, ", offset={}", format_size(*offset))?;
            }
        }
        SizeKind::Chunked { files, chunk } => {
            f.write_str("chunked(")?;
            write_law(files, "", f)?;
            write!(f, ", {}", format_size(*chunk))?;
        }
        SizeKind::BoundedPareto { low, high, a } => {
            write!(f, "bounded-pareto({}, {}, {a}", size(*low), size(*high))?;
        }
        SizeKind::Mixture { parts } => {
            f.write_str("mixture(")?;
            for (i, (weight, part)) in parts.iter().enumerate() {
                write!(f, "{}{weight}: ", if i > 0 { ", " } else { "" })?;
                write_law(part, "", f)?;
            }
        }
        SizeKind::Histogram { bins } => {
            f.write_str("histogram(")?;
            for (i, (bytes, weight)) in bins.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                write!(f, "{comma}{weight}: {}", format_size(*bytes))?;
            }
        }
    }
    if more.is_empty() {
        f.write_str(")")
    } else {
        write!(f, ", {more})")
    }
}
