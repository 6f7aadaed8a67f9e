//! Decodes the tree of a file into typed values and collects problems on the way.
//!
//! Decoding continues after a problem: a field that cannot be read counts as absent, so one pass reports all
//! mistakes.

use std::borrow::Cow;

use super::error::Errors;
use super::node::{Node, Table, Value};
use super::source::Origin;
use super::suggest;
use bucketload_core::units::Invalid;

/// The decoder's position and the problems it has found.
pub(crate) struct Cx<'e> {
    pub(crate) errors: &'e mut Errors,
    path: Vec<String>,
}

/// A type that can be decoded from a node. `None` after a problem was reported.
pub(crate) trait Decode: Sized {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self>;
}

/// A type that is read from the fields of a table.
pub(crate) trait Fields: Sized {
    /// Names of the fields, in Rust spelling.
    const FIELDS: &'static [&'static str];

    /// Reads the fields of this type and ignores all others.
    fn read(table: &Table, cx: &mut Cx<'_>) -> Self;
}

/// The name of a field in a workload file. Fields whose names are words of Rust are written `r#for` there.
pub(crate) fn kebab(field: &str) -> String {
    field.trim_start_matches("r#").replace('_', "-")
}

impl<'e> Cx<'e> {
    pub(crate) const fn new(errors: &'e mut Errors) -> Self {
        Self {
            errors,
            path: Vec::new(),
        }
    }

    /// Reports a problem with the current field.
    pub(crate) fn error(
        &mut self,
        origin: &Origin,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let field = self.path.join(".");
        self.errors.push(origin, field, message, remedy);
    }

    /// Reports a malformed quantity.
    pub(crate) fn invalid(&mut self, origin: &Origin, invalid: Invalid) {
        self.error(origin, invalid.message, invalid.remedy);
    }

    /// The value of a quantity; reports a problem if it is malformed.
    pub(crate) fn valid<T>(&mut self, origin: &Origin, parsed: Result<T, Invalid>) -> Option<T> {
        parsed.map_err(|invalid| self.invalid(origin, invalid)).ok()
    }

    /// The text of a quantity, or a plain number as text; reports a problem for anything else.
    pub(crate) fn quantity_text<'n>(
        &mut self,
        node: &'n Node,
        expected: &str,
        remedy: &str,
    ) -> Option<Cow<'n, str>> {
        match &node.value {
            Value::Str(text) => Some(Cow::Borrowed(text)),
            Value::Int(number) => Some(Cow::Owned(number.to_string())),
            Value::Float(number) => Some(Cow::Owned(number.to_string())),
            _ => {
                self.mismatch(node, expected, remedy);
                None
            }
        }
    }

    /// Reports that `node` is not what was expected.
    pub(crate) fn mismatch(&mut self, node: &Node, expected: &str, remedy: &str) {
        let message = format!("expected {expected}, found {}", node.value.kind());
        self.error(&node.origin, message, remedy);
    }

    /// Runs `f` inside the field `key`.
    pub(crate) fn inside<T>(&mut self, key: &str, f: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key.to_owned());
        let result = f(self);
        self.path.pop();
        result
    }

    /// Reads the field `key` of a table; `None` if it is absent or wrong.
    pub(crate) fn field<T: Decode>(&mut self, table: &Table, key: &str) -> Option<T> {
        let node = table.get(key)?;
        self.inside(key, |cx| T::decode(node, cx))
    }

    /// Reports every key of `table` that is not among `fields` (in Rust spelling).
    pub(crate) fn deny_unknown(&mut self, table: &Table, fields: &[&[&str]]) {
        let known: Vec<String> = fields.concat().into_iter().map(kebab).collect();
        for entry in &table.entries {
            if !known.contains(&entry.key) {
                let remedy = suggest::advice(&entry.key, known.iter().map(String::as_str));
                self.inside(&entry.key, |cx| {
                    cx.error(&entry.at, format!("unknown field `{}`", entry.key), remedy);
                });
            }
        }
    }

    /// The node as a table; reports a problem if it is not one.
    pub(crate) fn table<'n>(&mut self, node: &'n Node) -> Option<&'n Table> {
        let table = node.as_table();
        if table.is_none() {
            self.mismatch(node, "a table", "");
        }
        table
    }

    /// The variant of an enum named by the node's text; reports a problem if there is none.
    pub(crate) fn variant<T>(&mut self, node: &Node) -> Option<T>
    where
        T: strum::VariantArray + Copy,
        &'static str: From<T>,
    {
        let variants = T::VARIANTS.iter().map(|&value| (value.into(), value));
        self.choice(node, &variants.collect::<Vec<_>>())
    }

    /// The value named by the node's text among `choices`; reports a problem if there is none.
    pub(crate) fn choice<T: Copy>(&mut self, node: &Node, choices: &[(&str, T)]) -> Option<T> {
        let names = choices.iter().map(|(name, _)| *name);
        let Value::Str(text) = &node.value else {
            let all: Vec<&str> = names.collect();
            self.mismatch(
                node,
                "a name",
                &format!("possible values: {}", all.join(", ")),
            );
            return None;
        };
        let found = choices.iter().find(|(name, _)| name == text);
        if found.is_none() {
            let remedy = suggest::advice(text, names);
            self.error(&node.origin, format!("unknown name `{text}`"), remedy);
        }
        found.map(|(_, value)| *value)
    }
}

impl Decode for bool {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        match &node.value {
            Value::Bool(value) => Some(*value),
            Value::Str(text) if text == "true" => Some(true),
            Value::Str(text) if text == "false" => Some(false),
            _ => {
                cx.mismatch(node, "a boolean", "write true or false");
                None
            }
        }
    }
}

impl Decode for String {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        match &node.value {
            Value::Str(text) => Some(text.clone()),
            // A number given as a flag (`--set name=42`) is still a name.
            Value::Int(number) if matches!(node.origin, Origin::Flag(_)) => {
                Some(number.to_string())
            }
            _ => {
                cx.mismatch(node, "a string", "write it in quotes");
                None
            }
        }
    }
}

impl Decode for u64 {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let number = match &node.value {
            Value::Int(number) => Some(*number),
            // Below 2^53, a float without a fraction is exactly that integer.
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0 => {
                Some(*x as i128)
            }
            Value::Str(text) => text.replace('_', "").trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number else {
            cx.mismatch(node, "a whole number", "");
            return None;
        };
        let value = Self::try_from(number).ok();
        if value.is_none() {
            cx.error(
                &node.origin,
                format!("{number} is not between 0 and 2^64 - 1"),
                "",
            );
        }
        value
    }
}

impl Decode for u32 {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let number = u64::decode(node, cx)?;
        let value = Self::try_from(number).ok();
        if value.is_none() {
            let message = format!("{number} is too large");
            cx.error(&node.origin, message, "the maximum is 4294967295");
        }
        value
    }
}

impl Decode for f64 {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let number = match &node.value {
            Value::Int(number) => Some(*number as Self),
            Value::Float(number) => Some(*number),
            Value::Str(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if number.is_finite() => Some(number),
            Some(_) => {
                cx.error(&node.origin, "the number is not finite", "");
                None
            }
            None => {
                cx.mismatch(node, "a number", "");
                None
            }
        }
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let Value::Array(items) = &node.value else {
            cx.mismatch(node, "a list", "write it in brackets, such as [1, 2]");
            return None;
        };
        // Read all items, so one pass reports all mistakes.
        let read: Vec<_> = items.iter().map(|item| T::decode(item, cx)).collect();
        read.into_iter().collect()
    }
}

/// Declares a table of a workload file: a struct whose fields are all optional, decoded from a node (unknown
/// fields are problems), and described by a JSON Schema.
macro_rules! spec_table {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident: Option<$ty:ty>, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                pub $field: Option<$ty>,
            )*
        }

        impl $crate::spec::decode::Fields for $name {
            const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];

            fn read(
                table: &$crate::spec::node::Table,
                cx: &mut $crate::spec::decode::Cx<'_>,
            ) -> Self {
                Self {
                    $($field: cx.field(
                        table,
                        &$crate::spec::decode::kebab(stringify!($field)),
                    ),)*
                }
            }
        }

        impl $crate::spec::decode::Decode for $name {
            fn decode(
                node: &$crate::spec::node::Node,
                cx: &mut $crate::spec::decode::Cx<'_>,
            ) -> Option<Self> {
                use $crate::spec::decode::Fields;
                let table = cx.table(node)?;
                cx.deny_unknown(table, &[Self::FIELDS]);
                Some(Self::read(table, cx))
            }
        }
    };
}
pub(crate) use spec_table;

/// Decodes enums from the names of their variants.
macro_rules! decode_variants {
    ($($ty:ty),+ $(,)?) => {$(
        impl $crate::spec::decode::Decode for $ty {
            fn decode(
                node: &$crate::spec::node::Node,
                cx: &mut $crate::spec::decode::Cx<'_>,
            ) -> Option<Self> {
                cx.variant(node)
            }
        }
    )+};
}
pub(crate) use decode_variants;

/// Gives a type the JSON Schema `$schema`, called `$name`.
macro_rules! json_schema_of {
    ($ty:ty, $name:expr, $schema:expr) => {
        impl schemars::JsonSchema for $ty {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
pub(crate) use json_schema_of;
