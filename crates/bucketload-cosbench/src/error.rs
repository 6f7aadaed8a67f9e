//! Problems in a workload file, with their locations.

use std::fmt;

use strsim::levenshtein;

/// A location in a workload file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Element and attribute: `work "main" @workers`.
    pub what: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.what
        )
    }
}

/// A workload that COSBench would reject, at submission or when the stage starts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}; {remedy}")]
pub struct Rejection {
    /// The location in the file.
    pub location: Location,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl Rejection {
    pub(crate) fn new(
        location: &Location,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            location: location.clone(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// Something that COSBench ignores or interprets unexpectedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The location in the file.
    pub location: Location,
    /// What happens, and what was probably meant.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.text)
    }
}

/// The name among `known` that `given` probably means: equal except for case, or at most two letters away.
pub(crate) fn near<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let same = known.iter().find(|name| name.eq_ignore_ascii_case(given));
    same.or_else(|| {
        let close = known.iter().map(|name| (distance(given, name), name));
        let (distance, name) = close.min_by_key(|(distance, _)| *distance)?;
        (distance <= 2 && given.len() > 3).then_some(name)
    })
    .copied()
}

/// Levenshtein distance, whatever the case.
fn distance(a: &str, b: &str) -> usize {
    levenshtein(&a.to_ascii_lowercase(), &b.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{distance, near};

    #[test]
    fn typing_errors_are_recognised() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(near("Runtime", &["runtime", "rampup"]), Some("runtime"));
        assert_eq!(
            near("totalOp", &["totalOps", "totalBytes"]),
            Some("totalOps")
        );
        assert_eq!(near("hashcheck", &["hashCheck"]), Some("hashCheck"));
        assert_eq!(near("colour", &["runtime", "rampup"]), None);
        assert_eq!(near("afx", &["afr"]), None);
    }
}
