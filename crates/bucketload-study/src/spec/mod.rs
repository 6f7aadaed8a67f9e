//! The specification of a study in TOML, with a table `[quick]` that makes it short.
//!
//! `reader` reports every problem with line, column, field and remedy. This module turns the document into a
//! [`Study`]. The studies inside the program are [`BUILTIN_STUDIES`].

mod experiment;
mod reader;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bucketload_core::units::parse_duration;

use crate::model::{Order, Study, Target};

use experiment::{Overlay, experiments, options};
pub use reader::SpecError;
use reader::{Document, Reader, scalar};

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../studies/", $name, ".toml")))),*]
    };
}

/// Name and text of every study inside the program, in the order of lists.
pub const BUILTIN_STUDIES: &[(&str, &str)] = builtin![
    "ossperf",
    "cosbench",
    "ostorebench",
    "s3-hpc",
    "distributed-grid",
    "clients",
    "ai",
];

/// The text of a study inside the program.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static str> {
    let mut all = BUILTIN_STUDIES.iter();
    all.find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// APIs through which a server may be used.
pub const APIS: [&str; 5] = ["s3", "swift", "webhdfs", "seaweedfs", "azure"];

/// Limit on the repetitions of a cell.
const MAX_REPETITIONS: i64 = 100;

/// Reads the study in `text`, called `name` in messages. With `quick`, the values of its table `[quick]` override the
/// others.
///
/// # Errors
/// Lists every problem.
pub fn parse(name: &str, text: &str, quick: bool) -> Result<Study, SpecError> {
    let doc = Document::new(name, text);
    let study = match doc.parse() {
        Some(table) => {
            let root = Reader::new(&doc, table.get_ref(), 0..0, String::new());
            read(root, quick)
        }
        None => Study::nothing(),
    };
    doc.finish().map(|()| study)
}

fn read(root: Reader<'_, '_>, quick: bool) -> Study {
    let name = named(&root);
    let mut study = Study {
        title: root.text("title").unwrap_or_else(|| name.clone()),
        name,
        description: root.text("description").unwrap_or_default(),
        source: root.text("source").unwrap_or_default(),
        published: root.text("published").unwrap_or_default(),
        quick,
        seed: count(&root, "seed", (0, i64::MAX)).unwrap_or(1),
        order: order(&root),
        repetitions: repetitions(&root).unwrap_or(5),
        recovery_ns: duration(&root, "recovery").unwrap_or(2_000_000_000),
        settle_ns: duration(&root, "settle").unwrap_or(10_000_000_000),
        baseline: root.text("baseline").unwrap_or_default(),
        programs: root.text("programs").unwrap_or_default(),
        targets: Vec::new(),
        experiments: Vec::new(),
    };
    let overlay = quick_table(&root, &mut study, quick);
    study.targets = root.tables("target").into_iter().map(target).collect();
    unique(
        &root,
        "target",
        study.targets.iter().map(|t| t.name.as_str()),
    );
    if !study.baseline.is_empty() && study.targets.iter().all(|t| t.name != study.baseline) {
        let message = format!("no such target: `{}`", study.baseline);
        root.problem("baseline", message, names(&study.targets));
    }
    study.experiments = experiments(&root, &study.targets, &overlay);
    unique(
        &root,
        "experiment",
        study.experiments.iter().map(|e| e.name.as_str()),
    );
    if study.experiments.is_empty() {
        root.problem(
            "experiment",
            "the study measures nothing",
            "add a table [[experiment]]",
        );
    }
    root.close();
    study
}

/// Reads `[quick]`. Its values for the study apply at once, those for experiments later.
fn quick_table(root: &Reader<'_, '_>, study: &mut Study, apply: bool) -> BTreeMap<String, Overlay> {
    let Some(table) = root.table("quick") else {
        return BTreeMap::new();
    };
    let quick = (
        repetitions(&table),
        duration(&table, "recovery"),
        duration(&table, "settle"),
    );
    if apply {
        study.repetitions = quick.0.unwrap_or(study.repetitions);
        study.recovery_ns = quick.1.unwrap_or(study.recovery_ns);
        study.settle_ns = quick.2.unwrap_or(study.settle_ns);
    }
    let overlays = experiment::overlays(&table);
    table.close();
    match apply {
        true => overlays,
        // Unused values are checked all the same.
        false => BTreeMap::new(),
    }
}

fn target(reader: Reader<'_, '_>) -> Target {
    let target = Target {
        name: named(&reader),
        title: reader.text("title").unwrap_or_default(),
        url: reader.text("url").unwrap_or_default(),
        endpoint: reader.text("endpoint").unwrap_or_default(),
        server: reader.text("server").unwrap_or_default(),
        api: reader.text("api").unwrap_or_default(),
        proxy: reader.text("proxy").unwrap_or_default(),
        proxy_cache: reader.switch("proxy-cache").unwrap_or_default(),
        requires: reader.text("requires").unwrap_or_default(),
        settings: settings(&reader),
        options: options(&reader),
    };
    if target.url.is_empty() && target.server.is_empty() {
        let remedy = "give url (such as \"s3://bucket\" or \"mem:\") or server (such as \"minio\")";
        reader.problem("url", "the target has no address", remedy);
    }
    if !target.endpoint.is_empty() && !target.server.is_empty() {
        let remedy = "remove endpoint, or server";
        reader.problem(
            "endpoint",
            "a server that the study starts has its own address",
            remedy,
        );
    }
    if !target
        .server
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-')
    {
        let remedy = "write the name of a script in servers/ without .sh";
        reader.problem("server", "not a valid name of a server", remedy);
    }
    if !target.api.is_empty() && !APIS.contains(&target.api.as_str()) {
        reader.problem(
            "api",
            format!("no such API: `{}`", target.api),
            format!("possible here: {}", APIS.join(", ")),
        );
    }
    if !matches!(target.proxy.as_str(), "" | "nginx") {
        reader.problem(
            "proxy",
            format!("no such proxy: `{}`", target.proxy),
            "write \"nginx\"",
        );
    }
    if target.server.is_empty() {
        for (key, given) in [
            ("api", !target.api.is_empty()),
            ("proxy", !target.proxy.is_empty()),
            ("settings", !target.settings.is_empty()),
        ] {
            if given {
                reader.problem(
                    key,
                    "only valid for a server that the study starts",
                    "add server, or remove it",
                );
            }
        }
    }
    if target.proxy_cache && target.proxy.is_empty() {
        reader.problem(
            "proxy-cache",
            "there is no proxy to cache responses",
            "add proxy = \"nginx\"",
        );
    }
    reader.close();
    target
}

fn settings(reader: &Reader<'_, '_>) -> BTreeMap<String, String> {
    let Some(table) = reader.table("settings") else {
        return BTreeMap::new();
    };
    let mut settings = BTreeMap::new();
    for (key, span, value) in table.entries() {
        let field = table.path(key);
        let upper = key.to_ascii_uppercase();
        if ["SECRET", "PASSWORD", "TOKEN", "KEY"]
            .iter()
            .any(|word| upper.contains(word))
        {
            let message = "secrets do not belong in a study";
            table
                .doc
                .problem(&span, &field, message, "put it in the environment");
        }
        match scalar(value.get_ref()) {
            Some(text) => {
                settings.insert(key.to_owned(), text);
            }
            None => table
                .doc
                .problem(&value.span(), &field, "not a string", "write a string"),
        }
    }
    settings
}

fn order(root: &Reader<'_, '_>) -> Order {
    match root.text("order").as_deref() {
        None | Some("random") => Order::Random,
        Some("abba") => Order::Abba,
        Some(other) => {
            root.problem(
                "order",
                format!("no such order: `{other}`"),
                "write \"random\" or \"abba\"",
            );
            Order::Random
        }
    }
}

/// The field `name`, which names files and directories.
fn named(reader: &Reader<'_, '_>) -> String {
    let name = reader.text("name").unwrap_or_default();
    let remedy =
        "use up to 60 lower-case letters, digits, dashes and dots, a letter or digit first";
    if name.is_empty() {
        reader.problem("name", "the name is missing", remedy);
    } else if !is_name(&name) {
        reader.problem("name", format!("`{name}` is not a valid name"), remedy);
    }
    name
}

/// True if `name` is valid in file names.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    name.len() <= 60
        && name.chars().all(fits)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn repetitions(reader: &Reader<'_, '_>) -> Option<u32> {
    let number = reader.number("repetitions", (1, MAX_REPETITIONS))?;
    u32::try_from(number).ok()
}

fn count(reader: &Reader<'_, '_>, key: &'static str, bounds: (i64, i64)) -> Option<u64> {
    u64::try_from(reader.number(key, bounds)?).ok()
}

fn duration(reader: &Reader<'_, '_>, key: &'static str) -> Option<u64> {
    let text = reader.text(key)?;
    match parse_duration(&text) {
        Ok(ns) => Some(ns),
        Err(invalid) => {
            reader.problem(key, invalid.message, invalid.remedy);
            None
        }
    }
}

fn unique<'s>(root: &Reader<'_, '_>, key: &'static str, names: impl Iterator<Item = &'s str>) {
    let mut seen: Vec<&str> = Vec::new();
    for (name, reader) in names.zip(root.tables(key)) {
        if seen.contains(&name) && !name.is_empty() {
            reader.problem(
                "name",
                format!("the name `{name}` is used twice"),
                "give each its own name",
            );
        }
        seen.push(name);
    }
}

fn names(targets: &[Target]) -> String {
    let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
    format!("possible here: {}", names.join(", "))
}

impl Study {
    /// An empty study, for texts that cannot be parsed.
    fn nothing() -> Self {
        Self {
            repetitions: 1,
            ..Self::default()
        }
    }
}
