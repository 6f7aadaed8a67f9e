//! Conditional headers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Ctx;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name, parse_u64};
use bucketload_s3::date;
use bucketload_store::{Condition, ETag, ObjectInfo, ReadConditions, ReadDecision, VersionId};

/// A tag that no object has. It replaces tags that this store cannot have issued.
const NO_OBJECT: &str = "00000000000000000000000000000000-4294967295";

/// Reads an entity tag. One that this store cannot have issued becomes the tag of no object.
pub(crate) fn tag(text: &str) -> ETag {
    let text = text.trim();
    let text = text.strip_prefix("W/").unwrap_or(text);
    text.parse()
        .unwrap_or_else(|_| NO_OBJECT.parse().expect("a valid tag"))
}

/// Reads a list of entity tags; an empty list means `*`.
fn tags(value: &str) -> Vec<ETag> {
    match value.trim() {
        "*" => Vec::new(),
        all => all.split(',').map(tag).collect(),
    }
}

/// Evaluates the four conditional headers of a read, or of a copy's source, against `info`.
pub(crate) fn of_read(
    headers: &Headers<'_, '_>,
    [if_match, if_none_match, modified, unmodified]: [Name; 4],
    info: &ObjectInfo,
) -> S3Result<ReadDecision> {
    if !(headers.has(if_match)
        || headers.has(if_none_match)
        || headers.has(modified)
        || headers.has(unmodified))
    {
        return Ok(ReadDecision::Proceed);
    }
    let date = |name| {
        let secs = headers.bytes(name).and_then(date::parse_http);
        secs.map(|secs| UNIX_EPOCH + Duration::from_secs(secs))
            .filter(|t| *t <= SystemTime::now() || name == unmodified)
    };
    let conditions = ReadConditions {
        if_match: headers.text(if_match)?.map(tags),
        if_none_match: headers.text(if_none_match)?.map(tags),
        if_modified_since: date(modified),
        if_unmodified_since: date(unmodified),
    };
    Ok(conditions.evaluate(info))
}

/// The headers of a GET or HEAD.
pub(crate) const READ: [Name; 4] = [
    Name::IfMatch,
    Name::IfNoneMatch,
    Name::IfModifiedSince,
    Name::IfUnmodifiedSince,
];
/// The headers about a copy's source.
pub(crate) const SOURCE: [Name; 4] = [
    Name::CopySourceIfMatch,
    Name::CopySourceIfNoneMatch,
    Name::CopySourceIfModifiedSince,
    Name::CopySourceIfUnmodifiedSince,
];

/// The condition that the object has one of the tags in `value`.
fn matching(value: &str) -> Condition {
    match tags(value) {
        all if all.is_empty() => Condition::Present,
        all => Condition::Match(all),
    }
}

/// What an object must be for a delete to take effect.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteConditions {
    pub(crate) tag: Condition,
    /// Its size in bytes.
    pub(crate) size: Option<u64>,
    /// When it was written, in seconds since the epoch: the resolution of `Last-Modified`.
    pub(crate) modified: Option<u64>,
}

impl DeleteConditions {
    /// Reads the headers of a DELETE.
    ///
    /// # Errors
    /// As [`of_write`], and `InvalidArgument` for a size or time that cannot be read.
    pub(crate) fn of(headers: &Headers<'_, '_>) -> S3Result<Self> {
        let modified = headers.text(Name::IfMatchModified)?.map(|text| {
            seconds(text).ok_or_else(|| {
                let name = Name::IfMatchModified.text();
                S3Error::new(
                    Code::InvalidArgument,
                    format!("The header {name} is not a date."),
                )
            })
        });
        Ok(Self {
            tag: of_write(headers)?,
            size: headers.number(Name::IfMatchSize)?,
            modified: modified.transpose()?,
        })
    }

    /// Reads the element `name` of an object in a deletion. Returns `None` if its text is invalid.
    pub(crate) fn element(&mut self, name: &str, text: &str) -> Option<()> {
        match name {
            _ if text.is_empty() => {}
            "ETag" => self.tag = matching(text),
            "Size" => self.size = Some(parse_u64(text.as_bytes())?),
            "LastModifiedTime" => self.modified = Some(seconds(text)?),
            _ => {}
        }
        Some(())
    }

    /// The condition to pass to the store. Size and time are tested here, and the tag of the tested
    /// object stands for them, so an object written meanwhile stays.
    ///
    /// # Errors
    /// `PreconditionFailed`, and the store's if the object does not exist.
    pub(crate) fn resolve(
        self,
        ctx: &Ctx<'_>,
        key: &str,
        version: Option<VersionId>,
    ) -> S3Result<Condition> {
        if self.size.is_none() && self.modified.is_none() {
            return Ok(self.tag);
        }
        let bucket = ctx.target.bucket();
        let info = match version {
            None => ctx.store().head(bucket, key)?,
            Some(version) => {
                let object = ctx.store().open_version(bucket, key, version)?;
                object.info().clone()
            }
        };
        let modified = date::since_epoch(info.modified).as_secs();
        let tag_differs = matches!(&self.tag, Condition::Match(all) if !all.contains(&info.etag));
        if tag_differs
            || self.tag == Condition::Absent
            || self.size.is_some_and(|size| size != info.size)
            || self.modified.is_some_and(|second| second != modified)
        {
            return Err(Code::PreconditionFailed.into());
        }
        Ok(Condition::Match(vec![info.etag]))
    }
}

/// Reads a time as HTTP or ISO 8601 writes it, in seconds since the epoch.
fn seconds(text: &str) -> Option<u64> {
    date::parse_http(text.as_bytes()).or_else(|| date::parse_iso(text))
}

/// The condition of a write or delete.
///
/// # Errors
/// `NotImplemented` for an `If-None-Match` other than `*`, as in S3.
pub(crate) fn of_write(headers: &Headers<'_, '_>) -> S3Result<Condition> {
    let if_match = headers.text(Name::IfMatch)?;
    let if_none_match = headers.text(Name::IfNoneMatch)?;
    Ok(match (if_match, if_none_match) {
        (None, None) => Condition::None,
        (None, Some(value)) if value.trim() == "*" => Condition::Absent,
        (Some(value), None) => matching(value),
        _ => {
            return Err(S3Error::new(
                Code::NotImplemented,
                "Writes take either If-None-Match: * or If-Match.",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::list;

    fn write(headers: &[(&str, &str)]) -> Result<Condition, Code> {
        of_write(&Headers::new(&list(headers)).unwrap()).map_err(|e| e.code)
    }

    #[test]
    fn write_conditions_are_read() {
        let tag = "d41d8cd98f00b204e9800998ecf8427e";
        assert_eq!(write(&[]), Ok(Condition::None));
        assert_eq!(write(&[("if-none-match", "*")]), Ok(Condition::Absent));
        assert_eq!(write(&[("if-match", "*")]), Ok(Condition::Present));
        let matching = Condition::Match(vec![tag.parse().unwrap()]);
        assert_eq!(
            write(&[("if-match", "\"d41d8cd98f00b204e9800998ecf8427e\"")]),
            Ok(matching)
        );
        let foreign = Condition::Match(vec![NO_OBJECT.parse().unwrap()]);
        assert_eq!(write(&[("if-match", "\"foreign\"")]), Ok(foreign));
        assert_eq!(
            write(&[("if-none-match", "\"x\"")]),
            Err(Code::NotImplemented)
        );
        assert_eq!(
            write(&[("if-none-match", "*"), ("if-match", "*")]),
            Err(Code::NotImplemented)
        );
    }
}
