//! The files `~/.aws/config` and `~/.aws/credentials`: INI with sections, and one level of nested
//! settings (an empty value followed by indented lines).
//!
//! Every value keeps its line number for errors and `config show`.

use std::path::{Path, PathBuf};

use crate::http::config::ConfigError;

/// One `name = value` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) line: usize,
    /// Indented lines below it.
    pub(crate) nested: Vec<Field>,
}

/// A `[kind name]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) fields: Vec<Field>,
}

/// A parsed file; empty when the file does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfileFile {
    pub(crate) path: PathBuf,
    pub(crate) sections: Vec<Section>,
}

impl ProfileFile {
    /// Reads the file at `path`; a missing file counts as empty.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self {
                path: path.to_owned(),
                sections: Vec::new(),
            }),
            Err(error) => Err(ConfigError::new(
                path.display().to_string(),
                format!("cannot be read: {error}"),
                "correct its permissions, or point AWS_CONFIG_FILE or \
                 AWS_SHARED_CREDENTIALS_FILE elsewhere",
            )),
        }
    }

    /// Parses `text`. Values never appear in errors: they may be secrets.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut sections: Vec<Section> = Vec::new();
        for (number, raw) in text.lines().enumerate() {
            let line = number + 1;
            let trimmed = raw.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            let fail = |problem: &str, remedy: &str| {
                let place = format!("{}:{line}", path.display());
                Err(ConfigError::new(place, problem, remedy))
            };
            if let Some(rest) = trimmed.strip_prefix('[') {
                let Some((title, _)) = rest.split_once(']') else {
                    return fail("the section title has no `]`", "write [profile NAME]");
                };
                let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                // A repeated section continues the earlier one.
                match sections.iter().position(|s| s.title == title) {
                    Some(at) => {
                        let section = sections.remove(at);
                        sections.push(section);
                    }
                    None => sections.push(Section {
                        title,
                        fields: Vec::new(),
                    }),
                }
                continue;
            }
            let Some(section) = sections.last_mut() else {
                return fail(
                    "a setting comes before the first section",
                    "start the file with [default] or [profile NAME]",
                );
            };
            let field = split_field(trimmed, line);
            let indented = raw.starts_with([' ', '\t']);
            match (indented, section.fields.last_mut(), field) {
                (true, Some(parent), Some(field)) if parent.value.is_empty() => {
                    parent.nested.push(field);
                }
                // Continues a multi-line value. No field that the driver reads has one.
                (true, Some(_), _) => {}
                (_, _, Some(field)) => section.fields.push(field),
                (_, _, None) => {
                    return fail("this line is not a setting", "write NAME = VALUE");
                }
            }
        }
        Ok(Self {
            path: path.to_owned(),
            sections,
        })
    }

    /// The section titled `title`.
    pub(crate) fn section(&self, title: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.title == title)
    }

    /// `FILE:LINE [section] field`.
    pub(crate) fn place(&self, section: &Section, field: &Field) -> String {
        let (path, title) = (self.path.display(), &section.title);
        format!("{path}:{} [{title}] {}", field.line, field.name)
    }
}

impl Section {
    /// The last non-empty setting called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&Field> {
        last(&self.fields, name)
    }

    /// The setting `name` nested below `parent`.
    pub(crate) fn nested(&self, parent: &str, name: &str) -> Option<&Field> {
        let parent = self.fields.iter().rfind(|f| f.name == parent)?;
        last(&parent.nested, name)
    }
}

fn last<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    fields
        .iter()
        .rfind(|f| f.name == name && !f.value.is_empty())
}

fn split_field(line: &str, number: usize) -> Option<Field> {
    let (name, value) = line.split_once('=')?;
    let value = [" #", " ;", "\t#", "\t;"]
        .iter()
        .filter_map(|mark| value.find(mark))
        .min()
        .map_or(value, |at| &value[..at]);
    let name = name.trim();
    (!name.is_empty()).then(|| Field {
        name: name.to_ascii_lowercase(),
        value: value.trim().to_owned(),
        line: number,
        nested: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::ProfileFile;

    const TEXT: &str = "\
# comment
[default]
region = eu-west-1   # inline
aws_secret_access_key = a=b+c/d#e

[profile  dev]
services = local
s3 =
  addressing_style = virtual
  endpoint_url = http://old

output = json
[services local]
s3 =
\tendpoint_url = http://localhost:9000
dynamodb =
  endpoint_url = http://other
[default]
REGION = eu-west-2
";

    #[test]
    fn sections_nesting_and_lines() {
        let file = ProfileFile::parse(Path::new("/c"), TEXT).unwrap();
        let default = file.section("default").unwrap();
        assert_eq!(default.get("region").unwrap().value, "eu-west-2");
        let secret = default.get("aws_secret_access_key").unwrap();
        assert_eq!((secret.value.as_str(), secret.line), ("a=b+c/d#e", 4));
        let dev = file.section("profile dev").unwrap();
        let style = dev.nested("s3", "addressing_style").unwrap();
        assert_eq!((style.value.as_str(), style.line), ("virtual", 9));
        assert_eq!(dev.get("output").unwrap().value, "json");
        let local = file.section("services local").unwrap();
        let url = local.nested("s3", "endpoint_url").unwrap();
        assert_eq!(url.value, "http://localhost:9000");
        assert_eq!(
            file.place(local, url),
            "/c:15 [services local] endpoint_url"
        );
        assert!(file.section("profile none").is_none());
    }

    #[test]
    fn errors_name_file_and_line_but_no_value() {
        for (text, line) in [
            ("[default\n", 1),
            ("\nregion = x\n", 2),
            ("[default]\nhush-hush\n", 2),
            ("[a]\n= v\n", 2),
        ] {
            let error = ProfileFile::parse(Path::new("/c"), text)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(&format!("/c:{line}: ")), "{error}");
            assert!(!error.contains("hush-hush"), "{error}");
        }
    }

    #[test]
    fn a_missing_file_is_empty() {
        let file = ProfileFile::read(Path::new("/nonexistent/config")).unwrap();
        assert!(file.sections.is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\[|\\]|=|#| |\n|[a-z]){0,80}") {
            let _ = ProfileFile::parse(Path::new("/c"), &text);
        }
    }
}
