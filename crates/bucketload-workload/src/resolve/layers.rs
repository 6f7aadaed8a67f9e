//! Layers a profile and command-line settings over the tree of a workload file.

use std::sync::Arc;

use super::flags;
use super::overrides::{Field, Overrides};
use crate::spec::node::{Node, Table, Value};
use crate::spec::{Errors, Origin, suggest};

/// Names of the phases that Bucketload itself performs.
pub(super) const RESERVED_PHASES: [&str; 3] = ["init", "prepare", "cleanup"];

/// The effective tree and the name of the selected profile.
pub(super) fn apply(
    root: &Node,
    overrides: &Overrides,
    errors: &mut Errors,
    notes: &mut Vec<String>,
) -> (Node, String) {
    let mut effective = root.clone();
    // A profile chosen by --set must be known before merging.
    for setting in &overrides.settings {
        if setting.field == Field::Path("profile".to_owned()) {
            set_profile(&mut effective, &setting.value, &setting.flag);
        }
    }
    if let Some(profile) = &overrides.profile {
        let flag: Arc<str> = format!("--profile-name {profile}").into();
        set_profile(&mut effective, profile, &flag);
    }
    let profile = merge_profile(&mut effective, errors);
    for setting in &overrides.settings {
        flags::apply(&mut effective, setting, errors, notes);
    }
    (effective, profile)
}

fn set_profile(root: &mut Node, name: &str, flag: &Arc<str>) {
    let origin = Origin::Flag(Arc::clone(flag));
    let node = Node {
        value: Value::Str(name.to_owned()),
        origin: origin.clone(),
    };
    if let Some(table) = root.as_table_mut() {
        table.set("profile", origin, node);
    }
}

/// Merges the chosen profile into the tree and returns its name.
fn merge_profile(root: &mut Node, errors: &mut Errors) -> String {
    let Some(table) = root.as_table_mut() else {
        return String::new();
    };
    let chosen = match table.get("profile") {
        Some(Node {
            value: Value::Str(name),
            origin,
        }) => Some((name.clone(), origin.clone())),
        _ => None,
    };
    let profiles = table.remove("profiles");
    let profiles = profiles.as_ref().and_then(Node::as_table);
    let names = || profiles.into_iter().flat_map(Table::keys);
    let Some((name, origin)) = chosen else {
        return String::new();
    };
    match profiles.and_then(|profiles| profiles.get(&name)?.as_table()) {
        Some(overlay) => merge(table, overlay),
        None => {
            let remedy = match names().count() {
                0 => "the workload has no profiles".to_owned(),
                _ => suggest::advice(&name, names()),
            };
            let message = format!("there is no profile `{name}`");
            errors.push(&origin, "profile", message, remedy);
        }
    }
    name
}

/// Merges `overlay` into `base`: tables are merged, everything else is replaced. Laws are replaced as a
/// whole, and fields of closed and open loops exclude each other.
pub(super) fn merge(base: &mut Table, overlay: &Table) {
    for entry in &overlay.entries {
        exclude(base, &entry.key);
        // A phase has either several works or the fields of a single one.
        if entry.key == "works" {
            for field in SINGLE_WORK {
                base.remove(field);
            }
        } else if SINGLE_WORK.contains(&entry.key.as_str()) {
            base.remove("works");
        }
    }
    for entry in &overlay.entries {
        let over = entry.node.as_table().filter(|t| t.get("law").is_none());
        match (base.get_mut(&entry.key).and_then(Node::as_table_mut), over) {
            (Some(base), Some(over)) => merge(base, over),
            _ => base.set(&entry.key, entry.at.clone(), entry.node.clone()),
        }
    }
}

/// Fields of a phase with a single work.
const SINGLE_WORK: [&str; 9] = [
    "mix",
    "workers",
    "think",
    "arrival",
    "rate",
    "max-in-flight",
    "keyset",
    "keys",
    "size",
];

/// Removes the fields of a work that setting `key` overrides, and returns them: a work is either a closed or
/// an open loop, and a new arrival process brings its own rate.
pub(super) fn exclude(work: &mut Table, key: &str) -> Vec<&'static str> {
    let rivals: &[&str] = match key {
        "workers" => &["arrival", "rate", "max-in-flight"],
        "arrival" => &["workers", "think", "rate"],
        // A phase ends either with the last object or after a number of operations.
        "once" => &["ops"],
        "ops" => &["once"],
        // Another pace of jobs has another rate, or none.
        "pace" => &["stage-rate"],
        "rate" if work.get("arrival").is_none() => &["workers", "think"],
        _ => &[],
    };
    rivals
        .iter()
        .filter(|rival| work.remove(rival).is_some())
        .copied()
        .collect()
}
