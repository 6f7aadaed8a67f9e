//! Links of the repository's Markdown files: files and anchors exist, pictures are small, URLs are well formed, and
//! every page of `docs` is a chapter of the book.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::markdown::{self, Link};
use super::normal;
use crate::files;
use crate::sh::{Result, ensure, no_faults, root};

/// Largest picture in bytes: some readers have slow connections, and history keeps every version.
const LARGEST_PICTURE: u64 = 280_000;

/// Directories with Markdown files, besides the root itself.
const PLACES: [&str; 2] = ["docs", "servers"];

/// Checks all files; the error names every fault.
pub(super) fn check() -> Result {
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    for path in paths()? {
        let text = files::read(root().join(&path))?;
        pages.insert(path, text);
    }
    let anchors: BTreeMap<&Path, BTreeSet<String>> = pages
        .iter()
        .map(|(path, text)| {
            (
                path.as_path(),
                markdown::anchors(&expanded(path, text, &pages)),
            )
        })
        .collect();
    let mut faults = Vec::new();
    for (path, text) in &pages {
        for link in markdown::links(text) {
            if let Err(what) = check_link(path, &link, &anchors) {
                let line = text[..link.range.start].matches('\n').count() + 1;
                faults.push(format!("{}:{line}: {}: {what}", path.display(), link.to));
            }
        }
        for included in text.lines().filter_map(markdown::included) {
            if !pages.contains_key(&beside(path, included).unwrap_or_default()) {
                faults.push(format!("{}: cannot include {included}", path.display()));
            }
        }
    }
    let summary = Path::new("docs/SUMMARY.md");
    let chapters: BTreeSet<PathBuf> = markdown::links(&pages[summary])
        .iter()
        .filter_map(|link| beside(summary, &link.to))
        .collect();
    for path in pages
        .keys()
        .filter(|path| path.starts_with("docs") && path.as_path() != summary)
    {
        if !chapters.contains(path) {
            faults.push(format!("{}: not in {}", path.display(), summary.display()));
        }
    }
    no_faults("faults in links", &faults)
}

/// Every Markdown file of the documents, relative to the repository's root.
pub(super) fn paths() -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let at = |e: std::io::Error| format!("{}: {e}", root().display());
    for entry in std::fs::read_dir(root()).map_err(at)? {
        paths.push(PathBuf::from(entry.map_err(at)?.file_name()));
    }
    for place in PLACES {
        let below = files::below(&root().join(place))?;
        paths.extend(below.into_iter().map(|path| Path::new(place).join(path)));
    }
    paths.retain(|path| files::is_kind(path, "md"));
    Ok(paths)
}

/// Like [`paths`], without the specifications, which describe third-party programs.
pub(super) fn own_paths() -> Result<Vec<PathBuf>> {
    let mut paths = paths()?;
    paths.retain(|path| !path.starts_with("docs/spec"));
    Ok(paths)
}

/// The text with its inclusions expanded, to collect anchors.
fn expanded(path: &Path, text: &str, pages: &BTreeMap<PathBuf, String>) -> String {
    let lines = text.lines().map(|line| {
        let file = markdown::included(line).and_then(|file| beside(path, file));
        file.and_then(|file| pages.get(&file))
            .map_or(line, String::as_str)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The path, relative to the root, of the `link` in the file `path`.
fn beside(path: &Path, link: &str) -> Option<PathBuf> {
    normal(&path.parent()?.join(link))
}

fn check_link(from: &Path, link: &Link, anchors: &BTreeMap<&Path, BTreeSet<String>>) -> Result {
    if link.to.contains("://") || link.to.starts_with("mailto:") {
        return well_formed(&link.to);
    }
    let (file, anchor) = link
        .to
        .split_once('#')
        .map_or((link.to.as_str(), None), |(f, a)| (f, Some(a)));
    let mut path = match file {
        "" => from.to_owned(),
        file => beside(from, file).ok_or("leads out of the repository")?,
    };
    let meta = std::fs::metadata(root().join(&path)).map_err(|_| "no such file")?;
    if link.is_image && meta.len() > LARGEST_PICTURE {
        return Err(format!(
            "a picture of {} bytes, at most {LARGEST_PICTURE}",
            meta.len()
        ));
    }
    if meta.is_dir() {
        path.push("README.md");
    }
    match anchor {
        Some(anchor)
            if !anchors
                .get(path.as_path())
                .is_some_and(|known| known.contains(anchor)) =>
        {
            Err("no such heading".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks the form of a URL, without visiting it.
pub(super) fn well_formed(url: &str) -> Result {
    if url.starts_with("mailto:") {
        return ensure(url.contains('@'), || "no address");
    }
    let (scheme, rest) = url.split_once("://").ok_or("no scheme")?;
    if scheme != "http" && scheme != "https" {
        return Err(format!("unknown scheme {scheme}"));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "0"));
    let named = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && port.parse::<u16>().is_ok();
    let clean = rest
        .chars()
        .all(|c| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '`' | '|'));
    match (named, clean) {
        (true, true) => Ok(()),
        (false, _) => Err("no host".to_owned()),
        (_, false) => Err("a character not allowed in a URL".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::well_formed;

    #[test]
    fn addresses_are_checked_by_form() {
        for url in [
            "https://io500.org",
            "http://127.0.0.1:9000/a?b=c#d",
            "mailto:a@b.c",
        ] {
            well_formed(url).unwrap_or_else(|e| panic!("{url}: {e}"));
        }
        for url in [
            "https://",
            "ftp://a.b/c",
            "http://a b/",
            "http://host:port/",
            "mailto:x",
        ] {
            assert!(well_formed(url).is_err(), "{url}");
        }
    }
}
