//! The effective value and origin of everything that was set.

use crate::spec::node::{Node, Value};
use crate::spec::{Location, Source};

/// A field that was set by the workload file or on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Dotted path of the field.
    pub path: String,
    /// Its value, written as in a workload file.
    pub value: String,
    /// Its origin: `FILE:LINE:COLUMN` or the flag as typed.
    pub location: Location,
}

/// All leaves of the tree, in its order.
pub(super) fn list(root: &Node, source: &Source) -> Vec<Setting> {
    let mut out = Vec::new();
    walk(root, "", source, &mut out);
    out
}

fn walk(node: &Node, path: &str, source: &Source, out: &mut Vec<Setting>) {
    if let Value::Table(table) = &node.value
        && table.get("law").is_none()
    {
        for entry in &table.entries {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{}", entry.key);
            walk(&entry.node, &path, source, out);
        }
    } else {
        out.push(Setting {
            path: path.to_owned(),
            value: text(node),
            location: source.locate(&node.origin),
        });
    }
}

fn text(node: &Node) -> String {
    match &node.value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Date(value) => value.clone(),
        Value::Str(value) => toml::Value::String(value.clone()).to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let entries = table.entries.iter();
            let fields: Vec<String> = entries
                .map(|entry| format!("{} = {}", entry.key, text(&entry.node)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}
