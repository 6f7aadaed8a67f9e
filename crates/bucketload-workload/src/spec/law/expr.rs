//! The compact notation of laws: `name(value, parameter=value, weight: value)`.

use std::ops::Range;

use crate::spec::node::{Node, Table, Value};
use crate::spec::source::{Origin, Source};
use bucketload_core::units::Invalid;

/// A law as written, before its parameters are interpreted.
#[derive(Clone, Debug)]
pub(crate) struct LawExpr {
    /// Name in lower case with hyphens, and its location.
    pub(crate) name: (String, Origin),
    pub(crate) args: Vec<LawArg>,
}

/// An argument of a law.
#[derive(Clone, Debug)]
pub(crate) struct LawArg {
    /// `parameter` of `parameter=value`, and its location.
    pub(crate) name: Option<(String, Origin)>,
    /// `weight` of `weight: value`.
    pub(crate) weight: Option<Node>,
    pub(crate) value: Node,
}

/// Maximum nesting of parentheses: a mixture of mixtures of simple laws.
const MAX_DEPTH: usize = 4;

const REMEDY: &str = "write it as name(value, parameter=value), such as zipf(0.99)";

/// Law names may be written with hyphens or underscores.
pub(crate) fn canonical(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

impl LawExpr {
    /// Parses the compact notation.
    ///
    /// # Errors
    /// The problem and its location within `text`.
    pub(crate) fn parse(
        text: &str,
        origin: &Origin,
        source: &Source,
    ) -> Result<Self, (Origin, Invalid)> {
        let located = |range: Range<usize>| origin.part(source, text, range);
        let wrong =
            |range: Range<usize>, message: String| (located(range), Invalid::new(message, REMEDY));
        let whole = trim(text, 0..text.len());
        let body = &text[whole.clone()];
        let name_len = body
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
            .unwrap_or(body.len());
        let name_range = whole.start..whole.start + name_len;
        if !body.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(wrong(
                whole,
                format!("`{body}` does not begin with the name of a law"),
            ));
        }
        let name = (
            canonical(&text[name_range.clone()]),
            located(name_range.clone()),
        );
        let rest = trim(text, name_range.end..whole.end);
        if rest.is_empty() {
            return Ok(Self {
                name,
                args: Vec::new(),
            });
        }
        if !text[rest.clone()].starts_with('(') {
            return Err(wrong(
                rest,
                "expected `(` after the name of the law".to_owned(),
            ));
        }
        let inner = rest.start + 1..rest.end;
        let (pieces, close) =
            split(text, inner).map_err(|(range, message)| wrong(range, message))?;
        if close + 1 != rest.end {
            return Err(wrong(
                close + 1..rest.end,
                "unexpected text after `)`".to_owned(),
            ));
        }
        let args = pieces
            .into_iter()
            .map(|piece| {
                if piece.value.is_empty() {
                    return Err(wrong(
                        piece.value.start.min(close)..close + 1,
                        "a value is missing here".to_owned(),
                    ));
                }
                let node = |range: Range<usize>| Node {
                    value: Value::Str(text[range.clone()].to_owned()),
                    origin: located(range),
                };
                let (name, weight) = match piece.label {
                    None => (None, None),
                    Some((range, b'=')) => (
                        Some((canonical(&text[range.clone()]), located(range))),
                        None,
                    ),
                    Some((range, _)) => (None, Some(node(range))),
                };
                Ok(LawArg {
                    name,
                    weight,
                    value: node(piece.value),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { name, args })
    }

    /// Reads the table notation, `{ law = "name", parameter = value }`. `None` without `law`.
    pub(crate) fn from_table(table: &Table) -> Option<Self> {
        let law = table.get("law")?;
        let Value::Str(name) = &law.value else {
            return None;
        };
        let args = table
            .entries
            .iter()
            .filter(|entry| entry.key != "law")
            .map(|entry| LawArg {
                name: Some((entry.key.clone(), entry.at.clone())),
                weight: None,
                value: entry.node.clone(),
            })
            .collect();
        Some(Self {
            name: (canonical(name), law.origin.clone()),
            args,
        })
    }
}

struct Piece {
    label: Option<(Range<usize>, u8)>,
    value: Range<usize>,
}

/// Splits the text after an opening parenthesis at commas outside inner parentheses. Returns the pieces and
/// the position of the closing parenthesis.
fn split(text: &str, range: Range<usize>) -> Result<(Vec<Piece>, usize), (Range<usize>, String)> {
    let mut pieces = Vec::new();
    let mut depth = 0;
    let mut start = range.start;
    let mut label: Option<(usize, u8)> = None;
    let mut finish = |start: usize, end: usize, label: &mut Option<(usize, u8)>| {
        let value_start = label.map_or(start, |(at, _)| at + 1);
        pieces.push(Piece {
            label: label.take().map(|(at, sign)| (trim(text, start..at), sign)),
            value: trim(text, value_start..end),
        });
    };
    for at in range.clone() {
        match text.as_bytes()[at] {
            b'(' => {
                depth += 1;
                if depth >= MAX_DEPTH {
                    return Err((at..at + 1, "the law is nested too deeply".to_owned()));
                }
            }
            b')' if depth > 0 => depth -= 1,
            b')' => {
                let empty = pieces_empty(text, range.start..at);
                if !empty {
                    finish(start, at, &mut label);
                }
                return Ok((pieces, at));
            }
            b',' if depth == 0 => {
                finish(start, at, &mut label);
                start = at + 1;
            }
            sign @ (b'=' | b':') if depth == 0 && label.is_none() => label = Some((at, sign)),
            _ => {}
        }
    }
    Err((
        range.start.saturating_sub(1)..range.end,
        "the closing `)` is missing".to_owned(),
    ))
}

fn pieces_empty(text: &str, range: Range<usize>) -> bool {
    text[range].trim().is_empty()
}

/// The range without surrounding white space.
fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    let end = start + part.trim().len();
    start..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LawExpr, Value};
    use crate::spec::source::{Origin, Source};

    fn parse(text: &str) -> Result<LawExpr, String> {
        let source = Source {
            name: String::new(),
            text: format!("\"{text}\""),
        };
        LawExpr::parse(text, &Origin::File(0..source.text.len()), &source)
            .map_err(|(origin, invalid)| format!("{origin:?} {invalid}"))
    }

    fn args(text: &str) -> Vec<(Option<String>, Option<String>, String)> {
        let string = |value: &Value| match value {
            Value::Str(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        parse(text)
            .unwrap()
            .args
            .iter()
            .map(|arg| {
                (
                    arg.name.as_ref().map(|(name, _)| name.clone()),
                    arg.weight.as_ref().map(|node| string(&node.value)),
                    string(&arg.value.value),
                )
            })
            .collect()
    }

    #[test]
    fn notation() {
        assert_eq!(parse(" Uniform ").unwrap().name.0, "uniform");
        assert!(args("uniform()").is_empty());
        assert_eq!(
            args("lognormal_rate( 200/s, CV_r = 0.5 )"),
            [
                (None, None, "200/s".to_owned()),
                (Some("cv-r".to_owned()), None, "0.5".to_owned())
            ]
        );
        assert_eq!(
            args("mixture(20%: const(0), 80%: uniform(1, 2))"),
            [
                (None, Some("20%".to_owned()), "const(0)".to_owned()),
                (None, Some("80%".to_owned()), "uniform(1, 2)".to_owned())
            ]
        );
    }

    #[test]
    fn mistakes_are_located() {
        for (text, at) in [
            ("zipf(0.99", "File(5..10)"),
            ("zipf 0.99", "File(6..10)"),
            ("zipf(1) x", "File(8..10)"),
            ("zipf(1,)", "File(8..9)"),
            ("zipf(theta=)", "File(12..13)"),
            ("(1)", "File(1..4)"),
            ("a(b(c(d(e()))))", "File(10..11)"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(at), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn never_panics_on_likely_text(text in "[a-z]{0,3}[a-z(),=: 0-9äµ]{0,40}") {
            let _ = parse(&text);
        }
    }
}
