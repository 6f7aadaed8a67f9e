//! What a quirk does where a row of a table says it all: refuse an operation, forget a header or a
//! parameter, take an operation for another, withhold a header of the response.

use super::Quirk;
use crate::error::Code;
use crate::headers::Name;
use crate::router::Operation::{
    self, AbortUpload, CompleteUpload, Copy, CreateUpload, Delete, DeleteMany, DeleteTagging, Get,
    GetTagging, Head, List, ListParts, ListV1, ListVersions, Put, PutTagging, UploadPart,
    UploadPartCopy,
};

const READS: &[Operation] = &[Get, Head];
const PUTS: &[Operation] = &[Put, Copy];
/// What the right to put an object covers.
const WRITES: &[Operation] = &[
    Put,
    Copy,
    CreateUpload,
    UploadPart,
    UploadPartCopy,
    CompleteUpload,
];
pub(super) const LISTINGS: &[Operation] = &[List, ListV1, ListVersions];
/// Operations on a key that is, or will be, written.
pub(super) const OF_WRITTEN_KEYS: &[Operation] = &[
    Put,
    Copy,
    CreateUpload,
    UploadPart,
    UploadPartCopy,
    CompleteUpload,
    AbortUpload,
    ListParts,
];

/// Operations refused, with the error.
pub(super) const REFUSED: &[(Quirk, &[Operation], Code)] = &[
    (Quirk::ListV2Refused, &[List], Code::NotImplemented),
    (Quirk::ListV1Refused, &[ListV1], Code::NotImplemented),
    (Quirk::ListDenied, LISTINGS, Code::AccessDenied),
    (
        Quirk::MultipartRefused,
        &[CreateUpload],
        Code::NotImplemented,
    ),
    (
        Quirk::MultipartForgotten,
        &[UploadPart, UploadPartCopy],
        Code::NoSuchUpload,
    ),
    (
        Quirk::MultipartAbortRefused,
        &[AbortUpload],
        Code::NotImplemented,
    ),
    (
        Quirk::MultipartListPartsRefused,
        &[ListParts],
        Code::NotImplemented,
    ),
    (
        Quirk::DeleteManyRefused,
        &[DeleteMany],
        Code::NotImplemented,
    ),
    (
        Quirk::DeleteDenied,
        &[Delete, DeleteMany],
        Code::AccessDenied,
    ),
    (
        Quirk::CopyRefused,
        &[Copy, UploadPartCopy],
        Code::NotImplemented,
    ),
    (
        Quirk::TaggingRefused,
        &[GetTagging, PutTagging, DeleteTagging],
        Code::NotImplemented,
    ),
    (Quirk::HeadRefused, &[Head], Code::MethodNotAllowed),
    (Quirk::PutDenied, WRITES, Code::AccessDenied),
];

/// What a value starts and ends with.
type Ends = (&'static [u8], &'static [u8]);

/// Requests refused for a header with such a value, with the error.
pub(super) const REFUSED_HEADERS: &[(Quirk, &[Operation], Name, Ends, Code)] = &[
    (
        Quirk::SuffixRangeRefused,
        READS,
        Name::Range,
        (b"bytes=-", b""),
        Code::InvalidRange,
    ),
    (
        Quirk::PutIfNoneMatchRefused,
        PUTS,
        Name::IfNoneMatch,
        (b"", b""),
        Code::NotImplemented,
    ),
    (
        Quirk::ChunkedTrailersRefused,
        &[Put, UploadPart],
        Name::ContentSha256,
        (b"STREAMING-", b"-TRAILER"),
        Code::NotImplemented,
    ),
];

/// Headers ignored; no operations means all.
pub(super) const IGNORED_HEADERS: &[(Quirk, &[Operation], &[Name])] = &[
    (Quirk::RangeIgnored, READS, &[Name::Range]),
    (Quirk::PutIfNoneMatchIgnored, PUTS, &[Name::IfNoneMatch]),
    (Quirk::PutIfMatchIgnored, PUTS, &[Name::IfMatch]),
    (
        Quirk::GetConditionsIgnored,
        READS,
        &[
            Name::IfMatch,
            Name::IfNoneMatch,
            Name::IfModifiedSince,
            Name::IfUnmodifiedSince,
        ],
    ),
    (
        Quirk::ChecksumsIgnored,
        &[],
        &[
            Name::ChecksumAlgorithm,
            Name::ChecksumCrc32,
            Name::ChecksumCrc32c,
            Name::ChecksumCrc64nvme,
            Name::ChecksumMode,
            Name::ChecksumSha1,
            Name::ChecksumSha256,
            Name::ChecksumType,
            Name::SdkChecksumAlgorithm,
            Name::Trailer,
        ],
    ),
    (Quirk::ContentMd5Ignored, &[], &[Name::ContentMd5]),
];

/// Parameters that listings ignore.
pub(super) const IGNORED_PARAMETERS: &[(Quirk, &str)] = &[
    (Quirk::ListMaxKeysIgnored, "max-keys"),
    (Quirk::ListDelimiterIgnored, "delimiter"),
    (Quirk::ListEncodingIgnored, "encoding-type"),
];

/// Operations taken for others.
pub(super) const MISTAKEN: &[(Quirk, Operation, Operation)] = &[
    (Quirk::ListV2Ignored, List, ListV1),
    (Quirk::TaggingOverwrites, PutTagging, Put),
];

/// Headers that responses lack, by the start of their lines; no operations means all.
pub(super) const WITHHELD: &[(Quirk, &[Operation], &str)] = &[
    (Quirk::MetadataDropped, &[], "x-amz-meta-"),
    (Quirk::EtagMissing, &[Put, Get, Head], "ETag: "),
    (Quirk::DateMissing, &[], "Date: "),
];
