//! The page of the workload language, generated from its JSON Schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::markdown::{one_line, slug};

/// The definitions that come first: the tables of the file, in nesting order. Others follow by name.
const TABLES: [&str; 12] = [
    "TargetSpec",
    "KeysetSpec",
    "BucketsSpec",
    "PhaseSpec",
    "StopSpec",
    "WorkSpec",
    "Mix",
    "MixSpec",
    "JobsSpec",
    "RoundsSpec",
    "RetrySpec",
    "ProfileSpec",
];

/// The page that explains a schema: a table per structure, a list per enum.
///
/// # Errors
/// The schema has a form that this code does not understand.
pub(super) fn page(schema: &Value) -> Result<String, String> {
    let defs = schema["$defs"]
        .as_object()
        .ok_or("the schema has no definitions")?;
    let mut out = String::from("# Workload language\n\n");
    out += "A workload is a TOML file; `bucketload show NAME` prints those that ship with the program \
            ([built-in workloads](workloads.md)). Every field is optional unless marked as required. For a wrong \
            name, value or combination, the error names file, line, field and remedy. Editors can use the same \
            definitions as a [JSON Schema](../workload.schema.json): `bucketload schema`.\n\n";
    out += "Most fields have an option of [`bucketload run`](commands/bucketload-run.md), and \
            `--set PATH=VALUE` sets any of them.\n\n## The file\n\n";
    structure(&mut out, schema);
    let known = TABLES
        .iter()
        .copied()
        .filter(|name| defs.contains_key(*name));
    let others = defs
        .keys()
        .map(String::as_str)
        .filter(|name| !TABLES.contains(name));
    for name in known.chain(others) {
        let _ = write!(out, "## {name}\n\n");
        definition(&mut out, &defs[name]);
    }
    Ok(out)
}

fn definition(out: &mut String, def: &Value) {
    let about = text(def);
    if !about.is_empty() {
        let _ = write!(out, "{about}\n\n");
    }
    let forms = def["anyOf"].as_array().or(def["oneOf"].as_array());
    match forms {
        Some(forms) => {
            for form in forms {
                self::form(out, form);
            }
            out.push('\n');
        }
        None if def["properties"].is_object() => structure(out, def),
        None => {
            if let Some(values) = def["additionalProperties"].as_object() {
                let _ = write!(
                    out,
                    "A table whose values are {}.\n\n",
                    kind(&Value::Object(values.clone()))
                );
            } else {
                let _ = write!(out, "{}\n\n", kind(def));
            }
        }
    }
}

/// One of several forms of a value.
fn form(out: &mut String, form: &Value) {
    if let Some(value) = form["const"].as_str() {
        let _ = writeln!(out, "- `{value}`: {}", text(form));
        return;
    }
    let Some(properties) = form["properties"].as_object() else {
        let about = text(form);
        let gap = if about.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "- {}{gap}{about}", kind(form));
        return;
    };
    let law = properties
        .iter()
        .find_map(|(name, p)| Some((name, p["const"].as_str()?)));
    let head = law.map_or_else(String::new, |(name, value)| {
        format!("`{{ {name} = \"{value}\", … }}`: ")
    });
    let _ = writeln!(out, "- {head}{}", text(form));
    for (name, property) in properties.iter().filter(|(_, p)| p.get("const").is_none()) {
        let must = if is_required(form, name) {
            ", required"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "  - `{name}` ({}{must}): {}",
            kind(property),
            text(property)
        );
    }
}

fn structure(out: &mut String, def: &Value) {
    out.push_str("| field | value | |\n|---|---|---|\n");
    let empty = Map::new();
    for (name, property) in def["properties"].as_object().unwrap_or(&empty) {
        let must = if is_required(def, name) {
            " (required)"
        } else {
            ""
        };
        let about = text(property).replace('|', "\\|");
        let _ = writeln!(
            out,
            "| `{name}`{must} | {} | {about} |",
            kind(property).replace('|', "\\|")
        );
    }
    out.push('\n');
}

fn is_required(def: &Value, name: &str) -> bool {
    def["required"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one == name))
}

/// A description on one line, with escaped angle brackets.
fn text(value: &Value) -> String {
    one_line(value["description"].as_str().unwrap_or_default()).replace('<', "\\<")
}

/// The form of a value in words.
fn kind(value: &Value) -> String {
    if let Some(name) = value["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return match name {
            "#" => "[the file](#the-file)".to_owned(),
            name => format!("[{name}](#{})", slug(name)),
        };
    }
    if let Some(constant) = value.get("const") {
        return format!("`{constant}`");
    }
    if let Some(all) = value["enum"].as_array() {
        return all
            .iter()
            .map(|one| format!("`{one}`"))
            .collect::<Vec<_>>()
            .join(" or ");
    }
    for forms in ["anyOf", "oneOf"] {
        if let Some(all) = value[forms].as_array() {
            return all.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    let names: Vec<&str> = match &value["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let words = names.iter().map(|name| match *name {
        "boolean" => "true or false".to_owned(),
        "integer" => "whole number".to_owned(),
        "array" => format!("list of {}", kind(&value["items"])),
        "object" => match value.get("additionalProperties") {
            Some(inner) if inner.is_object() => format!("tables by name, each {}", kind(inner)),
            _ => "table".to_owned(),
        },
        other => other.to_owned(),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        "any value".to_owned()
    } else {
        words.join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::page;

    #[test]
    fn structures_and_choices_are_explained() {
        let schema = json!({
            "properties": { "name": { "type": "string", "description": "What it\nis called." },
                            "size": { "$ref": "#/$defs/Size" } },
            "required": ["name"],
            "$defs": { "Size": { "description": "Bytes.", "anyOf": [
                { "type": ["number", "string"], "description": "as \"4k\"" },
                { "properties": { "law": { "const": "zipf" }, "s": { "type": "number", "description": "exponent" } },
                  "required": ["s"], "description": "Zipf" } ] } }
        });
        let page = page(&schema).unwrap();
        assert!(
            page.contains("| `name` (required) | string | What it is called. |"),
            "{page}"
        );
        assert!(page.contains("| `size` | [Size](#size) |"), "{page}");
        assert!(page.contains("- number or string: as \"4k\""), "{page}");
        assert!(
            page.contains("- `{ law = \"zipf\", … }`: Zipf\n  - `s` (number, required): exponent"),
            "{page}"
        );
    }
}
