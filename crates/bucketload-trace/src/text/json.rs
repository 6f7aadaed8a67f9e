//! JSON scalars that logs write sometimes as numbers, sometimes as strings, sometimes as `null`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Any scalar as a string; `null`, `"-"` and absence are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.0.as_bytes() {
            b"-" => b"",
            other => other,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }
}

/// An integer, written as a number or as a string; `null`, `"-"` and absence are -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int(pub(crate) i64);

impl Default for Int {
    fn default() -> Self {
        Self(-1)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or null")
    }

    fn visit_borrowed_str<E: Error>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(v)))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(v.to_owned())))
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(v.to_string())))
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(v.to_string())))
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(v.to_string())))
    }

    fn visit_bool<E: Error>(self, v: bool) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(if v { "true" } else { "false" })))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Text::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_any(TextVisitor)?;
        let bytes = text.bytes();
        if let Some(n) = super::fields::optional(bytes) {
            return Ok(Self(n));
        }
        // Writers in JavaScript write large integers as floating-point numbers.
        match text.0.parse::<f64>() {
            Ok(x) if x.is_finite() && x.abs() < 9e15 => Ok(Self(x.round() as i64)),
            _ => Err(D::Error::custom("not a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Int, Text};

    #[test]
    fn scalars_of_any_kind() {
        let int = |text: &str| serde_json::from_str::<Int>(text).map(|n| n.0).ok();
        assert_eq!(int("12"), Some(12));
        assert_eq!(int("\"12\""), Some(12));
        assert_eq!(int("12.0"), Some(12));
        assert_eq!(int("null"), Some(-1));
        assert_eq!(int("\"-\""), Some(-1));
        assert_eq!(int("\"x\""), None);
        let text = |text: &str| {
            serde_json::from_str::<Text<'_>>(text)
                .unwrap()
                .0
                .into_owned()
        };
        assert_eq!(text("\"a\\u0041\""), "aA");
        assert_eq!(text("5"), "5");
        assert_eq!(text("null"), "");
    }
}
