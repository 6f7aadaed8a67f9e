//! What a client asks for: the kinds of requests and their arguments.

use bucketload_store::{
    Commit, CompletedPart, Condition, ListRequest, ListUploadsRequest, MultipartOptions,
    ReadConditions,
};

use super::codec::{Decoder, Malformed, put_list, put_number, put_option, put_text};
use super::values::{
    algorithm, checksum, commit, condition, conditions, etag, headers, kind, put_algorithm,
    put_checksum, put_commit, put_condition, put_conditions, put_etag, put_headers, put_kind,
    put_tags, tags,
};

/// Bytes of an object: from `start`, `length` of them or all that follow. A range that reaches beyond the
/// end is cut; one that begins there is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// How many, at least 1; `None` for all to the end.
    pub length: Option<u64>,
}

/// A bucket and a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
}

/// A multipart upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UploadName<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) upload_id: &'a str,
}

/// How a client would have the bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As the body of the answer.
    Body,
    /// By the object's file, if there is one and the bytes are many (`GetFile`).
    File,
    /// As the body, unless they are many (`GetSmall`).
    SmallBody,
}

/// A request. `Put` and `UploadPart` have a body.
#[derive(Clone, Debug)]
pub(crate) enum Request<'a> {
    ListBuckets,
    CreateBucket(&'a str),
    HeadBucket(&'a str),
    DeleteBucket(&'a str),
    List(&'a str, ListRequest<'a>),
    Put(Name<'a>, Option<[u8; 16]>, Commit),
    Get(Name<'a>, Option<ByteRange>, ReadConditions, Way),
    Head(Name<'a>, ReadConditions),
    Delete(Name<'a>, Condition),
    /// Source and its conditions, destination, and what replaces the source's metadata.
    Copy(Name<'a>, ReadConditions, Name<'a>, Option<Commit>),
    CreateMultipart(Name<'a>, MultipartOptions),
    UploadPart(UploadName<'a>, u32, Option<[u8; 16]>),
    CopyPart(Name<'a>, Option<ByteRange>, UploadName<'a>, u32),
    Complete(UploadName<'a>, Vec<CompletedPart>, Condition),
    Abort(UploadName<'a>),
    ListParts(UploadName<'a>, u32, u32),
    ListUploads(&'a str, ListUploadsRequest<'a>),
    /// The file of a new object of so many bytes.
    PutFile(Name<'a>, u64),
    CommitFile(Commit),
    DropFile,
}

fn put_name(out: &mut Vec<u8>, name: &Name<'_>) {
    put_text(out, name.bucket);
    put_text(out, name.key);
}

fn name<'a>(decoder: &mut Decoder<'a>) -> Result<Name<'a>, Malformed> {
    Ok(Name {
        bucket: decoder.text()?,
        key: decoder.text()?,
    })
}

fn put_upload(out: &mut Vec<u8>, upload: &UploadName<'_>) {
    put_name(out, &upload.name);
    put_text(out, upload.upload_id);
}

fn upload<'a>(decoder: &mut Decoder<'a>) -> Result<UploadName<'a>, Malformed> {
    Ok(UploadName {
        name: name(decoder)?,
        upload_id: decoder.text()?,
    })
}

fn put_range(out: &mut Vec<u8>, range: &ByteRange) {
    put_number(out, range.start);
    put_option(out, range.length.as_ref(), |out, n| put_number(out, *n));
}

fn range(decoder: &mut Decoder<'_>) -> Result<ByteRange, Malformed> {
    Ok(ByteRange {
        start: decoder.number()?,
        length: decoder.option(|d| d.number())?,
    })
}

fn put_md5(out: &mut Vec<u8>, digest: &[u8; 16]) {
    out.extend_from_slice(digest);
}

fn put_part(out: &mut Vec<u8>, part: &CompletedPart) {
    put_number(out, u64::from(part.number));
    put_option(out, part.etag.as_ref(), put_etag);
    put_list(out, &part.checksums, put_checksum);
}

fn part(decoder: &mut Decoder<'_>) -> Result<CompletedPart, Malformed> {
    Ok(CompletedPart {
        number: decoder.small()?,
        etag: decoder.option(etag)?,
        checksums: decoder.list(checksum)?,
    })
}

/// A page size; no page is larger than `u32` can say.
fn put_page(out: &mut Vec<u8>, most: usize) {
    put_number(out, most.min(u32::MAX as usize) as u64);
}

impl<'a> Request<'a> {
    /// The kind that its frame names.
    pub(crate) const fn kind(&self) -> u8 {
        match self {
            Self::ListBuckets => 1,
            Self::CreateBucket(_) => 2,
            Self::HeadBucket(_) => 3,
            Self::DeleteBucket(_) => 4,
            Self::List(..) => 5,
            Self::Put(..) => 6,
            Self::Get(_, _, _, Way::Body) => 7,
            Self::Head(..) => 8,
            Self::Delete(..) => 9,
            Self::Copy(..) => 10,
            Self::CreateMultipart(..) => 11,
            Self::UploadPart(..) => 12,
            Self::CopyPart(..) => 13,
            Self::Complete(..) => 14,
            Self::Abort(_) => 15,
            Self::ListParts(..) => 16,
            Self::ListUploads(..) => 17,
            Self::Get(_, _, _, Way::File) => 18,
            Self::PutFile(..) => 19,
            Self::CommitFile(_) => 20,
            Self::DropFile => 21,
            Self::Get(_, _, _, Way::SmallBody) => 22,
        }
    }

    /// Whether its frame may have a body.
    pub(crate) const fn has_body(&self) -> bool {
        matches!(self, Self::Put(..) | Self::UploadPart(..))
    }

    /// Whether it ends the writing of a file.
    pub(crate) const fn needs_file(&self) -> bool {
        matches!(self, Self::CommitFile(_) | Self::DropFile)
    }

    /// Appends the arguments.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::ListBuckets | Self::DropFile => {}
            Self::CreateBucket(bucket) | Self::HeadBucket(bucket) | Self::DeleteBucket(bucket) => {
                put_text(out, bucket);
            }
            Self::List(bucket, request) => {
                put_text(out, bucket);
                put_text(out, request.prefix);
                put_text(out, request.delimiter);
                put_text(out, request.start_after);
                put_page(out, request.max_keys);
            }
            Self::Put(name, md5, commit) => {
                put_name(out, name);
                put_option(out, md5.as_ref(), put_md5);
                put_commit(out, commit);
            }
            Self::Get(name, range, conditions, _) => {
                put_name(out, name);
                put_option(out, range.as_ref(), put_range);
                put_conditions(out, conditions);
            }
            Self::Head(name, conditions) => {
                put_name(out, name);
                put_conditions(out, conditions);
            }
            Self::Delete(name, condition) => {
                put_name(out, name);
                put_condition(out, condition);
            }
            Self::Copy(source, conditions, name, commit) => {
                put_name(out, source);
                put_conditions(out, conditions);
                put_name(out, name);
                put_option(out, commit.as_ref(), put_commit);
            }
            Self::CreateMultipart(name, options) => {
                put_name(out, name);
                put_headers(out, &options.headers);
                put_tags(out, &options.tags);
                put_option(out, options.checksum.as_ref(), |out, (algorithm, kind)| {
                    put_algorithm(out, algorithm);
                    put_kind(out, *kind);
                });
            }
            Self::UploadPart(upload, number, md5) => {
                put_upload(out, upload);
                put_number(out, u64::from(*number));
                put_option(out, md5.as_ref(), put_md5);
            }
            Self::CopyPart(source, range, upload, number) => {
                put_name(out, source);
                put_option(out, range.as_ref(), put_range);
                put_upload(out, upload);
                put_number(out, u64::from(*number));
            }
            Self::Complete(upload, parts, condition) => {
                put_upload(out, upload);
                put_list(out, parts, put_part);
                put_condition(out, condition);
            }
            Self::Abort(upload) => put_upload(out, upload),
            Self::ListParts(upload, after, most) => {
                put_upload(out, upload);
                put_number(out, u64::from(*after));
                put_number(out, u64::from(*most));
            }
            Self::ListUploads(bucket, request) => {
                put_text(out, bucket);
                put_text(out, request.prefix);
                put_text(out, request.delimiter);
                put_text(out, request.key_marker);
                put_text(out, request.upload_id_marker);
                put_page(out, request.max_uploads);
            }
            Self::PutFile(name, size) => {
                put_name(out, name);
                put_number(out, *size);
            }
            Self::CommitFile(commit) => put_commit(out, commit),
        }
    }

    /// Reads the request of the kind `kind`.
    pub(crate) fn decode(kind_number: u8, head: &'a [u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(head);
        let d = &mut decoder;
        let request = match kind_number {
            1 => Self::ListBuckets,
            2 => Self::CreateBucket(d.text()?),
            3 => Self::HeadBucket(d.text()?),
            4 => Self::DeleteBucket(d.text()?),
            5 => Self::List(
                d.text()?,
                ListRequest {
                    prefix: d.text()?,
                    delimiter: d.text()?,
                    start_after: d.text()?,
                    max_keys: d.small()? as usize,
                },
            ),
            6 => Self::Put(name(d)?, d.option(|d| d.array())?, commit(d)?),
            7 | 18 | 22 => Self::Get(
                name(d)?,
                d.option(range)?,
                conditions(d)?,
                match kind_number {
                    7 => Way::Body,
                    18 => Way::File,
                    _ => Way::SmallBody,
                },
            ),
            8 => Self::Head(name(d)?, conditions(d)?),
            9 => Self::Delete(name(d)?, condition(d)?),
            10 => Self::Copy(name(d)?, conditions(d)?, name(d)?, d.option(commit)?),
            11 => Self::CreateMultipart(
                name(d)?,
                MultipartOptions {
                    headers: headers(d)?,
                    tags: tags(d)?,
                    checksum: d.option(|d| Ok((algorithm(d)?, kind(d)?)))?,
                },
            ),
            12 => Self::UploadPart(upload(d)?, d.small()?, d.option(|d| d.array())?),
            13 => Self::CopyPart(name(d)?, d.option(range)?, upload(d)?, d.small()?),
            14 => Self::Complete(upload(d)?, d.list(part)?, condition(d)?),
            15 => Self::Abort(upload(d)?),
            16 => Self::ListParts(upload(d)?, d.small()?, d.small()?),
            17 => Self::ListUploads(
                d.text()?,
                ListUploadsRequest {
                    prefix: d.text()?,
                    delimiter: d.text()?,
                    key_marker: d.text()?,
                    upload_id_marker: d.text()?,
                    max_uploads: d.small()? as usize,
                },
            ),
            19 => Self::PutFile(name(d)?, d.number()?),
            20 => Self::CommitFile(commit(d)?),
            21 => Self::DropFile,
            _ => return Err(Malformed("an unknown kind of request")),
        };
        decoder.end()?;
        Ok(request)
    }
}
