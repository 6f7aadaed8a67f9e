//! A workload file: its text, tree and typed form.

use std::sync::Arc;

use super::decode::{Cx, Decode};
use super::error::{Errors, SpecError};
use super::node::Node;
use super::source::Source;
use super::tables::WorkloadSpec;

/// A workload file that was read without problems. Resolving it may still find others.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadFile {
    pub(crate) source: Arc<Source>,
    pub(crate) root: Node,
    spec: WorkloadSpec,
}

impl WorkloadFile {
    /// Reads the text of a workload file; error messages refer to it as `name`.
    ///
    /// # Errors
    /// All problems of syntax, field names and values found.
    pub fn parse(name: &str, text: &str) -> Result<Self, SpecError> {
        let source = Arc::new(Source {
            name: name.to_owned(),
            text: text.to_owned(),
        });
        let mut errors = Errors::new(Arc::clone(&source));
        let root = Node::parse(&mut errors);
        if !errors.is_empty() {
            // A partially parsed tree would only cause further, confusing messages.
            return Err(errors.into_error());
        }
        let spec = decode(&root, &mut errors);
        errors.finish(Self { source, root, spec })
    }

    /// The name of the file in error messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// The typed form: the file's content before profiles, settings and defaults are applied.
    #[must_use]
    pub const fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }
}

/// Decodes a tree as a workload, with its profiles.
pub(crate) fn decode(root: &Node, errors: &mut Errors) -> WorkloadSpec {
    let mut cx = Cx::new(errors);
    let spec = WorkloadSpec::decode(root, &mut cx).unwrap_or_default();
    let profiles = root
        .as_table()
        .and_then(|table| table.get("profiles")?.as_table());
    for profile in profiles.iter().flat_map(|profiles| &profiles.entries) {
        for field in ["name", "profile", "profiles"] {
            if let Some(entry) = profile.node.as_table().and_then(|t| t.entry(field)) {
                let path = format!("profiles.{}.{field}", profile.key);
                let message = format!("a profile cannot set `{field}`");
                errors.push(&entry.at, path, message, "");
            }
        }
    }
    spec
}
