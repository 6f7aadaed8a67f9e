//! How an operation chooses objects.

use std::fmt;

use super::table::Kind::{Count, Flag, Number, Positive, Share};
use super::table::{
    LawDef, Param, ParamValue, build, by_default, family_schema, read_expr, required,
};
use crate::spec::decode::{Cx, Decode, json_schema_of};
use crate::spec::node::Node;
use bucketload_core::plan::KeyLaw;

/// A key law, such as `"zipf(0.99)"`.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySpec(pub KeyLaw);

const WHAT: &str = "a key law";

const SCRAMBLE: Param = by_default(
    "scramble",
    Flag,
    ParamValue::B(true),
    "whether popularity ranks are spread over the objects by a fixed permutation",
);

const LAWS: &[LawDef<KeyLaw>] = &[
    LawDef {
        name: "sequential",
        params: &[],
        doc: "Objects 0, 1, 2, … in turn; reads start over after the last one",
        build: |_| Ok(KeyLaw::Sequential),
    },
    LawDef {
        name: "fresh",
        params: &[],
        doc: "A new object for each operation",
        build: |_| Ok(KeyLaw::Fresh),
    },
    LawDef {
        name: "chained",
        params: &[],
        doc: "Each worker performs the operations of the mix one after another on one object, then on \
              its next one",
        build: |_| Ok(KeyLaw::Chained),
    },
    LawDef {
        name: "uniform",
        params: &[],
        doc: "Every object with equal probability",
        build: |_| Ok(KeyLaw::Uniform),
    },
    LawDef {
        name: "zipf",
        params: &[
            by_default("theta", Positive, ParamValue::F(0.99), "the exponent"),
            SCRAMBLE,
        ],
        doc: "P(rank i) ~ i^-theta",
        build: |v| {
            Ok(KeyLaw::Zipf {
                theta: v[0].f(),
                scramble: v[1].b(),
            })
        },
    },
    LawDef {
        name: "zipf-mandelbrot",
        params: &[
            required("s", Positive, "the exponent"),
            required("v", Positive, "the shift"),
            SCRAMBLE,
        ],
        doc: "P(rank k) ~ (v + k)^-s, k from 0",
        build: |v| {
            Ok(KeyLaw::ZipfMandelbrot {
                s: v[0].f(),
                v: v[1].f(),
                scramble: v[2].b(),
            })
        },
    },
    LawDef {
        name: "latest",
        params: &[
            by_default("theta", Positive, ParamValue::F(0.99), "the exponent"),
            by_default(
                "lag",
                Count,
                ParamValue::U(0),
                "how many of the newest objects to leave out because they may still be in flight",
            ),
        ],
        doc: "The newest objects are the most popular: Zipf over age",
        build: |v| {
            Ok(KeyLaw::Latest {
                theta: v[0].f(),
                lag: v[1].u(),
            })
        },
    },
    LawDef {
        name: "hotspot",
        params: &[
            by_default(
                "data",
                Share,
                ParamValue::F(0.2),
                "the share of objects that is hot",
            ),
            by_default(
                "ops",
                Share,
                ParamValue::F(0.8),
                "the share of operations that goes to hot objects",
            ),
            SCRAMBLE,
        ],
        doc: "A share of the operations goes to a share of the objects, uniformly within each part",
        build: |v| {
            if v[0].f() <= 0.0 || v[0].f() >= 1.0 {
                return Err((
                    0,
                    "the hot share of the objects must be between 0 and 1".into(),
                ));
            }
            Ok(KeyLaw::Hotspot {
                data: v[0].f(),
                ops: v[1].f(),
                scramble: v[2].b(),
            })
        },
    },
    LawDef {
        name: "exponential",
        params: &[
            by_default(
                "percentile",
                Share,
                ParamValue::F(0.95),
                "the share of operations that falls into `fraction` of the objects",
            ),
            by_default(
                "fraction",
                Number,
                ParamValue::F(0.857),
                "the share of objects",
            ),
            SCRAMBLE,
        ],
        doc: "Exponentially decreasing popularity",
        build: |v| {
            if v[0].f() <= 0.0 || v[0].f() >= 1.0 {
                return Err((0, "the share of operations must be between 0 and 1".into()));
            }
            if v[1].f() <= 0.0 || v[1].f() > 1.0 {
                return Err((1, "the share of objects must be between 0 and 1".into()));
            }
            Ok(KeyLaw::Exponential {
                percentile: v[0].f(),
                fraction: v[1].f(),
                scramble: v[2].b(),
            })
        },
    },
];

impl Decode for KeySpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let expr = read_expr(node, WHAT, cx)?;
        build(LAWS, WHAT, &expr, cx).map(Self)
    }
}

impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scramble = match &self.0 {
            KeyLaw::Sequential => return f.write_str("sequential"),
            KeyLaw::Fresh => return f.write_str("fresh"),
            KeyLaw::Chained => return f.write_str("chained"),
            KeyLaw::Uniform => return f.write_str("uniform"),
            KeyLaw::Latest { theta, lag: 0 } => return write!(f, "latest({theta})"),
            KeyLaw::Latest { theta, lag } => return write!(f, "latest({theta}, lag={lag})"),
            KeyLaw::Zipf { theta, scramble } => {
                write!(f, "zipf({theta}")?;
                scramble
            }
            KeyLaw::ZipfMandelbrot { s, v, scramble } => {
                write!(f, "zipf-mandelbrot({s}, {v}")?;
                scramble
            }
            KeyLaw::Hotspot {
                data,
                ops,
                scramble,
            } => {
                write!(f, "hotspot({data}, {ops}")?;
                scramble
            }
            KeyLaw::Exponential {
                percentile,
                fraction,
                scramble,
            } => {
                write!(f, "exponential({percentile}, {fraction}")?;
                scramble
            }
        };
        f.write_str(if *scramble { ")" } else { ", scramble=false)" })
    }
}

json_schema_of!(
    KeySpec,
    "KeyLaw",
    family_schema(LAWS, &[], "How an operation chooses objects", &[])
);
