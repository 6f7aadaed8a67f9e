//! The store's errors as bytes, both ways: the client's callers get the same errors as those of a store in their
//! own process.

use std::io;
use std::sync::{Mutex, PoisonError};

use bucketload_store::StoreError;

use super::codec::{Decoder, Malformed, put_number, put_text};

/// Most texts of errors that are remembered.
const TEXTS: usize = 256;

/// A text that lives as long as the program. The store's errors have fixed texts, so that there are few; a server
/// that invents more gets one for all of them.
fn lasting(text: &str) -> &'static str {
    static KNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.iter().find(|known| **known == text) {
        return found;
    }
    if known.len() >= TEXTS || text.len() > 1024 {
        return "as the gateway says";
    }
    let text: &'static str = Box::leak(text.into());
    known.push(text);
    text
}

fn put_io(out: &mut Vec<u8>, error: &io::Error) {
    put_number(
        out,
        error
            .raw_os_error()
            .map_or(0, |n| u64::from(n.unsigned_abs())),
    );
    put_text(out, &error.to_string());
}

fn io_error(decoder: &mut Decoder<'_>) -> Result<io::Error, Malformed> {
    let (number, text) = (decoder.small()?, decoder.text()?);
    Ok(match i32::try_from(number) {
        Ok(number @ 1..) => io::Error::from_raw_os_error(number),
        _ => io::Error::other(text.to_owned()),
    })
}

/// Appends an error.
pub(crate) fn put_error(out: &mut Vec<u8>, error: &StoreError) {
    let simple = |out: &mut Vec<u8>, number| out.push(number);
    match error {
        StoreError::NoSuchBucket => simple(out, 1),
        StoreError::NoSuchKey => simple(out, 2),
        StoreError::NoSuchUpload => simple(out, 3),
        StoreError::BucketNotEmpty => simple(out, 4),
        StoreError::BucketAlreadyOwnedByYou => simple(out, 5),
        StoreError::KeyTooLong => simple(out, 6),
        StoreError::InvalidPartOrder => simple(out, 7),
        StoreError::BadDigest => simple(out, 8),
        StoreError::PreconditionFailed => simple(out, 9),
        StoreError::InsufficientStorage => simple(out, 10),
        StoreError::InvalidBucketName(text) => {
            out.push(11);
            put_text(out, text);
        }
        StoreError::InvalidArgument(text) => {
            out.push(12);
            put_text(out, text);
        }
        StoreError::InvalidPart(number) => {
            out.push(13);
            put_number(out, u64::from(*number));
        }
        StoreError::EntityTooSmall {
            part,
            size,
            minimum,
        } => {
            out.push(14);
            put_number(out, u64::from(*part));
            put_number(out, *size);
            put_number(out, *minimum);
        }
        StoreError::EntityTooLarge { maximum } => {
            out.push(15);
            put_number(out, *maximum);
        }
        StoreError::IncompleteBody { announced, written } => {
            out.push(16);
            put_number(out, *announced);
            put_number(out, *written);
        }
        StoreError::InvalidRange { size } => {
            out.push(17);
            put_number(out, *size);
        }
        StoreError::NotImplemented(text) => {
            out.push(18);
            put_text(out, text);
        }
        StoreError::AccessDenied(source) => {
            out.push(19);
            put_io(out, source);
        }
        StoreError::Io { context, source } => {
            out.push(20);
            put_text(out, context);
            put_io(out, source);
        }
        StoreError::Corrupt(text) => {
            out.push(21);
            put_text(out, text);
        }
        // The store's errors may become more.
        other => {
            out.push(21);
            put_text(out, &other.to_string());
        }
    }
}

/// Reads an error.
pub(crate) fn error(decoder: &mut Decoder<'_>) -> Result<StoreError, Malformed> {
    let d = decoder;
    Ok(match d.byte()? {
        1 => StoreError::NoSuchBucket,
        2 => StoreError::NoSuchKey,
        3 => StoreError::NoSuchUpload,
        4 => StoreError::BucketNotEmpty,
        5 => StoreError::BucketAlreadyOwnedByYou,
        6 => StoreError::KeyTooLong,
        7 => StoreError::InvalidPartOrder,
        8 => StoreError::BadDigest,
        9 => StoreError::PreconditionFailed,
        10 => StoreError::InsufficientStorage,
        11 => StoreError::InvalidBucketName(lasting(d.text()?)),
        12 => StoreError::InvalidArgument(lasting(d.text()?)),
        13 => StoreError::InvalidPart(d.small()?),
        14 => StoreError::EntityTooSmall {
            part: d.small()?,
            size: d.number()?,
            minimum: d.number()?,
        },
        15 => StoreError::EntityTooLarge {
            maximum: d.number()?,
        },
        16 => StoreError::IncompleteBody {
            announced: d.number()?,
            written: d.number()?,
        },
        17 => StoreError::InvalidRange { size: d.number()? },
        18 => StoreError::NotImplemented(lasting(d.text()?)),
        19 => StoreError::AccessDenied(io_error(d)?),
        20 => StoreError::Io {
            context: lasting(d.text()?),
            source: io_error(d)?,
        },
        21 => StoreError::Corrupt(d.text()?.to_owned()),
        _ => return Err(Malformed("an unknown error")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::reply::whole;

    #[test]
    fn errors_arrive_as_they_were() {
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
            put_error(&mut out, &sent);
            let got = whole(&out, error).unwrap();
            assert_eq!(std::mem::discriminant(&got), std::mem::discriminant(&sent));
            assert_eq!(
                (got.to_string(), got.code()),
                (sent.to_string(), sent.code())
            );
        }
        // Last, for texts are remembered by the process.
        for i in 0..2 * TEXTS {
            lasting(&format!("text {i}"));
        }
        assert_eq!(lasting("one more"), "as the gateway says");
        assert_eq!(lasting("the key is empty"), "the key is empty");
    }
}
