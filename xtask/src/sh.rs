//! Runs commands; every task reports its commands and their duration.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::files;

/// A task's failure, as text for the operator.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let mut dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    dir.pop();
    dir
}

/// A command in the root of the workspace, without standard input.
pub(crate) fn cmd<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// Splits a command line into words as a shell does: at blanks outside quotes.
///
/// # Panics
/// A quote is not closed: all lines are literals in this crate.
pub(crate) fn words(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_else(|| panic!("an unclosed quote: {line}"))
}

/// A command line in the root of the workspace, without standard input.
pub(crate) fn line(text: &str) -> Command {
    let words = words(text);
    cmd(&words[0], &words[1..])
}

/// The `cargo` that started this task, with the arguments in `line`.
pub(crate) fn cargo(line: &str) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    cmd(&cargo, words(line))
}

/// A script in `servers/` with the arguments in `line`.
pub(crate) fn script(name: &str, line: &str) -> Command {
    let path = root().join(format!("servers/{name}.sh"));
    cmd(&path.to_string_lossy(), words(line))
}

/// Fails with the text of `otherwise` unless `holds`.
pub(crate) fn ensure<S: Into<String>>(holds: bool, otherwise: impl FnOnce() -> S) -> Result {
    match holds {
        true => Ok(()),
        false => Err(otherwise().into()),
    }
}

/// Fails with all of `failures` unless the list is empty.
pub(crate) fn none_of(failures: &[String]) -> Result {
    ensure(failures.is_empty(), || failures.join("\n"))
}

/// Fails unless `faults` is empty; the error has the count, `what`, and one fault per line.
pub(crate) fn no_faults(what: &str, faults: &[String]) -> Result {
    let count = faults.len();
    ensure(faults.is_empty(), || {
        format!("{count} {what}:\n  {}", faults.join("\n  "))
    })
}

/// Runs a command to its end and fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().map_err(|e| format!("{shown}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{shown}: {status}"))
    }
}

/// Runs a command to its end and returns its standard output; fails unless it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let out = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("{shown}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{shown}: {}", out.status));
    }
    String::from_utf8(out.stdout).map_err(|e| format!("{shown}: {e}"))
}

/// Puts `table` into a page between the comments `name` and `end of name`.
pub(crate) fn write_between(page: &Path, name: &str, table: &str) -> Result {
    let text = files::read(page)?;
    let begin = format!("<!-- {name} -->\n");
    let end = format!("<!-- end of {name} -->");
    let (Some(from), Some(to)) = (text.find(&begin), text.find(&end)) else {
        let page = page.display();
        return Err(format!(
            "{page}: the comments {begin:?} and {end:?} are missing"
        ));
    };
    let (before, after) = (&text[..from + begin.len()], &text[to..]);
    files::write(page, format!("{before}\n{table}\n{after}"))
}

/// Runs a named step and prints its duration.
pub(crate) fn step(name: &str, body: impl FnOnce() -> Result) -> Result {
    eprintln!("== {name}");
    let start = Instant::now();
    let outcome = body();
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    eprintln!(
        "== {name}: {word} in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    outcome.map_err(|e| format!("{name}: {e}"))
}

/// Runs named steps one after another; one failure does not hide the next.
pub(crate) fn steps(all: &[(&str, &dyn Fn() -> Result)]) -> Result {
    let failures = all.iter().filter_map(|(name, body)| step(name, body).err());
    none_of(&failures.collect::<Vec<_>>())
}

/// Formats the command line for messages.
pub(crate) fn show(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Installs the Debian packages (as root) of those `programs` that are missing.
pub(crate) fn need_programs(programs: &[(&str, &str)]) -> Result {
    let missing: Vec<&str> = programs
        .iter()
        .filter(|(program, _)| !on_path(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    const INSTALL: &str =
        "apt-get -o DPkg::Lock::Timeout=900 -y -q install --no-install-recommends";
    let install = || {
        run(line(INSTALL)
            .args(&missing)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null()))
    };
    // A new machine has no package lists yet.
    install().or_else(|_| {
        run(line("apt-get -o DPkg::Lock::Timeout=900 -q update").stdout(Stdio::null()))?;
        install()
    })?;
    match programs.iter().find(|(program, _)| !on_path(program)) {
        None => Ok(()),
        Some((program, package)) => Err(format!(
            "{program} is missing although {package} was installed"
        )),
    }
}

/// True if `PATH` contains a program of this name.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
