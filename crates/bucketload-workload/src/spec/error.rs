//! Problems of a workload, each with its location, field and remedy.

use std::fmt;
use std::sync::Arc;

use super::source::{Location, Origin, Snippet, Source};

/// One problem of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the problem is.
    pub location: Location,
    /// Path of the field, such as `phases.run.rate`; empty for syntax errors.
    pub field: String,
    /// What is wrong, without a final full stop.
    pub message: String,
    /// How to correct it; empty if the message already says so.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.location)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        if let Location::File { line, snippet, .. } = &self.location {
            write_snippet(f, *line, snippet)?;
        }
        if !self.remedy.is_empty() {
            write!(f, "\n  help: {}", self.remedy)?;
        }
        Ok(())
    }
}

fn write_snippet(f: &mut fmt::Formatter<'_>, line: usize, snippet: &Snippet) -> fmt::Result {
    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    let (indent, mark) = (" ".repeat(snippet.indent), "^".repeat(snippet.len));
    write!(f, "\n  {gutter} |\n  {number} | {}", snippet.line)?;
    write!(f, "\n  {gutter} | {indent}{mark}")
}

/// An unusable workload with all problems found. `Display` prints them one after another, each with the
/// source line and a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    problems: Vec<Problem>,
}

impl SpecError {
    /// The problems, at least one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// A problem with a command-line flag.
    #[must_use]
    pub fn flag(
        flag: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            problems: vec![Problem {
                location: Location::Flag { flag: flag.into() },
                field: String::new(),
                message: message.into(),
                remedy: remedy.into(),
            }],
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecError {}

/// Maximum number of problems to collect: more would scroll the first one out of view.
const MAX_PROBLEMS: usize = 20;

/// Collects problems while a workload is decoded and resolved.
#[derive(Debug)]
pub(crate) struct Errors {
    pub(crate) source: Arc<Source>,
    problems: Vec<Problem>,
}

impl Errors {
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            problems: Vec::new(),
        }
    }

    pub(crate) fn push(
        &mut self,
        origin: &Origin,
        field: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let problem = Problem {
            location: self.source.locate(origin),
            field: field.into(),
            message: message.into(),
            remedy: remedy.into(),
        };
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns `value` unless a problem was found.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, SpecError> {
        if self.problems.is_empty() {
            Ok(value)
        } else {
            Err(self.into_error())
        }
    }

    /// The problems found, in file order, flags last.
    pub(crate) fn into_error(self) -> SpecError {
        let mut problems = self.problems;
        problems.sort_by_key(|problem| match &problem.location {
            Location::File { line, column, .. } => (*line, *column),
            Location::Flag { .. } => (usize::MAX, 0),
        });
        SpecError { problems }
    }
}
