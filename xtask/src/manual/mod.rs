//! The manual: its generated pages, links, pictures, and the book.
//!
//! ```text
//! the program, the sources ── reference ─► docs/reference/  (committed; compared, or written with --write)
//! *.md of the repository ── links: every file, anchor and picture exists, URLs are well formed
//! their examples ── examples: commands and options exist, workloads resolve
//! their code and tables ── flags: every flag belongs to the program or a known third party
//! sources and documents ── citations: every cited page exists, with its section
//! docs/ and what it includes ── stage ─► target/manual/stage ── book (mdBook) ─► target/manual/book
//! target/manual/book ── html: every link, anchor and picture of the finished pages
//! ```
//!
//! Chapters are written for the repository, and their links work on a code host. `stage` rewrites links that lead out
//! of `docs`, so that the same text also works in the book.

mod book;
mod citations;
mod environment;
mod examples;
mod first_hour;
mod flags;
mod html;
mod links;
pub(crate) mod markdown;
mod reference;
mod results;
mod rust;
mod schema;
mod stage;

use std::path::{Path, PathBuf};

use crate::sh::{Result, cmd, root, run};

/// Checks the generated pages and every link, and builds the book.
///
/// `--write` first updates the generated pages; `--open` shows the book.
pub(crate) fn main(args: &[String]) -> Result {
    let mut write = false;
    let mut open = false;
    for arg in args {
        match arg.as_str() {
            "--write" => write = true,
            "--open" => open = true,
            other => return Err(format!("unknown option {other}: --write, --open")),
        }
    }
    let commands = examples::commands(&reference::update(write)?);
    links::check()?;
    citations::check()?;
    examples::check(&commands)?;
    flags::check(&commands)?;
    let stage = work_dir().join("stage");
    stage::make(&stage)?;
    let built = work_dir().join("book");
    book::build(&stage, &built)?;
    html::check(&built)?;
    let index = built.join("index.html");
    eprintln!("the manual is in {}", index.display());
    if open {
        run(&mut cmd("xdg-open", [index]))?;
    }
    Ok(())
}

/// Installs mdBook if it is missing.
pub(crate) fn need_mdbook() -> Result {
    book::installed().map(drop)
}

/// Directory of the staged sources and the book.
fn work_dir() -> PathBuf {
    root().join("target/manual")
}

/// Resolves `.` and `..` in `path`; `None` if it leads above its start.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::normal;

    #[test]
    fn paths_are_made_normal() {
        assert_eq!(normal(Path::new("a/./b/../c")), Some(PathBuf::from("a/c")));
        assert_eq!(normal(Path::new("a/../../c")), None);
    }
}
