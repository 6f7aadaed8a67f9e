//! COSBench's `key=value;key=value` strings (specification section 1.4).

use std::borrow::Cow;

/// A parsed config string: entries in order; a later entry replaces an earlier one with the same key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    entries: Vec<(String, String)>,
    /// Entries without `=`, which COSBench logs and ignores.
    ignored: Vec<String>,
    text: String,
}

/// A required key that is absent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such key defined: {0}")]
pub struct Missing(pub String);

/// Maximum depth of `${key}` references.
const DEPTH: usize = 16;

impl Config {
    /// Parses `text`. Never fails: entries that COSBench cannot use are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut config = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        for entry in text.split(';') {
            let entry = entry.trim();
            if entry.is_empty() {
                continue;
            }
            match entry.split_once('=') {
                Some((key, value)) => config.set(key.trim(), value.trim()),
                None => config.ignored.push(entry.to_owned()),
            }
        }
        config
    }

    fn set(&mut self, key: &str, value: &str) {
        match self.entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => value.clone_into(old),
            None => self.entries.push((key.to_owned(), value.to_owned())),
        }
    }

    /// The original text, inherited levels first.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Keys in the order of their first appearance.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// Entries without `=`.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// The value of `key` with its `${other}` references resolved; `None` if the key is absent.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        let value = self.raw(key)?;
        if value.contains("${") {
            return Some(Cow::Owned(self.resolved(value, DEPTH)));
        }
        Some(Cow::Borrowed(value))
    }

    fn raw(&self, key: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|(known, _)| known == key);
        entry.map(|(_, value)| value.as_str())
    }

    /// Resolves references; unknown ones and those deeper than [`DEPTH`] (cycles) are left unchanged.
    fn resolved(&self, value: &str, depth: usize) -> String {
        let mut out = String::with_capacity(value.len());
        let mut rest = value;
        while let Some(at) = rest.find("${") {
            out.push_str(&rest[..at]);
            let inner = &rest[at + 2..];
            let Some(end) = inner.find('}') else {
                out.push_str(&rest[at..]);
                return out;
            };
            match self.raw(&inner[..end]) {
                Some(found) if depth > 0 => out.push_str(&self.resolved(found, depth - 1)),
                _ => out.push_str(&rest[at..at + 2 + end + 1]),
            }
            rest = &inner[end + 1..];
        }
        out.push_str(rest);
        out
    }

    /// The value of a required key.
    ///
    /// # Errors
    /// If the key is absent.
    pub fn need(&self, key: &str) -> Result<Cow<'_, str>, Missing> {
        self.get(key).ok_or_else(|| Missing(key.to_owned()))
    }

    /// A boolean: true/false, yes/no, on/off in any case; an empty value counts as absent.
    ///
    /// # Errors
    /// The text, if it is none of these.
    pub fn truth(&self, key: &str) -> Result<Option<bool>, String> {
        let Some(value) = self.get(key).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(Some(true)),
            "false" | "no" | "off" => Ok(Some(false)),
            _ => Err(value.into_owned()),
        }
    }
}

/// Joins config strings from the outermost level inwards, as COSBench does: with `;`, omitting empty levels.
#[must_use]
pub(crate) fn join(levels: &[&str]) -> String {
    let full: Vec<&str> = levels
        .iter()
        .copied()
        .filter(|level| !level.is_empty())
        .collect();
    full.join(";")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Config, join};

    #[test]
    fn entries_are_trimmed_and_the_last_one_wins() {
        let config = Config::parse(" a = 1 ;;b=x=y==; a=2;nonsense; c= ;");
        assert_eq!(config.get("a").as_deref(), Some("2"));
        assert_eq!(config.get("b").as_deref(), Some("x=y=="));
        assert_eq!(config.get("c").as_deref(), Some(""));
        assert_eq!(config.get("A"), None);
        assert_eq!(config.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(config.ignored(), ["nonsense"]);
        assert_eq!(
            config.need("d").unwrap_err().to_string(),
            "no such key defined: d"
        );
    }

    #[test]
    fn the_innermost_level_wins() {
        let text = join(&["containers=r(1,2);cprefix=a", "", "cprefix=b"]);
        assert_eq!(text, "containers=r(1,2);cprefix=a;cprefix=b");
        assert_eq!(Config::parse(&text).get("cprefix").as_deref(), Some("b"));
    }

    #[test]
    fn references_are_resolved() {
        let config = Config::parse("a=${b}/x;b=${c};c=1;d=${unknown};e=${e};f=${");
        assert_eq!(config.get("a").as_deref(), Some("1/x"));
        assert_eq!(config.get("d").as_deref(), Some("${unknown}"));
        assert_eq!(config.get("e").as_deref(), Some("${e}"));
        assert_eq!(config.get("f").as_deref(), Some("${"));
    }

    #[test]
    fn truth_has_three_spellings() {
        let config = Config::parse("a=Yes;b=off;c=1;d=");
        assert_eq!(config.truth("a"), Ok(Some(true)));
        assert_eq!(config.truth("b"), Ok(Some(false)));
        assert_eq!(config.truth("c"), Err("1".to_owned()));
        assert_eq!(config.truth("d"), Ok(None));
        assert_eq!(config.truth("z"), Ok(None));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-c$={};, ]{0,40}") {
            let config = Config::parse(&text);
            for key in config.keys() {
                let _ = (config.get(key), config.truth(key));
            }
        }
    }
}
