//! The page of `result.json`: the structures of the results crate, starting at the result of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::markdown;
use super::rust::{self, Type};
use crate::files;
use crate::sh::{Result, root};

/// Directories that declare structures; if two structures share a name, the earlier directory counts.
const PLACES: [&str; 3] = [
    "crates/bucketload-results/src",
    "crates/bucketload-core/src",
    "crates/bucketload-agents/src",
];

/// The file that declares the result itself.
const RESULT: &str = "crates/bucketload-results/src/result/mod.rs";

/// The file that declares figures; those without a field of their own are read from it.
const FIGURES: &str = "crates/bucketload-results/src/result/figure.rs";

/// The page.
pub(super) fn page() -> Result<String> {
    let sources = sources()?;
    let mut out = String::from("# Result as JSON\n\n");
    out += "`bucketload run … --output json` prints one document of this form; `bucketload report DIR \
            --output json` recomputes it from a run directory.\n\n";
    // The module's comment starts with a title and names of Rust types.
    let docs = rust::module_docs(RESULT)?;
    let rules = docs.split("\n\n").nth(1).unwrap_or_default();
    let _ = write!(
        out,
        "{}\n\n",
        rules.replace("`RunResult` is what `--output json` prints. ", "")
    );
    let mut seen = BTreeSet::new();
    let mut queue = std::collections::VecDeque::from(["RunResult".to_owned()]);
    while let Some(name) = queue.pop_front() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(declared) = sources.get(&name) else {
            continue;
        };
        let _ = write!(out, "## {name}\n\n{}\n\n", prose(&declared.docs));
        let is_enum = declared.items.iter().all(|item| item.of.is_empty());
        out += if is_enum {
            "| value | |\n|---|---|\n"
        } else {
            "| field | value | |\n|---|---|---|\n"
        };
        for item in &declared.items {
            let about = prose(&item.docs).replace('|', "\\|");
            let json = declared.json_name(item);
            if is_enum {
                let _ = writeln!(out, "| `{}` | {about} |", json.unwrap_or_default());
                continue;
            }
            if json.is_none() && item.attributes.iter().any(|a| a.contains("skip)")) {
                continue;
            }
            if item.of == "Computed" {
                out += &computed()?;
                continue;
            }
            for name in names(&item.of)
                .into_iter()
                .filter(|name| sources.contains_key(name))
            {
                queue.push_back(name);
            }
            let shown = json.map_or_else(|| "(its fields)".to_owned(), |name| format!("`{name}`"));
            let _ = writeln!(out, "| {shown} | {} | {about} |", kind(&item.of, &sources));
        }
        out.push('\n');
    }
    if seen.len() < 20 {
        return Err(format!("{RESULT}: found only {} structures", seen.len()));
    }
    Ok(out)
}

/// Table rows for computed figures, which a class has besides its fields, from their declarations.
fn computed() -> Result<String> {
    let source = files::read(root().join(FIGURES))?;
    let mut rows = String::new();
    for declared in source.split("Figure::computed(").skip(1) {
        let texts: Vec<&str> = declared.split('"').skip(1).step_by(2).take(3).collect();
        let [id, _, about] = texts[..] else {
            return Err(format!(
                "{FIGURES}: a figure lacks its name, title or meaning"
            ));
        };
        let _ = writeln!(rows, "| `{id}` | number | {} |", prose(about));
    }
    Ok(rows)
}

/// Every structure and enum declared in [`PLACES`], by name.
fn sources() -> Result<BTreeMap<String, Type>> {
    let mut found: BTreeMap<String, Type> = BTreeMap::new();
    for place in PLACES {
        let dir = root().join(place);
        let mut files = files::below(&dir)?;
        // The result's own modules come before the rest of their crate.
        files.sort_by_key(|file| !file.starts_with("result"));
        for file in files.iter().filter(|file| files::is_kind(file, "rs")) {
            let text = files::read(dir.join(file))?;
            for line in text.lines() {
                let rest = line
                    .strip_prefix("pub struct ")
                    .or_else(|| line.strip_prefix("pub enum "));
                let Some(name) = rest.and_then(|rest| rest.strip_suffix(" {")) else {
                    continue;
                };
                if !found.contains_key(name)
                    && let Some(declared) = rust::find(&text, name)
                    && declared.attributes.iter().any(|a| a.contains("Serialize"))
                {
                    found.insert(name.to_owned(), declared);
                }
            }
        }
    }
    Ok(found)
}

/// The type names inside a type.
fn names(of: &str) -> Vec<String> {
    let parts = of.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts
        .filter(|part| part.starts_with(char::is_uppercase))
        .map(str::to_owned)
        .collect()
}

/// Describes the JSON form of a Rust type.
fn kind(of: &str, sources: &BTreeMap<String, Type>) -> String {
    let inner = |prefix: &str| {
        of.strip_prefix(prefix)
            .and_then(|rest| rest.strip_suffix('>'))
    };
    if let Some(inner) = inner("Option<") {
        return format!("{} or null", kind(inner, sources));
    }
    if let Some(inner) = inner("Vec<") {
        return format!("list of {}", kind(inner, sources));
    }
    if let Some(inner) = inner("Box<") {
        return kind(inner, sources);
    }
    if let Some(parts) = of.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        let parts: Vec<String> = parts.split(", ").map(|part| kind(part, sources)).collect();
        return format!("[{}]", parts.join(", "));
    }
    let last = of.rsplit("::").next().unwrap_or(of);
    match last {
        "String" | "&'static str" => "string".to_owned(),
        "bool" => "true or false".to_owned(),
        "f64" | "f32" => "number".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" | "i32" | "u128" => {
            "whole number".to_owned()
        }
        name if sources.contains_key(name) => format!("[{name}](#{})", markdown::slug(name)),
        other => format!("`{other}`"),
    }
}

/// A doc comment on one line, with escaped angle brackets.
fn prose(docs: &str) -> String {
    let docs = docs.split("\n\n# ").next().unwrap_or_default();
    markdown::one_line(docs).replace('<', "\\<")
}
