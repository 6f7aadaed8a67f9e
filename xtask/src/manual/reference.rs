//! The reference pages generated from the code, and the commands' chapters in the table of contents.
//!
//! The pages are committed so that a code host shows them. [`update`] writes them, or fails if the committed pages
//! differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::rust::{self, Item};
use super::{environment, first_hour, markdown, results, schema, work_dir};
use crate::files;
use crate::program;
use crate::sh::{Result, root, run};

/// Generates a page.
type Page = fn() -> Result<String>;

/// The first line of every generated page.
const MARK: &str = "<!-- Made from the code by `cargo xtask manual --write`: do not edit. -->\n\n";

/// The table of contents lists the commands' chapters between these lines.
const BEGIN: &str = "<!-- commands -->\n";
const END: &str = "<!-- end of commands -->\n";

/// The table of contents lists chapters without a place of their own between these lines.
const MORE: &str = "<!-- further pages -->\n";
const END_OF_MORE: &str = "<!-- end of further pages -->\n";

/// Writes the pages, or compares them with the committed ones. Returns file name and text of each command's page.
pub(super) fn update(write_pages: bool) -> Result<Vec<(String, String)>> {
    let docs = root().join("docs");
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    let commands = commands()?;
    for (name, text) in &commands {
        pages.insert(
            Path::new("reference/commands").join(name),
            format!("{MARK}{text}"),
        );
    }
    let made: [(&str, Page); 8] = [
        ("workload-language", language),
        ("workloads", workloads),
        ("operations", operations),
        ("errors", errors),
        ("exit-codes", exit_codes),
        ("verdict", verdict),
        ("result", results::page),
        ("environment", environment::page),
    ];
    for (name, page) in made {
        let text = page().map_err(|e| format!("reference/{name}.md: {e}"))?;
        pages.insert(
            PathBuf::from(format!("reference/{name}.md")),
            format!("{MARK}{text}"),
        );
    }
    let summary = files::read(docs.join("SUMMARY.md"))?;
    let summary = with_further(&with_commands(&summary, &commands)?, &docs)?;
    pages.insert("SUMMARY.md".into(), summary);
    let mut stale: Vec<PathBuf> = Vec::new();
    for (path, text) in &pages {
        let full = docs.join(path);
        if std::fs::read_to_string(&full).is_ok_and(|known| known == *text) {
            continue;
        }
        if write_pages {
            files::write(&full, text)?;
            eprintln!("wrote docs/{}", path.display());
        } else {
            stale.push(path.clone());
        }
    }
    for path in files::below(&docs.join("reference"))? {
        let path = Path::new("reference").join(path);
        if pages.contains_key(&path) {
            continue;
        }
        if write_pages {
            std::fs::remove_file(docs.join(&path))
                .map_err(|e| format!("{}: {e}", path.display()))?;
            eprintln!("removed docs/{}", path.display());
        } else {
            stale.push(path);
        }
    }
    if stale.is_empty() {
        return Ok(commands);
    }
    let names: Vec<String> = stale
        .iter()
        .map(|path| format!("docs/{}", path.display()))
        .collect();
    Err(format!(
        "out of date: {}\nrun `cargo xtask manual --write` and commit the changes",
        names.join(", ")
    ))
}

/// File name and text of each command's page, as the program writes them.
fn commands() -> Result<Vec<(String, String)>> {
    let dir = work_dir().join("commands");
    let _ = std::fs::remove_dir_all(&dir);
    let out = program::quoted(&dir)?;
    run(&mut program::bucketload(&format!(
        "man --markdown --out {out}"
    ))?)?;
    let mut pages = Vec::new();
    for file in files::below(&dir)? {
        let text = files::read(dir.join(&file))?;
        pages.push((file.to_string_lossy().into_owned(), text));
    }
    if pages.len() < 10 {
        return Err(format!("the program wrote only {} pages", pages.len()));
    }
    Ok(pages)
}

/// The table of contents with a chapter per command.
fn with_commands(summary: &str, commands: &[(String, String)]) -> Result<String> {
    let (before, after) = around(summary, BEGIN, END)?;
    let mut list = String::new();
    for (file, text) in commands {
        let title = text
            .strip_prefix("# ")
            .and_then(|text| text.lines().next())
            .unwrap_or_default();
        let deeper = title != "bucketload";
        let indent = if deeper { "  " } else { "" };
        let _ = writeln!(list, "{indent}- [{title}](reference/commands/{file})");
    }
    Ok(format!("{before}{BEGIN}{list}{END}{after}"))
}

/// The table of contents with a chapter for every page that it does not list elsewhere.
fn with_further(summary: &str, docs: &Path) -> Result<String> {
    let (before, after) = around(summary, MORE, END_OF_MORE)?;
    let mut list = String::new();
    for path in files::below(docs)? {
        let name = path.to_string_lossy();
        let is_page =
            name.ends_with(".md") && name != "SUMMARY.md" && !path.starts_with("reference");
        let link = format!("({name})");
        if !is_page || before.contains(&link) || after.contains(&link) {
            continue;
        }
        let text = files::read(docs.join(&path))?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        let _ = writeln!(list, "- [{}]({name})", title.unwrap_or(&name));
    }
    Ok(format!("{before}{MORE}{list}{END_OF_MORE}{after}"))
}

/// The text before `begin` and after `end`.
fn around<'a>(summary: &'a str, begin: &str, end: &str) -> Result<(&'a str, &'a str)> {
    let parts = summary.split_once(begin);
    let parts = parts.and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    parts.ok_or_else(|| {
        format!(
            "docs/SUMMARY.md has no lines {} and {}",
            begin.trim(),
            end.trim()
        )
    })
}

fn language() -> Result<String> {
    let text = files::read(root().join("docs/workload.schema.json"))?;
    schema::page(&serde_json::from_str(&text).map_err(|e| e.to_string())?)
}

/// Every built-in workload: its description, profiles and text.
fn workloads() -> Result<String> {
    let list = files::read(root().join("crates/bucketload-workload/src/spec/builtin.rs"))?;
    let list = list
        .split_once("= builtin![")
        .and_then(|(_, rest)| rest.split_once("];"));
    let names = list
        .map(|(names, _)| names)
        .ok_or("no list of built-in workloads")?;
    let names: Vec<&str> = names.split('"').skip(1).step_by(2).collect();
    let mut out = String::from("# Built-in workloads\n\n");
    out += "[Scenarios and tests](../scenarios.md) explains what they model, the \
            [workload language](workload-language.md) their fields. `bucketload show NAME > my.toml` gives you a \
            workload to change.\n\n| workload | |\n|---|---|\n";
    let mut texts = String::new();
    for name in &names {
        let text = files::read(root().join(format!("workloads/{name}.toml")))?;
        let table: toml::Table = text.parse().map_err(|e| format!("{name}: {e}"))?;
        let about = table
            .get("description")
            .and_then(toml::Value::as_str)
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "| [`{name}`](#{name}) | {} |",
            about.replace('|', "\\|")
        );
        let _ = write!(texts, "\n## {name}\n\n{about}\n\n");
        let profiles = table.get("profiles").and_then(toml::Value::as_table);
        for (profile, fields) in profiles.into_iter().flatten() {
            let about = fields
                .get("description")
                .and_then(toml::Value::as_str)
                .unwrap_or_default();
            let _ = writeln!(texts, "- `--profile-name {profile}`: {about}");
        }
        let gap = if profiles.is_some_and(|all| !all.is_empty()) {
            "\n"
        } else {
            ""
        };
        let _ = write!(texts, "{gap}```toml\n{}\n```\n", text.trim_end());
    }
    Ok(out + &texts)
}

/// Adds the doc comments of variants as table rows.
fn rows<'a>(out: &mut String, items: impl Iterator<Item = (&'a Item, String)>) {
    for (item, name) in items {
        let about = markdown::one_line(&item.docs).replace('|', "\\|");
        let _ = writeln!(out, "| `{name}` | {about} |");
    }
}

fn operations() -> Result<String> {
    let class = rust::declared("crates/bucketload-core/src/op.rs", "OpClass")?;
    let mut out = String::from("# Operations\n\n");
    out += "A mix consists of these operations ([workload language](workload-language.md#mix)); reports and exports \
            use the same names. Each API's [page](../drivers/README.md) says which of them it offers, and how. \
            Bucketload refuses operations that a target does not offer before anything runs.\n\n\
            | operation | |\n|---|---|\n";
    rows(
        &mut out,
        class
            .items
            .iter()
            .map(|item| (item, rust::hyphenated(&item.name))),
    );
    out += "\nAn operation with several requests counts as one: its response time ends with the last \
            answer, and every attempt is counted.\n";
    Ok(out)
}

fn errors() -> Result<String> {
    let kinds = rust::declared("crates/bucketload-core/src/error.rs", "ErrorKind")?;
    let mut out = String::from("# Kinds of failures\n\n");
    out += "A failed operation never counts as throughput. Its kind has the same meaning for every API. Result \
            and report count failures by kind and by status, and show the first of each in full. Bucketload \
            retries only if the workload has a policy for it \
            ([`retry`](workload-language.md#retryspec)), and then counts every attempt.\n\n\
            | kind | |\n|---|---|\n";
    rows(
        &mut out,
        kinds
            .items
            .iter()
            .map(|item| (item, rust::hyphenated(&item.name))),
    );
    out += "\nThe consistency oracle has its own names for findings: \
            [Consistency and durability](../integrity.md#what-a-read-may-return).\n";
    out += &first_hour::tables()?;
    Ok(out)
}

fn exit_codes() -> Result<String> {
    let file = "crates/bucketload-cli/src/exit.rs";
    let exit = rust::declared(file, "Exit")?;
    let source = files::read(root().join(file))?;
    let mut out = String::from("# Exit codes\n\n| code | |\n|---|---|\n");
    for item in &exit.items {
        let arm = format!("Exit::{} => ", item.name);
        let code = source
            .split_once(&arm)
            .and_then(|(_, rest)| rest.split_once(','));
        let (code, _) = code.ok_or_else(|| format!("{file} has no code for {}", item.name))?;
        let _ = writeln!(out, "| {code} | {} |", item.docs.replace('\n', " "));
    }
    out += "\nThe pages on [`compare`](../comparison.md#output-and-exit-codes) and on the checks of a run \
            ([integrity](../integrity.md)) say what fails a gate.\n";
    Ok(out)
}

fn verdict() -> Result<String> {
    let file = "crates/bucketload-core/src/verdict/mod.rs";
    let word = rust::declared(file, "Word")?;
    let mut out = String::from("# Verdict\n\n");
    out += "Every result has a verdict. Its reasons name the rule, the condition, the measured value and the remedy; \
            the most serious reason decides the word. [How it is measured](../method.md#validity) explains the rules.\n\n\
            | word | |\n|---|---|\n";
    let named = |item: &Item| word.json_name(item).unwrap_or_default();
    rows(&mut out, word.items.iter().map(|item| (item, named(item))));
    out += "\n## Rules\n\n";
    let docs = rust::module_docs(file)?;
    let table: Vec<&str> = docs.lines().filter(|line| line.starts_with('|')).collect();
    let _ = write!(out, "{}\n\n## Conditions\n\n", table.join("\n"));
    out += "| rule | holds when | otherwise |\n|---|---|---|\n";
    let rules = files::read(root().join("crates/bucketload-core/src/verdict/rules.rs"))?;
    let mut count = 0;
    for call in rules.split("\n    reason(\n").skip(1) {
        let strings: Vec<&str> = call.split('"').skip(1).step_by(2).take(2).collect();
        let advice = call
            .lines()
            .find(|line| line.starts_with("        \"") && line.ends_with(".\","));
        let advice = advice
            .map(|line| line.trim().trim_matches(['"', ',']))
            .unwrap_or_default();
        if let [rule, condition] = strings[..] {
            count += 1;
            let _ = writeln!(out, "| `{rule}` | {condition} | {advice} |");
        }
    }
    if count < 10 || table.len() != count + 2 {
        return Err(format!(
            "{count} rules were found, the table has {} lines",
            table.len()
        ));
    }
    Ok(out)
}
