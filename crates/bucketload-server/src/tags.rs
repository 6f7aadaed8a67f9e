//! Object tags in requests: as a document, as a header, and their limits.

use super::error::{Code, S3Error, S3Result};
use super::xml_in::{malformed, walk};
use bucketload_store::Tags;

/// Reads the body of PutObjectTagging.
///
/// # Errors
/// `MalformedXML`; `InvalidTag` for tags that break a limit.
pub(crate) fn tagging(body: &[u8]) -> S3Result<Tags> {
    check_tags(document(body)?, 10)
}

/// Reads the body of PutBucketTagging.
///
/// # Errors
/// As [`tagging`].
pub(crate) fn bucket_tagging(body: &[u8]) -> S3Result<Tags> {
    check_tags(document(body)?, 50)
}

fn document(body: &[u8]) -> S3Result<Tags> {
    let mut tags = Tags::new();
    let mut tag = (None, None);
    let mut seen = false;
    walk(body, |path, text| {
        match *path {
            ["Tagging", "TagSet"] => seen = true,
            ["Tagging", "TagSet", "Tag"] => match std::mem::take(&mut tag) {
                (Some(key), Some(value)) => tags.push((key, value)),
                _ => return Err(malformed()),
            },
            ["Tagging", "TagSet", "Tag", "Key"] => tag.0 = Some(text.get()),
            ["Tagging", "TagSet", "Tag", "Value"] => tag.1 = Some(text.get()),
            _ => {}
        }
        Ok(())
    })?;
    if !seen {
        return Err(malformed());
    }
    Ok(tags)
}

/// Reads the `x-amz-tagging` header, which has the form of a query string.
///
/// # Errors
/// `InvalidArgument` for broken escapes, `InvalidTag` for tags that break a limit.
pub(crate) fn tagging_header(value: &str) -> S3Result<Tags> {
    let bad = || {
        S3Error::new(
            Code::InvalidArgument,
            "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters.",
        )
    };
    let decode = |text: &str| {
        let mut out = Vec::new();
        super::uri::decode(&mut out, text.as_bytes(), true).ok_or_else(bad)?;
        String::from_utf8(out).map_err(|_| bad())
    };
    let mut tags = Tags::new();
    for pair in value.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        tags.push((decode(key)?, decode(value)?));
    }
    check_tags(tags, 10)
}

/// Checks S3's limits: at most `most` tags (10 of an object, 50 of a bucket), unique keys of 1 to 128 characters, values of at most 256.
fn check_tags(tags: Tags, most: usize) -> S3Result<Tags> {
    let invalid = |text: &'static str| Err(S3Error::new(Code::InvalidTag, text));
    if tags.len() > most {
        return invalid("There are too many tags: an object takes 10, a bucket 50.");
    }
    for (number, (key, value)) in tags.iter().enumerate() {
        if !(1..=128).contains(&key.chars().count()) {
            return invalid("The TagKey you have provided is invalid.");
        }
        if value.chars().count() > 256 {
            return invalid("The TagValue you have provided is invalid.");
        }
        if tags[..number].iter().any(|(other, _)| other == key) {
            return invalid("Cannot provide multiple Tags with the same key.");
        }
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_and_limited() {
        let tag = |k: &str, v: &str| format!("<Tag><Key>{k}</Key><Value>{v}</Value></Tag>");
        let doc = |tags: String| format!("<Tagging><TagSet>{tags}</TagSet></Tagging>");
        let read = |tags: String| tagging(doc(tags).as_bytes());
        assert_eq!(
            read(tag("a", "1") + &tag("b", "")).unwrap(),
            [("a".into(), "1".into()), ("b".into(), String::new())]
        );
        assert_eq!(read(String::new()).unwrap(), []);
        assert_eq!(tagging(b"<Tagging/>").unwrap_err().code, Code::MalformedXML);
        let eleven: String = (0..11).map(|n| tag(&n.to_string(), "v")).collect();
        for bad in [
            eleven,
            tag("", "v"),
            tag("a", "1") + &tag("a", "2"),
            tag("a", &"v".repeat(257)),
        ] {
            assert_eq!(read(bad).unwrap_err().code, Code::InvalidTag);
        }
        assert_eq!(tagging_header("a=1&b%20c=d+e&f").unwrap().len(), 3);
        assert_eq!(
            tagging_header("b%20c=d+e").unwrap(),
            [("b c".to_owned(), "d e".to_owned())]
        );
        assert_eq!(
            tagging_header("a=%zz").unwrap_err().code,
            Code::InvalidArgument
        );
    }
}
