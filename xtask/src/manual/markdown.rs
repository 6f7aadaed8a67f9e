//! Finds links, anchors, code and inclusions in a Markdown text.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A link or picture.
pub(super) struct Link {
    /// The destination.
    pub(super) to: String,
    /// True for a picture.
    pub(super) is_image: bool,
    /// Its byte range in the text.
    pub(super) range: Range<usize>,
}

/// A piece of code in a text.
pub(crate) struct Code {
    /// The code itself.
    pub(crate) text: String,
    /// The language of a fenced block, otherwise empty.
    pub(crate) language: String,
    /// True for a block, false for code inside a line.
    pub(crate) is_block: bool,
    /// Its byte offset in the text.
    pub(crate) at: usize,
}

/// Code blocks and inline code, in order.
pub(crate) fn code(text: &str) -> Vec<Code> {
    let mut found: Vec<Code> = Vec::new();
    let mut inside = false;
    for (event, range) in parser(text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                inside = true;
                found.push(Code {
                    text: String::new(),
                    language: match kind {
                        CodeBlockKind::Fenced(language) => language.into_string(),
                        CodeBlockKind::Indented => String::new(),
                    },
                    is_block: true,
                    at: range.start,
                });
            }
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(text) if inside => {
                if let Some(block) = found.last_mut() {
                    block.text.push_str(&text);
                }
            }
            Event::Code(text) => found.push(Code {
                text: text.into_string(),
                language: String::new(),
                is_block: false,
                at: range.start,
            }),
            _ => {}
        }
    }
    found
}

fn parser(text: &str) -> Parser<'_> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
    Parser::new_ext(text, options)
}

/// Every link and picture of a text, in order.
pub(super) fn links(text: &str) -> Vec<Link> {
    let found = parser(text)
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. }) => Some((dest_url, false, range)),
            Event::Start(Tag::Image { dest_url, .. }) => Some((dest_url, true, range)),
            _ => None,
        });
    found
        .map(|(to, is_image, range)| Link {
            to: to.into_string(),
            is_image,
            range,
        })
        .collect()
}

/// The anchors of a text's headings, as code hosts and mdBook generate them.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut heading: Option<String> = None;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let count = seen.entry(slug.clone()).or_insert(0);
                anchors.insert(match count {
                    0 => slug,
                    ref n => format!("{slug}-{n}"),
                });
                *count += 1;
            }
            _ => {}
        }
    }
    anchors
}

/// The anchor of a heading: lower case, hyphens for blanks, only letters, digits, `-` and `_`.
pub(super) fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// `text` on one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The file that the line includes: `{{#include FILE}}`.
pub(super) fn included(line: &str) -> Option<&str> {
    let inner = line
        .trim()
        .strip_prefix("{{#include ")?
        .strip_suffix("}}")?;
    Some(inner.trim())
}

/// Replaces the link destinations in `text` for which `change` returns a new one.
pub(super) fn with_links(text: &str, change: impl Fn(&Link) -> Option<String>) -> String {
    let mut out = text.to_owned();
    // Replaced from the end, so that earlier ranges stay valid; the link around a picture starts before the picture.
    let mut changes = Vec::new();
    for link in links(text) {
        let Some(new) = change(&link) else { continue };
        let form = &text[link.range.clone()];
        let old = format!("]({}", link.to);
        if let Some(at) = form.rfind(&old) {
            let start = link.range.start + at + 2;
            changes.push((start..start + link.to.len(), new));
        }
    }
    changes.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    for (range, new) in changes {
        out.replace_range(range, &new);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{anchors, code, included, links, slug, with_links};

    #[test]
    fn links_are_found_outside_code_only() {
        let text = "[a](b.md#c) `[x](y)` ![p](q.png)\n\n```\n[x](y)\n```\n\n| [t](u) |\n|---|\n";
        let found: Vec<(String, bool)> = links(text)
            .into_iter()
            .map(|l| (l.to, l.is_image))
            .collect();
        let expected = [("b.md#c", false), ("q.png", true), ("u", false)];
        let expected: Vec<(String, bool)> = expected.map(|(to, i)| (to.to_owned(), i)).to_vec();
        assert_eq!(found, expected);
    }

    #[test]
    fn code_is_found_in_blocks_and_lines() {
        let text = "a `b c`\n\n    d\n    e\n\n```toml\nf = 1\n```\n";
        let found: Vec<(String, String)> = code(text)
            .into_iter()
            .map(|c| (c.text, c.language))
            .collect();
        let expected = [("b c", ""), ("d\ne\n", ""), ("f = 1\n", "toml")];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(code(text)[0].at, 2);
    }

    #[test]
    fn anchors_are_those_of_code_hosts() {
        assert_eq!(slug("What it costs"), "what-it-costs");
        assert_eq!(slug("`-t, --target <URL>`"), "-t---target-url");
        let found = anchors("# A b\n\n## A b\n\n## `c_d`: e\n");
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            ["a-b", "a-b-1", "c_d-e"]
        );
    }

    #[test]
    fn destinations_are_replaced_in_place() {
        let text = "see [b](b) and [![p](p.png)](b) `[b](b)`";
        let changed = with_links(text, |link| (link.to == "b").then(|| "../c".to_owned()));
        assert_eq!(changed, "see [b](../c) and [![p](p.png)](../c) `[b](b)`");
    }

    #[test]
    fn inclusions_are_whole_lines() {
        assert_eq!(included("{{#include ../A.md}}"), Some("../A.md"));
        assert_eq!(included("see {{#include ../A.md}}"), None);
    }
}
