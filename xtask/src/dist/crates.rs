//! The crates linked into a program as cargo resolves them, with licences and checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::build::FEATURES;
use crate::files;
use crate::program::items;
use crate::sh::{Result, cargo, output, root};

/// A crate of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// SPDX expression; empty where the crate has a file instead.
    pub(super) license: String,
    /// Directory of its sources.
    pub(super) dir: PathBuf,
    /// SHA-256 of its package; empty for our own.
    pub(super) sum: String,
    /// Indices of its dependencies in the list of crates.
    pub(super) needs: Vec<usize>,
}

impl Crate {
    /// True for our own crates.
    pub(super) fn is_own(&self) -> bool {
        self.sum.is_empty()
    }
}

/// The options for the features of `package` beyond its default ones.
fn features(package: &str) -> &'static [&'static str] {
    match FEATURES.split_once('/') {
        Some((of, _)) if of == package => &["--features", FEATURES],
        _ => &[],
    }
}

/// The crates linked into `package`, including itself, sorted by name and version.
///
/// # Errors
/// cargo fails, or its answers do not match.
pub(super) fn of(package: &str) -> Result<Vec<Crate>> {
    // Build dependencies and macros are not part of the program.
    let line = format!(
        "tree --locked --edges=normal,no-proc-macro --prefix=none --format={{p}} --package {package}"
    );
    let tree = output(cargo(&line).args(features(package)))?;
    let linked: BTreeSet<(&str, &str)> = tree.lines().filter_map(named).collect();
    let metadata = output(&mut cargo("metadata --locked --format-version=1"))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|e| e.to_string())?;
    let sums = sums(&files::read(root().join("Cargo.lock"))?)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut known: BTreeMap<(String, String), (String, Crate)> = BTreeMap::new();
    for found in items(&metadata["packages"]) {
        let (name, version) = (text(&found["name"]), text(&found["version"]));
        if linked.contains(&(name.as_str(), version.as_str())) {
            let manifest = text(&found["manifest_path"]);
            let key = (name.clone(), version.clone());
            let made = Crate {
                sum: sums.get(&key).cloned().unwrap_or_default(),
                // An older form of OR.
                license: text(&found["license"]).replace('/', " OR "),
                dir: Path::new(&manifest)
                    .parent()
                    .map(Path::to_owned)
                    .unwrap_or_default(),
                name,
                version,
                needs: Vec::new(),
            };
            known.insert(key, (text(&found["id"]), made));
        }
    }
    if known.len() != linked.len() || linked.is_empty() {
        return Err(format!(
            "cargo tree names {} crates of {package}, cargo metadata knows {} of them",
            linked.len(),
            known.len()
        ));
    }
    let (ids, mut crates): (Vec<String>, Vec<Crate>) = known.into_values().unzip();
    let places: BTreeMap<&str, usize> = ids.iter().map(String::as_str).zip(0..).collect();
    for node in items(&metadata["resolve"]["nodes"]) {
        let Some(&at) = node["id"].as_str().and_then(|id| places.get(id)) else {
            continue;
        };
        let is_linked = |kind: &Value| kind["kind"].is_null();
        let needed =
            items(&node["deps"]).filter(|needed| items(&needed["dep_kinds"]).any(is_linked));
        let needed = needed.filter_map(|needed| places.get(needed["pkg"].as_str()?).copied());
        crates[at].needs = needed.collect::<BTreeSet<_>>().into_iter().collect();
    }
    Ok(crates)
}

/// Name and version of a line of `cargo tree`: `NAME vVERSION …`.
fn named(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// The checksums of a lock file, by name and version.
fn sums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse().map_err(|e| format!("Cargo.lock: {e}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let sums = packages.into_iter().flatten().filter_map(|package| {
        let text = |key: &str| package.get(key)?.as_str().map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    });
    Ok(sums.collect())
}

#[cfg(test)]
mod tests {
    use super::{named, sums};

    #[test]
    fn tree_lines_and_lock_files_are_parsed() {
        let line = "bucketload v0.1.0 (/somewhere/crates/bucketload) (*)";
        assert_eq!(named(line), Some(("bucketload", "0.1.0")));
        assert_eq!(named(""), None);
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\
                    [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        let sums = sums(lock).unwrap();
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[&("a".to_owned(), "1.0.0".to_owned())], "ab");
    }
}
