//! The kinds of directories that a bundle can hold, and the files of such a directory.

use std::path::Path;

use bucketload_results::bundle::{Role, is_plain_path};

use super::run::Run;
use super::study::Study;
use super::trials::Trials;
use crate::exit::Failure;

/// Deepest nesting of directories.
const DEEPEST: usize = 8;

/// Receives a derived file: its path below the directory and its bytes.
pub(crate) type Emit<'a> = dyn FnMut(&str, Vec<u8>) -> Result<(), Failure> + 'a;

/// A kind of directory.
pub(crate) trait Kind: Sync {
    /// The name in the list of contents.
    fn name(&self) -> &'static str;

    /// Whether `dir` is of this kind.
    fn is(&self, dir: &Path) -> bool;

    /// The role of the file `path` below such a directory; `None` if the file does not belong to it.
    fn role(&self, path: &str) -> Option<Role>;

    /// Computes the derived files of `dir`, except those of directories of other kinds inside it. A data file that
    /// contains derived parts is emitted with these parts computed again.
    ///
    /// # Errors
    /// When the data cannot be read.
    fn derive(&self, dir: &Path, emit: &mut Emit<'_>) -> Result<(), Failure>;
}

/// Every kind; the first one that matches a directory applies.
const KINDS: [&dyn Kind; 3] = [&Run, &Trials, &Study];

fn kind_of(dir: &Path) -> Option<&'static dyn Kind> {
    KINDS.into_iter().find(|kind| kind.is(dir))
}

/// The files of a directory.
pub(crate) struct Tree {
    /// Path and role of every file that belongs to the directory, by path.
    pub(crate) files: Vec<(String, Role)>,
    /// Files that do not belong to it.
    pub(crate) left_out: Vec<String>,
    /// The directory itself and the directories of any kind inside it, by path.
    nodes: Vec<(String, &'static dyn Kind)>,
}

impl Tree {
    /// The tree of `dir`.
    ///
    /// # Errors
    /// When it is of no known kind, or cannot be read.
    pub(crate) fn of(dir: &Path) -> Result<Self, Failure> {
        let Some(kind) = kind_of(dir) else {
            return Err(Failure::usage(format!(
                "{}: neither a run directory (it has no run.json) nor a directory of capacity, sweep, study-grid, s3-hpc or study",
                dir.display()
            )));
        };
        let mut tree = Self {
            files: Vec::new(),
            left_out: Vec::new(),
            nodes: vec![(String::new(), kind)],
        };
        tree.walk(dir, kind, "", "", 0)?;
        tree.files.sort_by(|a, b| a.0.cmp(&b.0));
        tree.nodes.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(tree)
    }

    fn walk(
        &mut self,
        dir: &Path,
        kind: &'static dyn Kind,
        node: &str,
        inside: &str,
        depth: usize,
    ) -> Result<(), Failure> {
        let here = dir.join(node).join(inside);
        let failed = |e: std::io::Error| Failure::usage(format!("{}: {e}", here.display()));
        for entry in std::fs::read_dir(&here).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_plain_path(name)) else {
                self.left_out
                    .push(join(&join(node, inside), &name.to_string_lossy()));
                continue;
            };
            let below = join(inside, name);
            let whole = join(node, &below);
            // Links are not followed.
            let file_type = entry.file_type().map_err(failed)?;
            match kind.role(&below) {
                Some(role) if file_type.is_file() && is_plain_path(&whole) => {
                    self.files.push((whole, role))
                }
                _ if file_type.is_dir() && depth < DEEPEST => match kind_of(&entry.path()) {
                    Some(other) => {
                        self.nodes.push((whole.clone(), other));
                        self.walk(dir, other, &whole, "", depth + 1)?;
                    }
                    None => self.walk(dir, kind, node, &below, depth + 1)?,
                },
                _ => self.left_out.push(whole),
            }
        }
        Ok(())
    }

    /// The kind of the directory itself.
    pub(crate) fn kind(&self) -> &'static str {
        self.nodes[0].1.name()
    }

    /// Paths of the run directories.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &str> {
        let runs = self
            .nodes
            .iter()
            .filter(|(_, kind)| kind.name() == Run.name());
        runs.map(|(path, _)| path.as_str())
    }

    /// Whether the file `path` belongs to the directory.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files
            .binary_search_by(|(other, _)| other.as_str().cmp(path))
            .is_ok()
    }

    /// Computes every derived file of `dir`, the directory that this tree describes.
    ///
    /// # Errors
    /// When the data cannot be read.
    pub(crate) fn derive(&self, dir: &Path, emit: &mut Emit<'_>) -> Result<(), Failure> {
        for (path, kind) in &self.nodes {
            kind.derive(&dir.join(path), &mut |name, bytes| {
                emit(&join(path, name), bytes)
            })?;
        }
        Ok(())
    }
}

/// `below` under `path`, which may be empty.
fn join(path: &str, below: &str) -> String {
    match (path, below) {
        ("", below) => below.to_owned(),
        (path, "") => path.to_owned(),
        (path, below) => format!("{path}/{below}"),
    }
}
