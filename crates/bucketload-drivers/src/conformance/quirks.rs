//! The documented differences of servers from Amazon S3.

use bucketload_core::error::{ErrorKind, OpResult};

use crate::s3::PayloadMode;

/// The expected result of something that not every server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It works.
    Works,
    /// It fails with one of these kinds.
    Fails(&'static [ErrorKind]),
}

impl Expect {
    /// True if it works.
    #[must_use]
    pub fn works(self) -> bool {
        self == Self::Works
    }

    /// Checks `result`. Returns its value, or `None` if the documented failure occurred.
    pub(super) fn check<T>(self, what: &str, result: OpResult<T>) -> Result<Option<T>, String> {
        match self {
            Self::Works => super::worked(what, result).map(Some),
            Self::Fails(kinds) => super::failed(what, result, kinds).map(|()| None),
        }
    }
}

/// A server's differences. [`Quirks::default`] is Amazon S3 (general purpose buckets).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Keys with an empty segment (`p//q`).
    pub double_slash: Expect,
    /// Keys with the segment `.`.
    pub dot_segment: Expect,
    /// Keys with the segment `..`.
    pub dot_dot_segment: Expect,
    /// Keys that end in `/` and have content.
    pub trailing_slash: Expect,
    /// Keys that end in a blank.
    pub blank_end: Expect,
    /// Writing `a/b` while `a` exists.
    pub below_object: Expect,
    /// Whether a backslash in a key is kept; otherwise it becomes a slash.
    pub backslash: bool,
    /// Longest key in bytes.
    pub max_key: usize,
    /// A key of 1025 bytes.
    pub longer_key: Expect,
    /// Longest segment of a key between slashes, in bytes.
    pub max_segment: usize,
    /// Object tags.
    pub tagging: Expect,
    /// Buckets that keep versions, made by the driver.
    pub versions: Expect,
    /// Buckets with object lock, made by the driver.
    pub locks: Expect,
    /// Access control lists of objects.
    pub acl: Expect,
    /// Attributes of objects.
    pub attributes: Expect,
    /// Deleting an object on the condition that it exists (`If-Match: *`).
    pub delete_if_match: Expect,
    /// The same where there is none. It works on servers that ignore the condition.
    pub delete_if_match_absent: Expect,
    /// Minimum size of all parts of a multipart upload except the last, in bytes; 0 for none.
    pub min_part: u64,
    /// Reading a part of an object by its number.
    pub read_part: Expect,
    /// Copying a range of an object as a part.
    pub part_copy: Expect,
    /// Listing of unfinished uploads.
    pub list_uploads: Expect,
    /// ListObjectsV2 pages that are not the last one.
    pub list_v2_pages: Expect,
    /// Deleting an object that does not exist.
    pub delete_absent: Expect,
    /// Whether listings with a delimiter may show folders without objects, because directories outlive their files.
    pub empty_groups: bool,
    /// Whether reading at the very end of an object may succeed with zero bytes.
    pub reads_at_end: bool,
    /// Whether appended objects are of a separate kind: an object that was put cannot be appended to, and parts cannot
    /// replace an appended object.
    pub append_kind: bool,
    /// Creating a bucket that the account already owns.
    pub make_existing: Expect,
    /// Deleting a bucket that contains objects.
    pub delete_full: Expect,
    /// Whether the server respects the condition of put-if-absent. Otherwise it silently replaces the object.
    pub if_absent: bool,
    /// Characters that are not allowed in keys.
    pub refused: &'static [char],
    /// Whether every operation on an object, and every page of a listing, is one request that the driver can count.
    pub single_requests: bool,
    /// The S3 driver's payload modes that the server supports. The suite passes in each of them; the caller chooses one.
    pub payload_modes: &'static [PayloadMode],
}

const NOT_FOUND: Expect = Expect::Fails(&[ErrorKind::NotFound]);
const CONFLICT: Expect = Expect::Fails(&[ErrorKind::Conflict]);
const UNSUPPORTED: Expect = Expect::Fails(&[ErrorKind::Unsupported]);
const REJECTED: Expect = Expect::Fails(&[ErrorKind::Rejected]);
const SERVER: Expect = Expect::Fails(&[ErrorKind::Server]);

/// Bodies without `aws-chunked` framing.
const WHOLE: &[PayloadMode] = &[PayloadMode::Unsigned, PayloadMode::Signed];

impl Default for Quirks {
    fn default() -> Self {
        Self {
            double_slash: Expect::Works,
            dot_segment: Expect::Works,
            dot_dot_segment: Expect::Works,
            trailing_slash: Expect::Works,
            blank_end: Expect::Works,
            below_object: Expect::Works,
            backslash: true,
            max_key: 1024,
            longer_key: REJECTED,
            max_segment: 1024,
            tagging: Expect::Works,
            versions: Expect::Works,
            locks: Expect::Works,
            acl: Expect::Works,
            attributes: Expect::Works,
            delete_if_match: Expect::Works,
            delete_if_match_absent: Expect::Fails(&[ErrorKind::NotFound, ErrorKind::Conflict]),
            min_part: 5 << 20,
            read_part: Expect::Works,
            part_copy: Expect::Works,
            list_uploads: Expect::Works,
            list_v2_pages: Expect::Works,
            delete_absent: Expect::Works,
            empty_groups: false,
            reads_at_end: false,
            append_kind: false,
            make_existing: CONFLICT,
            delete_full: CONFLICT,
            if_absent: true,
            refused: &[],
            single_requests: true,
            payload_modes: PayloadMode::ALL,
        }
    }
}

impl Quirks {
    /// These quirks plus those of a client engine: libraries that treat keys as paths refuse keys that they would
    /// normalize.
    #[must_use]
    pub fn with_engine(self, engine: &str) -> Self {
        match engine {
            "object-store" => Self {
                double_slash: REJECTED,
                dot_segment: REJECTED,
                dot_dot_segment: REJECTED,
                trailing_slash: REJECTED,
                ..self
            },
            "opendal" => Self {
                double_slash: REJECTED,
                dot_segment: REJECTED,
                dot_dot_segment: REJECTED,
                trailing_slash: REJECTED,
                blank_end: REJECTED,
                ..self
            },
            _ => self,
        }
    }

    /// The quirks of the server that the server scripts call `name`; `None` for an unknown name. MinIO of 2026-02,
    /// versitygw 1.8, S3Proxy 4.1, Ceph 16.2 and Azurite 3.35 pass the suite with them.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let s3 = Self::default();
        Some(match name {
            // In us-east-1.
            "aws" | "bucketload" => Self {
                make_existing: Expect::Works,
                ..s3
            },
            "minio" => Self {
                delete_if_match_absent: Expect::Works,
                double_slash: REJECTED,
                dot_segment: REJECTED,
                dot_dot_segment: REJECTED,
                max_segment: 255,
                ..s3
            },
            "versitygw" => Self {
                acl: UNSUPPORTED,
                // It takes `*` for an entity tag.
                delete_if_match: CONFLICT,
                below_object: CONFLICT,
                trailing_slash: REJECTED,
                longer_key: Expect::Works,
                max_segment: 255,
                ..s3
            },
            "s3proxy" => Self {
                read_part: UNSUPPORTED,
                versions: UNSUPPORTED,
                locks: UNSUPPORTED,
                delete_if_match_absent: Expect::Works,
                dot_dot_segment: SERVER,
                trailing_slash: Expect::Fails(&[ErrorKind::Corrupt]),
                below_object: SERVER,
                longer_key: Expect::Works,
                max_segment: 200,
                tagging: UNSUPPORTED,
                ..s3
            },
            "ceph" => Self {
                // It answers `?attributes` with the object, and deletes whatever the condition says.
                attributes: Expect::Fails(&[ErrorKind::Protocol]),
                // It knows no partNumber before 18.
                read_part: Expect::Fails(&[ErrorKind::Protocol]),
                delete_if_match_absent: Expect::Works,
                make_existing: Expect::Works,
                // Observed with 16.2: trailers are not supported, and an empty body in signed chunks fails.
                payload_modes: WHOLE,
                ..s3
            },
            // Observed with 3.35: it does not enforce the service's limit of 1024 characters.
            "azurite" => Self {
                backslash: false,
                longer_key: Expect::Works,
                delete_absent: NOT_FOUND,
                append_kind: true,
                min_part: 0,
                ..s3
            },
            // A file system (PATH_MAX, NAME_MAX) with the POSIX driver. Slashes in keys separate directories, so there
            // can be no object below an object.
            "posix" => Self {
                double_slash: REJECTED,
                dot_segment: REJECTED,
                dot_dot_segment: REJECTED,
                trailing_slash: REJECTED,
                below_object: CONFLICT,
                longer_key: Expect::Works,
                max_segment: 255,
                delete_absent: NOT_FOUND,
                empty_groups: true,
                min_part: 0,
                ..s3
            },
            // The path below the mount becomes an object key, which S3 limits to 1024 bytes.
            "s3fs" => Self {
                max_key: 900,
                longer_key: REJECTED,
                ..Self::of("posix")?
            },
            // OpenStack Swift 2.30. It does not interpret names.
            "swift" => Self {
                delete_absent: NOT_FOUND,
                min_part: 0,
                make_existing: Expect::Works,
                ..s3
            },
            // radosgw 16.2 with the Swift API: it ignores the condition of a PUT, unlike with the S3 API.
            "ceph-swift" => Self {
                delete_absent: NOT_FOUND,
                min_part: 0,
                make_existing: Expect::Works,
                if_absent: false,
                ..s3
            },
            // Bucketload's libs3. Ranks that start together create the same bucket, so a second creation succeeds.
            "libs3" => Self {
                make_existing: Expect::Works,
                ..s3
            },
            // From its documentation and manual requests; it takes too long to build for every run.
            "garage" => Self {
                max_key: 460,
                tagging: UNSUPPORTED,
                min_part: 0,
                payload_modes: &[
                    PayloadMode::Unsigned,
                    PayloadMode::Signed,
                    PayloadMode::Streaming,
                    PayloadMode::UnsignedTrailer,
                ],
                ..s3
            },
            // Cloud Storage's JSON API.
            "gcs" => Self {
                delete_absent: NOT_FOUND,
                min_part: 256 * 1024,
                ..s3
            },
            // The emulator with its files in a directory (1.56).
            "fake-gcs-server" => Self {
                // It accepts such an object and reports that it stored zero bytes.
                trailing_slash: Expect::Fails(&[ErrorKind::Corrupt]),
                below_object: SERVER,
                longer_key: Expect::Works,
                max_segment: 255,
                delete_absent: NOT_FOUND,
                min_part: 256 * 1024,
                ..s3
            },
            // SeaweedFS's filer: keys are file paths.
            "seaweedfs" => Self {
                double_slash: REJECTED,
                dot_segment: REJECTED,
                dot_dot_segment: REJECTED,
                trailing_slash: REJECTED,
                below_object: CONFLICT,
                longer_key: Expect::Works,
                max_segment: 255,
                empty_groups: true,
                ..s3
            },
            // Gateways normalize paths, and the name node checks them; see docs/drivers/hdfs.md.
            "hdfs" => Self {
                double_slash: REJECTED,
                dot_segment: REJECTED,
                dot_dot_segment: REJECTED,
                trailing_slash: REJECTED,
                below_object: CONFLICT,
                longer_key: Expect::Works,
                max_segment: 255,
                make_existing: Expect::Works,
                delete_absent: NOT_FOUND,
                empty_groups: true,
                reads_at_end: true,
                refused: &[':'],
                single_requests: false,
                ..s3
            },
            _ => return None,
        })
    }
}
