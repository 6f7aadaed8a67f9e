//! Conditional headers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use bucketload_s3::date;
use bucketload_store::{Condition, ETag, ObjectInfo, ReadConditions, ReadDecision};

/// A tag that no object has. It replaces tags that this store cannot have issued.
const NO_OBJECT: &str = "00000000000000000000000000000000-4294967295";

/// Reads a list of entity tags; an empty list means `*`.
fn tags(value: &str) -> Vec<ETag> {
    if value.trim() == "*" {
        return Vec::new();
    }
    let read = |tag: &str| {
        let tag = tag.trim();
        tag.strip_prefix("W/").unwrap_or(tag).parse().ok()
    };
    let foreign = NO_OBJECT.parse().ok();
    value
        .split(',')
        .filter_map(|tag| read(tag).or(foreign))
        .collect()
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
        (Some(value), None) => match tags(value) {
            all if all.is_empty() => Condition::Present,
            all => Condition::Match(all),
        },
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
