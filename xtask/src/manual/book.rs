//! mdBook: the pinned version, installed below `target` by cargo on first use.
//!
//! It is a tool, not a dependency: nothing of ours links it, and a machine that has the toolchain can
//! build it (0.5.4 without its web server: about a minute of CPU time).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sh::{Result, cargo, output, root, run};

/// The version that the book is built with.
const VERSION: &str = "0.5.4";

/// Builds the book of `stage` into `out`, which is replaced.
pub(super) fn build(stage: &Path, out: &Path) -> Result {
    let program = installed()?;
    let mut command = Command::new(program);
    command.arg("build").arg(stage).arg("--dest-dir").arg(out);
    // A chapter that is missing or a directive that does not expand is an error in the log only.
    eprintln!("$ {}", crate::sh::show(&command));
    let done = command.output().map_err(|e| format!("mdbook: {e}"))?;
    let log = String::from_utf8_lossy(&done.stderr);
    eprint!("{log}");
    if !done.status.success() {
        return Err(format!("mdbook: {}", done.status));
    }
    match log
        .lines()
        .find(|line| line.contains("ERROR") || line.contains("WARN"))
    {
        Some(line) => Err(format!("mdbook: {}", line.trim())),
        None => Ok(()),
    }
}

/// Where mdBook is, which is built if it has to be.
pub(super) fn installed() -> Result<PathBuf> {
    let home = root().join("target/tools");
    let program = home.join("bin/mdbook");
    let has_version = |program: &Path| {
        let version = output(Command::new(program).arg("--version"));
        version.is_ok_and(|text| text.trim() == format!("mdbook v{VERSION}"))
    };
    if program.is_file() && has_version(&program) {
        return Ok(program);
    }
    let mut install = cargo(&format!(
        "install mdbook --version {VERSION} --locked --debug --no-default-features --features search --force --root"
    ));
    let objects = home.join("build");
    install
        .arg(&home)
        .env("CARGO_TARGET_DIR", &objects)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    run(&mut install)?;
    // half a gigabyte that nobody needs again
    let _ = std::fs::remove_dir_all(&objects);
    if has_version(&program) {
        Ok(program)
    } else {
        Err(format!("{} is not mdBook {VERSION}", program.display()))
    }
}
