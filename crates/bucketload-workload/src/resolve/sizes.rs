//! Size laws multiplied by the workload's size scale (docs/spec/scenarios.md section 4.2).

use bucketload_core::plan::{SizeKind, SizeLaw};

/// `law` with every size multiplied by `factor`. Sizes above 0 stay at least 1 byte, 0 stays 0.
///
/// # Errors
/// If a law counts in units of bytes that the factor would make fractional.
pub(super) fn scaled(law: &SizeLaw, factor: f64) -> Result<SizeLaw, String> {
    if factor == 1.0 {
        return Ok(law.clone());
    }
    Ok(SizeLaw {
        law: kind(&law.law, factor)?,
        min: bytes(law.min, factor),
        max: bytes(law.max, factor),
    })
}

/// A size multiplied by the factor and rounded; only 0 becomes 0.
pub(super) fn bytes(size: u64, factor: f64) -> u64 {
    if size == 0 || size == u64::MAX {
        return size;
    }
    ((size as f64 * factor).round() as u64).max(1)
}

fn unit(size: u64, factor: f64) -> Result<u64, String> {
    let scaled = size as f64 * factor;
    if scaled < 1.0 || scaled.fract() != 0.0 {
        return Err(format!(
            "a law in units of {size} bytes cannot be scaled by {factor}: {scaled} bytes is not a valid unit"
        ));
    }
    Ok(scaled as u64)
}

fn kind(law: &SizeKind, factor: f64) -> Result<SizeKind, String> {
    Ok(match *law {
        SizeKind::Const { bytes: size } => SizeKind::Const {
            bytes: bytes(size, factor),
        },
        SizeKind::Uniform { a, b } => SizeKind::Uniform {
            a: bytes(a, factor),
            b: bytes(b, factor),
        },
        SizeKind::Loguniform { a, b } => SizeKind::Loguniform {
            a: a * factor,
            b: b * factor,
        },
        SizeKind::Emg { mu, sigma, tau } => SizeKind::Emg {
            mu: mu * factor,
            sigma: sigma * factor,
            tau: tau * factor,
        },
        SizeKind::Lognormal { mu, sigma } => SizeKind::Lognormal {
            mu: mu + factor.ln(),
            sigma,
        },
        SizeKind::TruncLognormal { mu, sigma, cap } => SizeKind::TruncLognormal {
            mu: mu + factor.ln(),
            sigma,
            cap: cap * factor,
        },
        SizeKind::Zipf {
            n,
            s,
            unit: size,
            align,
        } => SizeKind::Zipf {
            n,
            s,
            unit: unit(size, factor)?,
            align,
        },
        SizeKind::ZipfMandelbrot {
            n,
            s,
            v,
            unit: size,
            offset,
        } => SizeKind::ZipfMandelbrot {
            n,
            s,
            v,
            unit: unit(size, factor)?,
            offset: bytes(offset, factor),
        },
        SizeKind::BoundedPareto { low, high, a } => SizeKind::BoundedPareto {
            low: low * factor,
            high: high * factor,
            a,
        },
        SizeKind::Mixture { ref parts } => SizeKind::Mixture {
            parts: parts
                .iter()
                .map(|(weight, part)| Ok((*weight, kind(part, factor)?)))
                .collect::<Result<_, String>>()?,
        },
        SizeKind::Sides {
            record,
            stdev,
            offset,
        } => SizeKind::Sides {
            record: record * factor,
            stdev: stdev * factor,
            offset,
        },
        SizeKind::Chunked { ref files, chunk } => SizeKind::Chunked {
            files: Box::new(kind(files, factor)?),
            chunk: bytes(chunk, factor),
        },
        SizeKind::Histogram { ref bins } => SizeKind::Histogram {
            bins: bins
                .iter()
                .map(|&(size, weight)| (bytes(size, factor), weight))
                .collect(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::scaled;
    use bucketload_core::generate::sizes::SizeSampler;
    use bucketload_core::plan::{SizeKind, SizeLaw};

    #[test]
    fn quantiles_scale_and_zero_stays_zero() {
        let parts = vec![
            (0.2, SizeKind::Const { bytes: 0 }),
            (
                0.8,
                SizeKind::Loguniform {
                    a: 4194304.0,
                    b: 68719476736.0,
                },
            ),
        ];
        let law = SizeLaw {
            law: SizeKind::Mixture { parts },
            min: 0,
            max: 1 << 36,
        };
        let small = scaled(&law, 1.0 / 1024.0).unwrap();
        assert_eq!((small.min, small.max), (0, 1 << 26));
        let (law, small) = (
            SizeSampler::new(&law).unwrap(),
            SizeSampler::new(&small).unwrap(),
        );
        assert_eq!(small.quantile(0.19), 0);
        for u in [0.25, 0.5, 0.9, 0.999] {
            let (big, little) = (law.quantile(u) as f64, small.quantile(u) as f64);
            assert!((little * 1024.0 / big - 1.0).abs() < 1e-3, "{u}");
        }
    }

    #[test]
    fn units_that_do_not_divide_are_errors() {
        let zipf = |unit| SizeLaw {
            law: SizeKind::Zipf {
                n: 4,
                s: 1.0,
                unit,
                align: true,
            },
            min: unit,
            max: 4 * unit,
        };
        assert!(scaled(&zipf(4096), 1.0 / 1024.0).is_ok());
        assert!(scaled(&zipf(1000), 1.0 / 1024.0).is_err());
    }
}
