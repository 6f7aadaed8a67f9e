//! `bucketload man` and `bucketload completions`.

use std::io::Write as _;
use std::path::Path;

use clap_complete::Shell;

use crate::cli::docs;
use crate::exit::{Exit, Failure};

/// Prints the manual page, or writes all pages into `out`.
pub(crate) fn man(out: Option<&Path>) -> Result<Exit, Failure> {
    let Some(dir) = out else {
        return print(&docs::man_page().map_err(|e| Failure::aborted(e.to_string()))?);
    };
    let at = |e: std::io::Error| Failure::usage(format!("--out {}: {e}", dir.display()));
    std::fs::create_dir_all(dir).map_err(at)?;
    for (name, page) in docs::man_pages().map_err(|e| Failure::aborted(e.to_string()))? {
        std::fs::write(dir.join(name), page).map_err(at)?;
    }
    Ok(Exit::Ok)
}

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    print(&docs::completions(shell))
}

/// Writes to standard output; a reader that went away is no error.
pub(crate) fn print(bytes: &[u8]) -> Result<Exit, Failure> {
    match std::io::stdout().lock().write_all(bytes) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::aborted(format!("standard output: {e}")))
        }
        _ => Ok(Exit::Ok),
    }
}
