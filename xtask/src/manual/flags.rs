//! Flags in the documents: each flag in code or in a table belongs to the program, or to a third-party program listed
//! here.

use std::collections::BTreeSet;
use std::path::Path;

use super::examples::{Commands, check_line, joined};
use super::{first_hour, links, markdown};
use crate::files;
use crate::sh::{Result, no_faults, root};

/// Third-party programs; their lines may contain any flag.
const FOREIGN: [&str; 17] = [
    "aws",
    "cargo",
    "docker",
    "fio",
    "io500",
    "ior",
    "iperf3",
    "kubectl",
    "mc",
    "mdtest",
    "mpirun",
    "rclone",
    "sha256sum",
    "srun",
    "tar",
    "weed",
    "wrk",
];

/// Third-party flags that the documents mention alone, and the program of each.
const LONE: &[(&str, &str)] = &[
    ("S3-libs3", "IOR"),
    ("all", "cargo xtask conformance"),
    ("dataPacketType", "MD-Workbench"),
    ("features", "cargo"),
    ("from-literal", "kubectl, in a command of two lines"),
    ("get", "cargo xtask bench peers"),
    ("ignore-times", "rclone"),
    ("instance", "the scripts of servers/"),
    ("io500", "cargo xtask bench apps"),
    ("ior", "cargo xtask bench apps"),
    ("keep-alive", "versitygw"),
    ("latency-correction", "oha"),
    ("libs3", "cargo xtask bench apps"),
    ("loose", "azurite"),
    ("md-workbench", "cargo xtask bench apps"),
    ("mdtest", "cargo xtask bench apps"),
    ("minio", "cargo xtask bench apps"),
    ("one-top-level", "tar"),
    ("port", "the scripts of servers/"),
    ("purge", "the scripts of servers/"),
    ("put", "cargo xtask bench peers"),
    ("skipApiVersionCheck", "azurite"),
    ("tool", "cargo xtask bench peers"),
    ("versitygw", "cargo xtask bench apps"),
    ("workspace", "cargo"),
];

/// Checks every document against the options of the program's commands.
pub(super) fn check(commands: &Commands) -> Result {
    let mut faults = Vec::new();
    let mut count = 0;
    let mut used = BTreeSet::new();
    for path in links::own_paths()? {
        if path == Path::new(first_hour::PAGE) {
            continue;
        }
        let text = files::read(root().join(&path))?;
        for (line, piece) in pieces(&text) {
            for flag in flags(&piece) {
                count += 1;
                used.insert(flag);
            }
            if let Some(fault) = fault(&piece, commands) {
                faults.push(format!(
                    "{}:{line}: {fault}: {}",
                    path.display(),
                    piece.trim()
                ));
            }
        }
    }
    let stale = LONE.iter().filter(|(flag, _)| !used.contains(*flag));
    faults
        .extend(stale.map(|(flag, of)| format!("no document mentions --{flag} of {of} any more")));
    no_faults(
        "faults in flags; `bucketload VERB --help` lists a verb's flags, xtask/src/manual/flags.rs those of \
         third-party programs",
        &faults,
    )?;
    eprintln!("{count} flags in code and tables, all of the program or of a known third party");
    Ok(())
}

/// The lines of code and the table rows of a text, with line numbers.
fn pieces(text: &str) -> Vec<(usize, String)> {
    let mut pieces = Vec::new();
    for code in markdown::code(text) {
        let number = text[..code.at].matches('\n').count() + 1;
        let lines = joined(&code.text);
        pieces.extend(lines.lines().map(|line| (number, line.to_owned())));
    }
    let without_code = text.lines().enumerate().filter_map(|(at, line)| {
        let row = line.strip_prefix('|')?;
        // Code was checked above.
        let outside: Vec<&str> = row.split('`').step_by(2).collect();
        Some((at + 1, outside.join(" ")))
    });
    pieces.extend(without_code);
    pieces
}

/// The flags in a piece of text, without their dashes.
fn flags(piece: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in piece.match_indices("--") {
        let before = piece[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '<' || c == '_') {
            continue;
        }
        let name: String = piece[at + 2..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            found.insert(name.trim_end_matches('-').to_owned());
        }
    }
    found
}

/// Returns the fault of a piece of text, if any.
fn fault(piece: &str, commands: &Commands) -> Option<String> {
    let piece = piece.trim_start().trim_start_matches("$ ");
    let is_setting = |word: &&str| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    let first = piece.split_whitespace().find(|word| !is_setting(word));
    let first = first.unwrap_or_default();
    if FOREIGN.contains(&first) || first.ends_with(".sh") {
        return None;
    }
    if commands.contains_key(first)
        && let Some(fault) = check_line(&format!("bucketload {piece}"), commands)
    {
        return Some(fault);
    }
    let unknown = flags(piece).into_iter().find(|flag| {
        !commands.values().any(|options| options.contains(flag))
            && !LONE.iter().any(|(lone, _)| lone == flag)
    });
    unknown.map(|flag| format!("no command has --{flag}"))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::{fault, flags, pieces};

    #[test]
    fn flags_are_words_with_two_dashes() {
        let found = |text| flags(text).into_iter().collect::<Vec<_>>();
        assert_eq!(
            found("run --rate=1/s, (--seed N) \"--endpoint-url x\""),
            ["endpoint-url", "rate", "seed"]
        );
        assert_eq!(
            found("a -- b --- c <!-- d --> e--f -x"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn code_and_table_rows_are_checked_and_prose_is_not() {
        let text = "see --prose and `--inline`\n\n    x \\\n      --block\n\n| a | `--code` --cell |\n|---|---|\n";
        let all: BTreeSet<String> = pieces(text)
            .iter()
            .flat_map(|(_, piece)| flags(piece))
            .collect();
        let expected = ["block", "cell", "code", "inline"];
        assert_eq!(all.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_flag_belongs_to_its_verb_or_stands_alone() {
        let options = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let commands = BTreeMap::from([
            ("run".to_owned(), options(&["rate", "prometheus"])),
            ("serve".to_owned(), options(&["listen"])),
        ]);
        for good in [
            "--prometheus",
            "run x --rate 1",
            "--listen",
            "aws s3 --nonsense",
            "A_B=c cargo --nonsense",
            "./minio.sh --x",
            "--loose",
        ] {
            assert_eq!(fault(good, &commands), None, "{good}");
        }
        for bad in ["--metrics-listen", "run x --listen y", "x --nonsense"] {
            assert!(fault(bad, &commands).is_some(), "{bad}");
        }
    }
}
