//! Pauses between the operations of a closed-loop worker.

use std::fmt;

use serde_json::json;

use super::table::Kind::Time;
use super::table::{LawDef, build, family_schema, read_expr, required};
use crate::spec::decode::{Cx, Decode, json_schema_of};
use crate::spec::node::{Node, Value};
use crate::spec::quantity::Nanos;
use bucketload_core::plan::GapLaw;
use bucketload_core::units::format_duration;

/// A law of pauses, such as `"10ms"` or `"exponential(10ms)"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThinkSpec(pub GapLaw);

const WHAT: &str = "a law of pauses";

const LAWS: &[LawDef<GapLaw>] = &[
    LawDef {
        name: "none",
        params: &[],
        doc: "No pause",
        build: |_| Ok(GapLaw::None),
    },
    LawDef {
        name: "constant",
        params: &[required("time", Time, "the pause")],
        doc: "Always the same pause",
        build: |v| Ok(constant(v[0].u())),
    },
    LawDef {
        name: "exponential",
        params: &[required("mean", Time, "the mean pause")],
        doc: "Exponentially distributed pauses",
        build: |v| match v[0].u() {
            0 => Err((0, "the mean pause must be longer than 0".into())),
            mean_ns => Ok(GapLaw::Exponential { mean_ns }),
        },
    },
    LawDef {
        name: "uniform",
        params: &[
            required("min", Time, "the shortest pause"),
            required("max", Time, "the longest pause"),
        ],
        doc: "Uniformly distributed pauses",
        build: |v| {
            if v[0].u() > v[1].u() {
                return Err((0, "the shortest pause exceeds the longest".into()));
            }
            Ok(GapLaw::Uniform {
                min_ns: v[0].u(),
                max_ns: v[1].u(),
            })
        },
    },
];

const fn constant(ns: u64) -> GapLaw {
    match ns {
        0 => GapLaw::None,
        ns => GapLaw::Constant { ns },
    }
}

impl Decode for ThinkSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let plain = match &node.value {
            Value::Str(text) => text.trim().starts_with(|c: char| c.is_ascii_digit()),
            Value::Int(_) | Value::Float(_) => true,
            _ => false,
        };
        if plain {
            return Nanos::decode(node, cx).map(|time| Self(constant(time.0)));
        }
        let expr = read_expr(node, WHAT, cx)?;
        build(LAWS, WHAT, &expr, cx).map(Self)
    }
}

impl fmt::Display for ThinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            GapLaw::None => f.write_str("none"),
            GapLaw::Constant { ns } => f.write_str(&format_duration(ns)),
            GapLaw::Exponential { mean_ns } => {
                write!(f, "exponential({})", format_duration(mean_ns))
            }
            GapLaw::Uniform { min_ns, max_ns } => write!(
                f,
                "uniform({}, {})",
                format_duration(min_ns),
                format_duration(max_ns)
            ),
        }
    }
}

json_schema_of!(ThinkSpec, "ThinkTime", {
    let description = "A worker's pause between operations; a duration means a constant pause";
    family_schema(LAWS, &[], description, &[json!({ "const": 0 })])
});
