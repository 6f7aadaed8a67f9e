//! The JSON Schema of workload files, for editors with completion and validation.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::tables::WorkloadSpec;

/// The JSON Schema (draft 2020-12) of workload files, as indented text. It is published as
/// `docs/workload.schema.json`.
#[must_use]
pub fn workload_schema() -> String {
    let generator = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator();
    let mut schema = generator.into_root_schema_for::<WorkloadSpec>().to_value();
    schema["title"] = json!("Bucketload workload");
    drop_null(&mut schema);
    // A value of strings, numbers and maps with string keys can always be serialized.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Removes `null` from the types of optional fields: TOML has no null; an optional field is omitted.
fn drop_null(schema: &mut Value) {
    let null = json!({ "type": "null" });
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(forms)) = map.get_mut("anyOf")
                && forms.contains(&null)
            {
                forms.retain(|form| *form != null);
                if let [Value::Object(only)] = forms.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    map.extend(only);
                }
            }
            map.values_mut().for_each(drop_null);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null),
        _ => {}
    }
}
