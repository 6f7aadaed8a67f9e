//! Sizes of objects and ranges.
//!
//! A size law is written as a size (`"4KiB"`), a size mix (`"4k/70:1m/30"`), a law (`"emg(32KiB, 8KiB,
//! 93.98KiB, max=64MiB)"`) or a table. `min` and `max` clamp any law; by default they are the law's natural
//! bounds.

mod laws;
mod text;

use serde_json::json;

use self::laws::{BOUNDS, LAWS};
use super::expr::{LawArg, LawExpr};
use super::table::{build, family_schema, read_expr};
use crate::spec::decode::{Cx, Decode, json_schema_of};
use crate::spec::node::{Node, Value};
use crate::spec::quantity::{ByteSize, Weight};
use bucketload_core::plan::{SizeKind, SizeLaw};
use bucketload_core::units;

pub(crate) use self::laws::natural_bounds;

/// A law of sizes in bytes, such as `"emg(32KiB, 8KiB, 93.98KiB)"`.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeSpec(pub SizeLaw);

const WHAT: &str = "a size law";
const MIXTURE: &str = "mixture";
const HISTOGRAM: &str = "histogram";
const CHUNKED: &str = "chunked";

impl SizeSpec {
    /// The law with its natural bounds.
    #[must_use]
    pub fn unclamped(law: SizeKind) -> Self {
        let (min, max) = natural_bounds(&law);
        Self(SizeLaw { law, min, max })
    }
}

impl Decode for SizeSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        if let Some(law) = plain(node, cx) {
            return law.map(Self::unclamped);
        }
        let mut expr = read_expr(node, WHAT, cx)?;
        let min = remove_bound(&mut expr, "min", cx);
        let max = remove_bound(&mut expr, "max", cx);
        let kind = kind(&expr, cx)?;
        let (min, max) = (min.ok()?, max.ok()?);
        let mut law = Self::unclamped(kind).0;
        law.min = min.unwrap_or(law.min.min(max.unwrap_or(u64::MAX)));
        law.max = max.unwrap_or(law.max.max(law.min));
        if law.min > law.max {
            let (min, max) = (law.min, law.max);
            cx.error(
                &node.origin,
                format!("the smallest size, {min} bytes, exceeds the largest, {max} bytes"),
                "swap `min` and `max`",
            );
            return None;
        }
        Some(Self(law))
    }
}

/// A single size or a size mix. `None` if the node is something else, `Some(None)` after a problem.
fn plain(node: &Node, cx: &mut Cx<'_>) -> Option<Option<SizeKind>> {
    let bytes = match &node.value {
        Value::Int(_) | Value::Float(_) => ByteSize::decode(node, cx),
        Value::Str(text) if text.trim().starts_with(|c: char| c.is_ascii_digit()) => {
            if text.contains(['/', ':']) {
                let bins = cx.valid(&node.origin, units::parse_size_mix(text));
                return Some(bins.map(|bins| SizeKind::Histogram { bins }));
            }
            ByteSize::decode(node, cx)
        }
        _ => return None,
    };
    Some(bytes.map(|ByteSize(bytes)| SizeKind::Const { bytes }))
}

/// Removes the argument `name` from the expression and decodes it as a size.
fn remove_bound(expr: &mut LawExpr, name: &str, cx: &mut Cx<'_>) -> Result<Option<u64>, ()> {
    let is_bound = |arg: &LawArg| arg.name.as_ref().is_some_and(|(given, _)| given == name);
    match expr.args.iter().position(is_bound) {
        None => Ok(None),
        Some(index) => {
            let arg = expr.args.remove(index);
            cx.inside(name, |cx| ByteSize::decode(&arg.value, cx))
                .map(|size| Some(size.0))
                .ok_or(())
        }
    }
}

fn kind(expr: &LawExpr, cx: &mut Cx<'_>) -> Option<SizeKind> {
    match expr.name.0.as_str() {
        MIXTURE => mixture(expr, cx),
        HISTOGRAM => histogram(expr, cx),
        CHUNKED => chunked(expr, cx),
        // The special laws are not rows; `build` only knows the rows.
        _ => build(LAWS, WHAT, expr, cx),
    }
}

/// The law of a part of a mixture, which has no bounds.
fn part(node: &Node, cx: &mut Cx<'_>) -> Option<SizeKind> {
    if let Some(law) = plain(node, cx) {
        return law;
    }
    let mut node = node.clone();
    if let Some(table) = node.as_table_mut() {
        table.remove("weight");
    }
    let expr = read_expr(&node, WHAT, cx)?;
    kind(&expr, cx)
}

/// `mixture(weight: law, …)` or `{ law = "mixture", parts = [{ weight, law, … }] }`.
fn mixture(expr: &LawExpr, cx: &mut Cx<'_>) -> Option<SizeKind> {
    const USAGE: &str = "write mixture(20%: const(0), 80%: uniform(1KiB, 1MiB))";
    let parts = weighted(expr, "parts", USAGE, cx, part)?;
    Some(SizeKind::Mixture { parts })
}

/// `histogram(size: weight, …)` or `{ law = "histogram", bins = [{ size, weight }] }`.
fn histogram(expr: &LawExpr, cx: &mut Cx<'_>) -> Option<SizeKind> {
    const USAGE: &str = "write histogram(70: 4KiB, 30: 1MiB), weights first, or 4k/70:1m/30";
    let bins = weighted(expr, "bins", USAGE, cx, |node, cx| {
        let size = match node.as_table() {
            Some(table) => cx.field::<ByteSize>(table, "size"),
            None => ByteSize::decode(node, cx),
        };
        size.map(|size| size.0)
    })?;
    let bins = bins
        .into_iter()
        .map(|(weight, size)| (size, weight))
        .collect();
    Some(SizeKind::Histogram { bins })
}

/// `chunked(law, size)` or `{ law = "chunked", files = law, chunk = size }`.
fn chunked(expr: &LawExpr, cx: &mut Cx<'_>) -> Option<SizeKind> {
    const USAGE: &str = "write chunked(uniform(1KiB, 64MiB), 4MiB): the law of the files, then the \
                         size of a chunk";
    let (mut files, mut chunk) = (None, None);
    for (i, arg) in expr.args.iter().enumerate() {
        let name = match (&arg.name, i) {
            (Some((name, _)), _) => name.as_str(),
            (None, 0) => "files",
            (None, _) => "chunk",
        };
        let slot_is_free = match name {
            "files" => files.is_none(),
            "chunk" => chunk.is_none(),
            _ => false,
        };
        if !slot_is_free || arg.weight.is_some() {
            let message = format!("unexpected argument of `{CHUNKED}`");
            cx.error(&arg.value.origin, message, USAGE);
            return None;
        }
        if name == "files" {
            files = Some(cx.inside("files", |cx| part(&arg.value, cx))?);
        } else {
            chunk = Some(cx.inside("chunk", |cx| ByteSize::decode(&arg.value, cx))?);
        }
    }
    let (Some(files), Some(ByteSize(chunk))) = (files, chunk) else {
        cx.error(
            &expr.name.1,
            format!("an argument of `{CHUNKED}` is missing"),
            USAGE,
        );
        return None;
    };
    if chunk == 0 {
        cx.error(&expr.name.1, "a chunk must have at least 1 byte", USAGE);
        return None;
    }
    Some(SizeKind::Chunked {
        files: Box::new(files),
        chunk,
    })
}

/// Reads weighted items: `weight: item` arguments, or tables with a field `weight` in the array `field`.
fn weighted<T>(
    expr: &LawExpr,
    field: &str,
    usage: &str,
    cx: &mut Cx<'_>,
    mut item: impl FnMut(&Node, &mut Cx<'_>) -> Option<T>,
) -> Option<Vec<(f64, T)>> {
    let mut pairs: Vec<(Option<Node>, Node)> = Vec::new();
    for arg in &expr.args {
        match (&arg.name, &arg.value.value) {
            (None, _) => pairs.push((arg.weight.clone(), arg.value.clone())),
            (Some((name, _)), Value::Array(items)) if name == field => {
                pairs.extend(items.iter().map(|node| {
                    let weight = node.as_table().and_then(|table| table.get("weight"));
                    (weight.cloned(), node.clone())
                }));
            }
            (Some((name, at)), _) => {
                cx.error(at, format!("unexpected `{name}`"), usage);
                return None;
            }
        }
    }
    let (mut out, mut weights, mut sound) = (Vec::new(), Vec::new(), true);
    for (weight, node) in &pairs {
        let Some(weight) = weight else {
            cx.error(&node.origin, "a weight is missing", usage);
            sound = false;
            continue;
        };
        let weight = cx.inside("weight", |cx| Weight::decode(weight, cx));
        match (weight, cx.inside(field, |cx| item(node, cx))) {
            (Some(weight), Some(value)) => {
                weights.push(weight);
                out.push((weight.value, value));
            }
            _ => sound = false,
        }
    }
    if sound && let Err(message) = check_weights(&weights) {
        cx.error(&expr.name.1, message, usage);
        sound = false;
    }
    sound.then_some(out)
}

/// Checks that the weights are not all zero and that percentages, if used, are used throughout and add up to
/// 100.
pub(crate) fn check_weights(weights: &[Weight]) -> Result<(), String> {
    let sum: f64 = weights.iter().map(|weight| weight.value).sum();
    let percentages = weights.iter().filter(|weight| weight.percent).count();
    if weights.is_empty() {
        Err("there is no entry".to_owned())
    } else if percentages > 0 && percentages < weights.len() {
        Err("percentages and plain weights are mixed".to_owned())
    } else if percentages > 0 && (sum - 100.0).abs() > 1e-6 {
        Err(format!("the percentages add up to {sum}, not 100"))
    } else if sum <= 0.0 {
        Err("all weights are zero".to_owned())
    } else {
        Ok(())
    }
}

json_schema_of!(SizeSpec, "SizeLaw", {
    let bound = json!({ "type": ["integer", "string"] });
    let others = [
        json!({ "type": "integer", "minimum": 0, "description": "One size in bytes" }),
        json!({
            "type": "object",
            "description": "A weighted mixture of laws. Compact form: \
                            mixture(20%: const(0), 80%: uniform(1KiB, 1MiB))",
            "properties": {
                "law": { "const": MIXTURE },
                "parts": {
                    "type": "array",
                    "minItems": 1,
                    "items": { "type": "object", "required": ["weight", "law"] }
                },
                "min": bound, "max": bound
            },
            "required": ["law", "parts"],
            "additionalProperties": false
        }),
        json!({
            "type": "object",
            "description": "Weighted sizes. Compact forms: 4k/70:1m/30 and \
                            histogram(70: 4KiB, 30: 1MiB)",
            "properties": {
                "law": { "const": HISTOGRAM },
                "bins": {
                    "type": "array",
                    "minItems": 1,
                    "items": { "type": "object", "required": ["weight", "size"] }
                },
                "min": bound, "max": bound
            },
            "required": ["law", "bins"],
            "additionalProperties": false
        }),
        json!({
            "type": "object",
            "description": "Chunks cut from the files of a law. Compact form: \
                            chunked(uniform(1KiB, 64MiB), 4MiB)",
            "properties": {
                "law": { "const": CHUNKED },
                "files": { "type": ["object", "string", "integer"] },
                "chunk": { "type": ["integer", "string"] },
                "min": bound, "max": bound
            },
            "required": ["law", "files", "chunk"],
            "additionalProperties": false
        }),
    ];
    let description = "Sizes in bytes; `min` and `max` clamp any law";
    family_schema(LAWS, &BOUNDS, description, &others)
});
