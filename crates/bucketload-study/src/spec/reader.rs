//! A TOML document whose values know their positions, and a reader that collects every problem with position, field and
//! remedy.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use bucketload_workload::spec::{Location, Problem, Snippet};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Limit on the part of a line that is shown, in characters.
const WIDTH: usize = 110;

/// A study that cannot be used: all problems that were found, each with its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SpecError {
    /// The problems, at least one.
    pub problems: Vec<Problem>,
}

/// The text and its problems.
pub(super) struct Document<'a> {
    name: &'a str,
    text: &'a str,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Document<'a> {
    pub(super) fn new(name: &'a str, text: &'a str) -> Self {
        Self {
            name,
            text,
            problems: RefCell::new(Vec::new()),
        }
    }

    /// The document as a table; `None` if it is not TOML.
    pub(super) fn parse(&self) -> Option<Spanned<DeTable<'a>>> {
        match DeTable::parse(self.text) {
            Ok(table) => Some(table),
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                let remedy = "see https://toml.io for the syntax";
                self.problem(&span, "", error.message(), remedy);
                None
            }
        }
    }

    pub(super) fn problem(
        &self,
        span: &Range<usize>,
        field: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems.borrow_mut().push(Problem {
            location: self.locate(span),
            field: field.to_owned(),
            message: message.into(),
            remedy: remedy.into(),
        });
    }

    /// The problems so far, if any, in the order of the file.
    pub(super) fn finish(self) -> Result<(), SpecError> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| match &problem.location {
            Location::File { line, column, .. } => (*line, *column),
            Location::Flag { .. } => (0, 0),
        });
        match problems.is_empty() {
            true => Ok(()),
            false => Err(SpecError { problems }),
        }
    }

    fn locate(&self, span: &Range<usize>) -> Location {
        let boundary = |mut at: usize| {
            at = at.min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = boundary(span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let rest = self.text[start..].find('\n');
        let line_end = rest.map_or(self.text.len(), |at| start + at);
        let end = boundary(span.end.clamp(start, line_end));
        let column = self.text[line_start..start].chars().count();
        let skip = column.saturating_sub(WIDTH / 2);
        let shown = self.text[line_start..line_end].chars();
        let shown = shown.map(|c| if c.is_control() { ' ' } else { c });
        Location::File {
            file: self.name.to_owned(),
            line: self.text[..start].matches('\n').count() + 1,
            column: column + 1,
            snippet: Snippet {
                line: shown.skip(skip).take(WIDTH).collect(),
                indent: column - skip,
                len: self.text[start..end].chars().count().clamp(1, WIDTH / 2),
            },
        }
    }
}

/// A table that is being read. Fields that were never read are reported as unknown ([`Reader::close`]).
pub(super) struct Reader<'d, 'a> {
    pub(super) doc: &'d Document<'a>,
    table: &'d DeTable<'a>,
    /// Position at which a missing field is reported.
    pub(super) span: Range<usize>,
    path: String,
    requested: RefCell<BTreeSet<&'static str>>,
}

impl<'d, 'a> Reader<'d, 'a> {
    pub(super) fn new(
        doc: &'d Document<'a>,
        table: &'d DeTable<'a>,
        span: Range<usize>,
        path: String,
    ) -> Self {
        Self {
            doc,
            table,
            span,
            path,
            requested: RefCell::new(BTreeSet::new()),
        }
    }

    /// The path of a field.
    pub(super) fn path(&self, key: &str) -> String {
        match self.path.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.path),
        }
    }

    /// Reports a problem with a field: at its value, or at the table if the field is missing.
    pub(super) fn problem(&self, key: &str, message: impl Into<String>, remedy: impl Into<String>) {
        let value = self.table.get(key);
        let span = value.map_or(self.span.clone(), Spanned::span);
        self.doc.problem(&span, &self.path(key), message, remedy);
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn get(&self, key: &'static str) -> Option<&'d Spanned<DeValue<'a>>> {
        self.requested.borrow_mut().insert(key);
        self.table.get(key)
    }

    fn wrong(&self, key: &str, value: &DeValue<'_>, wanted: &str) {
        let found = value.type_str();
        self.problem(
            key,
            format!("wrong type: {found}"),
            format!("write {wanted}"),
        );
    }

    pub(super) fn text(&self, key: &'static str) -> Option<String> {
        match self.get(key)?.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            other => {
                self.wrong(key, other, "a string, in quotes");
                None
            }
        }
    }

    pub(super) fn switch(&self, key: &'static str) -> Option<bool> {
        match self.get(key)?.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            other => {
                self.wrong(key, other, "true or false");
                None
            }
        }
    }

    /// A whole number between the bounds.
    pub(super) fn number(&self, key: &'static str, bounds: (i64, i64)) -> Option<i64> {
        let value = self.get(key)?.get_ref();
        let DeValue::Integer(digits) = value else {
            self.wrong(key, value, "a whole number");
            return None;
        };
        let parsed = i64::from_str_radix(digits.as_str(), digits.radix()).ok();
        let parsed = parsed.filter(|n| (bounds.0..=bounds.1).contains(n));
        if parsed.is_none() {
            let remedy = format!("write a whole number from {} to {}", bounds.0, bounds.1);
            self.problem(key, format!("{} is out of range", digits.as_str()), remedy);
        }
        parsed
    }

    /// A list of texts; numbers are kept as written.
    pub(super) fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        let value = self.get(key)?.get_ref();
        let DeValue::Array(items) = value else {
            self.wrong(key, value, "a list, such as [\"a\", \"b\"]");
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match scalar(item.get_ref()) {
                Some(text) => texts.push(text),
                None => self.doc.problem(
                    &item.span(),
                    &self.path(key),
                    format!("wrong type: {}", item.get_ref().type_str()),
                    "write strings or numbers",
                ),
            }
        }
        Some(texts)
    }

    /// The table `key`.
    pub(super) fn table(&self, key: &'static str) -> Option<Reader<'d, 'a>> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::Table(table) => {
                Some(Reader::new(self.doc, table, value.span(), self.path(key)))
            }
            other => {
                self.wrong(key, other, &format!("a table, [{}]", self.path(key)));
                None
            }
        }
    }

    /// The tables `[[key]]`.
    pub(super) fn tables(&self, key: &'static str) -> Vec<Reader<'d, 'a>> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong(
                key,
                value.get_ref(),
                &format!("a list of tables, [[{}]]", self.path(key)),
            );
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.path(key));
            match item.get_ref() {
                DeValue::Table(table) => {
                    tables.push(Reader::new(self.doc, table, item.span(), path))
                }
                other => self.doc.problem(
                    &item.span(),
                    &path,
                    format!("wrong type: {}", other.type_str()),
                    format!("write a table, [[{}]]", self.path(key)),
                ),
            }
        }
        tables
    }

    /// The entries of the table in order, for tables with user-defined keys.
    pub(super) fn entries(&self) -> Vec<(&'d str, Range<usize>, &'d Spanned<DeValue<'a>>)> {
        let entries = self.table.iter();
        entries
            .map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
            .collect()
    }

    /// Reports fields that do not exist.
    pub(super) fn close(self) {
        let requested = self.requested.borrow();
        for (key, _) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if !requested.contains(name) {
                let known: Vec<&str> = requested.iter().copied().collect();
                self.doc.problem(
                    &key.span(),
                    &self.path(name),
                    "no such field",
                    format!("possible here: {}", known.join(", ")),
                );
            }
        }
    }
}

/// A text or number as text.
pub(super) fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}
