//! The kinds of requests and their arguments.

use bucketload_store::{
    Commit, CompletedPart, Condition, ListRequest, ListUploadsRequest, MultipartOptions,
    ReadConditions,
};

use super::codec::{Decoder, Malformed, Value, fields};

/// A range of an object's bytes: `length` bytes from `start`, or all that follow. A range that reaches beyond the end
/// is cut; a range that begins at or beyond the end is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// Number of bytes, at least 1; `None` for all up to the end.
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

/// How a client wants to receive the bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// In the body of the answer.
    Body,
    /// As the object's file, if there is one and the object is large (`GetFile`).
    File,
    /// In the body, unless there are more than 64 KiB (`GetSmall`).
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
    Get(Name<'a>, Option<ByteRange>, ReadConditions, ReadMode),
    Head(Name<'a>, ReadConditions),
    Delete(Name<'a>, Condition),
    /// Source and its conditions, destination, and replacement of the source's metadata.
    Copy(Name<'a>, ReadConditions, Name<'a>, Option<Commit>),
    CreateMultipart(Name<'a>, MultipartOptions),
    UploadPart(UploadName<'a>, u32, Option<[u8; 16]>),
    CopyPart(Name<'a>, Option<ByteRange>, UploadName<'a>, u32),
    Complete(UploadName<'a>, Vec<CompletedPart>, Condition),
    Abort(UploadName<'a>),
    ListParts(UploadName<'a>, u32, u32),
    ListUploads(&'a str, ListUploadsRequest<'a>),
    /// Asks for the file of a new object of this size in bytes.
    PutFile(Name<'a>, u64),
    CommitFile(Commit),
    DropFile,
}

fields! {
    ByteRange { start, length }
    Name<'a> { bucket, key }
    UploadName<'a> { name, upload_id }
}

/// The table of requests: the kind in the frame header, and the arguments in order. A value after a semicolon follows
/// from the kind.
macro_rules! requests {
    ($($kind:literal $name:ident($($argument:ident),* $(; $mode:path)?),)*) => {
        impl<'a> Request<'a> {
            /// The kind in the frame header.
            pub(crate) const fn kind(&self) -> u8 {
                match self {
                    $(Self::$name(.. $(, $mode)?) => $kind,)*
                    Self::ListBuckets => 1,
                    Self::DropFile => 21,
                }
            }

            /// Appends the arguments.
            pub(crate) fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name($($argument,)* $($mode)?) => {
                        $($argument.put(out);)*
                    })*
                    Self::ListBuckets | Self::DropFile => {}
                }
            }

            /// Decodes a request of kind `kind`.
            pub(crate) fn decode(kind: u8, head: &'a [u8]) -> Result<Self, Malformed> {
                let mut decoder = Decoder::new(head);
                let request = match kind {
                    $($kind => {
                        $(let $argument = Value::take(&mut decoder)?;)*
                        Self::$name($($argument,)* $($mode)?)
                    })*
                    1 => Self::ListBuckets,
                    21 => Self::DropFile,
                    _ => return Err(Malformed("an unknown kind of request")),
                };
                decoder.end()?;
                Ok(request)
            }
        }
    };
}

requests! {
    2 CreateBucket(bucket),
    3 HeadBucket(bucket),
    4 DeleteBucket(bucket),
    5 List(bucket, request),
    6 Put(name, md5, commit),
    7 Get(name, range, conditions; ReadMode::Body),
    8 Head(name, conditions),
    9 Delete(name, condition),
    10 Copy(source, conditions, name, commit),
    11 CreateMultipart(name, options),
    12 UploadPart(upload, number, md5),
    13 CopyPart(source, range, upload, number),
    14 Complete(upload, parts, condition),
    15 Abort(upload),
    16 ListParts(upload, after, max),
    17 ListUploads(bucket, request),
    18 Get(name, range, conditions; ReadMode::File),
    19 PutFile(name, size),
    20 CommitFile(commit),
    22 Get(name, range, conditions; ReadMode::SmallBody),
}

impl Request<'_> {
    /// Whether its frame may have a body.
    pub(crate) const fn has_body(&self) -> bool {
        matches!(self, Self::Put(..) | Self::UploadPart(..))
    }

    /// Whether it ends the writing of a file.
    pub(crate) const fn needs_file(&self) -> bool {
        matches!(self, Self::CommitFile(_) | Self::DropFile)
    }
}
