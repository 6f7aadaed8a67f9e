//! Reads a type from the sources: its doc comment and those of its variants or fields.
//!
//! Understands enough Rust for declarations formatted by rustfmt. A missing declaration is an error of the caller,
//! never an empty page.

use std::path::Path;

use crate::files;
use crate::sh::{Result, root};

/// A declared type.
#[derive(Debug, PartialEq)]
pub(super) struct Type {
    /// Doc comment as Markdown.
    pub(super) docs: String,
    /// Its attributes, each on one line.
    pub(super) attributes: Vec<String>,
    /// Variants of an enum, fields of a structure.
    pub(super) items: Vec<Item>,
}

/// A variant or a field.
#[derive(Debug, PartialEq)]
pub(super) struct Item {
    /// Name in the source.
    pub(super) name: String,
    /// The type of a field; empty for variants.
    pub(super) of: String,
    /// Doc comment as Markdown.
    pub(super) docs: String,
    /// Its attributes, each on one line.
    pub(super) attributes: Vec<String>,
}

impl Type {
    /// The name of an item in JSON according to its serde attributes; `None` if it is skipped or flattened.
    ///
    /// # Panics
    /// If the type is renamed by a rule that is not known here, because the manual would show wrong names.
    pub(super) fn json_name(&self, item: &Item) -> Option<String> {
        if item.attribute("skip").is_some() || item.attribute("flatten").is_some() {
            return None;
        }
        if let Some(name) = item.attribute("rename") {
            return Some(name);
        }
        let rule = self
            .attributes
            .iter()
            .find_map(|a| serde_value(a, "rename_all"));
        Some(match rule.as_deref() {
            Some("kebab-case") => hyphenated(&item.name),
            Some("SCREAMING-KEBAB-CASE") => hyphenated(&item.name).to_uppercase(),
            Some("lowercase") => item.name.to_lowercase(),
            Some(rule) => panic!("{}: unknown rule {rule} of `rename_all`", item.name),
            None => item.name.clone(),
        })
    }
}

impl Item {
    fn attribute(&self, name: &str) -> Option<String> {
        self.attributes.iter().find_map(|a| serde_value(a, name))
    }
}

/// The value of `name` in a serde attribute; empty if it has none.
fn serde_value(attribute: &str, name: &str) -> Option<String> {
    let inner = attribute.strip_prefix("#[serde(")?.strip_suffix(")]")?;
    inner.split(',').map(str::trim).find_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        (key.trim() == name).then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// `RangeGet` as `range-get`, `page_count` as `page-count`.
pub(super) fn hyphenated(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        match c {
            '_' => out.push('-'),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// The type that `file` (relative to the root) declares as `struct NAME` or `enum NAME`.
pub(super) fn declared(file: &str, name: &str) -> Result<Type> {
    let text = files::read(root().join(Path::new(file)))?;
    find(&text, name).ok_or_else(|| format!("{file} declares no {name}"))
}

/// The leading comment of a module, as Markdown.
pub(super) fn module_docs(file: &str) -> Result<String> {
    let text = files::read(root().join(Path::new(file)))?;
    let lines = text.lines().take_while(|line| line.starts_with("//!"));
    let lines = lines.map(|line| line[3..].strip_prefix(' ').unwrap_or(&line[3..]));
    Ok(plain_links(&lines.collect::<Vec<_>>().join("\n")))
}

/// The type called `name` in a source text.
pub(super) fn find(text: &str, name: &str) -> Option<Type> {
    let mut above = Above::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if declares(line.trim(), name) {
            let (docs, attributes) = above.take();
            let items = items(&mut lines);
            return Some(Type {
                docs,
                attributes,
                items,
            });
        }
        above.see(line.trim());
    }
    None
}

fn declares(line: &str, name: &str) -> bool {
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        rest.strip_prefix("(crate)").unwrap_or(rest).trim_start()
    });
    let rest = line
        .strip_prefix("struct ")
        .or_else(|| line.strip_prefix("enum "));
    rest.and_then(|rest| rest.strip_suffix(" {"))
        .is_some_and(|declared| declared == name)
}

/// Doc comments and attributes above a declaration.
#[derive(Default)]
struct Above {
    docs: Vec<String>,
    attributes: Vec<String>,
    open: usize,
}

impl Above {
    /// Records a line; returns true if it is a doc comment or attribute.
    fn see(&mut self, line: &str) -> bool {
        let brackets = |text: &str, c: char| text.chars().filter(|&x| x == c).count();
        if self.open > 0 {
            if let Some(last) = self.attributes.last_mut() {
                last.push_str(line);
            }
            self.open = (self.open + brackets(line, '[')).saturating_sub(brackets(line, ']'));
        } else if let Some(doc) = line.strip_prefix("///") {
            self.docs
                .push(doc.strip_prefix(' ').unwrap_or(doc).to_owned());
        } else if line.starts_with("#[") {
            self.attributes.push(line.to_owned());
            self.open = brackets(line, '[').saturating_sub(brackets(line, ']'));
        } else {
            *self = Self::default();
            return false;
        }
        true
    }

    fn take(&mut self) -> (String, Vec<String>) {
        let above = std::mem::take(self);
        (plain_links(&above.docs.join("\n")), above.attributes)
    }
}

/// The variants or fields up to the closing brace of the declaration.
fn items<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<Item> {
    let mut above = Above::default();
    let mut items = Vec::new();
    while let Some(line) = lines.next().map(str::trim) {
        if line == "}" {
            break;
        }
        if line.is_empty() || (line.starts_with("//") && !line.starts_with("///")) {
            continue;
        }
        if above.open > 0 || line.starts_with("///") || line.starts_with("#[") {
            above.see(line);
            continue;
        }
        let (docs, attributes) = above.take();
        let bare = line
            .strip_prefix("pub ")
            .or_else(|| line.strip_prefix("pub(crate) "))
            .unwrap_or(line);
        let name: String = bare
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let mut rest = bare[name.len()..].to_owned();
        // A variant with fields, or a type that spans lines.
        let depth = |text: &str| {
            let count = |set: &[char]| text.chars().filter(|c| set.contains(c)).count();
            count(&['{', '(', '<']).saturating_sub(count(&['}', ')', '>']))
        };
        while depth(&rest) > 0 {
            let Some(more) = lines.next() else { break };
            rest.push_str(more.trim());
        }
        let of = rest.strip_prefix(':').unwrap_or_default();
        items.push(Item {
            name,
            of: of.trim().trim_end_matches(',').to_owned(),
            docs,
            attributes,
        });
    }
    items
}

/// Turns rustdoc links to items into plain code.
fn plain_links(docs: &str) -> String {
    let mut out = String::with_capacity(docs.len());
    let mut rest = docs;
    while let Some(at) = rest.find("[`") {
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find("`]").map(|end| at + end) else {
            break;
        };
        out.push_str(&rest[at + 1..=end]);
        rest = &rest[end + 2..];
        if let (true, Some(close)) = (rest.starts_with('('), rest.find(')')) {
            rest = &rest[close + 1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::{find, hyphenated};

    const SOURCE: &str = r##"
/// Another.
pub enum Other {
    /// No.
    A,
}

/// What it is, see [`Other`].
#[derive(
    Clone,
    Debug,
)]
#[serde(rename_all = "kebab-case")]
pub enum Thing {
    /// One,
    /// in two lines.
    RangeGet,
    /// Two.
    #[serde(rename = "second")]
    Two {
        /// Inside.
        a: u8,
    },
    // no documentation
    Three(u8),
}

/// Fields.
pub struct Fields {
    /// A map.
    pub map: Vec<(String, u64)>,
    #[serde(skip)]
    pub(crate) hidden: bool,
}
"##;

    #[test]
    fn variants_and_fields_are_read() {
        let thing = find(SOURCE, "Thing").unwrap();
        assert_eq!(thing.docs, "What it is, see `Other`.");
        let names: Vec<_> = thing
            .items
            .iter()
            .map(|i| thing.json_name(i).unwrap())
            .collect();
        assert_eq!(names, ["range-get", "second", "three"]);
        assert_eq!(thing.items[0].docs, "One,\nin two lines.");
        let fields = find(SOURCE, "Fields").unwrap();
        assert_eq!(fields.items[0].of, "Vec<(String, u64)>");
        assert_eq!(fields.json_name(&fields.items[0]).as_deref(), Some("map"));
        assert_eq!(fields.json_name(&fields.items[1]), None);
        assert_eq!(find(SOURCE, "Thin"), None);
    }

    #[test]
    fn names_are_hyphenated() {
        assert_eq!(hyphenated("ListV1"), "list-v1");
        assert_eq!(hyphenated("page_count"), "page-count");
    }
}
