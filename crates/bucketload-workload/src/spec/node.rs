//! The tree of a workload file: values that record their origin.
//!
//! A file, a profile and command-line flags are all trees. Layering them merges trees, and a later problem
//! can still name the line or flag that caused it.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Errors;
use super::source::{Origin, Source};
use std::sync::Arc;

/// A value with its origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(String),
    /// Dates and times, kept as text; no field of a workload uses them.
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    /// The name of the value's type in messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Str(_) => "a string",
            Self::Date(_) => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

/// A table in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Location of the key.
    pub(crate) at: Origin,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries
            .iter_mut()
            .find(|entry| entry.key == key)
            .map(|entry| &mut entry.node)
    }

    /// Sets `key`, keeping its position among the entries if it exists.
    pub(crate) fn set(&mut self, key: &str, at: Origin, node: Node) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => {
                entry.at = at;
                entry.node = node;
            }
            None => self.entries.push(Entry {
                key: key.to_owned(),
                at,
                node,
            }),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Node> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index).node)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|entry| entry.key.as_str())
    }
}

impl Node {
    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The node at a dotted path.
    pub(crate) fn find(&self, path: &str) -> Option<&Self> {
        path.split('.')
            .try_fold(self, |node, key| node.as_table()?.get(key))
    }

    /// The location to report for the field at a dotted path: its value, or the nearest key on the path if
    /// the field is a table, an entry of a mix or absent.
    pub(crate) fn origin_of(&self, path: &str) -> &Origin {
        let (mut node, mut at, mut parent) = (self, &self.origin, "");
        for key in path.split('.') {
            let Some(entry) = node.as_table().and_then(|table| table.entry(key)) else {
                break;
            };
            node = &entry.node;
            at = if node.as_table().is_some() || parent == "mix" {
                &entry.at
            } else {
                &node.origin
            };
            parent = key;
        }
        at
    }

    /// Parses the text of a workload file; syntax errors go to `errors`.
    pub(crate) fn parse(errors: &mut Errors) -> Self {
        let source = Arc::clone(&errors.source);
        let (table, problems) = DeTable::parse_recoverable(&source.text);
        let mut last_line = None;
        for problem in problems {
            let span = problem.span().unwrap_or(0..0);
            let before = source.text.as_bytes().iter().take(span.start);
            let line = before.filter(|byte| **byte == b'\n').count();
            // Further problems on the same line are mostly consequences of the first.
            if last_line.replace(line) == Some(line) {
                continue;
            }
            let remedy = if problem.message().contains("duplicate key") {
                "set each field only once"
            } else {
                "see https://toml.io for the syntax"
            };
            errors.push(&Origin::File(span), "", problem.message(), remedy);
        }
        let span = table.span();
        Self {
            value: Value::Table(convert_table(table.into_inner(), errors)),
            origin: Origin::File(span),
        }
    }

    /// Parses a value given on the command line: a TOML value if possible, otherwise a plain string (so `30s`
    /// and `zipf(0.99)` need no quotes).
    pub(crate) fn parse_flag(text: &str, flag: &Arc<str>) -> Self {
        let source = Source {
            name: String::new(),
            text: String::new(),
        };
        let mut errors = Errors::new(Arc::new(source));
        let mut node = match DeValue::parse(text) {
            Ok(value) => convert(value, &mut errors),
            Err(_) => Self::string(text, flag),
        };
        if !errors.is_empty() || matches!(node.value, Value::Date(_)) {
            node = Self::string(text, flag);
        }
        node.set_origin(&Origin::Flag(Arc::clone(flag)));
        node
    }

    fn string(text: &str, flag: &Arc<str>) -> Self {
        Self {
            value: Value::Str(text.to_owned()),
            origin: Origin::Flag(Arc::clone(flag)),
        }
    }

    fn set_origin(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.value {
            Value::Array(items) => items.iter_mut().for_each(|item| item.set_origin(origin)),
            Value::Table(table) => table.entries.iter_mut().for_each(|entry| {
                entry.at = origin.clone();
                entry.node.set_origin(origin);
            }),
            _ => {}
        }
    }
}

fn convert_table(table: DeTable<'_>, errors: &mut Errors) -> Table {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry {
            at: Origin::File(key.span()),
            key: key.into_inner().into_owned(),
            node: convert(value, errors),
        })
        .collect();
    // The parser sorts by key, but file order determines the order of phases and mix entries.
    entries.sort_by_key(|entry| match &entry.at {
        Origin::File(span) => span.start,
        Origin::Flag(_) => 0,
    });
    Table { entries }
}

fn convert(value: Spanned<DeValue<'_>>, errors: &mut Errors) -> Node {
    let origin = Origin::File(value.span());
    let value = match value.into_inner() {
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::String(text) => Value::Str(text.into_owned()),
        DeValue::Integer(integer) => {
            match i128::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(value) => Value::Int(value),
                Err(_) => {
                    errors.push(&origin, "", "the integer is too large", "");
                    Value::Int(0)
                }
            }
        }
        DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| convert(item, errors))
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, errors)),
    };
    Node { value, origin }
}
