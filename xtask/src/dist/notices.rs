//! The licences of the crates in a program, which must accompany it: each text once, with the crates that use it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::crates::Crate;
use crate::files;
use crate::sh::Result;

/// Name prefixes of licence and notice files.
const NAMES: [&str; 6] = [
    "license",
    "licence",
    "copying",
    "notice",
    "copyright",
    "unlicense",
];

/// The text for a program that consists of `crates`.
///
/// # Errors
/// The sources of a crate cannot be read.
pub(super) fn text(crates: &[Crate]) -> Result<String> {
    let mut out =
        "Crates of other authors in this program, with their licences as SPDX expressions,\n\
                   then the texts that go with them. The standard library of Rust is MIT OR Apache-2.0.\n\n"
            .to_owned();
    // Texts that differ only in white space count as one.
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for known in crates.iter().filter(|known| !known.is_own()) {
        let title = format!("{} {}", known.name, known.version);
        let license = match known.license.as_str() {
            "" => "see below",
            expression => expression,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{title}: {license}");
        for text in licenses(&known.dir)? {
            let key = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, users) = texts.entry(key).or_insert((text, Vec::new()));
            if users.last() != Some(&title) {
                users.push(title.clone());
            }
        }
    }
    let mut texts: Vec<(String, Vec<String>)> = texts.into_values().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    for (text, users) in texts {
        let line = "-".repeat(78);
        let _ = write!(
            out,
            "\n{line}\n{}\n{line}\n\n{}\n",
            users.join(", "),
            text.trim_end()
        );
    }
    Ok(out)
}

/// The texts in a crate's directory, and in the directories of C libraries inside it.
fn licenses(dir: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let list = |dir: &Path| -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        Ok(files::list(dir)?
            .into_iter()
            .partition(|path| !path.is_dir()))
    };
    let (files, dirs) = list(dir)?;
    let mut places = vec![files];
    for below in dirs {
        places.push(list(&below)?.0);
    }
    for files in places {
        let is = |path: &Path, word: &str| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .to_lowercase();
            name.starts_with(word) && !name.ends_with(".rs") && !name.ends_with(".py")
        };
        // zstd is offered under LICENSE (BSD) or COPYING (GPL): we choose the first.
        let choice = files.iter().any(|path| is(path, "license"));
        for path in &files {
            let wanted = NAMES.iter().any(|word| is(path, word));
            if wanted && !(choice && is(path, "copying")) {
                let bytes = files::bytes(path)?;
                texts.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::{Crate, text};
    use crate::files::TempDir;

    #[test]
    fn each_licence_text_appears_once_with_all_its_crates() {
        let dir = TempDir::new("notices").unwrap();
        let mut crates = Vec::new();
        for name in ["a", "b", "ours"] {
            let dir = dir.path().join(name);
            std::fs::create_dir_all(dir.join("zstd")).unwrap();
            std::fs::write(dir.join("LICENSE-MIT"), "be\nfree\n").unwrap();
            std::fs::write(dir.join("lib.rs"), "code").unwrap();
            crates.push(Crate {
                name: name.to_owned(),
                version: "1".to_owned(),
                license: "MIT".to_owned(),
                sum: if name == "ours" { "" } else { "ab" }.to_owned(),
                dir,
                ..Crate::default()
            });
        }
        std::fs::write(dir.path().join("b/LICENSE-MIT"), "be free").unwrap();
        std::fs::write(dir.path().join("b/zstd/LICENSE"), "bsd").unwrap();
        std::fs::write(dir.path().join("b/zstd/COPYING"), "gpl").unwrap();
        let text = text(&crates).unwrap();
        assert_eq!(
            text.matches("be\nfree").count() + text.matches("be free").count(),
            1
        );
        assert!(text.contains("\na 1, b 1\n") && text.contains("\nb 1\n") && text.contains("bsd"));
        assert!(
            !text.contains("ours") && !text.contains("code") && !text.contains("gpl"),
            "{text}"
        );
    }
}
