//! Plain data of buckets with versioning.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::multipart::increasing;
use crate::types::{ListEntry, ListRequest, Listing};

/// Whether a bucket keeps the versions of its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versioning {
    /// It never kept any: a write replaces the object.
    #[default]
    Off,
    /// Each write adds a version.
    Enabled,
    /// A write replaces the null version; the others stay.
    Suspended,
}

/// The id of a version: 16 hexadecimal digits that sort by creation, or `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(u64);

/// The text is not the id of a version that a store could have issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a version id of this store")]
pub struct ParseVersionError;

impl VersionId {
    /// The version that is written while the bucket does not add versions.
    pub const NULL: Self = Self(0);

    /// A new id, greater than all previous ones of the process.
    pub(crate) fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self(increasing(
            &LAST,
            u64::try_from(now.as_nanos()).unwrap_or(1),
        ))
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NULL {
            f.write_str("null")
        } else {
            write!(f, "{:016x}", self.0)
        }
    }
}

impl FromStr for VersionId {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        if text == "null" {
            return Ok(Self::NULL);
        }
        let sound = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(id) if sound && id > 0 => Ok(Self(id)),
            _ => Err(ParseVersionError),
        }
    }
}

/// What a delete did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// The version removed, or the delete marker added; `None` in a bucket without versioning.
    pub version: Option<VersionId>,
    /// Whether that version is a delete marker.
    pub marker: bool,
}

/// A version in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionEntry {
    /// Key and content; size and entity tag of a delete marker mean nothing.
    pub entry: ListEntry,
    /// Its id.
    pub version: VersionId,
    /// Whether it is the newest of its key.
    pub latest: bool,
    /// Whether it is a delete marker.
    pub marker: bool,
}

/// One page of versions: keys in byte order, and the versions of each from the newest to the oldest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionListing {
    /// Versions and delete markers.
    pub versions: Vec<VersionEntry>,
    /// Common prefixes.
    pub common_prefixes: Vec<String>,
    /// Key marker and version marker (`None` after a common prefix) of the next page; `None` if this
    /// is the last page.
    pub next: Option<(String, Option<VersionId>)>,
}

/// The page of a bucket without versioning: each object has the null version only.
impl From<Listing> for VersionListing {
    fn from(page: Listing) -> Self {
        let only = |entry| VersionEntry {
            entry,
            version: VersionId::NULL,
            latest: true,
            marker: false,
        };
        Self {
            next: page.next.map(|key| {
                let last = page.objects.last().filter(|entry| entry.key == key);
                let version = last.map(|_| VersionId::NULL);
                (key, version)
            }),
            versions: page.objects.into_iter().map(only).collect(),
            common_prefixes: page.common_prefixes,
        }
    }
}

/// Which versions to list: those of [`ListRequest`], whose `max_keys` counts versions and common
/// prefixes. With `after`, the page continues with the versions of `start_after` that follow it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListVersionsRequest<'a> {
    /// Prefix, delimiter, key marker and limit.
    pub keys: ListRequest<'a>,
    /// The last version of the previous page.
    pub after: Option<VersionId>,
}

#[cfg(test)]
mod tests {
    use super::VersionId;

    #[test]
    fn ids_sort_by_creation_and_survive_their_text() {
        let (first, second) = (VersionId::next(), VersionId::next());
        assert!(first < second);
        for id in [first, second, VersionId::NULL] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for bad in [
            "",
            "7",
            "NULL",
            "0000000000000000",
            "+00000000000000f",
            "00000000000000zz",
        ] {
            assert!(bad.parse::<VersionId>().is_err(), "{bad}");
        }
    }
}
