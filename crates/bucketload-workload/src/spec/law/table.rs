//! Definitions of laws as rows of tables, and the matching of arguments with parameters.

use schemars::Schema;
use serde_json::{Map, json};

use super::expr::{LawArg, LawExpr};
use crate::spec::decode::{Cx, Decode};
use crate::spec::node::{Node, Value};
use crate::spec::quantity::{ByteSize, Nanos, PerSecond, Share};
use crate::spec::source::Origin;
use crate::spec::suggest;
use bucketload_core::units;

/// The kind of a parameter: determines how it is written and which values are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes, fractions allowed, at least 0.
    Bytes,
    /// Bytes, fractions allowed, above 0.
    SomeBytes,
    /// Whole bytes, at least 0.
    WholeBytes,
    /// A whole number, at least 1.
    Count,
    /// Any finite number.
    Number,
    /// A finite number above 0.
    Positive,
    /// Operations per second, above 0.
    Rate,
    /// A duration in nanoseconds.
    Time,
    /// A share from 0 to 1.
    Share,
    /// true or false.
    Flag,
}

/// Whether a parameter must be given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    Required,
    Optional,
    Default(ParamValue),
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ParamValue {
    /// Neither given nor having a default.
    Absent,
    F(f64),
    U(u64),
    B(bool),
}

impl ParamValue {
    /// The value of a floating-point parameter; 0 if absent.
    pub(crate) const fn f(self) -> f64 {
        match self {
            Self::F(x) => x,
            _ => 0.0,
        }
    }

    /// The value of an integer parameter; 0 if absent.
    pub(crate) const fn u(self) -> u64 {
        match self {
            Self::U(x) => x,
            _ => 0,
        }
    }

    /// The value of a flag; false if absent.
    pub(crate) const fn b(self) -> bool {
        matches!(self, Self::B(true))
    }
}

/// A parameter of a law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) doc: &'static str,
}

/// A parameter that must be given.
pub(crate) const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Param {
    param(name, kind, Need::Required, doc)
}

/// A parameter that may be left out.
pub(crate) const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Param {
    param(name, kind, Need::Optional, doc)
}

/// A parameter that is `value` if left out.
pub(crate) const fn by_default(
    name: &'static str,
    kind: Kind,
    value: ParamValue,
    doc: &'static str,
) -> Param {
    param(name, kind, Need::Default(value), doc)
}

const fn param(name: &'static str, kind: Kind, need: Need, doc: &'static str) -> Param {
    Param {
        name,
        kind,
        need,
        doc,
    }
}

/// A law, or the index of the faulty parameter and the problem.
pub(crate) type Built<T> = Result<T, (usize, String)>;

/// A law: its name, its parameters and how to build it.
pub(crate) struct LawDef<T> {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) doc: &'static str,
    /// Builds the law from the values, in the order of `params`.
    pub(crate) build: fn(&[ParamValue]) -> Built<T>,
}

impl<T> LawDef<T> {
    /// The notation of the law, such as `zipf(theta, [scramble])`.
    fn usage(&self) -> String {
        let params: Vec<String> = self
            .params
            .iter()
            .map(|p| match p.need {
                Need::Required => p.name.to_owned(),
                _ => format!("[{}]", p.name),
            })
            .collect();
        if params.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}({})", self.name, params.join(", "))
        }
    }
}

/// Parses a node in compact or table notation.
pub(crate) fn read_expr(node: &Node, what: &str, cx: &mut Cx<'_>) -> Option<LawExpr> {
    match &node.value {
        Value::Str(text) => {
            let source = std::sync::Arc::clone(&cx.errors.source);
            LawExpr::parse(text, &node.origin, &source)
                .map_err(|(origin, invalid)| cx.invalid(&origin, invalid))
                .ok()
        }
        Value::Table(table) => {
            let expr = LawExpr::from_table(table);
            if expr.is_none() {
                cx.error(
                    &node.origin,
                    format!("the table lacks `law`, the name of {what}"),
                    "write { law = \"…\", … } or the compact form \"name(…)\"",
                );
            }
            expr
        }
        _ => {
            cx.mismatch(node, what, "");
            None
        }
    }
}

/// Builds the law named by `expr`, reporting every problem with its arguments.
pub(crate) fn build<T>(
    defs: &[LawDef<T>],
    what: &str,
    expr: &LawExpr,
    cx: &mut Cx<'_>,
) -> Option<T> {
    let (name, at) = &expr.name;
    let Some(def) = defs.iter().find(|def| def.name == name) else {
        let remedy = suggest::advice(name, defs.iter().map(|def| def.name));
        cx.error(at, format!("`{name}` is not {what}"), remedy);
        return None;
    };
    let (values, locations) = match_args(def, expr, cx)?;
    match (def.build)(&values) {
        Ok(law) => Some(law),
        Err((param, message)) => {
            let location = locations.get(param).cloned().flatten();
            cx.error(location.as_ref().unwrap_or(at), message, "");
            None
        }
    }
}

type Matched = (Vec<ParamValue>, Vec<Option<Origin>>);

/// Assigns arguments to parameters by position or by name.
fn match_args<T>(def: &LawDef<T>, expr: &LawExpr, cx: &mut Cx<'_>) -> Option<Matched> {
    let mut values = vec![ParamValue::Absent; def.params.len()];
    let mut locations: Vec<Option<Origin>> = vec![None; def.params.len()];
    let mut sound = true;
    for (position, arg) in expr.args.iter().enumerate() {
        let Some(index) = parameter_of(def, position, arg, cx) else {
            sound = false;
            continue;
        };
        if locations[index].is_some() {
            let name = def.params[index].name;
            cx.error(
                &arg.value.origin,
                format!("`{name}` is given more than once"),
                "",
            );
            sound = false;
        }
        locations[index] = Some(arg.value.origin.clone());
        match read(&arg.value, def.params[index], cx) {
            Some(value) => values[index] = value,
            None => sound = false,
        }
    }
    for (index, param) in def.params.iter().enumerate() {
        match param.need {
            Need::Required if locations[index].is_none() => {
                let message = format!("`{}` of `{}` is missing", param.name, def.name);
                let remedy = format!("write {}: {} is {}", def.usage(), param.name, param.doc);
                cx.error(&expr.name.1, message, remedy);
                sound = false;
            }
            Need::Default(value) if locations[index].is_none() => values[index] = value,
            _ => {}
        }
    }
    sound.then_some((values, locations))
}

fn parameter_of<T>(
    def: &LawDef<T>,
    position: usize,
    arg: &LawArg,
    cx: &mut Cx<'_>,
) -> Option<usize> {
    let usage = def.usage();
    if let Some(weight) = &arg.weight {
        let message = format!("`{}` does not accept weights", def.name);
        cx.error(&weight.origin, message, format!("write {usage}"));
        return None;
    }
    match &arg.name {
        None if position < def.params.len() => Some(position),
        None => {
            cx.error(
                &arg.value.origin,
                format!("too many values for `{}`", def.name),
                format!("write {usage}"),
            );
            None
        }
        Some((name, at)) => {
            let index = def.params.iter().position(|param| param.name == name);
            if index.is_none() {
                let names = def.params.iter().map(|param| param.name);
                cx.error(
                    at,
                    format!("`{}` has no parameter `{name}`", def.name),
                    suggest::advice(name, names),
                );
            }
            index
        }
    }
}

fn read(node: &Node, param: Param, cx: &mut Cx<'_>) -> Option<ParamValue> {
    cx.inside(param.name, |cx| match param.kind {
        Kind::Bytes => bytes(node, cx).map(ParamValue::F),
        Kind::SomeBytes => positive(bytes(node, cx)?, node, cx).map(ParamValue::F),
        Kind::WholeBytes => ByteSize::decode(node, cx).map(|size| ParamValue::U(size.0)),
        Kind::Count => {
            let count = u64::decode(node, cx)?;
            if count == 0 {
                cx.error(&node.origin, "must be at least 1", "");
                return None;
            }
            Some(ParamValue::U(count))
        }
        Kind::Number => f64::decode(node, cx).map(ParamValue::F),
        Kind::Positive => positive(f64::decode(node, cx)?, node, cx).map(ParamValue::F),
        Kind::Rate => PerSecond::decode(node, cx).map(|rate| ParamValue::F(rate.0)),
        Kind::Time => Nanos::decode(node, cx).map(|time| ParamValue::U(time.0)),
        Kind::Share => Share::decode(node, cx).map(|share| ParamValue::F(share.0)),
        Kind::Flag => bool::decode(node, cx).map(ParamValue::B),
    })
}

fn positive(value: f64, node: &Node, cx: &mut Cx<'_>) -> Option<f64> {
    if value > 0.0 {
        Some(value)
    } else {
        cx.error(&node.origin, "must be greater than 0", "");
        None
    }
}

fn bytes(node: &Node, cx: &mut Cx<'_>) -> Option<f64> {
    let text = cx.quantity_text(node, "a size", "write it such as 4096 or \"4KiB\"")?;
    cx.valid(&node.origin, units::parse_size_f64(&text))
}

/// The table notation of a law as a JSON Schema.
pub(crate) fn table_schema<T>(def: &LawDef<T>, more: &[Param]) -> serde_json::Value {
    let mut properties = Map::new();
    properties.insert("law".to_owned(), json!({ "const": def.name }));
    let mut required = vec!["law"];
    for param in def.params.iter().chain(more) {
        let types = match param.kind {
            Kind::Flag => json!(["boolean", "string"]),
            Kind::Time => json!("string"),
            _ => json!(["number", "string"]),
        };
        properties.insert(
            param.name.to_owned(),
            json!({ "type": types, "description": param.doc }),
        );
        if matches!(param.need, Need::Required) {
            required.push(param.name);
        }
    }
    json!({
        "type": "object",
        "description": def.doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

/// Both notations of a family of laws as a JSON Schema.
pub(crate) fn family_schema<T>(
    defs: &[LawDef<T>],
    more: &[Param],
    description: &str,
    others: &[serde_json::Value],
) -> Schema {
    let compact: Vec<String> = defs.iter().map(LawDef::usage).collect();
    let mut forms = vec![json!({
        "type": "string",
        "description": format!("Compact form: {}", compact.join(", "))
    })];
    forms.extend(others.iter().cloned());
    forms.extend(defs.iter().map(|def| table_schema(def, more)));
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(description));
    schema.insert("anyOf".to_owned(), json!(forms));
    Schema::from(schema)
}
