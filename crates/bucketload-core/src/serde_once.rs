//! One compiled copy of a large type's serialization.
//!
//! What serde derives is generic over the format, and each crate compiles it again for each format that it reads or
//! writes. A type of [`serde_once!`](crate::serde_once) is written through a trait object and read by way of a
//! [`serde_json::Value`], so that only the crate that defines it compiles its fields. Written output stays the same;
//! an error in what is read names the end of the value as its place. Meant for what is read and written a few times a
//! second at most.

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

                // Inlined, it would be compiled where it is called.
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
