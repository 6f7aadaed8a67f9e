//! Applies one command-line setting to the tree of a workload.

use std::sync::Arc;

use super::layers::{RESERVED_PHASES, exclude};
use super::overrides::{Field, Override};
use crate::spec::node::{Node, Table, Value};
use crate::spec::{Errors, Origin, suggest};
use bucketload_core::op::OpClass;

/// Applies one setting.
struct Setter<'a> {
    flag: &'a Arc<str>,
    errors: &'a mut Errors,
    notes: &'a mut Vec<String>,
}

pub(super) fn apply(
    root: &mut Node,
    setting: &Override,
    errors: &mut Errors,
    notes: &mut Vec<String>,
) {
    let Some(table) = root.as_table_mut() else {
        return;
    };
    let mut setter = Setter {
        flag: &setting.flag,
        errors,
        notes,
    };
    let node = Node::parse_flag(&setting.value, &setting.flag);
    let key = <&'static str>::from(&setting.field);
    let in_phases = !matches!(
        setting.field,
        Field::Path(_)
            | Field::Seed
            | Field::Verify
            | Field::Oracle
            | Field::Timeout
            | Field::Payload
            | Field::Keep
    );
    if in_phases && table.get("checkpoint").is_some() {
        let message =
            format!("`checkpoint` defines what is written and read, so `{key}` does not apply");
        return setter.refuse(
            key,
            message,
            "remove it, or set a field such as checkpoint.count",
        );
    }
    match &setting.field {
        Field::Path(path) => setter.set_path(table, path, node),
        Field::Seed
        | Field::Scale
        | Field::Verify
        | Field::Oracle
        | Field::Timeout
        | Field::Payload
        | Field::Keep => setter.set(table, key, node),
        Field::Duration | Field::Ops | Field::Bytes => setter.in_phases(table, key, &node),
        Field::Arrival | Field::Rate | Field::Workers | Field::Think | Field::MaxInFlight => {
            setter.in_works(table, |s, work| s.set(work, key, node.clone()));
        }
        Field::Mix => setter.in_works(table, |s, work| s.mix(work, &setting.value)),
        Field::Keys => setter.in_all_works(table, |s, work| s.keys(work, &node)),
        Field::Size => setter.sizes(table, &node),
        Field::Objects => setter.objects(table, &node),
    }
}

impl Setter<'_> {
    fn origin(&self) -> Origin {
        Origin::Flag(Arc::clone(self.flag))
    }

    fn refuse(&mut self, field: &str, message: impl Into<String>, remedy: impl Into<String>) {
        let origin = self.origin();
        self.errors.push(&origin, field, message, remedy);
    }

    /// Sets a field of a table and removes the fields that it excludes.
    fn set(&mut self, table: &mut Table, key: &str, node: Node) {
        let removed = exclude(table, key);
        if !removed.is_empty() {
            let removed = removed.join("`, `");
            self.notes.push(format!(
                "{} replaces `{removed}` of the workload",
                self.flag
            ));
        }
        table.set(key, self.origin(), node);
    }

    /// Runs `f` on every measuring phase.
    fn each_phase(&mut self, root: &mut Table, mut f: impl FnMut(&mut Self, &str, &mut Table)) {
        let Some(phases) = root.get_mut("phases").and_then(Node::as_table_mut) else {
            return;
        };
        for entry in &mut phases.entries {
            if !RESERVED_PHASES.contains(&entry.key.as_str())
                && let Some(phase) = entry.node.as_table_mut()
            {
                f(self, &entry.key, phase);
            }
        }
    }

    fn in_phases(&mut self, root: &mut Table, key: &str, node: &Node) {
        self.each_phase(root, |s, _, phase| s.set(phase, key, node.clone()));
    }

    /// Runs `f` on every work of every measuring phase.
    fn in_all_works(&mut self, root: &mut Table, mut f: impl FnMut(&mut Self, &mut Table)) {
        self.each_phase(root, |s, _, phase| match phase.get_mut("works") {
            None => f(s, phase),
            Some(works) => {
                let works = works.as_table_mut().into_iter();
                for work in works.flat_map(|works| &mut works.entries) {
                    if let Some(work) = work.node.as_table_mut() {
                        f(s, work);
                    }
                }
            }
        });
    }

    /// Runs `f` on the only work of every measuring phase. Reports an error if a phase has several works,
    /// because the flag does not say which one.
    fn in_works(&mut self, root: &mut Table, mut f: impl FnMut(&mut Self, &mut Table)) {
        self.each_phase(root, |s, name, phase| {
            let several = phase
                .get("works")
                .and_then(Node::as_table)
                .filter(|works| works.entries.len() > 1);
            if let Some(works) = several {
                let names: Vec<&str> = works.keys().collect();
                let message = format!("phase `{name}` has several works: {}", names.join(", "));
                let remedy = format!("say which, with --set phases.{name}.works.{}.…", names[0]);
                s.refuse("", message, remedy);
                return;
            }
            match phase.get_mut("works") {
                None => f(s, phase),
                Some(works) => {
                    if let Some(work) = works
                        .as_table_mut()
                        .and_then(|works| works.entries.first_mut()?.node.as_table_mut())
                    {
                        f(s, work);
                    }
                }
            }
        });
    }

    /// Replaces the operations of a work. Entries that keep their name keep their other fields.
    fn mix(&mut self, work: &mut Table, text: &str) {
        let origin = self.origin();
        let old = match work.remove("mix") {
            Some(Node {
                value: Value::Table(table),
                ..
            }) => table,
            _ => Table::default(),
        };
        let mut mix = Table::default();
        for item in text.trim_matches(['{', '}', ' ']).split(',') {
            let Some((name, weight)) = item.split_once(['=', ':']) else {
                let message = format!("`{}` is not an operation with its weight", item.trim());
                self.refuse("mix", message, "write it such as --mix get=70,put=30");
                continue;
            };
            let (name, weight) = (name.trim(), Node::parse_flag(weight.trim(), self.flag));
            let node = match old.get(name) {
                Some(
                    node @ Node {
                        value: Value::Table(_),
                        ..
                    },
                ) => {
                    let mut node = node.clone();
                    if let Some(entry) = node.as_table_mut() {
                        entry.set("weight", origin.clone(), weight);
                    }
                    node
                }
                _ => weight,
            };
            mix.set(name, origin.clone(), node);
        }
        let node = Node {
            value: Value::Table(mix),
            origin: origin.clone(),
        };
        work.set("mix", origin, node);
    }

    /// Sets the law of keys of the entries that work on existing objects.
    fn keys(&mut self, work: &mut Table, node: &Node) {
        let entries = work.get_mut("mix").and_then(Node::as_table_mut);
        for entry in entries.into_iter().flat_map(|mix| &mut mix.entries) {
            let Some(table) = entry.node.as_table_mut() else {
                continue;
            };
            let op = match table.get("op") {
                Some(Node {
                    value: Value::Str(op),
                    ..
                }) => op.clone(),
                _ => entry.key.clone(),
            };
            if OpClass::from_name(&op).is_some_and(|class| !class.creates_object()) {
                table.remove("keys");
            }
        }
        self.set(work, "keys", node.clone());
    }

    /// Sets the size law of every key set and of everything that is written, without scaling.
    fn sizes(&mut self, root: &mut Table, node: &Node) {
        if root.remove("size-scale").is_some() {
            self.notes.push(format!(
                "{} replaces `size-scale` of the workload",
                self.flag
            ));
        }
        self.in_all_works(root, |_, work| {
            work.remove("size");
            let entries = work.get_mut("mix").and_then(Node::as_table_mut);
            for entry in entries.into_iter().flat_map(|mix| &mut mix.entries) {
                if let Some(table) = entry.node.as_table_mut() {
                    table.remove("size");
                }
            }
        });
        let keysets = root.get_mut("keysets").and_then(Node::as_table_mut);
        for entry in keysets.into_iter().flat_map(|sets| &mut sets.entries) {
            if let Some(keyset) = entry.node.as_table_mut() {
                self.set(keyset, "size", node.clone());
            }
        }
    }

    /// Sets the number of objects of every key set that has any, without scaling.
    fn objects(&mut self, root: &mut Table, node: &Node) {
        let keysets = root.get_mut("keysets").and_then(Node::as_table_mut);
        for entry in keysets.into_iter().flat_map(|sets| &mut sets.entries) {
            let has_objects = |set: &&mut Table| {
                set.get("count")
                    .is_some_and(|count| count.value != Value::Int(0))
            };
            if let Some(keyset) = entry.node.as_table_mut().filter(has_objects) {
                self.set(keyset, "count", node.clone());
                let exact = Node {
                    value: Value::Bool(false),
                    origin: self.origin(),
                };
                self.set(keyset, "scaled", exact);
            }
        }
    }

    /// Sets the field at a dotted path. Creates missing tables on the way, but no phases, key sets or works,
    /// because a misspelt name would otherwise silently do nothing.
    fn set_path(&mut self, root: &mut Table, path: &str, node: Node) {
        let mut table = root;
        let keys: Vec<&str> = path.split('.').collect();
        let (last, parents) = keys.split_last().unwrap_or((&"", &[]));
        for (depth, key) in parents.iter().enumerate() {
            if !self.may_enter(table, &keys[..depth], key, path) {
                return;
            }
            let origin = self.origin();
            let child = match table.entries.iter().position(|entry| entry.key == *key) {
                Some(index) => &mut table.entries[index].node,
                None => {
                    let node = Node {
                        value: Value::Table(Table::default()),
                        origin: origin.clone(),
                    };
                    table.set(key, origin.clone(), node);
                    let last = table.entries.len() - 1;
                    &mut table.entries[last].node
                }
            };
            let in_mix = depth > 0 && keys[depth - 1] == "mix";
            if child.as_table().is_none() && in_mix {
                // The short form of an entry, `get = 70`, becomes a table with that weight.
                let weight = child.clone();
                let mut entry = Table::default();
                entry.set("weight", weight.origin.clone(), weight);
                child.value = Value::Table(entry);
            }
            let kind = child.value.kind();
            match child.as_table_mut() {
                Some(next) => table = next,
                None => {
                    let field = keys[..=depth].join(".");
                    let message = format!("{field} is {kind}, which has no field `{last}`");
                    self.refuse(path, message, format!("set {field} as a whole"));
                    return;
                }
            }
        }
        self.set(table, last, node);
    }

    /// Whether `key` may be entered below `parents`; reports an error if not.
    fn may_enter(&mut self, table: &Table, parents: &[&str], key: &str, path: &str) -> bool {
        let what = match parents.last() {
            Some(&"phases") if !RESERVED_PHASES.contains(&key) => "phase",
            Some(&"keysets") => "key set",
            Some(&"works") => "work",
            _ => return true,
        };
        if table.get(key).is_some() {
            return true;
        }
        let remedy = suggest::advice(key, table.keys());
        self.refuse(path, format!("the workload has no {what} `{key}`"), remedy);
        false
    }
}
