//! One set of features: cargo resolves the features of a dependency separately for each choice of packages, and
//! compiles it again if they differ. This module compares the choices that README, CONTRIBUTING, CI and the other
//! tasks make, using cargo's own resolution, so that no command compiles again what another has compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::files;
use crate::program;
use crate::sh::{Result, cargo, output, root};

/// Pages with commands that everybody runs.
const PAGES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "docs/README.md"];

/// Additional commands of the other tasks: `lint`, `test` and `docs` of `ci`, and the builds of `program`.
const TASKS: [&str; 4] = [
    "cargo test --workspace",
    "cargo build --release -p bucketload",
    "cargo build --release",
    "cargo xtask",
];

/// A choice of packages for which cargo resolves features.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    /// Profiles are compiled separately.
    release: bool,
    /// True if tests or examples are built, so that their dependencies count.
    dev: bool,
    /// Options that choose packages and features.
    packages: Vec<String>,
    /// The command, for messages.
    command: String,
}

/// The sets of features that each package is built with; more than one if build scripts or macros need it too.
type Resolved = BTreeMap<String, BTreeSet<String>>;

/// Compares all choices and describes the differences.
pub(crate) fn differences() -> Result<Vec<String>> {
    let mut choices = Vec::new();
    for page in PAGES {
        let text = files::read(root().join(page))?;
        choices.extend(commands(&text).into_iter().filter_map(choice));
    }
    let examples = format!(
        "cargo build --release {} --examples",
        program::RELEASE_EXAMPLES
    );
    let tasks = TASKS.into_iter().chain([examples.as_str()]);
    choices.extend(tasks.filter_map(choice));
    // One message per package and profile.
    let mut problems = BTreeMap::new();
    for release in [true, false] {
        let mut seen: Vec<(String, Resolved)> = Vec::new();
        let mut packages = BTreeSet::new();
        for choice in choices.iter().filter(|choice| choice.release == release) {
            if !packages.insert((choice.dev, choice.packages.clone())) {
                continue;
            }
            let new = resolved(&tree(choice)?)?;
            for (command, old) in &seen {
                for (package, text) in compare((command, old), (&choice.command, &new)) {
                    problems.entry((release, package)).or_insert(text);
                }
            }
            seen.push((choice.command.clone(), new));
        }
    }
    Ok(problems.into_values().collect())
}

/// The cargo commands in a page: in code blocks and between back-ticks.
fn commands(page: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in page.lines() {
        if let Some(code) = line.strip_prefix("    ") {
            found.push(code);
        }
        found.extend(line.split('`').skip(1).step_by(2));
    }
    let is_command = |text: &&str| text.starts_with("cargo ") || text.contains(" cargo ");
    found.retain(is_command);
    found
}

/// The packages for which a command makes cargo resolve features; `None` if it builds nothing of ours.
fn choice(command: &str) -> Option<Choice> {
    let (_, words) = command.split_once("cargo ")?;
    let words = words.split(" -- ").next()?.split(" #").next()?;
    let mut words = words.split_whitespace();
    let verb = words.next()?;
    let mut choice = Choice {
        release: false,
        dev: verb == "test" || verb == "bench",
        packages: Vec::new(),
        command: command.trim().to_owned(),
    };
    match verb {
        // An alias from `.cargo/config.toml`; the remaining words are its arguments.
        "xtask" => {
            choice.packages = ["-p", "xtask"].map(str::to_owned).into();
            return Some(choice);
        }
        "build" | "run" | "test" | "check" | "clippy" | "doc" => {}
        _ => return None,
    }
    while let Some(word) = words.next() {
        match word {
            "--release" => choice.release = true,
            "--workspace" | "--all" => choice.packages.push("--workspace".to_owned()),
            "-p" | "--package" | "--exclude" | "--features" => {
                choice.packages.push(word.replace("--package", "-p"));
                choice.packages.extend(words.next().map(str::to_owned));
            }
            "--no-default-features" => choice.packages.push(word.to_owned()),
            "--tests" | "--examples" | "--benches" | "--all-targets" | "--test" | "--example"
            | "--bench" => choice.dev = true,
            _ => {}
        }
    }
    Some(choice)
}

/// cargo's resolution for `choice`: a line `package version|features` per package.
fn tree(choice: &Choice) -> Result<String> {
    let edges = match choice.dev {
        true => "normal,build,dev",
        false => "normal,build",
    };
    let line = format!("tree --locked --prefix none -e {edges} -f {{p}}|{{f}}");
    output(cargo(&line).args(&choice.packages))
}

/// The features of third-party packages in the output of `cargo tree`.
fn resolved(tree: &str) -> Result<Resolved> {
    let mut found = Resolved::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (package, features) = line
            .split_once('|')
            .ok_or_else(|| format!("cargo tree: unexpected line {line:?}"))?;
        // Our own packages have a path.
        if package.contains("(/") {
            continue;
        }
        let package = package.trim_end_matches(" (proc-macro)").to_owned();
        let features = features.trim_end_matches("(*)").trim().to_owned();
        found.entry(package).or_default().insert(features);
    }
    Ok(found)
}

/// The packages that two commands build with different features, each with a message.
fn compare(old: (&str, &Resolved), new: (&str, &Resolved)) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    for (package, features) in new.1 {
        let Some(before) = old.1.get(package) else {
            continue;
        };
        // One command may build it in one more form, for a build script or a macro.
        if features.is_subset(before) || before.is_subset(features) {
            continue;
        }
        let only = |these: &BTreeSet<String>, others: &BTreeSet<String>| {
            let split =
                |set: &BTreeSet<String>| set.iter().flat_map(|f| words(f)).collect::<BTreeSet<_>>();
            split(these).difference(&split(others)).cloned().collect()
        };
        let mut text = format!("{package} is compiled twice:");
        for (command, names) in [
            (old.0, only(before, features)),
            (new.0, only(features, before)),
        ] {
            let names: Vec<String> = names;
            let _ = match names.is_empty() {
                true => write!(text, " `{command}` has no additional features;"),
                false => write!(text, " `{command}` has its feature {};", names.join(", ")),
            };
        }
        text.push_str(
            " name the feature in [workspace.dependencies], or let both commands choose the same packages",
        );
        problems.push((package.clone(), text));
    }
    problems
}

fn words(features: &str) -> Vec<String> {
    features.split(',').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{choice, commands, compare, resolved};

    #[test]
    fn the_commands_of_a_page_are_found() {
        let page = "# Title\n\n    cargo test --workspace   # tests\n    ls\n\nCall `X=1 cargo build --release` or `cat`.\n";
        let expected = [
            "cargo test --workspace   # tests",
            "X=1 cargo build --release",
        ];
        assert_eq!(commands(page), expected);
    }

    #[test]
    fn commands_are_parsed_into_choices() {
        let is = |command: &str, release: bool, dev: bool, packages: &[&str]| {
            let choice = choice(command).unwrap();
            assert_eq!((choice.release, choice.dev), (release, dev), "{command}");
            assert_eq!(choice.packages, packages, "{command}");
        };
        is("cargo run --release -- run get -p x", true, false, &[]);
        is(
            "cargo test --workspace  # --release",
            false,
            true,
            &["--workspace"],
        );
        is(
            "cargo build --release --package a",
            true,
            false,
            &["-p", "a"],
        );
        is(
            "cargo build --workspace --exclude b --example c",
            false,
            true,
            &["--workspace", "--exclude", "b"],
        );
        is(
            "cargo xtask bench --release",
            false,
            false,
            &["-p", "xtask"],
        );
        assert_eq!(choice("cargo fmt --all"), None);
    }

    #[test]
    fn a_feature_added_by_one_command_is_named() {
        let one = "ours v0.1.0 (/src)|default\ntokio v1.2.3|net,rt (*)\nsyn v2.0.0|full\n";
        let other = "tokio v1.2.3|net,rt,test-util\nsyn v2.0.0|full\nsyn v2.0.0|visit\n";
        let (one, other) = (resolved(one).unwrap(), resolved(other).unwrap());
        assert!(compare(("a", &one), ("b", &one)).is_empty());
        let problems = compare(("a", &one), ("b", &other));
        assert_eq!(problems.len(), 1, "{problems:?}");
        let (package, text) = &problems[0];
        assert_eq!(package, "tokio v1.2.3");
        assert!(text.contains("`b` has its feature test-util"), "{text}");
    }
}
