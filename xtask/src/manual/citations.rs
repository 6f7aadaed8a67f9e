//! Citations: every page that sources and documents cite is in the repository and has the cited section.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{links, normal};
use crate::files;
use crate::sh::{Result, no_faults, root};

/// Directories of sources.
const PLACES: [&str; 5] = ["crates", "models", "xtask", "workloads", "studies"];

/// Words between a page and its section numbers.
const WORDS: [&str; 4] = [" sections ", " section ", ", parts ", ", part "];

/// Checks every citation; the error names each one that leads nowhere.
pub(super) fn check() -> Result {
    let mut pages = BTreeMap::new();
    let mut paths = links::paths()?;
    for path in &paths {
        pages.insert(path.clone(), sections(&files::read(root().join(path))?));
    }
    for place in PLACES {
        let below = files::below(&root().join(place))?;
        let sources = below.into_iter().filter(|path| is_source(path));
        paths.extend(sources.map(|path| Path::new(place).join(path)));
    }
    let (mut faults, mut count) = (Vec::new(), 0);
    for path in &paths {
        for citation in citations(&files::read(root().join(path))?) {
            count += 1;
            if let Some(fault) = fault(path, &citation, &pages) {
                faults.push(format!("{}:{}: {fault}", path.display(), citation.line));
            }
        }
    }
    no_faults("faults in citations", &faults)?;
    eprintln!("{count} citations, all of existing pages and sections");
    Ok(())
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| ["rs", "toml", "py", "sh"].contains(&e))
}

/// A citation of sections of a page, or of a specification.
#[derive(Debug, PartialEq)]
struct Citation {
    page: String,
    sections: Vec<String>,
    line: usize,
}

/// Returns the fault of a citation in the file `by`, if any.
fn fault(
    by: &Path,
    citation: &Citation,
    pages: &BTreeMap<PathBuf, BTreeSet<String>>,
) -> Option<String> {
    let page = Path::new(&citation.page);
    let beside = by.parent().and_then(|dir| normal(&dir.join(page)));
    let found = pages
        .get(page)
        .or_else(|| beside.and_then(|path| pages.get(&path)));
    let Some(known) = found else {
        return Some(format!("{} is not in the repository", citation.page));
    };
    let missing = citation.sections.iter().find(|s| !known.contains(*s))?;
    Some(format!("{} has no section {missing}", citation.page))
}

/// The section numbers of a page: `2` of `## 2. Title`, `A.1` of `### A.1 Title`, `A` of `## Part A: Title`.
fn sections(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings
        .filter_map(|line| {
            let title = line.trim_start_matches('#').trim_start();
            number(title.strip_prefix("Part ").unwrap_or(title))
        })
        .map(|(number, _)| number.to_owned())
        .collect()
}

/// The section number at the start of `text`, and the text after it.
fn number(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase() || c == '.';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    // "Title" does not start with a number.
    if text[end..].starts_with(char::is_alphanumeric) {
        return None;
    }
    let number = text[..end].trim_end_matches('.');
    let mut parts = number.split('.');
    let first = parts.next()?;
    let digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let letter = first.len() == 1 && first.chars().all(|c| c.is_ascii_uppercase());
    ((letter || digits(first)) && parts.all(digits)).then(|| (number, &text[number.len()..]))
}

/// The citations of a text; they may continue on the next line of a comment.
fn citations(text: &str) -> Vec<Citation> {
    let mut joined = String::new();
    let mut starts = Vec::new();
    for line in text.lines() {
        starts.push(joined.len());
        let line = line.trim_start();
        let line = line.trim_start_matches(['/', '#']);
        joined.push_str(line.trim_start_matches('!').trim());
        joined.push(' ');
    }
    let mut found = Vec::new();
    for (at, _) in joined.match_indices(".md") {
        let end = at + ".md".len();
        let is_path = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
        let start = joined[..at].rfind(|c| !is_path(c)).map_or(0, |i| {
            i + joined[i..].chars().next().map_or(1, char::len_utf8)
        });
        let page = &joined[start..end];
        let rest = joined[end..].trim_start_matches('`');
        let numbers = WORDS.iter().find_map(|word| rest.strip_prefix(word));
        let sections = numbers.map_or_else(Vec::new, list);
        // "a.md section by section" cites nothing.
        if sections.is_empty() && !page.starts_with("docs/spec/") {
            continue;
        }
        let line = starts.partition_point(|&begin| begin <= start);
        let page = page.to_owned();
        found.push(Citation {
            page,
            sections,
            line,
        });
    }
    found
}

/// The numbers in `3, 5, 6.2 and 9 say`.
fn list(mut text: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    while let Some((number, rest)) = number(text) {
        numbers.push(number.to_owned());
        let next = [", ", " and "]
            .iter()
            .find_map(|sep| rest.strip_prefix(sep));
        let Some(next) = next else { break };
        text = next;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};

    use super::{Citation, citations, fault, sections};

    /// Replaces `~` with `.md`: written out, the pages would be citations in this file.
    fn md(text: &str) -> String {
        text.replace('~', ".md")
    }

    fn cited(page: &str, sections: &[&str], line: usize) -> Citation {
        Citation {
            page: md(page),
            sections: sections.iter().map(|&s| s.to_owned()).collect(),
            line,
        }
    }

    #[test]
    fn citations_are_found_with_their_sections() {
        let text = "//! The rules (docs/spec/a~\n//! section 2, V5), and\n/// docs/spec/b~ sections A.2, A.10 and 7 say\n\
            // x~, part A). docs/spec/c~: all; y~ is a file; `z~` section 4.1.\n";
        let expected = [
            cited("docs/spec/a~", &["2"], 1),
            cited("docs/spec/b~", &["A.2", "A.10", "7"], 3),
            cited("x~", &["A"], 4),
            cited("docs/spec/c~", &[], 4),
            cited("z~", &["4.1"], 4),
        ];
        assert_eq!(citations(&md(text)), expected);
    }

    #[test]
    fn missing_pages_and_sections_are_faults() {
        let text = "# Title\n## Part A: first\n### A.1 One\n## 2. Two\n### 2.1 More\n";
        let known = sections(text);
        assert_eq!(
            known,
            BTreeSet::from(["A", "A.1", "2", "2.1"].map(str::to_owned))
        );
        let pages = BTreeMap::from([(PathBuf::from(md("docs/spec/a~")), known)]);
        let of = |page, section| {
            fault(
                Path::new(&md("docs/spec/b~")),
                &cited(page, &[section], 1),
                &pages,
            )
        };
        assert_eq!(of("docs/spec/a~", "2.1"), None);
        assert_eq!(of("a~", "A"), None);
        assert!(of("docs/spec/a~", "3").is_some());
        assert!(of("c~", "2").is_some());
    }
}
