//! Reading the XML documents of requests: deletions, completions and bucket configurations. `tags`
//! reads tags.
//!
//! The reader ignores namespaces and attributes, skips unknown elements and refuses document type
//! definitions.

use bucketload_s3::xml::{Text, elements};

use super::error::{Code, S3Error, S3Result};
use super::ops::conditions::{self, DeleteConditions};
use bucketload_store::{Checksum, ChecksumKind, CompletedPart};

/// Maximum number of keys in one deletion: S3's limit.
const MAX_DELETE: usize = 1000;

/// The error for an invalid document.
pub(super) fn malformed() -> S3Error {
    Code::MalformedXML.into()
}

/// Walks `body` and passes every element to `visit` when it closes, with its path (root first).
///
/// # Errors
/// `MalformedXML`, and the first error that `visit` returns.
pub(super) fn walk(
    body: &[u8],
    mut visit: impl FnMut(&[&str], Text<'_>) -> S3Result<()>,
) -> S3Result<()> {
    let mut outcome = Ok(());
    let read = elements(body, |path, text| {
        if outcome.is_ok() {
            outcome = visit(path, text);
        }
    });
    outcome?;
    read.map_err(|_| malformed())
}

/// A list of objects to delete.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// In the order of the request.
    pub(crate) objects: Vec<ObjectToDelete>,
    /// Whether to report only failures.
    pub(crate) quiet: bool,
}

/// An object of a [`Deletion`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectToDelete {
    pub(crate) key: String,
    /// Version id; empty for none.
    pub(crate) version: String,
    pub(crate) conditions: DeleteConditions,
}

/// Reads the body of DeleteObjects.
///
/// # Errors
/// `MalformedXML`, also if there is no object or more than 1000.
pub(crate) fn deletion(body: &[u8]) -> S3Result<Deletion> {
    let mut deletion = Deletion::default();
    let (mut key, mut current) = (None, ObjectToDelete::default());
    walk(body, |path, text| {
        match *path {
            ["Delete", "Object", "Key"] => key = Some(text.get()),
            ["Delete", "Object", "VersionId"] => current.version = text.get().trim().to_owned(),
            ["Delete", "Object", name] => current
                .conditions
                .element(name, text.get().trim())
                .ok_or_else(malformed)?,
            ["Delete", "Object"] => {
                current.key = key.take().ok_or_else(malformed)?;
                deletion.objects.push(std::mem::take(&mut current));
                if deletion.objects.len() > MAX_DELETE {
                    return Err(malformed());
                }
            }
            ["Delete", "Quiet"] => deletion.quiet = text.get().trim().eq_ignore_ascii_case("true"),
            _ => {}
        }
        Ok(())
    })?;
    if deletion.objects.is_empty() {
        Err(malformed())
    } else {
        Ok(deletion)
    }
}

/// Reads the body of CompleteMultipartUpload.
///
/// # Errors
/// `MalformedXML`, also if there is no part.
pub(crate) fn completion(body: &[u8]) -> S3Result<Vec<CompletedPart>> {
    let mut parts = Vec::new();
    let mut part = CompletedPart::default();
    walk(body, |path, text| {
        match *path {
            ["CompleteMultipartUpload", "Part"] if part.number > 0 => {
                parts.push(std::mem::take(&mut part));
            }
            ["CompleteMultipartUpload", "Part"] => return Err(malformed()),
            ["CompleteMultipartUpload", "Part", name] => {
                let text = text.get();
                let text = text.trim();
                match name.strip_prefix("Checksum") {
                    Some(name) => part.checksums.push(Checksum {
                        algorithm: super::checksum::from_name(name).map_err(|_| malformed())?,
                        kind: ChecksumKind::FullObject,
                        value: text.to_owned(),
                    }),
                    None if name == "PartNumber" => {
                        part.number = text.parse().map_err(|_| malformed())?;
                    }
                    None if name == "ETag" => {
                        part.etag = Some(conditions::tag(text));
                    }
                    None => {}
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    if parts.is_empty() {
        Err(malformed())
    } else {
        Ok(parts)
    }
}

/// Reads the location constraint of CreateBucket; `None` if the body is empty or names none.
///
/// # Errors
/// `MalformedXML`.
pub(crate) fn location(body: &[u8]) -> S3Result<Option<String>> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let mut location = None;
    walk(body, |path, text| {
        if path == ["CreateBucketConfiguration", "LocationConstraint"] {
            location = Some(text.get().trim().to_owned()).filter(|text| !text.is_empty());
        }
        Ok(())
    })?;
    Ok(location)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn deletions_parse() {
        let body = "<?xml version=\"1.0\"?><Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n\
            <Object><Key>a &amp; b&#x2F;<![CDATA[<c>]]></Key></Object>\
            <Object><Key> x </Key><VersionId>null</VersionId></Object><Quiet>true</Quiet></Delete>";
        let got = deletion(body.as_bytes()).unwrap();
        assert!(got.quiet);
        assert_eq!(
            got.objects,
            [("a & b/<c>", ""), (" x ", "null")].map(|(key, version)| ObjectToDelete {
                key: key.into(),
                version: version.into(),
                ..ObjectToDelete::default()
            })
        );
        let many = |n| {
            format!(
                "<Delete>{}</Delete>",
                "<Object><Key>k</Key></Object>".repeat(n)
            )
        };
        assert_eq!(deletion(many(1000).as_bytes()).unwrap().objects.len(), 1000);
        assert_eq!(
            deletion(many(1001).as_bytes()).unwrap_err().code,
            Code::MalformedXML
        );
        for bad in [
            "",
            "<Delete></Delete>",
            "<Delete><Object/></Delete>",
            "<Delete><Object><Key>k</Key><Size>many</Size></Object></Delete>",
            "<Delete><Object><Key>k</Key><LastModifiedTime>now</LastModifiedTime></Object></Delete>",
            "<Delete><Object><Key>k</Key>",
            "<!DOCTYPE x [<!ENTITY e \"v\">]><Delete><Object><Key>&e;</Key></Object></Delete>",
            "<Delete><Object><Key>&e;</Key></Object></Delete>",
            "\u{0}",
        ] {
            assert_eq!(
                deletion(bad.as_bytes()).unwrap_err().code,
                Code::MalformedXML,
                "{bad}"
            );
        }
    }

    #[test]
    fn completions_parse() {
        let tag = "d41d8cd98f00b204e9800998ecf8427e";
        let body = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&quot;{tag}&quot;</ETag>\
             <ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part><Part><ETag>{tag}</ETag><PartNumber>2</PartNumber></Part>\
             </CompleteMultipartUpload>"
        );
        let parts = completion(body.as_bytes()).unwrap();
        assert_eq!(parts.iter().map(|p| p.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(parts[0].checksums[0].value, "AAAAAA==");
        assert!(parts[1].checksums.is_empty());
        assert_eq!(parts[0].etag, parts[1].etag);
        for (bad, code) in [
            ("<CompleteMultipartUpload/>", Code::MalformedXML),
            (
                "<CompleteMultipartUpload><Part><ETag>x</ETag></Part></CompleteMultipartUpload>",
                Code::MalformedXML,
            ),
            (
                "<CompleteMultipartUpload><Part></Part></CompleteMultipartUpload>",
                Code::MalformedXML,
            ),
            (
                "<CompleteMultipartUpload><Part><PartNumber>-1</PartNumber></Part></CompleteMultipartUpload>",
                Code::MalformedXML,
            ),
        ] {
            assert_eq!(completion(bad.as_bytes()).unwrap_err().code, code, "{bad}");
        }
    }

    #[test]
    fn locations_parse() {
        assert_eq!(location(b" \n").unwrap(), None);
        let body = b"<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>";
        assert_eq!(location(body).unwrap().as_deref(), Some("eu-west-1"));
        assert_eq!(location(b"<CreateBucketConfiguration/>").unwrap(), None);
        assert_eq!(location(b"nonsense").unwrap_err().code, Code::MalformedXML);
    }

    proptest! {
        #[test]
        fn any_document_is_safe(body in "(<|>|/|&|;|Delete|Object|Key|Part|Tag|\\PC){0,60}") {
            let _ = deletion(body.as_bytes());
            let _ = completion(body.as_bytes());
            let _ = crate::tags::tagging(body.as_bytes());
            let _ = location(body.as_bytes());
        }

        #[test]
        fn any_key_survives(key in "[^\\x00-\\x08\\x0b-\\x1f\\x7f]{1,30}") {
            let mut out = Vec::new();
            let mut doc = crate::xml::Doc::new(&mut out, "Delete");
            doc.open("Object").text("Key", &key).close("Object");
            doc.finish();
            prop_assert_eq!(&deletion(&out).unwrap().objects[0].key, &key);
        }
    }
}
