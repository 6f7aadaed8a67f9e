//! How servers are documented to differ from Amazon S3.

use bucketload_core::error::{ErrorKind, OpError};

/// What is expected of something that not every server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It works.
    Works,
    /// It fails with one of these kinds.
    Fails(&'static [ErrorKind]),
}

impl Expect {
    /// Whether it works.
    #[must_use]
    pub fn works(self) -> bool {
        self == Self::Works
    }

    /// Checks `result`: the value where it works, `None` where it fails as documented.
    pub(super) fn check<T>(
        self,
        what: &str,
        result: Result<T, OpError>,
    ) -> Result<Option<T>, String> {
        match self {
            Self::Works => super::worked(what, result).map(Some),
            Self::Fails(kinds) => super::failed(what, result, kinds).map(|()| None),
        }
    }
}

/// What a server does differently. [`Quirks::default`] is Amazon S3 (general purpose buckets).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Keys with an empty segment (`p//q`).
    pub double_slash: Expect,
    /// Keys with the segments `.` and `..`.
    pub dot_segments: Expect,
    /// Keys that end in `/` and have content.
    pub trailing_slash: Expect,
    /// `a/b` while `a` exists.
    pub below_object: Expect,
    /// Longest key in bytes.
    pub max_key: usize,
    /// Longest part of a key between slashes in bytes.
    pub max_segment: usize,
    /// Object tags.
    pub tagging: Expect,
    /// Smallest part of a multipart upload but the last, in bytes; 0 = any.
    pub min_part: u64,
    /// Copying a range of an object as a part.
    pub part_copy: Expect,
    /// Listing of unfinished uploads.
    pub list_uploads: Expect,
    /// A ListObjectsV2 answer that is not the last page.
    pub list_v2_pages: Expect,
    /// Creating a bucket that one has already.
    pub make_existing: Expect,
    /// Deleting a bucket that holds objects.
    pub delete_full: Expect,
}

const CONFLICT: Expect = Expect::Fails(&[ErrorKind::Conflict]);
const UNSUPPORTED: Expect = Expect::Fails(&[ErrorKind::Unsupported]);
const REJECTED: Expect = Expect::Fails(&[ErrorKind::Rejected]);
const SERVER: Expect = Expect::Fails(&[ErrorKind::Server]);

impl Default for Quirks {
    fn default() -> Self {
        Self {
            double_slash: Expect::Works,
            dot_segments: Expect::Works,
            trailing_slash: Expect::Works,
            below_object: Expect::Works,
            max_key: 1024,
            max_segment: 1024,
            tagging: Expect::Works,
            min_part: 5 << 20,
            part_copy: Expect::Works,
            list_uploads: Expect::Works,
            list_v2_pages: Expect::Works,
            make_existing: CONFLICT,
            delete_full: CONFLICT,
        }
    }
}

impl Quirks {
    /// The quirks of the server called `name`, as the server scripts call it; `None` for a name
    /// that is not known.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let s3 = Self::default();
        Some(match name {
            "aws" | "bucketload" => s3,
            "minio" => Self {
                double_slash: REJECTED,
                dot_segments: REJECTED,
                max_segment: 255,
                ..s3
            },
            "versitygw" => Self {
                below_object: CONFLICT,
                max_segment: 255,
                ..s3
            },
            "s3proxy" => Self {
                below_object: SERVER,
                max_segment: 200,
                tagging: UNSUPPORTED,
                ..s3
            },
            "ceph" => s3,
            "garage" => Self {
                max_key: 460,
                tagging: UNSUPPORTED,
                min_part: 0,
                ..s3
            },
            "rclone-s3" => Self {
                below_object: SERVER,
                max_segment: 255,
                min_part: 0,
                part_copy: Expect::Fails(&[ErrorKind::Protocol]),
                ..s3
            },
            "s3s-fs" => Self {
                below_object: SERVER,
                max_key: 150,
                tagging: UNSUPPORTED,
                list_uploads: UNSUPPORTED,
                delete_full: Expect::Works,
                ..s3
            },
            "s3rver" => Self {
                double_slash: Expect::Fails(&[ErrorKind::NotFound]),
                max_segment: 240,
                min_part: 0,
                part_copy: UNSUPPORTED,
                list_uploads: UNSUPPORTED,
                list_v2_pages: SERVER,
                ..s3
            },
            "gofakes3" => Self {
                min_part: 0,
                part_copy: REJECTED,
                ..s3
            },
            "moto" => Self {
                make_existing: Expect::Works,
                ..s3
            },
            _ => return None,
        })
    }
}
