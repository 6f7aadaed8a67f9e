//! Running commands: every task reports what it runs and how long it took.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Failure of a task, as text for the operator.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let mut dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    dir.pop();
    dir
}

/// A command that runs in the root of the workspace, without standard input.
pub(crate) fn cmd<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// `cargo` as it was when this task was started.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    cmd(&cargo, args)
}

/// Runs to the end and fails unless it succeeded.
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

/// Runs to the end and returns its standard output; fails unless it succeeded.
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

/// Puts `table` into a page, between the comments `name` and `end of name`.
pub(crate) fn write_between(page: &Path, name: &str, table: &str) -> Result {
    let at = |e: std::io::Error| format!("{}: {e}", page.display());
    let text = std::fs::read_to_string(page).map_err(at)?;
    let begin = format!("<!-- {name} -->\n");
    let end = format!("<!-- end of {name} -->");
    let (Some(from), Some(to)) = (text.find(&begin), text.find(&end)) else {
        let page = page.display();
        return Err(format!(
            "{page}: the comments {begin:?} and {end:?} are missing"
        ));
    };
    let (before, after) = (&text[..from + begin.len()], &text[to..]);
    std::fs::write(page, format!("{before}\n{table}\n{after}")).map_err(at)
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

/// The command line, for messages.
pub(crate) fn show(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Makes sure that Debian packages are installed (as root) when any of `programs` is missing.
pub(crate) fn need_programs(programs: &[(&str, &str)]) -> Result {
    let missing: Vec<&str> = programs
        .iter()
        .filter(|(program, _)| !on_path(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = || {
        let mut args = vec![
            "-o",
            "DPkg::Lock::Timeout=900",
            "-y",
            "-q",
            "install",
            "--no-install-recommends",
        ];
        args.extend(&missing);
        run(cmd("apt-get", args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null()))
    };
    // a new machine has no package lists yet
    install().or_else(|_| {
        run(
            cmd("apt-get", ["-o", "DPkg::Lock::Timeout=900", "-q", "update"]).stdout(Stdio::null()),
        )?;
        install()
    })?;
    match programs.iter().find(|(program, _)| !on_path(program)) {
        None => Ok(()),
        Some((program, package)) => Err(format!(
            "{program} is missing although {package} was installed"
        )),
    }
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
