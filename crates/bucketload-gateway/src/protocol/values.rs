//! Encoding of the store's types in requests and answers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bucketload_store::{
    BucketInfo, Checksum, ChecksumAlgorithm, ChecksumKind, Commit, CompletedPart, Condition, ETag,
    Headers, ListEntry, ListRequest, ListUploadsRequest, Listing, MultipartOptions, ObjectInfo,
    PartInfo, PartListing, PartSizes, ReadConditions, UploadInfo, UploadListing, Written,
};

use super::codec::{Decoder, Malformed, Value, fields, put_list};

type Decoded<T> = Result<T, Malformed>;

fields! {
    BucketInfo { name, created }
    Checksum { algorithm, kind, value }
    CompletedPart { number, etag, checksums }
    Headers { content_type, system, user }
    ListEntry { key, size, etag, modified, checksums, storage_class }
    ListRequest<'a> { prefix, delimiter, start_after, max_keys }
    ListUploadsRequest<'a> { prefix, delimiter, key_marker, upload_id_marker, max_uploads }
    Listing { objects, common_prefixes, next }
    MultipartOptions { headers, tags, checksum }
    ObjectInfo { size, etag, modified, headers, checksums, tags, parts }
    PartInfo { number, size, etag, modified, checksums }
    PartListing { upload, parts, next }
    UploadInfo { key, upload_id, initiated, checksum, storage_class }
    UploadListing { uploads, common_prefixes, next }
}

/// Without the version: the gateway's calls know no versions.
impl Value<'_> for Written {
    fn put(&self, out: &mut Vec<u8>) {
        self.etag.put(out);
        self.size.put(out);
        self.modified.put(out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        Ok(Self {
            etag: Value::take(decoder)?,
            size: Value::take(decoder)?,
            modified: Value::take(decoder)?,
            version: None,
        })
    }
}

/// All buckets. The list is not paged, but bounded by the maximum length of a head.
pub(crate) struct Buckets(pub(crate) Vec<BucketInfo>);

impl Value<'_> for Buckets {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder
            .list(u64::from(super::MAX_REPLY_HEAD_BYTES))
            .map(Self)
    }
}

/// Rejects runs whose sums overflow.
impl Value<'_> for PartSizes {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self.runs(), out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        let runs = Vec::<(u32, u64)>::take(decoder)?;
        let sum = runs
            .iter()
            .try_fold((0_u32, 0_u64), |(parts, bytes), (count, size)| {
                let run = u64::from(*count).checked_mul(*size)?;
                Some((parts.checked_add(*count)?, bytes.checked_add(run)?))
            });
        match sum {
            Some(_) => Ok(Self::from_runs(runs)),
            None => Err(Malformed("parts of an object are too many or too large")),
        }
    }
}

impl Value<'_> for ETag {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_raw().put(out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        Ok(Self::from_raw(Value::take(decoder)?, Value::take(decoder)?))
    }
}

/// Nanoseconds since the epoch, modulo 2^64, which is good until 2554.
impl Value<'_> for SystemTime {
    fn put(&self, out: &mut Vec<u8>) {
        let since = self.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        (since.as_nanos() as u64).to_le_bytes().put(out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        Ok(UNIX_EPOCH + Duration::from_nanos(u64::from_le_bytes(Value::take(decoder)?)))
    }
}

/// Checksum algorithms; the index is the number on the wire.
const ALGORITHMS: [ChecksumAlgorithm; 5] = [
    ChecksumAlgorithm::Crc32,
    ChecksumAlgorithm::Crc32c,
    ChecksumAlgorithm::Crc64Nvme,
    ChecksumAlgorithm::Sha1,
    ChecksumAlgorithm::Sha256,
];

impl Value<'_> for ChecksumAlgorithm {
    fn put(&self, out: &mut Vec<u8>) {
        let number = ALGORITHMS.iter().position(|known| known == self);
        out.push(number.expect("every algorithm has a number") as u8);
    }

    fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        ALGORITHMS
            .get(usize::from(decoder.byte()?))
            .copied()
            .ok_or(Malformed("an unknown checksum algorithm"))
    }
}

impl Value<'_> for ChecksumKind {
    fn put(&self, out: &mut Vec<u8>) {
        (*self == Self::Composite).put(out);
    }

    fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        Ok(match bool::take(decoder)? {
            true => Self::Composite,
            false => Self::FullObject,
        })
    }
}

impl Value<'_> for Condition {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => out.push(0),
            Self::Absent => out.push(1),
            Self::Present => out.push(2),
            Self::Match(tags) => {
                out.push(3);
                tags.put(out);
            }
        }
    }

    fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        Ok(match decoder.byte()? {
            0 => Self::None,
            1 => Self::Absent,
            2 => Self::Present,
            3 => Self::Match(Value::take(decoder)?),
            _ => return Err(Malformed("an unknown condition")),
        })
    }
}

/// Declares structures whose default value takes one byte: a flag, followed by the fields in this order unless all
/// have their defaults.
macro_rules! plain_or_fields {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Value<'_> for $name {
            fn put(&self, out: &mut Vec<u8>) {
                let nothing = Self::default();
                let plain = $(self.$field == nothing.$field)&&*;
                (!plain).put(out);
                if !plain {
                    $(self.$field.put(out);)*
                }
            }

            fn take(decoder: &mut Decoder<'_>) -> Decoded<Self> {
                if !bool::take(decoder)? {
                    return Ok(Self::default());
                }
                Ok(Self { $($field: Value::take(decoder)?),* })
            }
        }
    )*};
}

plain_or_fields! {
    Commit { headers, checksums, tags, condition }
    ReadConditions { if_match, if_none_match, if_modified_since, if_unmodified_since }
}
