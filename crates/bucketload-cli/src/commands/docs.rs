//! `bucketload man` and `bucketload completions`.

use std::io::Write as _;
use std::path::Path;

use clap_complete::Shell;

use crate::cli::{docs, markdown};
use crate::exit::{Exit, Failure, OrFail};

/// Prints the manual page, or writes all pages into `out`, as roff or as Markdown.
pub(crate) fn man(out: Option<&Path>, as_markdown: bool) -> Result<Exit, Failure> {
    let Some(dir) = out else {
        return print(&docs::man_page().or_aborted()?);
    };
    let at = |e: std::io::Error| Failure::usage(format!("--out {}: {e}", dir.display()));
    std::fs::create_dir_all(dir).map_err(at)?;
    if as_markdown {
        for (name, page) in markdown::pages() {
            std::fs::write(dir.join(name), page).map_err(at)?;
        }
        return Ok(Exit::Ok);
    }
    for (name, page) in docs::man_pages().or_aborted()? {
        std::fs::write(dir.join(name), page).map_err(at)?;
    }
    Ok(Exit::Ok)
}

/// Prints the completion script for a shell.
pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    print(&docs::completions(shell))
}

/// Writes to standard output. A closed pipe is not an error.
pub(crate) fn print(bytes: &[u8]) -> Result<Exit, Failure> {
    match std::io::stdout().lock().write_all(bytes) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::aborted(format!("standard output: {e}")))
        }
        _ => Ok(Exit::Ok),
    }
}
