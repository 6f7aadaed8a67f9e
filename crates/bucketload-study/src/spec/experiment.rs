//! Experiments, their options, figures and tables.

use std::collections::BTreeMap;

use bucketload_core::ai::AiApplication;
use bucketload_workload::spec::BUILTIN_WORKLOADS;
use toml::de::DeValue;

use crate::conversations;
use crate::model::{
    Command, Experiment, FigureKind, Metric, OptionValue, Options, TableKind, Target, View,
};

use super::reader::{Reader, scalar};
use super::{duration, named, names, repetitions};

/// Options that the study itself sets.
const RESERVED: [&str; 6] = ["target", "endpoint-url", "out", "output", "dry-run", "seed"];

#[derive(Default)]
pub(super) struct Overlay {
    values: Option<Vec<String>>,
    targets: Option<Vec<String>>,
    repetitions: Option<u32>,
    estimate: Option<u64>,
    workload: Option<String>,
    options: Options,
    value_options: BTreeMap<String, Options>,
    leave_out: bool,
}

pub(super) fn overlays(quick: &Reader<'_, '_>) -> BTreeMap<String, Overlay> {
    let Some(table) = quick.table("experiment") else {
        return BTreeMap::new();
    };
    let mut overlays = BTreeMap::new();
    for (name, _, value) in table.entries() {
        let DeValue::Table(inner) = value.get_ref() else {
            let message = format!("wrong type: {}", value.get_ref().type_str());
            let remedy = format!("write a table, [quick.experiment.{name}]");
            table
                .doc
                .problem(&value.span(), &table.path(name), message, remedy);
            continue;
        };
        let reader = Reader::new(table.doc, inner, value.span(), table.path(name));
        overlays.insert(
            name.to_owned(),
            Overlay {
                values: reader.texts("values"),
                targets: reader.texts("targets"),
                repetitions: repetitions(&reader),
                estimate: duration(&reader, "estimate"),
                workload: reader.text("workload"),
                options: options(&reader),
                value_options: value_options(&reader),
                leave_out: reader.switch("leave-out").unwrap_or(false),
            },
        );
        reader.close();
    }
    overlays
}

pub(super) fn experiments(
    root: &Reader<'_, '_>,
    targets: &[Target],
    overlays: &BTreeMap<String, Overlay>,
) -> Vec<Experiment> {
    let readers = root.tables("experiment");
    let mut all: Vec<Experiment> = Vec::new();
    for reader in readers {
        let mut experiment = read(&reader);
        let written = experiment.values.clone();
        if let Some(overlay) = overlays.get(&experiment.name) {
            if overlay.leave_out {
                reader.close();
                continue;
            }
            apply(&mut experiment, overlay);
        }
        check(&reader, &experiment, targets);
        for value in experiment.value_options.keys() {
            if !written.contains(value) && !experiment.values.contains(value) {
                reader.problem(
                    "value-options",
                    format!("`{value}` is not one of the values"),
                    format!("possible here: {}", experiment.values.join(", ")),
                );
            }
        }
        reader.close();
        all.push(experiment);
    }
    if let Some(quick) = root
        .table("quick")
        .and_then(|quick| quick.table("experiment"))
    {
        let known: Vec<String> = root
            .tables("experiment")
            .iter()
            .filter_map(|r| r.text("name"))
            .collect();
        for (name, span, _) in quick.entries() {
            if !known.iter().any(|known| known == name) {
                let remedy = format!("possible here: {}", known.join(", "));
                quick
                    .doc
                    .problem(&span, &quick.path(name), "no such experiment", remedy);
            }
        }
    }
    all
}

fn apply(experiment: &mut Experiment, overlay: &Overlay) {
    if let Some(values) = &overlay.values {
        experiment.values.clone_from(values);
    }
    if let Some(targets) = &overlay.targets {
        experiment.targets.clone_from(targets);
    }
    if let Some(workload) = &overlay.workload {
        experiment.workload.clone_from(workload);
    }
    experiment.repetitions = overlay.repetitions.unwrap_or(experiment.repetitions);
    experiment.estimate_ns = overlay.estimate.unwrap_or(experiment.estimate_ns);
    let options = overlay.options.iter();
    experiment
        .options
        .extend(options.map(|(name, value)| (name.clone(), value.clone())));
    for (value, options) in &overlay.value_options {
        let options_of_value = experiment.value_options.entry(value.clone()).or_default();
        options_of_value.extend(options.clone());
    }
}

fn read(reader: &Reader<'_, '_>) -> Experiment {
    let figures = reader.tables("figure").into_iter();
    let tables = reader.tables("table").into_iter();
    Experiment {
        name: named(reader),
        title: reader.text("title").unwrap_or_default(),
        description: reader.text("description").unwrap_or_default(),
        command: one_of(reader, "command", Command::ALL, Command::name).unwrap_or_default(),
        workload: reader.text("workload").unwrap_or_default(),
        targets: reader.texts("targets").unwrap_or_default(),
        field: reader.text("field").unwrap_or_default(),
        values: reader.texts("values").unwrap_or_default(),
        repetitions: repetitions(reader).unwrap_or(0),
        estimate_ns: duration(reader, "estimate").unwrap_or(0),
        options: options(reader),
        value_options: value_options(reader),
        figures: figures
            .map(|f| view(f, FigureKind::ALL, FigureKind::name))
            .collect(),
        tables: tables
            .map(|t| view(t, TableKind::ALL, TableKind::name))
            .collect(),
    }
}

fn check(reader: &Reader<'_, '_>, experiment: &Experiment, targets: &[Target]) {
    for name in &experiment.targets {
        if targets.iter().all(|target| target.name != *name) {
            reader.problem(
                "targets",
                format!("no such target: `{name}`"),
                names(targets),
            );
        }
    }
    match (
        experiment.command.takes_workload(),
        experiment.workload.is_empty(),
    ) {
        (true, true) => {
            let some: Vec<&str> = match experiment.command {
                Command::Kvcache => vec![conversations::NAME],
                _ => BUILTIN_WORKLOADS.iter().map(|(name, _)| *name).collect(),
            };
            let remedy = format!("name a file, or one of {}", some.join(", "));
            reader.problem("workload", "the workload is missing", remedy);
        }
        (false, false) => {
            let message = format!("{} takes no workload", experiment.command.name());
            reader.problem("workload", message, "remove it");
        }
        _ => {}
    }
    match (experiment.field.is_empty(), experiment.values.is_empty()) {
        (true, false) => reader.problem("field", "values without a field", "name the swept field"),
        (false, true) => reader.problem(
            "values",
            "the field has no values",
            "list some, such as [1, 2, 4]",
        ),
        _ => {}
    }
    let wants = |kind| experiment.tables.iter().any(|t| t.kind == kind);
    if wants(TableKind::Mlperf) && !experiment.command.is_ai() {
        reader.problem(
            "table",
            "mlperf is a table of the commands train, checkpoint and kvcache",
            "choose another kind, or command",
        );
    }
    let figures = experiment.figures.iter().map(|f| ("figure", f.metric));
    let tables = experiment.tables.iter().map(|t| ("table", t.metric));
    for (key, metric) in figures.chain(tables) {
        if let Some(metric) = metric
            && metric.is_of_grids()
            && experiment.command != Command::StudyGrid
        {
            reader.problem(
                key,
                format!("{} is a metric of study-grid", metric.brief),
                "choose another metric",
            );
        }
        if let Some(figure) = metric.and_then(Metric::ai)
            && !experiment.command.may_have(figure, &experiment.workload)
        {
            let (whose, command) = match figure.application() {
                AiApplication::Training => ("training", "train"),
                AiApplication::Writing | AiApplication::Reading => ("checkpoints", "checkpoint"),
                AiApplication::Cache => ("the cache of a language model", "kvcache"),
            };
            reader.problem(
                key,
                format!("{figure} is a metric of {whose}, which this experiment does not have"),
                format!("choose another metric, or command = \"{command}\""),
            );
        }
    }
    let mut seen: Vec<&String> = Vec::new();
    for value in &experiment.values {
        if seen.contains(&value) {
            reader.problem(
                "values",
                format!("{value} appears twice"),
                "give each value once",
            );
        }
        seen.push(value);
    }
    if RESERVED.contains(&experiment.field.as_str()) {
        let message = format!("the study itself sets `{}`", experiment.field);
        reader.problem("field", message, "use targets, or another field");
    }
    if experiment.options.contains_key(&experiment.field) {
        let message = format!("`{}` is an option as well", experiment.field);
        reader.problem("field", message, "remove it from options");
    }
}

/// The table `options`.
pub(super) fn options(reader: &Reader<'_, '_>) -> Options {
    reader
        .table("options")
        .map_or_else(Options::new, |table| read_options(&table))
}

/// The table `value-options`: a table of options per value of the swept field.
fn value_options(reader: &Reader<'_, '_>) -> BTreeMap<String, Options> {
    let Some(table) = reader.table("value-options") else {
        return BTreeMap::new();
    };
    let mut all = BTreeMap::new();
    for (value, span, options) in table.entries() {
        let path = table.path(value);
        match options.get_ref() {
            DeValue::Table(inner) => {
                let inner = Reader::new(table.doc, inner, options.span(), path);
                all.insert(value.to_owned(), read_options(&inner));
            }
            other => {
                let message = format!("wrong type: {}", other.type_str());
                let remedy = "write a table of options, such as { duration = \"60s\" }";
                table.doc.problem(&span, &path, message, remedy);
            }
        }
    }
    all
}

fn read_options(table: &Reader<'_, '_>) -> Options {
    let mut options = Options::new();
    for (key, span, value) in table.entries() {
        let field = table.path(key);
        if RESERVED.contains(&key) {
            let remedy = "use [[target]], --dir and seed of the study";
            table
                .doc
                .problem(&span, &field, "the study itself sets this option", remedy);
        } else if key.starts_with('-') {
            let remedy = format!("write {}", key.trim_start_matches('-'));
            table
                .doc
                .problem(&span, &field, "write options without dashes", remedy);
        }
        let read = match value.get_ref() {
            DeValue::Boolean(on) => Some(OptionValue::Switch(*on)),
            DeValue::String(text) => Some(OptionValue::Text(text.clone().into_owned())),
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
                .ok()
                .map(OptionValue::Number),
            DeValue::Float(n) => n.as_str().parse().ok().map(OptionValue::Float),
            DeValue::Array(items) => {
                let texts: Option<Vec<String>> =
                    items.iter().map(|item| scalar(item.get_ref())).collect();
                texts.map(OptionValue::Several)
            }
            _ => None,
        };
        match read {
            Some(read) => {
                options.insert(key.to_owned(), read);
            }
            None => {
                let remedy = "write true, a number, a string, or a list of strings";
                table.doc.problem(
                    &value.span(),
                    &field,
                    "not a valid value of an option",
                    remedy,
                );
            }
        }
    }
    options
}

fn view<K: Copy + Default>(
    reader: Reader<'_, '_>,
    kinds: &[K],
    name: fn(K) -> &'static str,
) -> View<K> {
    if !reader.has("kind") {
        reader.problem("kind", "missing", possible(kinds, name));
    }
    let view = View {
        kind: one_of(&reader, "kind", kinds, name).unwrap_or_default(),
        metric: one_of(&reader, "metric", Metric::ALL, |metric| metric.brief),
        class: reader.text("class").unwrap_or_default(),
        phase: reader.text("phase").unwrap_or_default(),
        title: reader.text("title").unwrap_or_default(),
    };
    reader.close();
    view
}

fn one_of<T: Copy>(
    reader: &Reader<'_, '_>,
    key: &'static str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Option<T> {
    let text = reader.text(key)?;
    let found = all.iter().copied().find(|value| name(*value) == text);
    if found.is_none() {
        reader.problem(key, format!("no such {key}: `{text}`"), possible(all, name));
    }
    found
}

fn possible<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> String {
    let names: Vec<&str> = all.iter().copied().map(name).collect();
    format!("possible here: {}", names.join(", "))
}
