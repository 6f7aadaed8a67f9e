//! mdBook: the pinned version, which cargo installs below `target` on first use.
//!
//! mdBook is a tool, not a dependency: nothing of ours links it, and any machine with the toolchain can build it
//! (0.5.4 without its web server: about a minute of CPU time).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sh::{Result, cargo, output, root, run};

/// The mdBook version.
const VERSION: &str = "0.5.4";

/// Builds the book from `stage` into `out`, replacing it.
pub(super) fn build(stage: &Path, out: &Path) -> Result {
    let program = installed()?;
    let mut command = Command::new(program);
    command.arg("build").arg(stage).arg("--dest-dir").arg(out);
    // mdBook reports a missing chapter or an unknown directive only in its log.
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

/// Path of mdBook; builds it if necessary.
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
    // Half a gigabyte that is not needed again.
    let _ = std::fs::remove_dir_all(&objects);
    if has_version(&program) {
        Ok(program)
    } else {
        Err(format!("{} is not mdBook {VERSION}", program.display()))
    }
}
