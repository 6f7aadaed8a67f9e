//! Quirks: each makes the server differ from S3 in exactly one respect.
//!
//! A request passes three places: `request()` rewrites or refuses it before its operation runs,
//! `listing()` bends a page of a listing, and `answer()` bends a response before it leaves.
//! `configure` expresses the rest as configuration. What needs the store's past (stale reads and
//! listings, deletes that do nothing) asks [`Quirks::has`] where faults do the like (`ops/faulty`).
//! Without quirks, each place costs one comparison.

mod bend;
mod table;

use std::time::Duration;

use strum::{EnumMessage as _, VariantArray as _};

use super::config::ServerConfig;

pub(crate) use bend::{answer, listing, request};

/// How long stale reads and listings stay stale.
pub(crate) const STALE: Duration = Duration::from_secs(2);
/// The region of a server with [`Quirk::WrongRegion`].
const OTHER_REGION: &str = "eu-quirk-1";

/// One respect in which the server differs from S3. The comment of a variant is its help text.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    strum::EnumMessage,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Quirk {
    /// The clock is one hour ahead: signed requests are refused with RequestTimeTooSkewed
    ClockAhead,
    /// Signatures must name the region eu-quirk-1
    WrongRegion,
    /// Closes the connection after each answer
    NoKeepAlive,
    /// Waits 200 ms before each answer
    SlowAnswers,
    /// ListObjectsV2 answers 501
    #[strum(serialize = "list-v2-refused")]
    ListV2Refused,
    /// Ignores list-type=2 and answers as version 1
    #[strum(serialize = "list-v2-ignored")]
    ListV2Ignored,
    /// ListObjects (version 1) answers 501
    #[strum(serialize = "list-v1-refused")]
    ListV1Refused,
    /// Listings omit the last key
    ListIncomplete,
    /// Pages of listings come in reverse order
    ListUnsorted,
    /// Listings ignore max-keys
    ListMaxKeysIgnored,
    /// Listings say IsTruncated=false although keys remain
    ListPagingBroken,
    /// Listings ignore delimiter
    ListDelimiterIgnored,
    /// Listings ignore encoding-type
    ListEncodingIgnored,
    /// A new key appears in listings only after 2 s
    ListStale,
    /// A GET within 2 s of an overwrite returns the previous content
    ReadStale,
    /// GET announces the whole length and closes after half of the body
    ReadShort,
    /// Ignores Range and answers 200 with the whole object
    RangeIgnored,
    /// Range: bytes=-N answers 416
    SuffixRangeRefused,
    /// A range outside the object answers 200 with the whole object
    #[strum(serialize = "range-no-416")]
    RangeNo416,
    /// PUT with If-None-Match: * overwrites
    PutIfNoneMatchIgnored,
    /// PUT with If-None-Match answers 501
    PutIfNoneMatchRefused,
    /// PUT with a wrong If-Match overwrites
    PutIfMatchIgnored,
    /// A PUT with x-amz-write-offset-bytes appends whatever its offset is
    AppendOffsetIgnored,
    /// GET and HEAD ignore their conditions
    GetConditionsIgnored,
    /// CreateMultipartUpload answers 501
    MultipartRefused,
    /// UploadPart answers 404 NoSuchUpload
    MultipartForgotten,
    /// AbortMultipartUpload answers 501
    MultipartAbortRefused,
    /// ListParts answers 501
    MultipartListPartsRefused,
    /// Chunked uploads with a trailer answer 501
    ChunkedTrailersRefused,
    /// Checksums (x-amz-checksum-*) are neither checked nor stored nor returned
    ChecksumsIgnored,
    /// A wrong Content-MD5 is accepted
    #[strum(serialize = "content-md5-ignored")]
    ContentMd5Ignored,
    /// A wrong x-amz-content-sha256 is accepted
    PayloadHashIgnored,
    /// DeleteObjects answers 501
    DeleteManyRefused,
    /// DeleteObjects reports success and deletes nothing
    DeleteManySilent,
    /// DELETE of a missing key answers 404
    #[strum(serialize = "delete-missing-404")]
    DeleteMissing404,
    /// Copies (x-amz-copy-source) answer 501
    CopyRefused,
    /// The tags of objects (?tagging) answer 501
    TaggingRefused,
    /// PUT with ?tagging is taken as a PUT of the object
    TaggingOverwrites,
    /// User metadata (x-amz-meta-*) is not returned
    MetadataDropped,
    /// HEAD of an object answers 405
    HeadRefused,
    /// A plus sign in a key is stored as a space
    KeysMangled,
    /// Errors carry text/html and no code
    ErrorsWithoutXml,
    /// Uploads and copies answer 403 AccessDenied
    PutDenied,
    /// Listings answer 403 AccessDenied
    ListDenied,
    /// DELETE and DeleteObjects answer 403 AccessDenied
    DeleteDenied,
    /// PUT, GET and HEAD answer without ETag
    EtagMissing,
    /// Answers carry no Date
    DateMissing,
}

impl Quirk {
    /// Every quirk, in the order of the help.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name, as in `serve --quirk NAME`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What the server does, in one line.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }
}

/// A set of quirks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks(u64);

const _: () = assert!(Quirk::ALL.len() <= u64::BITS as usize);

impl Quirks {
    /// Whether `quirk` is in the set.
    #[must_use]
    pub const fn has(self, quirk: Quirk) -> bool {
        self.0 & (1 << quirk as u32) != 0
    }

    /// Whether the server is as S3.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How far the server's clock is ahead, in seconds.
    pub(crate) fn clock_lead(self) -> u64 {
        u64::from(self.has(Quirk::ClockAhead)) * 3600
    }

    /// How long a new key is missing from listings.
    pub(crate) fn list_lag(self) -> Option<Duration> {
        self.has(Quirk::ListStale).then_some(STALE)
    }
}

impl FromIterator<Quirk> for Quirks {
    fn from_iter<I: IntoIterator<Item = Quirk>>(quirks: I) -> Self {
        let bit = |quirk: Quirk| 1 << quirk as u32;
        Self(quirks.into_iter().map(bit).fold(0, |all, one| all | one))
    }
}

/// Sets what quirks mean in terms of other settings.
pub(crate) fn configure(config: &mut ServerConfig) {
    if config.quirks.has(Quirk::WrongRegion) {
        OTHER_REGION.clone_into(&mut config.region);
    }
    if config.quirks.has(Quirk::ReadShort) {
        let rule = "truncate,op=get".parse();
        config.faults.push(rule.expect("a valid rule"));
    }
}

#[cfg(test)]
mod tests {
    use super::{Quirk, Quirks};

    const MANUAL: &str = include_str!("../../../docs/faults.md");

    #[test]
    fn names_help_and_manual_belong_together() {
        for &quirk in Quirk::ALL {
            assert_eq!(quirk.name().parse(), Ok(quirk));
            let row = format!("\n| `{}` | {} |\n", quirk.name(), quirk.help());
            assert!(
                row.len() > 30 && MANUAL.contains(&row),
                "docs/faults.md lacks {row}"
            );
            let only = Quirks::from_iter([quirk]);
            let held = Quirk::ALL.iter().filter(|other| only.has(**other));
            assert_eq!(held.collect::<Vec<_>>(), [&quirk]);
        }
        assert!(Quirks::default().is_empty());
        assert!("list-v3".parse::<Quirk>().is_err());
    }
}
