//! Flags of `run` from the environment: `BUCKETLOAD_DURATION=30s` stands for `--duration 30s`.
//!
//! A variable becomes a flag before the command line is read, unless the flag, or one that contradicts it, was typed.
//! So flags take precedence, and everything that checks or records flags sees the whole. Only `run` reads them: a study,
//! a capacity search and a queue set their own flags for each run, and switch variables off with [`SWITCH`].

use std::ffi::OsString;
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// The groups of flags that have variables, by the beginning of their heading. Many hosts are left out: schedulers set
/// variables of the same names.
pub(crate) const GROUPS: [&str; 5] = [
    "Target options",
    "File system options",
    "Workload options",
    "Run options",
    "Output options",
];

/// The variable that switches these variables off if it is `off`; parents of runs set it.
pub(crate) const SWITCH: &str = bucketload_console::launcher::FLAG_VARIABLES;

/// The command line as it was understood, with what variables added.
static UNDERSTOOD: OnceLock<Vec<String>> = OnceLock::new();

/// The program's words, including the flags that variables stand for.
pub(crate) fn command_line() -> Vec<String> {
    let typed = || std::env::args().collect();
    UNDERSTOOD.get().cloned().unwrap_or_else(typed)
}

/// Remembers what [`command_line`] returns.
pub(crate) fn remember(words: &[OsString]) {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let _ = UNDERSTOOD.set(words.iter().map(text).collect());
}

/// The variable of a flag.
fn variable_of(long: &str) -> String {
    format!("BUCKETLOAD_{}", long.replace('-', "_").to_ascii_uppercase())
}

fn has_variable(arg: &Arg) -> bool {
    let heading = arg.get_help_heading().unwrap_or_default();
    let own = arg.get_long() == Some("exit-with-stdin");
    !own && arg.get_long().is_some() && GROUPS.iter().any(|group| heading.starts_with(group))
}

/// The flags that variables add to a command line with these `matches`, and the names of the variables. `variable` reads
/// the environment.
///
/// # Errors
/// When the variable of a switch is neither true nor false.
pub(crate) fn added(
    command: &Command,
    matches: &ArgMatches,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(String, OsString)>, String> {
    let off = variable(SWITCH).is_some_and(|value| value == "off");
    let (Some(("run", matches)), false) = (matches.subcommand(), off) else {
        return Ok(Vec::new());
    };
    let Some(run) = command.find_subcommand("run") else {
        return Ok(Vec::new());
    };
    let is_typed = |arg: &Arg| {
        let id = arg.get_id().as_str();
        matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let typed: Vec<&Arg> = run.get_arguments().filter(|arg| is_typed(arg)).collect();
    let contradicts = |a: &Arg, b: &Arg| {
        let mut others = run.get_arg_conflicts_with(a).into_iter();
        others.any(|other| other.get_id() == b.get_id())
    };
    let mut flags = Vec::new();
    for arg in run.get_arguments().filter(|arg| has_variable(arg)) {
        let long = arg.get_long().unwrap_or_default();
        let name = variable_of(long);
        let Some(value) = variable(&name).filter(|value| !value.is_empty()) else {
            continue;
        };
        let mut against = typed.iter();
        if against.any(|other| {
            other.get_id() == arg.get_id() || contradicts(arg, other) || contradicts(other, arg)
        }) {
            continue;
        }
        let mut flag = OsString::from(format!("--{long}"));
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            match value.to_str() {
                Some("1" | "true" | "yes") => {}
                Some("0" | "false" | "no") => continue,
                _ => {
                    return Err(format!(
                        "{name}: --{long} is a switch, so its variable is true or false, not {}",
                        value.display()
                    ));
                }
            }
        } else {
            flag.push("=");
            flag.push(value);
        }
        flags.push((name, flag));
    }
    Ok(flags)
}

/// `words` with `flags` behind the word `run`.
pub(crate) fn inserted(words: &[OsString], flags: &[(String, OsString)]) -> Vec<OsString> {
    let at = words.iter().position(|word| word == "run");
    let at = at.map_or(words.len(), |at| at + 1);
    let flags = flags.iter().map(|(_, flag)| flag.clone());
    let (before, behind) = words.split_at(at);
    before
        .iter()
        .cloned()
        .chain(flags)
        .chain(behind.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{added, inserted};
    use crate::cli::help;

    /// The command line that `line` and variables amount to.
    fn understood(line: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut command = help::command();
        command.build();
        let matches = command.clone().try_get_matches_from(&words).unwrap();
        let variable = |name: &str| {
            let mut all = variables.iter();
            all.find(|(known, _)| *known == name)
                .map(|(_, value)| value.into())
        };
        let flags = added(&command, &matches, variable)?;
        let whole = inserted(&words, &flags);
        command
            .try_get_matches_from(&whole)
            .map_err(|e| e.to_string())?;
        Ok(whole.join(" ".as_ref()).into_string().unwrap())
    }

    #[test]
    fn variables_stand_for_flags_of_run() {
        let variables = [
            ("BUCKETLOAD_TARGET", "s3://b/p"),
            ("BUCKETLOAD_ENDPOINT_URL", "http://a:1,http://b:1"),
            ("BUCKETLOAD_DURATION", "30s"),
            ("BUCKETLOAD_INSECURE", "true"),
            ("BUCKETLOAD_NO_VERIFY_SSL", "true"),
            ("BUCKETLOAD_VERIFY", "0"),
            ("BUCKETLOAD_OUT", ""),
            ("BUCKETLOAD_AGENTS", "4"),
        ];
        let whole = understood("bucketload -q run get", &variables).unwrap();
        for flag in [
            "--target=s3://b/p",
            "--endpoint-url=http://a:1,http://b:1",
            "--duration=30s",
            "--no-verify-ssl",
        ] {
            assert!(whole.contains(flag), "{whole}");
        }
        for other in ["--verify", "--out", "--agents"] {
            assert!(
                !whole.contains(&format!("{other} ")) && !whole.contains(&format!("{other}=")),
                "{whole}"
            );
        }
        let other = understood("bucketload cleanup", &variables).unwrap();
        assert_eq!(other, "bucketload cleanup");
    }

    #[test]
    fn what_is_typed_takes_precedence() {
        let rate = [("BUCKETLOAD_RATE", "5/s"), ("BUCKETLOAD_SIZE", "4k")];
        let typed = |line: &str| understood(line, &rate).unwrap();
        assert_eq!(
            typed("bucketload run get --rate 9/s --size 1k"),
            "bucketload run get --rate 9/s --size 1k"
        );
        // A number of workers contradicts a rate, in either order of the definitions.
        assert_eq!(
            typed("bucketload run get --workers 3"),
            "bucketload run --size=4k get --workers 3"
        );
        let workers = [("BUCKETLOAD_WORKERS", "3")];
        let line = "bucketload run get --rate 9/s";
        assert_eq!(understood(line, &workers).unwrap(), line);
        let both = [("BUCKETLOAD_WORKERS", "3"), ("BUCKETLOAD_RATE", "5/s")];
        assert!(
            understood("bucketload run get", &both)
                .unwrap_err()
                .contains("cannot be used with")
        );
        let off = [rate[0], (super::SWITCH, "off")];
        assert_eq!(
            understood("bucketload run get", &off).unwrap(),
            "bucketload run get"
        );
        let switch = understood("bucketload run get", &[("BUCKETLOAD_KEEP", "maybe")]);
        assert!(switch.unwrap_err().contains("BUCKETLOAD_KEEP"));
    }
}
