//! A small JSON reader (RFC 8259) for responses of storage services. It reports every value with its path and copies
//! nothing, so a listing of a thousand names does not allocate.
//!
//! ```text
//! {"items":[{"name":"a"}]}   ─►   ["items","[]","name"] Text("a"), ["items","[]"] End, ["items"] End, [] End
//! ```
//!
//! Member names are reported with their escapes unresolved; the services do not use escapes in names.

use std::fmt;

use bucketload_s3::encode::hex_pair;

/// Maximum nesting.
const MAX_DEPTH: usize = 32;

/// A value, or the end of an object or array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A string.
    Text(Text<'a>),
    /// A number, unparsed.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// The object or array at this path is complete.
    End,
}

impl<'a> Value<'a> {
    /// The string, if it is one.
    pub(crate) fn text(self) -> Option<Text<'a>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as an integer. Strings count too: Google writes 64-bit numbers as strings.
    pub(crate) fn whole(self) -> Option<u64> {
        match self {
            Self::Number(digits) => digits.parse().ok(),
            Self::Text(Text(digits)) => digits.parse().ok(),
            _ => None,
        }
    }
}

/// The contents of a string, with escapes unresolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// The string, if it has no escapes.
    pub(crate) fn plain(self) -> Option<&'a str> {
        (!self.0.contains('\\')).then_some(self.0)
    }

    /// True for an empty string.
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Appends the unescaped string to `out`.
    pub(crate) fn push_to(self, out: &mut Vec<u8>) {
        let mut rest = self.0;
        while let Some(at) = rest.find('\\') {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            let (char, taken) = unescape(&rest[at..]);
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[at + taken..];
        }
        out.extend_from_slice(rest.as_bytes());
    }

    /// The unescaped string.
    pub(crate) fn get(self) -> String {
        let mut out = Vec::with_capacity(self.0.len());
        self.push_to(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Decodes the escape at the start of `text`: its character and length in bytes. A lone surrogate becomes a replacement
/// character.
fn unescape(text: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let simple = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => {
            let Some(first) = unit(2) else {
                return (char::REPLACEMENT_CHARACTER, 2);
            };
            if (0xd800..0xdc00).contains(&first)
                && text.get(6..8) == Some("\\u")
                && let Some(second) = unit(8)
                && (0xdc00..0xe000).contains(&second)
            {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return (
                    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                    12,
                );
            }
            return (
                char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
                6,
            );
        }
        Some(&byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
        _ => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (simple, 2)
}

/// Why a document cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    what: &'static str,
    at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

/// Calls `visit` with every value of `document`, in order, and the member names that lead to it; `[]` stands for an
/// element of an array.
///
/// # Errors
/// When the document is not JSON, not UTF-8 or nested too deeply; `visit` has seen the values before the fault.
pub(crate) fn values<'a>(
    document: &'a [u8],
    mut visit: impl FnMut(&[&'a str], Value<'a>),
) -> Result<(), Malformed> {
    let text = std::str::from_utf8(document).map_err(|e| Malformed {
        what: "not UTF-8",
        at: e.valid_up_to(),
    })?;
    let mut reader = Reader {
        text,
        at: 0,
        path: [""; MAX_DEPTH],
    };
    reader.value(0, &mut visit)?;
    reader.blank();
    match reader.at == text.len() {
        true => Ok(()),
        false => Err(reader.wrong("text after the document")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    path: [&'a str; MAX_DEPTH],
}

impl<'a> Reader<'a> {
    const fn wrong(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8, what: &'static str) -> Result<(), Malformed> {
        self.blank();
        if self.peek() != Some(byte) {
            return Err(self.wrong(what));
        }
        self.at += 1;
        Ok(())
    }

    fn value(
        &mut self,
        depth: usize,
        visit: &mut dyn FnMut(&[&'a str], Value<'a>),
    ) -> Result<(), Malformed> {
        self.blank();
        let value = match self.peek() {
            Some(b'{') => {
                self.parts(depth, true, visit)?;
                Value::End
            }
            Some(b'[') => {
                self.parts(depth, false, visit)?;
                Value::End
            }
            Some(b'"') => Value::Text(Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number()),
            _ => self.word()?,
        };
        visit(&self.path[..depth], value);
        Ok(())
    }

    /// The members of an object (`named`) or the elements of an array.
    fn parts(
        &mut self,
        depth: usize,
        named: bool,
        visit: &mut dyn FnMut(&[&'a str], Value<'a>),
    ) -> Result<(), Malformed> {
        if depth == MAX_DEPTH {
            return Err(self.wrong("nested too deeply"));
        }
        let close = if named { b'}' } else { b']' };
        self.at += 1;
        self.blank();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.path[depth] = "[]";
            if named {
                self.blank();
                if self.peek() != Some(b'"') {
                    return Err(self.wrong("no member name"));
                }
                self.path[depth] = self.string()?;
                self.take(b':', "no colon after a name")?;
            }
            self.value(depth + 1, visit)?;
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.wrong("neither comma nor end")),
            }
        }
    }

    fn string(&mut self) -> Result<&'a str, Malformed> {
        let begin = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut at = begin;
        loop {
            match bytes.get(at) {
                None => return Err(self.wrong("a string without an end")),
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(..=0x1f) => return Err(self.wrong("a control character in a string")),
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        // Both ends are quotation marks, so the slice is on character boundaries.
        Ok(&self.text[begin..at])
    }

    fn number(&mut self) -> &'a str {
        let begin = self.at;
        while matches!(
            self.peek(),
            Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
        ) {
            self.at += 1;
        }
        &self.text[begin..self.at]
    }

    fn word(&mut self) -> Result<Value<'a>, Malformed> {
        for (word, value) in [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Null),
        ] {
            if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("no value"))
    }
}

/// Appends `text` as a JSON string with its quotation marks.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends `text` escaped for use inside a JSON string.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..=0x1f => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&hex_pair(byte));
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Value, push_string, values};

    fn shown(document: &str) -> Result<Vec<String>, String> {
        let mut out = Vec::new();
        values(document.as_bytes(), |path, value| {
            let value = match value {
                Value::Text(text) => format!("'{}'", text.get()),
                other => format!("{other:?}"),
            };
            out.push(format!("{} {value}", path.join("/")));
        })
        .map_err(|e| e.to_string())?;
        Ok(out)
    }

    #[test]
    fn every_value_is_reported_with_its_path() {
        let text = r#" {"kind":"x", "items" : [ {"name":"a\/b","size":"12"} , {"name":"\u00e4\ud83d\ude00"} ],
            "done":true,"none":null,"n":-1.5e3,"empty":[],"void":{}} "#;
        let expected = [
            "kind 'x'",
            "items/[]/name 'a/b'",
            "items/[]/size '12'",
            "items/[] End",
            "items/[]/name '\u{e4}\u{1f600}'",
            "items/[] End",
            "items End",
            "done Bool(true)",
            "none Null",
            "n Number(\"-1.5e3\")",
            "empty End",
            "void End",
            " End",
        ];
        assert_eq!(shown(text).unwrap(), expected);
    }

    #[test]
    fn malformed_documents_are_explained() {
        for (text, what) in [
            ("", "no value"),
            ("{\"a\"}", "no colon"),
            ("{\"a\":1", "neither comma"),
            ("[1,]", "no value"),
            ("{a:1}", "no member name"),
            ("\"abc", "without an end"),
            ("\"a\nb\"", "control character"),
            ("1 2", "after the document"),
            ("\"a\\", "without an end"),
        ] {
            let error = shown(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
        let deep = "[".repeat(100_000);
        assert!(shown(&deep).unwrap_err().contains("too deeply"));
        assert!(values(b"\"\xff\"", |_, _| {}).is_err());
    }

    #[test]
    fn integers_may_be_numbers_or_strings() {
        assert_eq!(
            Value::Number("18446744073709551615").whole(),
            Some(u64::MAX)
        );
        assert_eq!(Value::Number("1.5").whole(), None);
        let mut size = None;
        values(b"{\"size\":\"77\"}", |path, value| {
            if path == ["size"] {
                size = value.whole();
            }
        })
        .unwrap();
        assert_eq!(size, Some(77));
    }

    proptest! {
        #[test]
        fn strings_round_trip(text in any::<String>()) {
            let mut document = Vec::new();
            push_string(&mut document, &text);
            let mut got = String::new();
            values(&document, |_, value| got = value.text().unwrap().get()).unwrap();
            prop_assert_eq!(got, text);
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = values(&bytes, |_, value| {
                if let Value::Text(text) = value {
                    text.get();
                }
            });
        }

        #[test]
        fn malformed_documents_do_not_panic(at in 0usize..64, byte in any::<u8>()) {
            let mut text = br#"{"a":["b\u00e4\ud83d\ude00\n",{"c":[1,2,{"d":null}]}],"e":false}"#.to_vec();
            let at = at % text.len();
            text[at] = byte;
            let _ = values(&text, |_, value| {
                if let Value::Text(text) = value {
                    text.get();
                }
            });
        }
    }
}
