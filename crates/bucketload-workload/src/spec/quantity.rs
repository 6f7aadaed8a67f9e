//! Quantities with units as typed values of a workload.

use schemars::json_schema;

use super::decode::{Cx, Decode, json_schema_of};
use super::node::{Node, Value};
use bucketload_core::units;

/// A number of bytes, written `4096` or `"4KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

/// A duration in nanoseconds, written `"30s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nanos(pub u64);

/// A rate in operations per second, greater than 0, written `200` or `"200/s"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSecond(pub f64);

/// A share from 0 to 1, written `0.7` or `"70%"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

/// A weight or percentage of a mix, at least 0, written `70` or `"70%"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// The number, without the percent sign.
    pub value: f64,
    /// Whether it is a percentage; the percentages of a mix must add up to 100.
    pub percent: bool,
}

impl Decode for ByteSize {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        match &node.value {
            Value::Str(text) => cx.valid(&node.origin, units::parse_size(text)).map(Self),
            Value::Int(_) => u64::decode(node, cx).map(Self),
            _ => {
                cx.mismatch(node, "a size", "write it such as 4096 or \"4KiB\"");
                None
            }
        }
    }
}

impl Decode for Nanos {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        // Any other plain number lacks a unit.
        if matches!(node.value, Value::Int(0)) {
            return Some(Self(0));
        }
        let text = cx.quantity_text(node, "a duration", "write it such as \"30s\"")?;
        cx.valid(&node.origin, units::parse_duration(&text))
            .map(Self)
    }
}

impl Decode for PerSecond {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let text = cx.quantity_text(node, "a rate", "write it such as \"200/s\"")?;
        let rate = cx.valid(&node.origin, units::parse_rate(&text))?;
        if rate > 0.0 {
            return Some(Self(rate));
        }
        cx.error(
            &node.origin,
            "the rate is 0, so no operation would ever be due",
            "give a rate above 0, such as 100/s, or a number of workers for a closed loop",
        );
        None
    }
}

impl Decode for Share {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let text = cx.quantity_text(node, "a share", "write it such as 0.7 or \"70%\"")?;
        cx.valid(&node.origin, units::parse_share(&text)).map(Self)
    }
}

impl Decode for Weight {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        const REMEDY: &str = "write a weight such as 70, or a percentage such as \"70%\"";
        let (value, percent) = match &node.value {
            Value::Int(number) => (Some(*number as f64), false),
            Value::Float(number) => (Some(*number), false),
            Value::Str(text) => match text.trim().strip_suffix('%') {
                Some(number) => (number.trim().parse().ok(), true),
                None => (text.trim().parse().ok(), false),
            },
            _ => (None, false),
        };
        match value.filter(|value: &f64| value.is_finite() && *value >= 0.0) {
            Some(value) => Some(Self { value, percent }),
            None => {
                cx.error(&node.origin, "this is not a weight of at least 0", REMEDY);
                None
            }
        }
    }
}

/// Describes the type as text or a number.
macro_rules! text_or_number {
    ($ty:ident, $pattern:expr, $description:expr, $number:tt) => {
        json_schema_of!($ty, stringify!($ty), {
                json_schema!({
                    "description": $description,
                    "anyOf": [{ "type": "string", "pattern": $pattern }, $number]
                })
        });
    };
}

text_or_number!(
    ByteSize,
    "^\\s*[0-9._]+\\s*([kKmMgGtTpP]([iI]?[bB])?|[bB])?\\s*$",
    "Bytes, such as 4096, \"4k\", \"4KiB\" (k and KiB are 1024) or \"4kB\" (1000)",
    { "type": "integer", "minimum": 0 }
);
text_or_number!(
    Nanos,
    "^\\s*([0-9._]+\\s*[a-zµμ]+\\s*)+$",
    "A duration such as \"30s\", \"5m\", \"1h30m\", \"250ms\" or \"20us\"",
    { "const": 0 }
);
text_or_number!(
    PerSecond,
    "^\\s*[0-9._eE+]+\\s*(/\\s*[a-z]+)?\\s*$",
    "Operations per second, such as 200, \"200/s\" or \"12/min\"",
    { "type": "number", "exclusiveMinimum": 0 }
);
text_or_number!(
    Share,
    "^\\s*[0-9._]+\\s*%?\\s*$",
    "A share such as 0.7 or \"70%\"",
    { "type": "number", "minimum": 0, "maximum": 1 }
);
text_or_number!(
    Weight,
    "^\\s*[0-9.]+\\s*%?\\s*$",
    "A relative weight such as 70, or a percentage such as \"70%\"",
    { "type": "number", "minimum": 0 }
);
