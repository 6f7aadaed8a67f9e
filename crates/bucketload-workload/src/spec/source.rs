//! The text of a workload file, and locations in it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Name and text of a workload file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Bytes of the workload file.
    File(Range<usize>),
    /// A command-line flag, as typed.
    Flag(Arc<str>),
}

impl Origin {
    /// The origin of part `part` of a string value. Exact if the file contains the string verbatim (without
    /// escapes), otherwise the whole value.
    pub(crate) fn part(&self, source: &Source, value: &str, part: Range<usize>) -> Self {
        if let Self::File(whole) = self
            && let Some(text) = source.text.get(whole.clone())
            && let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\''))
            && text.len() == value.len() + 2
            && text.ends_with(quote)
            && text.get(1..text.len() - 1) == Some(value)
        {
            let start = whole.start + 1;
            return Self::File(start + part.start..start + part.end);
        }
        self.clone()
    }
}

/// A line of the workload file with a mark under the relevant part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The line, with control characters replaced and long lines shortened.
    pub line: String,
    /// Characters before the mark.
    pub indent: usize,
    /// Length of the mark in characters, at least 1.
    pub len: usize,
}

/// The location of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A location in a workload file.
    File {
        /// Name of the file.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// The line itself.
        snippet: Snippet,
    },
    /// A command-line flag, as typed.
    Flag {
        /// The flag with its value, such as `--rate 0`.
        flag: String,
    },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                file, line, column, ..
            } => write!(f, "{file}:{line}:{column}"),
            Self::Flag { flag } => f.write_str(flag),
        }
    }
}

/// Maximum number of characters of a line to show.
const WIDTH: usize = 110;

impl Source {
    /// Line and column of a range, with the line's text.
    pub(crate) fn locate(&self, origin: &Origin) -> Location {
        let range = match origin {
            Origin::Flag(flag) => {
                return Location::Flag {
                    flag: printable(flag),
                };
            }
            Origin::File(range) => range,
        };
        let start = floor_char_boundary(&self.text, range.start);
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |at| start + at);
        let end = floor_char_boundary(&self.text, range.end.clamp(start, line_end));
        let column = self.text[line_start..start].chars().count();
        let len = self.text[start..end].chars().count().max(1);
        // The window of the line that contains the mark.
        let skip = column.saturating_sub(WIDTH / 2);
        let line: String = self.text[line_start..line_end]
            .trim_end_matches('\r')
            .chars()
            .skip(skip)
            .take(WIDTH)
            .collect();
        Location::File {
            file: self.name.clone(),
            line: before.matches('\n').count() + 1,
            column: column + 1,
            snippet: Snippet {
                line: printable(&line),
                indent: column - skip,
                len: len.min(WIDTH - (column - skip)),
            },
        }
    }
}

/// Replaces control characters, which could affect the terminal, with spaces.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Location, Origin, Source};

    fn source(text: &str) -> Source {
        Source {
            name: "w.toml".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        let s = source("a = 1\nküche = \"x\"\n");
        let at = s.text.find("\"x\"").unwrap();
        let Location::File {
            line,
            column,
            snippet,
            ..
        } = s.locate(&Origin::File(at..at + 3))
        else {
            panic!("not in the file");
        };
        assert_eq!((line, column), (2, 9));
        assert_eq!(snippet.line, "küche = \"x\"");
        assert_eq!((snippet.indent, snippet.len), (8, 3));
    }

    #[test]
    fn parts_of_strings_are_found_unless_escaped() {
        let s = source("a = \"zipf(1)\"\nb = \"z\\u0069pf(1)\"");
        let origin = Origin::File(4..13);
        assert_eq!(origin.part(&s, "zipf(1)", 5..6), Origin::File(10..11));
        let escaped = Origin::File(18..s.text.len());
        assert_eq!(escaped.part(&s, "zipf(1)", 5..6), escaped);
    }

    proptest! {
        #[test]
        fn any_range_can_be_located(text in "\\PC*(\n\\PC*)*", a in 0usize..300, b in 0usize..300) {
            let _ = source(&text).locate(&Origin::File(a..b));
        }
    }
}
