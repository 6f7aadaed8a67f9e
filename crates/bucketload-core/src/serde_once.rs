//! Compiles the serialization of a large type only once.
//!
//! Code derived by serde is generic over the format, so each crate compiles it again for each format it reads
//! or writes. A type passed to [`serde_once!`](crate::serde_once!) is serialized through a trait object and
//! deserialized through a [`serde_json::Value`], so only the crate that defines the type compiles the code
//! for its fields. The output does not change. An error about a missing or wrong field names the field but
//! not its line; a syntax error still names the line. Meant for types that are read or written at most a few
//! times a second.

#[doc(hidden)]
pub use erased_serde::{Serialize as Erased, serialize};

/// Implements `Serialize` and `Deserialize` for types that derive both with `#[serde(remote = "Self")]`.
#[macro_export]
macro_rules! serde_once {
    ($($type:ty),+ $(,)?) => {$(
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                struct Fields<'a>(&'a $type);

                impl ::serde::Serialize for Fields<'_> {
                    fn serialize<S: ::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                        <$type>::serialize(self.0, to)
                    }
                }

                // Inlining would compile it in the calling crate.
                #[inline(never)]
                fn once<'a>(fields: &'a Fields<'a>) -> &'a dyn $crate::serde_once::Erased {
                    fields
                }

                $crate::serde_once::serialize(once(&Fields(self)), to)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                #[inline(never)]
                fn once(value: ::serde_json::Value) -> ::serde_json::Result<$type> {
                    <$type>::deserialize(value)
                }

                let value = <::serde_json::Value as ::serde::Deserialize>::deserialize(from)?;
                once(value).map_err(::serde::de::Error::custom)
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(remote = "Self", rename_all = "kebab-case")]
    struct Inner {
        big_number: u64,
        exact: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        absent: Option<String>,
    }
    serde_once!(Inner);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    enum Outer {
        Two { zeta: Inner, alpha: Inner },
    }

    fn inner() -> Inner {
        Inner {
            big_number: u64::MAX,
            exact: 0.1 + 0.2,
            absent: None,
        }
    }

    #[test]
    fn fields_keep_their_order_and_numbers_their_digits() {
        let text = serde_json::to_string(&inner()).unwrap();
        assert_eq!(
            text,
            r#"{"big-number":18446744073709551615,"exact":0.30000000000000004}"#
        );
        assert_eq!(serde_json::from_str::<Inner>(&text).unwrap(), inner());
    }

    #[test]
    fn it_works_inside_types_that_serde_buffers() {
        let outer = Outer::Two {
            zeta: inner(),
            alpha: inner(),
        };
        let text = serde_json::to_string_pretty(&outer).unwrap();
        assert!(text.find("zeta").unwrap() < text.find("alpha").unwrap());
        assert_eq!(serde_json::from_str::<Outer>(&text).unwrap(), outer);
        let value = serde_json::to_value(&outer).unwrap();
        assert_eq!(serde_json::from_value::<Outer>(value).unwrap(), outer);
    }

    #[test]
    fn errors_name_the_field() {
        let missing = serde_json::from_str::<Inner>(r#"{"exact": 1}"#).unwrap_err();
        assert_eq!(missing.to_string(), "missing field `big-number`");
        let text = "{\n\"exact\" 1}";
        let no_json = serde_json::from_str::<Inner>(text).unwrap_err();
        assert_eq!(no_json.line(), 2, "{no_json}");
    }
}
