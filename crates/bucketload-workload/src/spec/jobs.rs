//! The partly open model in a workload file: `model = "jobs"` and the table `jobs`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::decode::{Cx, Decode, decode_variants, spec_table};
use super::node::{Node, Value};
use super::quantity::PerSecond;
use bucketload_core::plan::StageKind;

/// Models that must be named; the others follow from the fields of a work.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ModelName {
    /// Jobs arrive; each is a chain of stages.
    Jobs,
}

decode_variants!(ModelName, Pace);

spec_table! {
    /// The structure of a job. The work's `arrival` or `rate` determines when jobs arrive (default: 6 per
    /// minute); `workers` makes a closed loop with that many concurrent jobs.
    pub struct JobsSpec {
        /// The stages, in order: "write", "read" (uniformly with replacement from the latest write stage) or
        /// "read-all" (each of its objects once). Default: write, read, write, read, write.
        pub stages: Option<Stages>,
        /// Operations per stage, such as "10..19" (the default): uniform between the two.
        pub ops: Option<OpsRange>,
        /// When the operations of a stage are due: "poisson" (the default), "burst" (all at once) or
        /// "sequential" (each when the previous one has ended).
        pub pace: Option<Pace>,
        /// Operations per second within a stage, for the pace "poisson". Default: 10/s.
        pub stage_rate: Option<PerSecond>,
        /// Key set of temporary objects. Default: "temp".
        pub temp: Option<String>,
        /// Key set of the objects of the last write stage. Default: "results".
        pub results: Option<String>,
        /// A job's results are deleted when the job this many arrivals later arrives. Default: 20; 0 keeps
        /// all.
        pub retain_jobs: Option<u32>,
        /// Maximum number of concurrent jobs. A job that arrives beyond it waits, which marks the run
        /// semi-open. Default: 1000.
        pub max_jobs: Option<u32>,
        /// Total number of jobs. Default: as many as start before the time limit.
        pub limit: Option<u64>,
    }
}

/// When the operations of a stage are due.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Pace {
    /// With exponential gaps.
    Poisson,
    /// All at once.
    Burst,
    /// Each when the previous one has ended.
    Sequential,
}

/// The stages of a job.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
pub struct Stages(pub Vec<StageKind>);

impl Decode for Stages {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let Value::Array(items) = &node.value else {
            cx.mismatch(
                node,
                "an array of stages",
                "write it such as [\"write\", \"read\", \"write\"]",
            );
            return None;
        };
        let stages = items.iter().map(|item| cx.variant(item));
        stages.collect::<Option<_>>().map(Self)
    }
}

/// A number of operations between two inclusive bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpsRange {
    /// Minimum.
    pub min: u32,
    /// Maximum.
    pub max: u32,
}

impl Decode for OpsRange {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let range = match &node.value {
            Value::Int(number) => u32::try_from(*number).ok().map(|n| (n, n)),
            Value::Str(text) => match text.split_once("..") {
                Some((min, max)) => min.trim().parse().ok().zip(max.trim().parse().ok()),
                None => text.trim().parse().ok().map(|n| (n, n)),
            },
            _ => None,
        };
        let range = range.filter(|&(min, max)| 0 < min && min <= max && max <= 100_000);
        if range.is_none() {
            cx.error(
                &node.origin,
                "this is not a number of operations from 1 to 100000",
                "write it such as \"10..19\", the minimum first, or 15",
            );
        }
        range.map(|(min, max)| Self { min, max })
    }
}

impl JsonSchema for OpsRange {
    fn schema_name() -> Cow<'static, str> {
        "OpsRange".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of operations, such as 15 or \"10..19\"",
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": 100_000 },
                { "type": "string", "pattern": "^\\s*[0-9]+\\s*(\\.\\.\\s*[0-9]+\\s*)?$" }
            ]
        })
    }
}

/// A factor above 0, written as a number, `"2^-10"` or `"1/1024"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorSpec(pub f64);

impl Decode for FactorSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let factor = match &node.value {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Str(text) => factor(text),
            _ => None,
        };
        let factor = factor.filter(|f| f.is_finite() && *f > 0.0);
        if factor.is_none() {
            cx.error(
                &node.origin,
                "this is not a factor above 0",
                "write 1, 0.5, \"2^-10\" or \"1/1024\"",
            );
        }
        factor.map(Self)
    }
}

fn factor(text: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    if let Some((base, exponent)) = text.split_once('^') {
        return Some(number(base)?.powi(exponent.trim().parse().ok()?));
    }
    match text.split_once('/') {
        Some((a, b)) => Some(number(a)? / number(b)?),
        None => number(text),
    }
}

impl JsonSchema for FactorSpec {
    fn schema_name() -> Cow<'static, str> {
        "Factor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A factor above 0, such as 0.5, \"2^-10\" or \"1/1024\"",
            "anyOf": [
                { "type": "number", "exclusiveMinimum": 0 },
                { "type": "string", "pattern": "^\\s*[0-9.]+\\s*([/^]\\s*-?[0-9.]+\\s*)?$" }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::factor;

    #[test]
    fn factors_are_written_in_three_ways() {
        assert_eq!(factor("2^-10"), Some(1.0 / 1024.0));
        assert_eq!(factor(" 1 / 1024 "), Some(1.0 / 1024.0));
        assert_eq!(factor("0.25"), Some(0.25));
        assert_eq!(factor("2^x"), None);
        assert_eq!(factor("ten"), None);
    }
}
