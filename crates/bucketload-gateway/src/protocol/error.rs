//! Encoding of the store's errors, so that the client's callers see the same errors as with a store in their own
//! process.

use std::io;
use std::sync::{Mutex, PoisonError};

use bucketload_store::StoreError;

use super::codec::{Decoder, Malformed, Value};

/// Maximum number of error texts kept for the life of the process.
const MAX_TEXTS: usize = 256;

/// Makes a text live as long as the process. The store's errors have few fixed texts; if a server invents more, they
/// all become the same one.
fn intern(text: &str) -> &'static str {
    static KNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.iter().find(|known| **known == text) {
        return found;
    }
    if known.len() >= MAX_TEXTS || text.len() > 1024 {
        return "unknown reason";
    }
    let text: &'static str = Box::leak(text.into());
    known.push(text);
    text
}

/// The error for a failed write to an object's file.
pub(crate) fn write_error(source: io::Error) -> StoreError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::InsufficientStorage
        }
        _ => StoreError::Io {
            context: "writing an object",
            source,
        },
    }
}

/// Appends a system error: its number (0 if it has none) and its text.
fn put_system_error(out: &mut Vec<u8>, error: &io::Error) {
    let number = error.raw_os_error().map_or(0, i32::unsigned_abs);
    (number, error.to_string()).put(out);
}

fn system_error(decoder: &mut Decoder<'_>) -> Result<io::Error, Malformed> {
    let (number, text) = <(u32, String)>::take(decoder)?;
    Ok(match i32::try_from(number) {
        Ok(number @ 1..) => io::Error::from_raw_os_error(number),
        _ => io::Error::other(text),
    })
}

/// The table of errors: the number of each, and its contents.
macro_rules! errors {
    (
        simple { $($number:literal $simple:ident,)* }
        text { $($text_number:literal $text:ident,)* }
        fields { $($fields_number:literal $name:ident { $($field:ident),* },)* }
    ) => {
        impl Value<'_> for StoreError {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$simple => out.push($number),)*
                    $(Self::$text(text) => {
                        out.push($text_number);
                        (*text).put(out);
                    })*
                    $(Self::$name { $($field),* } => {
                        out.push($fields_number);
                        $($field.put(out);)*
                    })*
                    Self::InvalidPart(number) => {
                        out.push(13);
                        number.put(out);
                    }
                    Self::AccessDenied(source) => {
                        out.push(19);
                        put_system_error(out, source);
                    }
                    Self::Io { context, source } => {
                        out.push(20);
                        (*context).put(out);
                        put_system_error(out, source);
                    }
                    Self::Corrupt(text) => {
                        out.push(21);
                        text.put(out);
                    }
                    // The store may gain more errors.
                    other => {
                        out.push(21);
                        other.to_string().put(out);
                    }
                }
            }

            fn take(d: &mut Decoder<'_>) -> Result<Self, Malformed> {
                Ok(match d.byte()? {
                    $($number => Self::$simple,)*
                    $($text_number => Self::$text(intern(Value::take(d)?)),)*
                    $($fields_number => Self::$name { $($field: Value::take(d)?),* },)*
                    13 => Self::InvalidPart(Value::take(d)?),
                    19 => Self::AccessDenied(system_error(d)?),
                    20 => Self::Io {
                        context: intern(Value::take(d)?),
                        source: system_error(d)?,
                    },
                    21 => Self::Corrupt(Value::take(d)?),
                    _ => return Err(Malformed("an unknown error")),
                })
            }
        }
    };
}

errors! {
    simple {
        1 NoSuchBucket,
        2 NoSuchKey,
        3 NoSuchUpload,
        4 BucketNotEmpty,
        5 BucketAlreadyOwnedByYou,
        6 KeyTooLong,
        7 InvalidPartOrder,
        8 BadDigest,
        9 PreconditionFailed,
        10 InsufficientStorage,
    }
    text {
        11 InvalidBucketName,
        12 InvalidArgument,
        18 NotImplemented,
    }
    fields {
        14 EntityTooSmall { part, size, minimum },
        15 EntityTooLarge { maximum },
        16 IncompleteBody { announced, written },
        17 InvalidRange { size },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::codec::decode_all;

    #[test]
    fn errors_round_trip() {
        let all = [
            StoreError::NoSuchBucket,
            StoreError::NoSuchKey,
            StoreError::NoSuchUpload,
            StoreError::BucketNotEmpty,
            StoreError::BucketAlreadyOwnedByYou,
            StoreError::KeyTooLong,
            StoreError::InvalidPartOrder,
            StoreError::BadDigest,
            StoreError::PreconditionFailed,
            StoreError::InsufficientStorage,
            StoreError::InvalidBucketName("it must have 3 to 63 characters"),
            StoreError::InvalidArgument("the key is empty"),
            StoreError::InvalidPart(7),
            StoreError::EntityTooSmall {
                part: 1,
                size: 2,
                minimum: 3,
            },
            StoreError::EntityTooLarge { maximum: 9 },
            StoreError::IncompleteBody {
                announced: 1,
                written: 2,
            },
            StoreError::InvalidRange { size: 3 },
            StoreError::NotImplemented("tags"),
            StoreError::AccessDenied(io::Error::from_raw_os_error(13)),
            StoreError::Io {
                context: "reading",
                source: io::Error::from_raw_os_error(5),
            },
            StoreError::Io {
                context: "reading",
                source: io::Error::other("why"),
            },
            StoreError::Corrupt("what".to_owned()),
        ];
        for sent in all {
            let mut out = Vec::new();
            sent.put(&mut out);
            let got: StoreError = decode_all(&out).unwrap();
            assert_eq!(std::mem::discriminant(&got), std::mem::discriminant(&sent));
            assert_eq!(
                (got.to_string(), got.code()),
                (sent.to_string(), sent.code())
            );
        }
        // Comes last, because the process keeps the texts.
        for i in 0..2 * MAX_TEXTS {
            intern(&format!("text {i}"));
        }
        assert_eq!(intern("one more"), "unknown reason");
        assert_eq!(intern("the key is empty"), "the key is empty");
    }
}
