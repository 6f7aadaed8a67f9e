//! Examples in the documents: every command line uses commands and options that exist, and every workload resolves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::markdown::{self, Code};
use super::{first_hour, links, work_dir};
use crate::files;
use crate::program::{quoted, try_bucketload};
use crate::sh::{Result, ensure, no_faults, root};

/// The options of each command, by the command's name without `bucketload`.
pub(super) type Commands = BTreeMap<String, BTreeSet<String>>;

/// Checks the examples of every document against the options of the commands.
pub(super) fn check(commands: &Commands) -> Result {
    let mut faults = Vec::new();
    let mut lines = 0;
    let mut workloads = 0;
    for path in links::own_paths()? {
        if path == Path::new(first_hour::PAGE) {
            continue;
        }
        let text = files::read(root().join(&path))?;
        for code in markdown::code(&text) {
            let number = text[..code.at].matches('\n').count() + 1;
            let place = format!("{}:{number}", path.display());
            for line in joined(&code.text).lines() {
                if let Some(fault) = check_line(line, commands) {
                    faults.push(format!("{place}: {fault}: {}", line.trim()));
                }
                lines += usize::from(line.contains("bucketload "));
            }
            if is_workload(&path, &code) {
                workloads += 1;
                if let Err(fault) = check_workload(&code.text) {
                    faults.push(format!("{place}: {fault}"));
                }
            }
        }
    }
    no_faults("faults in examples", &faults)?;
    eprintln!("{lines} command lines and {workloads} workloads in examples, all valid");
    Ok(())
}

/// Reads the options of each command from the commands' pages.
pub(super) fn commands(pages: &[(String, String)]) -> Commands {
    let mut commands = Commands::new();
    let mut global = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
    for (_, text) in pages {
        let title = text.strip_prefix("# ").and_then(|text| text.lines().next());
        let name = title
            .unwrap_or_default()
            .trim_start_matches("bucketload")
            .trim();
        let forms = text.lines().filter_map(|line| line.strip_prefix("#### `"));
        let mut options: BTreeSet<String> = forms.filter_map(long_option).collect();
        let aliases = text.lines().filter_map(|line| line.strip_prefix("Alias: "));
        options.extend(
            aliases
                .flat_map(|line| line.split(", "))
                .filter_map(long_option),
        );
        if name.is_empty() {
            global.extend(options);
        } else {
            commands.insert(name.to_owned(), options);
        }
    }
    for options in commands.values_mut() {
        options.extend(global.iter().cloned());
    }
    commands.insert("help".to_owned(), global.clone());
    commands.insert(String::new(), global);
    commands
}

/// `target` of a form such as `-t, --target <URL>`.
fn long_option(form: &str) -> Option<String> {
    let (_, rest) = form.split_once("--")?;
    let name: String = rest
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    (!name.is_empty()).then_some(name)
}

/// Joins lines that end in a backslash with the next line.
pub(super) fn joined(text: &str) -> String {
    text.replace("\\\n", " ")
}

/// Returns the fault of a line that calls the program, if any.
pub(super) fn check_line(line: &str, commands: &Commands) -> Option<String> {
    let line = unquoted(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    for (at, _) in words
        .iter()
        .enumerate()
        .filter(|(_, word)| **word == "bucketload")
    {
        // The package name in a cargo command.
        if at > 0 && words[at - 1] == "-p" {
            continue;
        }
        let mut rest = &words[at + 1..];
        let two = rest.get(..2).map(|pair| pair.join(" ")).unwrap_or_default();
        let mut name = match rest.first() {
            Some(word) if word.starts_with('-') => String::new(),
            Some(_) if commands.contains_key(&two) => two,
            Some(word) => (*word).to_owned(),
            None => continue,
        };
        if !commands.contains_key(&name) {
            let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if is_word && at == 0 {
                return Some(format!("there is no command `{name}`"));
            }
            continue;
        }
        rest = &rest[name.split_whitespace().count()..];
        for word in rest {
            match *word {
                "|" | "||" | "&&" | ">" | "<" | "#" | ";" | "bucketload" => break,
                // The options after `--` belong to the submitted or rendered run.
                "--" => name = "run".to_owned(),
                word => {
                    let Some(option) = word.strip_prefix("--").and(long_option(word)) else {
                        continue;
                    };
                    if !commands[&name].contains(&option) {
                        return Some(format!("`{name}` has no option --{option}"));
                    }
                }
            }
        }
    }
    None
}

/// The line without its quoted parts, which are meant for other programs.
fn unquoted(line: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, c) => out.push(c),
            (Some(_), _) => {}
        }
    }
    out
}

/// True if a block of the manual is a whole workload.
fn is_workload(path: &Path, code: &Code) -> bool {
    let ours = path.starts_with("docs") && !path.starts_with("docs/reference");
    ours && code.language == "toml" && code.text.contains("[phases.")
}

fn check_workload(text: &str) -> Result {
    let file = work_dir().join("example.toml");
    files::write(&file, text)?;
    let verb = if text.contains("[[fault]]") {
        "drill"
    } else {
        "run"
    };
    let done = try_bucketload(&format!("{verb} {} --dry-run --quiet", quoted(&file)?))?;
    ensure(done.code == 0, || {
        format!("the program refuses this workload: {}", done.stderr.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::{check_line, commands, joined};

    #[test]
    fn commands_and_options_must_exist() {
        let page =
            |title: &str, options: &str| (String::new(), format!("# {title}\n\n{options}\n"));
        let pages = [
            page("bucketload", "#### `--quiet`"),
            page(
                "bucketload run",
                "#### `-t, --target <URL>`\n\n#### `--no-verify-ssl`\n\nAlias: `--insecure`",
            ),
            page("bucketload config show", ""),
            page("bucketload slurm", "#### `--nodes <N>`"),
        ];
        let commands = commands(&pages);
        for line in [
            "$ bucketload run get --target s3://b --insecure --quiet | grep --color x",
            "bucketload config show --quiet",
            "bucketload slurm --nodes 8 -- get --target s3://b",
            "bucketload run x --target \"--nonsense\"",
            "a bucketload directory",
            "srun -n 8 bucketload run get",
            "cargo build -p bucketload --features x",
        ] {
            assert_eq!(check_line(line, &commands), None, "{line}");
        }
        for line in [
            "bucketload run get --taget s3://b",
            "bucketload runn get",
            "srun bucketload slurm --target x",
            &joined("bucketload run get \\\n    --endpoint x"),
        ] {
            assert!(check_line(line, &commands).is_some(), "{line}");
        }
    }
}
