//! The book's sources: `docs` with inclusions expanded and every link leading to a chapter.
//!
//! Links are written for the repository. A link that leads out of `docs` becomes a link to the chapter that includes
//! the file, or to a copy of the file in the book.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::markdown;
use super::normal;
use crate::files;
use crate::sh::{Result, root};

/// Directory in the book for copies of files that are not chapters.
const COPIES: &str = "files";

/// Rebuilds the sources in `stage`.
pub(super) fn make(stage: &Path) -> Result {
    files::remove_dir(stage)?;
    let docs = root().join("docs");
    let files = files::below(&docs)?;
    let mut chapters = BTreeMap::new();
    for file in files.iter().filter(|file| is_markdown(file)) {
        for line in files::read(docs.join(file))?.lines() {
            if let Some(path) = markdown::included(line).and_then(|to| beside(file, to)) {
                chapters.insert(path, file.clone());
            }
        }
    }
    let mut copies = Vec::new();
    for file in &files {
        if !is_markdown(file) {
            let bytes = files::bytes(docs.join(file))?;
            files::write(stage.join(file), bytes)?;
            continue;
        }
        let mut text = String::new();
        for line in files::read(docs.join(file))?.lines() {
            match markdown::included(line).and_then(|to| beside(file, to)) {
                Some(path) => {
                    let included = files::read(root().join(&path))?;
                    text += &relinked(&included, &path, file, &chapters, &mut copies);
                }
                None => text += line,
            }
            text.push('\n');
        }
        let own = Path::new("docs").join(file);
        files::write(
            stage.join(page(file)),
            relinked(&text, &own, file, &chapters, &mut copies),
        )?;
    }
    for copy in copies {
        let bytes = files::bytes(root().join(&copy))?;
        files::write(stage.join(COPIES).join(&copy), bytes)?;
    }
    Ok(())
}

fn is_markdown(path: &Path) -> bool {
    files::is_kind(path, "md")
}

/// The path, relative to the root, of the `link` in the chapter `file` of `docs`.
fn beside(file: &Path, link: &str) -> Option<PathBuf> {
    normal(&Path::new("docs").join(file).parent()?.join(link))
}

/// Rewrites the links in `text`, from the repository's file `from`, for the chapter `chapter` (relative to `docs`).
fn relinked(
    text: &str,
    from: &Path,
    chapter: &Path,
    chapters: &BTreeMap<PathBuf, PathBuf>,
    copies: &mut Vec<PathBuf>,
) -> String {
    let found = std::cell::RefCell::new(copies);
    markdown::with_links(text, |link| {
        if link.to.contains("://") || link.to.starts_with(['#']) || link.to.starts_with("mailto:") {
            return None;
        }
        let (file, anchor) = link.to.split_once('#').unwrap_or((&link.to, ""));
        let path = normal(&from.parent()?.join(file))?;
        let to = match (chapters.get(&path), path.strip_prefix("docs")) {
            (Some(chapter), _) => chapter.clone(),
            (None, Ok(inside)) if root().join(&path).is_dir() => inside.join("README.md"),
            (None, Ok(inside)) => inside.to_owned(),
            // The chapter's own text is processed after its inclusions, whose links are correct already.
            (None, Err(_)) if path.starts_with(COPIES) || !root().join(&path).is_file() => {
                return None;
            }
            (None, Err(_)) => {
                found.borrow_mut().push(path.clone());
                Path::new(COPIES).join(&path)
            }
        };
        let mut new = relative(chapter, &page(&to));
        if !anchor.is_empty() {
            new = format!("{new}#{anchor}");
        }
        Some(new)
    })
}

/// The file name of a chapter in the book, where the page of a directory is `index.md`.
fn page(path: &Path) -> PathBuf {
    if path.ends_with("README.md") {
        path.with_file_name("index.md")
    } else {
        path.to_owned()
    }
}

/// The relative path from the file `from` to the file `to`, both given relative to one directory.
fn relative(from: &Path, to: &Path) -> String {
    let depth = from.components().count().saturating_sub(1);
    let from_dir: Vec<_> = from.components().take(depth).collect();
    let to_parts: Vec<_> = to.components().collect();
    let common = from_dir
        .iter()
        .zip(&to_parts)
        .take_while(|(a, b)| a == b)
        .count();
    let up = std::iter::repeat_n("..".to_owned(), from_dir.len() - common);
    let down = to_parts[common..]
        .iter()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use super::{relative, relinked};

    #[test]
    fn relative_paths_are_the_shortest() {
        let call = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(call("a.md", "b.md"), "b.md");
        assert_eq!(call("x/a.md", "b.md"), "../b.md");
        assert_eq!(call("x/a.md", "x/b.md"), "b.md");
        assert_eq!(call("x/a.md", "y/b.md"), "../y/b.md");
    }

    #[test]
    fn links_out_of_docs_lead_to_chapters_or_copies() {
        let chapters = BTreeMap::from([(
            PathBuf::from("ARCHITECTURE.md"),
            PathBuf::from("project/architecture.md"),
        )]);
        let mut copies = Vec::new();
        let text = "[a](../ARCHITECTURE.md#crates) [b](drivers) [c](../Cargo.toml) [d](agents.md)";
        let from = Path::new("docs/comparison.md");
        let new = relinked(
            text,
            from,
            Path::new("comparison.md"),
            &chapters,
            &mut copies,
        );
        assert_eq!(
            new,
            "[a](project/architecture.md#crates) [b](drivers/index.md) [c](files/Cargo.toml) [d](agents.md)"
        );
        assert_eq!(copies, [PathBuf::from("Cargo.toml")]);
    }
}
