//! What a client asks for: the kinds of requests and their arguments.

use bucketload_store::{
    Commit, CompletedPart, Condition, ListRequest, ListUploadsRequest, MultipartOptions,
    ReadConditions,
};

use super::codec::{Decoder, Malformed, Value, fields};

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

fields! {
    ByteRange { start, length }
    Name<'a> { bucket, key }
    UploadName<'a> { name, upload_id }
}

/// The table of requests: the kind that its frame names, and the arguments in their order. What stands behind a
/// semicolon follows from the kind.
macro_rules! requests {
    ($($kind:literal $name:ident($($argument:ident),* $(; $way:path)?),)*) => {
        impl<'a> Request<'a> {
            /// The kind that its frame names.
            pub(crate) const fn kind(&self) -> u8 {
                match self {
                    $(Self::$name(.. $(, $way)?) => $kind,)*
                    Self::ListBuckets => 1,
                    Self::DropFile => 21,
                }
            }

            /// Appends the arguments.
            pub(crate) fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name($($argument,)* $($way)?) => {
                        $($argument.put(out);)*
                    })*
                    Self::ListBuckets | Self::DropFile => {}
                }
            }

            /// Reads the request of the kind `kind`.
            pub(crate) fn decode(kind: u8, head: &'a [u8]) -> Result<Self, Malformed> {
                let mut decoder = Decoder::new(head);
                let request = match kind {
                    $($kind => {
                        $(let $argument = Value::take(&mut decoder)?;)*
                        Self::$name($($argument,)* $($way)?)
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
    7 Get(name, range, conditions; Way::Body),
    8 Head(name, conditions),
    9 Delete(name, condition),
    10 Copy(source, conditions, name, commit),
    11 CreateMultipart(name, options),
    12 UploadPart(upload, number, md5),
    13 CopyPart(source, range, upload, number),
    14 Complete(upload, parts, condition),
    15 Abort(upload),
    16 ListParts(upload, after, most),
    17 ListUploads(bucket, request),
    18 Get(name, range, conditions; Way::File),
    19 PutFile(name, size),
    20 CommitFile(commit),
    22 Get(name, range, conditions; Way::SmallBody),
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
