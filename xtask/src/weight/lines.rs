//! Lines of code and test programs of each crate.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::{Row, grouped};
use crate::files;
use crate::sh::{Result, root};

/// Counts of a crate.
pub(super) struct Crate {
    name: String,
    code: u64,
    /// Test programs in `tests/`.
    tests: u64,
    /// Libraries and programs with inner tests; each links a test program.
    harnesses: u64,
}

/// Counts all workspace members in the output of `cargo metadata`, and the folder of models, which they share.
pub(super) fn crates(metadata: &Value) -> Result<Vec<Crate>> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut found = Vec::new();
    for package in packages {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (mut tests, mut harnesses) = (0, 0);
        for target in package["targets"].as_array().into_iter().flatten() {
            if target["test"] != true {
                continue;
            }
            let kinds = target["kind"].as_array().into_iter().flatten();
            match kinds.filter_map(Value::as_str).any(|kind| kind == "test") {
                true => tests += 1,
                false => harnesses += 1,
            }
        }
        let manifest = text(&package["manifest_path"]);
        let sources = Path::new(&manifest).with_file_name("src");
        found.push(Crate {
            name: text(&package["name"]),
            code: folder(&sources)?,
            tests,
            harnesses,
        });
    }
    found.push(Crate {
        name: "models".to_owned(),
        code: folder(&root().join("models"))?,
        tests: 0,
        harnesses: 0,
    });
    found.sort_by(|a, b| b.code.cmp(&a.code).then_with(|| a.name.cmp(&b.name)));
    Ok(found)
}

/// The test programs that `cargo test --workspace` links.
pub(super) fn tests(crates: &[Crate]) -> Row {
    let sum = |figure: fn(&Crate) -> u64| crates.iter().map(figure).sum::<u64>();
    Row::new(
        "programs of tests",
        format!(
            "{} and {} harnesses",
            sum(|c| c.tests),
            sum(|c| c.harnesses)
        ),
        "cargo metadata --no-deps --format-version 1",
    )
}

/// The crates as Markdown.
pub(super) fn table(crates: &[Crate]) -> String {
    let mut text = "| crate | lines of code | programs of tests |\n|---|---|---|\n".to_owned();
    for Crate {
        name, code, tests, ..
    } in crates
    {
        let _ = writeln!(text, "| `{name}` | {} | {tests} |", grouped(*code));
    }
    // xtask is not shipped.
    let (tasks, shipped): (Vec<&Crate>, Vec<&Crate>) =
        crates.iter().partition(|c| c.name == "xtask");
    let sum = |of: &[&Crate]| of.iter().map(|c| c.code).sum::<u64>();
    let (tasks, shipped) = (sum(&tasks), sum(&shipped));
    let _ = writeln!(text, "| all | {} | |", grouped(tasks + shipped));
    let _ = writeln!(text, "| all but `xtask` | {} | |", grouped(shipped));
    text
}

/// Lines of code in a source folder and its subfolders, without tests.
fn folder(path: &Path) -> Result<u64> {
    let at = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut sum = 0;
    for entry in std::fs::read_dir(path).map_err(at)? {
        let entry = entry.map_err(at)?.path();
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if entry.is_dir() {
            if name != "tests" {
                sum += folder(&entry)?;
            }
        } else if name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs") {
            let text = files::read(&entry)?;
            sum += lines(&text);
        }
    }
    Ok(sum)
}

/// Lines that are not empty, not only a comment, and not part of a test-only item. Relies on rustfmt: an item ends
/// with a line indented like its first line.
fn lines(text: &str) -> u64 {
    let mut count = 0;
    let (mut in_comment, mut test_item) = (false, None);
    for line in text.lines() {
        let code = line.trim();
        let indent = line.len() - line.trim_start().len();
        if in_comment {
            in_comment = !code.contains("*/");
        } else if code.is_empty() || code.starts_with("//") {
        } else if code.starts_with("/*") {
            in_comment = !code.contains("*/");
        } else if let Some(begin) = test_item {
            if indent == begin && code.ends_with(['}', ';', ',']) {
                test_item = None;
            }
        } else if code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test,") {
            test_item = Some(indent);
        } else {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{Crate, lines, table};

    #[test]
    fn blank_lines_comments_and_tests_do_not_count() {
        let text = "\
//! What it is.

use a::b; // counts

/* two
   lines */
/// A doc.
fn one() -> u32 {
    // why
    1
}

#[cfg(test)]
mod tests;

#[cfg(test)]
#[path = \"other_tests.rs\"]
mod other;

struct S {
    #[cfg(test)]
    seen: u32,
    kept: u32,
}

#[cfg(all(test, unix))]
mod inside {
    fn two() {
        if true {
        }
    }
}

#[cfg(any(test, unix))]
fn three() {}
";
        // `use`, three of `one`, three of `S`, two of `three`.
        assert_eq!(lines(text), 9);
    }

    #[test]
    fn crates_are_listed_with_their_sum() {
        let of = |name: &str, code, tests| Crate {
            name: name.to_owned(),
            code,
            tests,
            harnesses: 1,
        };
        let text = table(&[of("a", 1200, 3), of("xtask", 34, 0)]);
        let expected = "| crate | lines of code | programs of tests |\n|---|---|---|\n\
                        | `a` | 1,200 | 3 |\n| `xtask` | 34 | 0 |\n| all | 1,234 | |\n\
                        | all but `xtask` | 1,200 | |\n";
        assert_eq!(text, expected);
        assert!(super::tests(&[of("a", 1, 3), of("b", 1, 4)]).value == "7 and 2 harnesses");
    }
}
