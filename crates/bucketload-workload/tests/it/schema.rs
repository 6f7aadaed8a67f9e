//! The published JSON Schema matches this code.

use std::path::Path;

use bucketload_workload::spec::workload_schema;

/// To accept a change, run the test with `UPDATE_SNAPSHOTS=1` and commit the file.
#[test]
fn the_published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workload.schema.json");
    let current = workload_schema();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &current).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == current,
        "docs/workload.schema.json is out of date: run this test with UPDATE_SNAPSHOTS=1"
    );
}

#[test]
fn unknown_fields_are_rejected_and_references_resolve() {
    let schema: serde_json::Value = serde_json::from_str(&workload_schema()).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    let definitions = schema["$defs"].as_object().unwrap();
    assert!(!workload_schema().contains("\"null\""));
    for name in [
        "PhaseSpec",
        "KeysetSpec",
        "WorkSpec",
        "MixSpec",
        "RetrySpec",
        "StopSpec",
        "TargetSpec",
    ] {
        assert_eq!(definitions[name]["additionalProperties"], false, "{name}");
    }
    let mut references = Vec::new();
    collect(&schema, &mut references);
    assert!(references.len() > 10);
    for reference in references {
        let name = reference.strip_prefix("#/$defs/");
        let known = |name: &str| definitions.contains_key(name);
        assert!(reference == "#" || name.is_some_and(known), "{reference}");
    }
}

fn collect(value: &serde_json::Value, references: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(reference) if key == "$ref" => references.push(reference.to_owned()),
                    _ => collect(value, references),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
