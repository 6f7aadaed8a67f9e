//! The finished pages: every link leads to a file of the book, every anchor to an element with that ID, and every
//! picture exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::links::well_formed;
use super::normal;
use crate::files;
use crate::sh::{Result, no_faults};

/// The IDs that a page defines and the links that it contains.
#[derive(Debug, Default, PartialEq)]
struct Page {
    ids: BTreeSet<String>,
    links: BTreeSet<String>,
}

/// Checks the book in `dir`; the error names every fault.
pub(super) fn check(dir: &Path) -> Result {
    let files: BTreeSet<PathBuf> = files::below(dir)?.into_iter().collect();
    let mut pages = BTreeMap::new();
    for path in &files {
        // Copies of the repository's files are not pages of the book.
        if files::is_kind(path, "html") && !path.starts_with("files") {
            pages.insert(path.clone(), scan(&files::read(dir.join(path))?));
        }
    }
    let mut faults = Vec::new();
    let mut checked = 0;
    for (path, page) in &pages {
        for link in &page.links {
            checked += 1;
            if let Err(what) = check_link(path, link, &files, &pages) {
                faults.push(format!("{}: {link}: {what}", path.display()));
            }
        }
    }
    if pages.len() < 2 || checked == 0 {
        return Err(format!("no book in {}", dir.display()));
    }
    no_faults("dead links", &faults)?;
    eprintln!("{} pages, {checked} links, none dead", pages.len());
    Ok(())
}

fn check_link(
    from: &Path,
    link: &str,
    files: &BTreeSet<PathBuf>,
    pages: &BTreeMap<PathBuf, Page>,
) -> Result {
    if link.starts_with("data:") {
        return Ok(());
    }
    if link.contains("://") || link.starts_with("mailto:") {
        return well_formed(link);
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = match file {
        "" => from.to_owned(),
        file => {
            let parent = from.parent().unwrap_or(Path::new(""));
            let file = file.split('?').next().unwrap_or_default();
            normal(&parent.join(file)).ok_or("leads out of the book")?
        }
    };
    if !files.contains(&path) {
        return Err("no such page".to_owned());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    match pages.get(&path) {
        Some(page) if page.ids.contains(anchor) => Ok(()),
        _ => Err("no such anchor".to_owned()),
    }
}

/// The IDs and links of a page, from the attributes of its tags; scripts are skipped.
fn scan(html: &str) -> Page {
    let mut page = Page::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let (tag, after) = tag(rest);
        rest = after;
        let name = tag.split([' ', '\n', '\t', '/']).next().unwrap_or_default();
        for (attribute, value) in attributes(&tag[name.len()..]) {
            let value = unescaped(value);
            match attribute {
                "id" | "name" => drop(page.ids.insert(value)),
                // Canonical addresses and hints for search engines are not links to follow.
                "href" | "src" if !value.is_empty() => drop(page.links.insert(value)),
                _ => {}
            }
        }
        if name == "script" || name == "style" {
            let end = format!("</{name}");
            rest = rest.find(&end).map_or("", |at| &rest[at..]);
        }
    }
    page
}

/// A tag up to its `>`, which may also occur inside quotes, and the text after it.
fn tag(text: &str) -> (&str, &str) {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return (&text[..at], &text[at + 1..]),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    (text, "")
}

fn attributes(mut text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    while let Some((before, after)) = text.split_once('=') {
        let name = before.split_whitespace().last().unwrap_or_default();
        let after = after.trim_start();
        let Some(quote) = after.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            text = after;
            continue;
        };
        let Some((value, rest)) = after[1..].split_once(quote) else {
            break;
        };
        found.push((name, value));
        text = rest;
    }
    found
}

/// Decodes the character references that mdBook writes into attributes, and percent-encoding.
fn unescaped(value: &str) -> String {
    let text = value
        .replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let hex = rest
            .get(at + 1..at + 3)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(hex.unwrap_or(b'%'));
        rest = &rest[at + if hex.is_some() { 3 } else { 1 }..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};

    use super::{Page, check_link, scan};

    fn set(items: &[&str]) -> BTreeSet<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn attributes_are_read_from_tags_only() {
        let html = "<!-- <a href='x'> --><h1 id=\"a-b\">A</h1>\n<a title='>' href=\"c.html#d%20e&amp;f\">\
                    href=\"no\"</a><script>let a = '<a href=\"x\">';</script><img src=\"p.png\"/>";
        let page = scan(html);
        assert_eq!(page.ids, set(&["a-b"]));
        assert_eq!(page.links, set(&["c.html#d e&f", "p.png"]));
    }

    #[test]
    fn dead_pages_anchors_and_pictures_are_found() {
        let files: BTreeSet<PathBuf> = ["a/x.html", "y.html", "p.png"].map(PathBuf::from).into();
        let ids = Page {
            ids: set(&["here"]),
            links: BTreeSet::new(),
        };
        let pages = BTreeMap::from([(PathBuf::from("y.html"), ids)]);
        let check = |link: &str| check_link(Path::new("a/x.html"), link, &files, &pages);
        for link in [
            "../y.html",
            "../y.html#here",
            "../p.png",
            "https://a.example/b",
            "#",
        ] {
            check(link).unwrap_or_else(|e| panic!("{link}: {e}"));
        }
        for link in [
            "y.html",
            "../y.html#there",
            "../q.png",
            "../../y.html",
            "https:///b",
        ] {
            assert!(check(link).is_err(), "{link}");
        }
    }
}
