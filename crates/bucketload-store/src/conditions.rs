//! Conditions of reads and copies, evaluated against one opened version (RFC 9110, section 13.2.2),
//! and the shared test of write conditions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::types::{Condition, ObjectInfo};

/// The conditional headers of a GET, HEAD or copy source.
#[derive(Debug, Clone, Default)]
pub struct ReadConditions {
    /// `If-Match`: tags of which one must be that of the object; an empty list stands for `*`.
    pub if_match: Option<Vec<ETag>>,
    /// `If-None-Match`: tags of which none may be that of the object; an empty list stands for `*`.
    pub if_none_match: Option<Vec<ETag>>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<SystemTime>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<SystemTime>,
}

/// What a read does under its conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDecision {
    /// Send the object.
    Proceed,
    /// The client has it already (HTTP 304; 412 for a copy).
    NotModified,
    /// HTTP 412.
    PreconditionFailed,
}

impl ReadConditions {
    /// Evaluates the conditions. `If-Match` makes `If-Unmodified-Since` void and `If-None-Match`
    /// makes `If-Modified-Since` void; times are compared in whole seconds, as HTTP prints them.
    #[must_use]
    pub fn evaluate(&self, info: &ObjectInfo) -> ReadDecision {
        let seconds = |t: SystemTime| {
            t.duration_since(UNIX_EPOCH)
                .unwrap_or(Duration::ZERO)
                .as_secs()
        };
        let modified = seconds(info.modified);
        let unmet = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => !tags.is_empty() && !tags.contains(&info.etag),
            (None, Some(limit)) => modified > seconds(limit),
            (None, None) => false,
        };
        if unmet {
            return ReadDecision::PreconditionFailed;
        }
        let known = match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) => tags.is_empty() || tags.contains(&info.etag),
            (None, Some(limit)) => modified <= seconds(limit),
            (None, None) => false,
        };
        if known {
            ReadDecision::NotModified
        } else {
            ReadDecision::Proceed
        }
    }
}

impl Condition {
    /// Tests a write condition against the tag of the current version, if there is one.
    pub(crate) fn check(&self, current: Option<ETag>) -> Result<()> {
        match (self, current) {
            (Self::None, _) | (Self::Absent, None) | (Self::Present, Some(_)) => Ok(()),
            (Self::Match(tags), Some(tag)) if tags.contains(&tag) => Ok(()),
            (Self::Absent | Self::Match(_), Some(_)) => Err(StoreError::PreconditionFailed),
            (Self::Present | Self::Match(_), None) => Err(StoreError::NoSuchKey),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Headers, PartSizes};

    fn info(seconds: u64, nanos: u32) -> ObjectInfo {
        ObjectInfo {
            size: 1,
            etag: ETag::from_md5([7; 16]),
            modified: UNIX_EPOCH + Duration::new(seconds, nanos),
            headers: Headers::default(),
            checksums: Vec::new(),
            tags: Vec::new(),
            parts: PartSizes::default(),
        }
    }

    #[test]
    fn tags_take_precedence_over_times() {
        let object = info(100, 500);
        let hit = Some(vec![ETag::from_md5([7; 16])]);
        let miss = Some(vec![ETag::from_md5([8; 16])]);
        let at = |s| Some(UNIX_EPOCH + Duration::from_secs(s));
        let decide =
            |if_match: &Option<Vec<ETag>>, if_none_match: &Option<Vec<ETag>>, since, until| {
                ReadConditions {
                    if_match: if_match.clone(),
                    if_none_match: if_none_match.clone(),
                    if_modified_since: since,
                    if_unmodified_since: until,
                }
                .evaluate(&object)
            };
        use ReadDecision::{NotModified, PreconditionFailed, Proceed};
        assert_eq!(decide(&None, &None, None, None), Proceed);
        assert_eq!(decide(&hit, &None, None, at(1)), Proceed);
        assert_eq!(decide(&miss, &None, None, None), PreconditionFailed);
        assert_eq!(decide(&Some(vec![]), &None, None, None), Proceed);
        assert_eq!(decide(&None, &hit, at(1), None), NotModified);
        assert_eq!(decide(&None, &miss, at(1000), None), Proceed);
        assert_eq!(decide(&None, &Some(vec![]), None, None), NotModified);
        assert_eq!(decide(&None, &None, at(100), None), NotModified);
        assert_eq!(decide(&None, &None, at(99), None), Proceed);
        assert_eq!(decide(&None, &None, None, at(100)), Proceed);
        assert_eq!(decide(&None, &None, None, at(99)), PreconditionFailed);
        assert_eq!(decide(&hit, &hit, None, None), NotModified);
    }
}
