//! Differences between two runs, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use crate::rundir::Manifest;
use crate::units;

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

impl Difference {
    /// Name of the field in words, and both values with their units: `duration of phase run`, `8 s`, `10 s`.
    #[must_use]
    pub fn words(&self) -> [String; 3] {
        let parts: Vec<&str> = self.field.split('.').collect();
        let last = parts[parts.len() - 1];
        let unit = ["ns", "bytes"].into_iter().find(|unit| {
            let rest = last.strip_suffix(unit);
            rest.is_some_and(|rest| rest.ends_with('_'))
        });
        let (place, rest) = match parts[..] {
            ["phases", phase, "works", work, ..] if parts.len() > 4 && work != phase => {
                (format!(" of work {work} in phase {phase}"), &parts[4..])
            }
            ["phases", phase, "works", ..] if parts.len() > 4 => {
                (format!(" of phase {phase}"), &parts[4..])
            }
            ["phases", phase, ..] if parts.len() > 2 => (format!(" of phase {phase}"), &parts[2..]),
            _ => (String::new(), &parts[..]),
        };
        // Names of structures say nothing to a reader.
        let said = rest
            .iter()
            .filter(|p| !["limits", "model", "settings"].contains(p));
        let name = said.copied().collect::<Vec<_>>().join(" ");
        let name = name.trim_end_matches(unit.unwrap_or("")).replace('_', " ");
        let value = |text: &str| match (text.parse::<f64>(), unit) {
            (Ok(0.0), Some(_)) if self.field.contains(".limits.") => "no limit".to_owned(),
            (Ok(value), Some("ns")) => short(&units::ns(value)),
            (Ok(value), Some("bytes")) => short(&units::bytes(value)),
            _ => text.to_owned(),
        };
        [
            format!("{}{place}", name.trim()),
            value(&self.a),
            value(&self.b),
        ]
    }
}

/// `8.00 s` as `8 s`.
fn short(text: &str) -> String {
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!(
                "{} {unit}",
                number.trim_end_matches('0').trim_end_matches('.')
            )
        }
        _ => text.to_owned(),
    }
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

    use super::{Difference, leaves};

    #[test]
    fn a_difference_is_said_in_words_and_units() {
        let words = |field: &str, a: &str, b: &str| {
            let [a, b] = [a, b].map(str::to_owned);
            let field = field.to_owned();
            Difference { field, a, b }.words().join("; ")
        };
        let of = "phases.run.limits.duration_ns";
        assert_eq!(
            words(of, "8000000000", "10500000000"),
            "duration of phase run; 8 s; 10.5 s"
        );
        assert_eq!(words(of, "0", "–"), "duration of phase run; no limit; –");
        let workers = "phases.run.works.run.model.workers";
        assert_eq!(words(workers, "2", "3"), "workers of phase run; 2; 3");
        assert_eq!(
            words("phases.main.works.readers.mix.get.weight", "7.0", "8.0"),
            "mix get weight of work readers in phase main; 7.0; 8.0"
        );
        assert_eq!(
            words("client.interval_ns", "1000000000", "–"),
            "client interval; 1 s; –"
        );
        assert_eq!(
            words("driver.settings.checksum", "none", "crc32c"),
            "driver checksum; none; crc32c"
        );
        assert_eq!(words("seed", "1", "2"), "seed; 1; 2");
    }

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
