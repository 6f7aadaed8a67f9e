//! Conditions of reads and copies, evaluated against one open version (RFC 9110, section 13.2.2), and
//! the test of write conditions that the stores share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::types::{Condition, ObjectInfo};

/// The conditional headers of a GET, HEAD or copy source.
#[derive(Debug, Clone, Default)]
pub struct ReadConditions {
    /// `If-Match`: the object's tag must be one of these; an empty list means `*`.
    pub if_match: Option<Vec<ETag>>,
    /// `If-None-Match`: the object's tag must not be one of these; an empty list means `*`.
    pub if_none_match: Option<Vec<ETag>>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<SystemTime>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<SystemTime>,
}

/// The outcome of a read's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDecision {
    /// Send the object.
    Proceed,
    /// The client already has the object (HTTP 304; 412 for a copy).
    NotModified,
    /// HTTP 412.
    PreconditionFailed,
}

impl ReadConditions {
    /// Evaluates the conditions. `If-Match` overrides `If-Unmodified-Since`, and `If-None-Match`
    /// overrides `If-Modified-Since`. Times are compared in whole seconds, the resolution of HTTP.
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

    #[test]
    fn tags_take_precedence_over_times() {
        let modified = UNIX_EPOCH + Duration::new(100, 500);
        let object = ObjectInfo::bare(1, ETag::from_md5([7; 16]), modified);
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
