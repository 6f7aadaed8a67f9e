//! When the operations of an open loop are due.

use std::fmt;

use serde_json::json;

use super::expr::LawExpr;
use super::table::Kind::{Count, Positive, Rate, Time};
use super::table::{
    Built, LawDef, Param, ParamValue, build, by_default, family_schema, optional, read_expr,
    required,
};
use crate::spec::decode::{Cx, Decode, json_schema_of};
use crate::spec::node::{Node, Value};
use crate::spec::quantity::{Nanos, PerSecond};
use bucketload_core::plan::ArrivalLaw;
use bucketload_core::units::{format_duration, format_rate};

/// An arrival process, such as `"poisson(200/s)"`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalSpec {
    /// The process. Its rate is 0 until it is supplied.
    pub law: ArrivalLaw,
}

const WHAT: &str = "an arrival process";

/// The work's field `rate` may give the rate instead.
const RATE: Param = optional("rate", Rate, "the mean number of arrivals per second");

const LAWS: &[LawDef<ArrivalLaw>] = &[
    LawDef {
        name: "constant",
        params: &[RATE],
        doc: "Fixed gaps",
        build: |v| Ok(ArrivalLaw::Constant { rate: v[0].f() }),
    },
    LawDef {
        name: "poisson",
        params: &[RATE],
        doc: "Independent exponential gaps",
        build: |v| Ok(ArrivalLaw::Poisson { rate: v[0].f() }),
    },
    LawDef {
        name: "lognormal",
        params: &[
            RATE,
            required("cv", Positive, "the coefficient of variation of the gaps"),
        ],
        doc: "Independent log-normal gaps",
        build: |v| {
            Ok(ArrivalLaw::LognormalGaps {
                rate: v[0].f(),
                cv: v[1].f(),
            })
        },
    },
    LawDef {
        name: "lognormal-rate",
        params: &[
            RATE,
            required("cv", Positive, "the coefficient of variation of the rate"),
            by_default(
                "slot",
                Time,
                ParamValue::U(1_000_000_000),
                "how long each rate lasts (default: 1s)",
            ),
        ],
        doc: "A log-normal rate in each slot, with Poisson arrivals at that rate (Cox process)",
        build: |v| {
            if v[2].u() == 0 {
                return Err((2, "the slot must be longer than 0".into()));
            }
            Ok(ArrivalLaw::LognormalRate {
                rate: v[0].f(),
                cv: v[1].f(),
                slot_ns: v[2].u(),
            })
        },
    },
    LawDef {
        name: "periodic-batch",
        params: &[
            required("period", Time, "the time between the batches of a client"),
            required("min", Count, "the minimum number of operations per batch"),
            required("max", Count, "the maximum number of operations per batch"),
            by_default("clients", Count, ParamValue::U(1), "the number of clients"),
            by_default(
                "spread",
                Time,
                ParamValue::U(0),
                "the time over which a batch is spread, 0s for all at once",
            ),
            by_default(
                "gap",
                Time,
                ParamValue::U(0),
                "the time between the operations of a batch, 0s for all at once",
            ),
        ],
        doc: "In every period each client offers one batch of operations, of uniformly distributed size",
        build: periodic_batch,
    },
    LawDef {
        name: "ramp",
        params: &[
            required("from", Rate, "the rate at the start"),
            required("to", Rate, "the rate at the end"),
            required("over", Time, "the duration of the change"),
        ],
        doc: "Poisson arrivals whose rate changes linearly and then stays constant",
        build: |v| {
            if v[2].u() == 0 {
                return Err((2, "the ramp must last longer than 0".into()));
            }
            Ok(ArrivalLaw::Ramp {
                from: v[0].f(),
                to: v[1].f(),
                over_ns: v[2].u(),
            })
        },
    },
];

fn periodic_batch(v: &[ParamValue]) -> Built<ArrivalLaw> {
    let small =
        |index: usize| u32::try_from(v[index].u()).map_err(|_| (index, "is too large".to_owned()));
    let (min, max, clients) = (small(1)?, small(2)?, small(3)?);
    if v[0].u() == 0 {
        return Err((0, "the period must be longer than 0".into()));
    }
    if min > max {
        return Err((
            1,
            format!("the minimum number of operations, {min}, exceeds the maximum, {max}"),
        ));
    }
    if v[4].u() > v[0].u() {
        return Err((
            4,
            "a batch cannot be spread over more than its period".into(),
        ));
    }
    if v[4].u() > 0 && v[5].u() > 0 {
        return Err((5, "a batch is either spread or paced, not both".into()));
    }
    if u64::from(max.saturating_sub(1)).saturating_mul(v[5].u()) > v[0].u() {
        return Err((
            5,
            "the largest batch would last longer than a period".into(),
        ));
    }
    Ok(ArrivalLaw::PeriodicBatch {
        clients,
        period_ns: v[0].u(),
        min,
        max,
        spread_ns: v[4].u(),
        gap_ns: v[5].u(),
    })
}

const STEPS: &str = "steps";

/// `steps(100/s, 200/s, 400/s, step=30s)`: takes any number of rates, so it is not a row of the table.
fn steps(expr: &LawExpr, cx: &mut Cx<'_>) -> Option<ArrivalLaw> {
    const USAGE: &str = "write steps(rate, rate, …, step=duration)";
    let (mut rates, mut step, mut sound) = (Vec::new(), None, true);
    for arg in &expr.args {
        let node = &arg.value;
        match (
            arg.name.as_ref().map(|(name, _)| name.as_str()),
            &node.value,
        ) {
            (Some("step"), _) => match cx.inside("step", |cx| Nanos::decode(node, cx)) {
                Some(Nanos(0)) => {
                    cx.error(&node.origin, "a step must last longer than 0", "");
                    sound = false;
                }
                Some(Nanos(ns)) => step = Some(ns),
                None => sound = false,
            },
            (Some("rates"), Value::Array(items)) => {
                for item in items {
                    match cx.inside("rates", |cx| PerSecond::decode(item, cx)) {
                        Some(rate) => rates.push(rate.0),
                        None => sound = false,
                    }
                }
            }
            (None, _) if arg.weight.is_none() => match PerSecond::decode(node, cx) {
                Some(rate) => rates.push(rate.0),
                None => sound = false,
            },
            _ => {
                cx.error(&node.origin, "unexpected argument of `steps`", USAGE);
                sound = false;
            }
        }
    }
    if sound && (rates.is_empty() || step.is_none()) {
        let missing = if rates.is_empty() { "rates" } else { "step" };
        cx.error(
            &expr.name.1,
            format!("`{missing}` of `steps` is missing"),
            USAGE,
        );
    }
    match step {
        Some(step_ns) if sound && !rates.is_empty() => Some(ArrivalLaw::Steps { rates, step_ns }),
        _ => None,
    }
}

impl Decode for ArrivalSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let expr = read_expr(node, WHAT, cx)?;
        let law = if expr.name.0 == STEPS {
            steps(&expr, cx)
        } else {
            build(LAWS, WHAT, &expr, cx)
        };
        law.map(|law| Self { law })
    }
}

impl ArrivalSpec {
    /// The rate, if a single rate describes the process; 0 if it is still to be supplied.
    #[must_use]
    pub const fn rate(&self) -> Option<f64> {
        match self.law {
            ArrivalLaw::Constant { rate }
            | ArrivalLaw::Poisson { rate }
            | ArrivalLaw::LognormalGaps { rate, .. }
            | ArrivalLaw::LognormalRate { rate, .. } => Some(rate),
            ArrivalLaw::PeriodicBatch { .. }
            | ArrivalLaw::Ramp { .. }
            | ArrivalLaw::Steps { .. } => None,
        }
    }

    /// Sets the rate; returns false if a single rate does not describe the process.
    pub const fn set_rate(&mut self, per_second: f64) -> bool {
        match &mut self.law {
            ArrivalLaw::Constant { rate }
            | ArrivalLaw::Poisson { rate }
            | ArrivalLaw::LognormalGaps { rate, .. }
            | ArrivalLaw::LognormalRate { rate, .. } => {
                *rate = per_second;
                true
            }
            ArrivalLaw::PeriodicBatch { .. }
            | ArrivalLaw::Ramp { .. }
            | ArrivalLaw::Steps { .. } => false,
        }
    }
}

impl fmt::Display for ArrivalSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A rate still to be supplied is not written.
        let first = |rate: f64| {
            if rate > 0.0 {
                format_rate(rate)
            } else {
                String::new()
            }
        };
        let before = |rate: f64| {
            if rate > 0.0 {
                format!("{}, ", format_rate(rate))
            } else {
                String::new()
            }
        };
        match &self.law {
            ArrivalLaw::Constant { rate } => write!(f, "constant({})", first(*rate)),
            ArrivalLaw::Poisson { rate } => write!(f, "poisson({})", first(*rate)),
            ArrivalLaw::LognormalGaps { rate, cv } => {
                write!(f, "lognormal({}cv={cv})", before(*rate))
            }
            ArrivalLaw::LognormalRate { rate, cv, slot_ns } => write!(
                f,
                "lognormal-rate({}cv={cv}, slot={})",
                before(*rate),
                format_duration(*slot_ns)
            ),
            ArrivalLaw::PeriodicBatch {
                clients,
                period_ns,
                min,
                max,
                spread_ns,
                gap_ns,
            } => {
                write!(
                    f,
                    "periodic-batch({}, {min}, {max}, clients={clients}, spread={}",
                    format_duration(*period_ns),
                    format_duration(*spread_ns)
                )?;
                if *gap_ns > 0 {
                    write!(f, ", gap={}", format_duration(*gap_ns))?;
                }
                f.write_str(")")
            }
            ArrivalLaw::Ramp { from, to, over_ns } => write!(
                f,
                "ramp({}, {}, {})",
                format_rate(*from),
                format_rate(*to),
                format_duration(*over_ns)
            ),
            ArrivalLaw::Steps { rates, step_ns } => {
                let rates: Vec<String> = rates.iter().map(|rate| format_rate(*rate)).collect();
                let step = format_duration(*step_ns);
                write!(f, "steps({}, step={step})", rates.join(", "))
            }
        }
    }
}

json_schema_of!(ArrivalSpec, "ArrivalProcess", {
    let steps = json!({
        "type": "object",
        "description": "Poisson arrivals whose rate changes in steps; the last rate persists. \
                        Compact form: steps(rate, rate, …, step=duration)",
        "properties": {
            "law": { "const": STEPS },
            "rates": { "type": "array", "items": { "type": ["number", "string"] } },
            "step": { "type": "string", "description": "the duration of a step" }
        },
        "required": ["law", "rates", "step"],
        "additionalProperties": false
    });
    let description = "When the operations of an open loop are due";
    family_schema(LAWS, &[], description, &[steps])
});
