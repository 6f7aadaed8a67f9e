//! The command lines of a document: the lines of its code blocks that a reader would type, and the files that they
//! promise to write.

use crate::manual::markdown;

/// A command of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Example {
    /// Line number in the document, from 1.
    pub(super) line: usize,
    /// The command without its prompt, including continuation lines.
    pub(super) text: String,
    /// Earlier `export` lines of the same block.
    pub(super) before: Vec<String>,
}

/// The commands of a text in order, and unknown lines of its shell blocks.
pub(super) fn examples(text: &str) -> (Vec<Example>, Vec<(usize, String)>) {
    let mut found = Vec::new();
    let mut unknown = Vec::new();
    for code in markdown::code(text)
        .into_iter()
        .filter(|code| code.is_block)
    {
        let fence = usize::from(text[code.at..].trim_start().starts_with("```"));
        let first = text[..code.at].matches('\n').count() + 1 + fence;
        let lines = joined(&code.text);
        // Output and help texts may contain other lines.
        let is_shell = code.language == "sh"
            || code.language.is_empty() && lines.iter().any(|(_, line)| is_ours(line));
        let mut before = Vec::new();
        for (offset, line) in lines {
            let line = line.trim_start().trim_start_matches("$ ");
            let number = first + offset;
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with("export ") {
                before.push(without_comment(line).to_owned());
            } else if is_ours(line) || is_foreign(line) {
                found.push(Example {
                    line: number,
                    text: line.trim_end().to_owned(),
                    before: before.clone(),
                });
            } else if is_shell {
                unknown.push((number, line.to_owned()));
            }
        }
    }
    (found, unknown)
}

/// The lines, joined where a backslash continues them, each with its offset.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (offset, line) in text.lines().enumerate() {
        let (part, continued) = match line.trim_end().strip_suffix('\\') {
            Some(part) => (part.trim_end(), true),
            None => (line, false),
        };
        match out.last_mut() {
            Some((_, whole)) if goes_on => {
                whole.push(' ');
                whole.push_str(part.trim_start());
            }
            _ => out.push((offset, part.to_owned())),
        }
        goes_on = continued;
    }
    out
}

/// Third-party programs that start a line in the documents.
const FOREIGN: [&str; 11] = [
    "alias", "bzip2", "cargo", "jq", "kubectl", "mkdir", "mpirun", "openssl", "sbatch", "srun",
    "./",
];

/// True if the line calls a known third-party program.
fn is_foreign(line: &str) -> bool {
    let word = words(line).next().unwrap_or_default();
    // `./` stands for every script.
    FOREIGN.iter().any(|name| {
        word == *name || *name == "./" && word.starts_with("./") && word.ends_with(".sh")
    })
}

/// True if the line calls our program, by its name or through cargo.
fn is_ours(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("$ ");
    if line.contains("[OPTIONS]") || line.starts_with("bucketload study <COMMAND>") {
        return false; // A synopsis.
    }
    let mut words = words(line);
    match words.next() {
        Some("bucketload") => true,
        Some("cargo") => line.contains("run --release -- "),
        _ => false,
    }
}

/// The words of a line after its variable assignments.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().skip_while(|word| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        })
    })
}

/// The line without its comment.
pub(super) fn without_comment(line: &str) -> &str {
    comment(line).map_or(line, |at| line[..at].trim_end())
}

/// The position of a comment: a `#` after a blank, outside quotes.
fn comment(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut blank = true;
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '#' && blank => return Some(at),
            None => {}
        }
        blank = c.is_whitespace();
    }
    None
}

/// Options whose value is a file or directory that the command creates.
const MADE: [&str; 4] = ["--out", "--write", "--report", "--cosbench-artifacts"];

/// The files that a command promises to write: redirected output, values of options that name output files, and a
/// comment that is only a path.
pub(super) fn promised(command: &str) -> Vec<String> {
    let mut files = Vec::new();
    let is_path = |word: &str| word.contains(['/', '.']) && !word.ends_with('.') && word != "…";
    if let Some(at) = comment(command) {
        let said = command[at + 1..].trim();
        if !said.contains(' ') && is_path(said) {
            files.push(said.to_owned());
        }
    }
    let words: Vec<&str> = without_comment(command).split_whitespace().collect();
    for pair in words.windows(2) {
        let made = pair[0] == ">" || MADE.contains(&pair[0]) || pair[0] == "-o" && is_path(pair[1]);
        if made {
            files.push(pair[1].trim_end_matches(';').to_owned());
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::{Example, examples, promised, without_comment};

    fn found(text: &str) -> Vec<(usize, String)> {
        let (found, unknown) = examples(text);
        assert_eq!(unknown, []);
        found
            .into_iter()
            .map(|e: Example| (e.line, e.text))
            .collect()
    }

    #[test]
    fn commands_are_found_with_their_lines() {
        let text = "a\n\n    bucketload run x \\\n        --rate 1/s   # why\n    bucketload top\n\n\
                    ```sh\n$ X_3=1 bucketload serve\n```\n\n    cargo run --release -- run y\n";
        let expected = [
            (3, "bucketload run x --rate 1/s   # why"),
            (5, "bucketload top"),
            (8, "X_3=1 bucketload serve"),
            (11, "cargo run --release -- run y"),
        ];
        assert_eq!(found(text), expected.map(|(n, t)| (n, t.to_owned())));
    }

    #[test]
    fn commands_are_found_in_help_texts() {
        let text = "```text\nExamples:\n  bucketload get\n      Load of `bucketload agent`; then\n  \
                    bzip2 -dc x | bucketload replay -\n```\n\n```text\nbucketload run [OPTIONS]\n```\n";
        let expected = [
            (3, "bucketload get"),
            (5, "bzip2 -dc x | bucketload replay -"),
        ];
        assert_eq!(found(text), expected.map(|(n, t)| (n, t.to_owned())));
    }

    #[test]
    fn unknown_lines_of_shell_blocks_are_reported() {
        let (_, unknown) = examples("    bucketload run x\n    frobnicate\n");
        assert_eq!(unknown, [(2, "frobnicate".to_owned())]);
        assert_eq!(examples("    frobnicate\n").1, []);
    }

    #[test]
    fn exports_hold_until_the_end_of_their_block() {
        let (found, _) =
            examples("    export A=1 # x\n    bucketload top\n\nb\n\n    bucketload top\n");
        assert_eq!(found[0].before, ["export A=1"]);
        assert!(found[1].before.is_empty());
    }

    #[test]
    fn promises_are_redirects_options_and_comments_that_are_paths() {
        assert_eq!(
            promised("bucketload bundle runs/a     # runs/a.tar.zst"),
            ["runs/a.tar.zst"]
        );
        assert_eq!(promised("bucketload bundle r -o e.zst && x"), ["e.zst"]);
        assert_eq!(promised("bucketload show x > my.toml"), ["my.toml"]);
        assert_eq!(
            promised("bucketload report r -o json  # the same, later"),
            Vec::<String>::new()
        );
        assert_eq!(
            promised("bucketload compare --report c.html > c.md"),
            ["c.html", "c.md"]
        );
    }

    #[test]
    fn a_hash_in_quotes_is_no_comment() {
        assert_eq!(without_comment("run 'a # b' # c"), "run 'a # b'");
        assert_eq!(without_comment("run a#b"), "run a#b");
    }
}
