//! Tables whose keys are names chosen by the user, in the order of the file.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::decode::{Cx, Decode};
use super::node::Node;

/// Named values in file order.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    /// The value called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0
            .iter()
            .find(|(candidate, _)| candidate == name)
            .map(|(_, value)| value)
    }

    /// Position of the value called `name`.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(candidate, _)| candidate == name)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// Whether `text` is a valid name. Names appear in paths, reports and file names.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

impl<T: Decode> Decode for Named<T> {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let table = cx.table(node)?;
        let mut values = Vec::new();
        for entry in &table.entries {
            cx.inside(&entry.key, |cx| {
                if !is_name(&entry.key) {
                    cx.error(
                        &entry.at,
                        "this is not a name",
                        "use 1 to 64 letters, digits, `-` and `_`",
                    );
                } else if let Some(value) = T::decode(&entry.node, cx) {
                    values.push((entry.key.clone(), value));
                }
            });
        }
        Some(Self(values))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z0-9_-]{1,64}$" },
            "additionalProperties": generator.subschema_for::<T>()
        })
    }
}
