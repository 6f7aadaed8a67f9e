//! Differences between two runs, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use crate::rundir::Manifest;

/// One field with different values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Path of the field, such as `phases.run.works.run.model.workers`.
    pub field: String,
    /// Its value on the first side; `–` if absent there.
    pub a: String,
    /// Its value on the second side.
    pub b: String,
}

/// The fields that identify what was measured and how, and that differ.
pub(super) fn differences(a: &Manifest, b: &Manifest) -> Vec<Difference> {
    let (a, b) = (leaves(&identity(a)), leaves(&identity(b)));
    let mut fields: Vec<&String> = a.keys().chain(b.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    let show = |value: Option<&Value>| match value {
        None => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    // Between different APIs, some differences are inherent: settings that only one of them has, the way of
    // signing, and the native driver's engine. A client chosen with `--engine` is not inherent.
    let apis_differ = a.get("driver.name") != b.get("driver.name");
    let native_engine =
        |side: &BTreeMap<String, Value>| !side.get("driver.engine").is_some_and(is_other_client);
    let follows = |field: &str| {
        let setting = || {
            field.strip_prefix("driver.settings.").is_some_and(|name| {
                name == "signing" || !a.contains_key(field) || !b.contains_key(field)
            })
        };
        let engine = || field == "driver.engine" && native_engine(&a) && native_engine(&b);
        apis_differ && (setting() || engine())
    };
    fields
        .into_iter()
        .filter(|&field| a.get(field) != b.get(field) && !follows(field))
        .map(|field| Difference {
            field: field.clone(),
            a: show(a.get(field)),
            b: show(b.get(field)),
        })
        .collect()
}

/// True if `--engine` puts this engine in place of the native driver.
fn is_other_client(engine: &Value) -> bool {
    let libraries = ["aws-sdk", "object-store", "opendal"];
    let name = engine.as_str().unwrap_or_default();
    libraries.contains(&name) || name.starts_with("cli:")
}

/// Everything that must be equal. The target itself, its region and its addressing may differ: they are
/// what is compared.
fn identity(manifest: &Manifest) -> Value {
    let driver = &manifest.driver;
    let settings: serde_json::Map<String, Value> = driver
        .settings
        .iter()
        .filter(|(name, _)| {
            !["region", "addressing", "tls", "source addresses"].contains(&name.as_str())
        })
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    let mut identity = serde_json::to_value(&manifest.plan).unwrap_or_default();
    if let Value::Object(fields) = &mut identity {
        fields.insert(
            "driver".to_owned(),
            json!({"name": driver.driver, "engine": driver.engine, "settings": settings}),
        );
        fields.insert(
            "client".to_owned(),
            json!({
                "threads": manifest.client.threads,
                "spinning": manifest.client.spinning,
                "interval_ns": manifest.client.interval_ns,
            }),
        );
    }
    identity
}

/// Every leaf with its path. List elements are identified by name or class if these are distinct.
fn leaves(value: &Value) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    walk(value, String::new(), &mut out);
    out
}

fn walk(value: &Value, path: String, out: &mut BTreeMap<String, Value>) {
    let join = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| walk(value, join(name), out)),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            let names = names(items);
            for (name, item) in names.iter().zip(items) {
                walk(item, join(name), out);
            }
        }
        leaf => {
            out.insert(path, leaf.clone());
        }
    }
}

/// Identifiers of the elements of a list: distinct names or classes, else positions.
fn names(items: &[Value]) -> Vec<String> {
    for field in ["name", "class"] {
        let name = |item: &Value| item.get(field)?.as_str().map(str::to_owned);
        let names: Vec<String> = items.iter().filter_map(name).collect();
        if BTreeSet::from_iter(&names).len() == items.len() {
            return names;
        }
    }
    (0..items.len()).map(|i| i.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::leaves;

    #[test]
    fn leaves_have_readable_paths() {
        let leaves = leaves(&json!({
            "seed": 1,
            "phases": [
                {"name": "init", "works": []},
                {"name": "run", "works": [{"name": "w", "mix": [
                    {"class": "get", "weight": 7.0}, {"class": "put", "weight": 3.0}
                ]}]},
            ],
            "list": [{"class": "get"}, {"class": "get"}],
        }));
        let paths: Vec<&str> = leaves.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "list.0.class",
                "list.1.class",
                "phases.init.name",
                "phases.init.works",
                "phases.run.name",
                "phases.run.works.w.mix.get.class",
                "phases.run.works.w.mix.get.weight",
                "phases.run.works.w.mix.put.class",
                "phases.run.works.w.mix.put.weight",
                "phases.run.works.w.name",
                "seed",
            ]
        );
    }
}
