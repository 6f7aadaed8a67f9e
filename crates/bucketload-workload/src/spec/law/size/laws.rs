//! The simple size laws as rows, and the natural bounds of each law.

use crate::spec::law::table::Kind::{Bytes, Count, Flag, Number, Positive, SomeBytes, WholeBytes};
use crate::spec::law::table::{LawDef, Param, ParamValue, by_default, optional, required};
use bucketload_core::plan::SizeKind;

/// The parameters that every size law has in addition to its own.
pub(super) const BOUNDS: [Param; 2] = [
    optional("min", WholeBytes, "smaller sizes become this size"),
    optional("max", WholeBytes, "larger sizes become this size"),
];

/// Largest size of an unbounded law unless `max` is given: the largest object that S3 accepts in one PUT.
const UNBOUNDED_MAX: u64 = 5 << 30;

pub(super) const LAWS: &[LawDef<SizeKind>] = &[
    LawDef {
        name: "const",
        params: &[required("bytes", WholeBytes, "the size")],
        doc: "One size",
        build: |v| Ok(SizeKind::Const { bytes: v[0].u() }),
    },
    LawDef {
        name: "uniform",
        params: &[
            required("a", WholeBytes, "the smallest size"),
            required("b", WholeBytes, "the largest size"),
        ],
        doc: "Every size from a to b with equal probability",
        build: |v| {
            let (a, b) = (v[0].u(), v[1].u());
            if a > b {
                return Err((
                    0,
                    format!("the smallest size, {a}, exceeds the largest, {b}"),
                ));
            }
            Ok(SizeKind::Uniform { a, b })
        },
    },
    LawDef {
        name: "loguniform",
        params: &[
            required("a", SomeBytes, "the smallest size"),
            required("b", SomeBytes, "the largest size"),
        ],
        doc: "exp(U(ln a, ln b))",
        build: |v| {
            let (a, b) = (v[0].f(), v[1].f());
            if a > b {
                return Err((
                    0,
                    format!("the smallest size, {a}, exceeds the largest, {b}"),
                ));
            }
            Ok(SizeKind::Loguniform { a, b })
        },
    },
    LawDef {
        name: "emg",
        params: &[
            required("mu", Bytes, "the mean of the Gaussian part"),
            required(
                "sigma",
                SomeBytes,
                "the standard deviation of the Gaussian part",
            ),
            required("tau", SomeBytes, "the mean of the exponential part"),
        ],
        doc: "Exponentially modified Gaussian: N(mu, sigma²) + Exp(mean tau)",
        build: |v| {
            Ok(SizeKind::Emg {
                mu: v[0].f(),
                sigma: v[1].f(),
                tau: v[2].f(),
            })
        },
    },
    LawDef {
        name: "lognormal",
        params: &[
            required("mu", Number, "the mean of ln bytes"),
            required("sigma", Positive, "the standard deviation of ln bytes"),
        ],
        doc: "ln X ~ N(mu, sigma²)",
        build: |v| {
            Ok(SizeKind::Lognormal {
                mu: v[0].f(),
                sigma: v[1].f(),
            })
        },
    },
    LawDef {
        name: "trunc-lognormal",
        params: &[
            required("mu", Number, "the mean of ln bytes"),
            required("sigma", Positive, "the standard deviation of ln bytes"),
            required("cap", SomeBytes, "the largest size"),
        ],
        doc: "Log-normal conditioned on X <= cap",
        build: |v| {
            Ok(SizeKind::TruncLognormal {
                mu: v[0].f(),
                sigma: v[1].f(),
                cap: v[2].f(),
            })
        },
    },
    LawDef {
        name: "sides",
        params: &[
            required("record", SomeBytes, "the nominal bytes of a record"),
            required("stdev", Bytes, "their nominal standard deviation"),
            by_default(
                "offset",
                WholeBytes,
                ParamValue::U(0),
                "the bytes added to every size",
            ),
        ],
        doc: "Samples as DLIO lays them out: side * side + offset, sides ~ N(sqrt(record), stdev / 2 sqrt(record))",
        build: |v| {
            if v[1].f() > v[0].f() {
                return Err((1, "the standard deviation exceeds the record".to_owned()));
            }
            Ok(SizeKind::Sides {
                record: v[0].f(),
                stdev: v[1].f(),
                offset: v[2].u(),
            })
        },
    },
    LawDef {
        name: "zipf",
        params: &[
            required("n", Count, "the number of ranks"),
            required("s", Positive, "the exponent"),
            by_default("unit", WholeBytes, ParamValue::U(1), "the bytes per rank"),
            by_default(
                "align",
                Flag,
                ParamValue::B(true),
                "whether sizes are whole units (otherwise U{0..unit-1} is subtracted)",
            ),
        ],
        doc: "unit * rank, P(rank i) ~ i^-s, i = 1..n",
        build: |v| {
            check_units(v[0].u(), v[2].u())?;
            Ok(SizeKind::Zipf {
                n: v[0].u(),
                s: v[1].f(),
                unit: v[2].u(),
                align: v[3].b(),
            })
        },
    },
    LawDef {
        name: "zipf-mandelbrot",
        params: &[
            required("n", Count, "the largest k"),
            required("s", Positive, "the exponent"),
            required("v", Positive, "the shift"),
            by_default("unit", WholeBytes, ParamValue::U(1), "the bytes per rank"),
            by_default(
                "offset",
                WholeBytes,
                ParamValue::U(0),
                "the bytes added to every size",
            ),
        ],
        doc: "offset + unit * k, P(k) ~ (v + k)^-s, k = 0..n",
        build: |v| {
            check_units(v[0].u(), v[3].u())?;
            Ok(SizeKind::ZipfMandelbrot {
                n: v[0].u(),
                s: v[1].f(),
                v: v[2].f(),
                unit: v[3].u(),
                offset: v[4].u(),
            })
        },
    },
    LawDef {
        name: "bounded-pareto",
        params: &[
            required("low", SomeBytes, "the smallest size"),
            required("high", SomeBytes, "the largest size"),
            required("a", Positive, "the exponent"),
        ],
        doc: "F(x) = (1-(low/x)^a)/(1-(low/high)^a)",
        build: |v| {
            let (low, high, a) = (v[0].f(), v[1].f(), v[2].f());
            if low >= high {
                return Err((
                    0,
                    format!("the smallest size, {low}, is not below the largest, {high}"),
                ));
            }
            Ok(SizeKind::BoundedPareto { low, high, a })
        },
    },
];

/// Checks that the unit is not 0 and the largest size fits into 64 bits.
fn check_units(n: u64, unit: u64) -> Result<(), (usize, String)> {
    if unit == 0 {
        return Err((2, "the unit must be at least 1 byte".to_owned()));
    }
    match n.checked_mul(unit) {
        Some(_) => Ok(()),
        None => Err((0, format!("{n} units of {unit} bytes exceed 2^64 bytes"))),
    }
}

/// Smallest and largest size that a law yields unless clamped.
pub(crate) fn natural_bounds(law: &SizeKind) -> (u64, u64) {
    match law {
        SizeKind::Const { bytes } => (*bytes, *bytes),
        SizeKind::Uniform { a, b } => (*a, *b),
        SizeKind::Loguniform { a, b } => (a.floor() as u64, b.ceil() as u64),
        SizeKind::Emg { .. } | SizeKind::Lognormal { .. } | SizeKind::Sides { .. } => {
            (1, UNBOUNDED_MAX)
        }
        SizeKind::TruncLognormal { cap, .. } => (1, (cap.floor() as u64).max(1)),
        SizeKind::Zipf { n, unit, align, .. } => {
            (if *align { *unit } else { 1 }, n.saturating_mul(*unit))
        }
        SizeKind::ZipfMandelbrot {
            n, unit, offset, ..
        } => (
            (*offset).max(1),
            n.saturating_mul(*unit).saturating_add(*offset).max(1),
        ),
        SizeKind::Chunked { files, chunk } => {
            let (low, high) = natural_bounds(files);
            (low.min(1), high.min(*chunk))
        }
        SizeKind::BoundedPareto { low, high, .. } => (low.floor() as u64, high.ceil() as u64),
        SizeKind::Mixture { parts } => parts
            .iter()
            .map(|(_, part)| natural_bounds(part))
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .unwrap_or((0, 0)),
        SizeKind::Histogram { bins } => (
            bins.iter().map(|(size, _)| *size).min().unwrap_or(0),
            bins.iter().map(|(size, _)| *size).max().unwrap_or(0),
        ),
    }
}
