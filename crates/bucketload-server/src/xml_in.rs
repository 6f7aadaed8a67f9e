//! Reading the XML documents of requests: deletions, completions, bucket configurations, and (in
//! `tags`) tags.
//!
//! All four have the same simple shape, so one reader walks the events and hands each leaf with its
//! path to the caller. Namespaces and attributes are ignored, unknown elements are skipped, document type
//! definitions are refused.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::error::{Code, S3Error, S3Result};
use bucketload_store::{Checksum, ChecksumKind, CompletedPart, ETag};

/// Most keys in one deletion, by S3's limit.
const MAX_DELETE: usize = 1000;
/// Deepest nesting taken.
const MAX_DEPTH: usize = 8;

/// The answer to a document that is not what it should be.
pub(super) fn malformed() -> S3Error {
    Code::MalformedXML.into()
}

/// What the reader tells its caller.
pub(super) enum Node<'a> {
    /// An element with elements or nothing inside has opened, at this path (root first).
    Open(&'a [String]),
    /// An element has closed; the text is what stood in it.
    Close(&'a [String], &'a str),
}

/// Walks `body` and hands every element to `visit`.
///
/// # Errors
/// `MalformedXML`, and what `visit` returns.
pub(super) fn walk(body: &[u8], mut visit: impl FnMut(Node<'_>) -> S3Result<()>) -> S3Result<()> {
    each_node(body, &mut visit)
}

/// Compiled once, whatever is done with a node.
fn each_node(body: &[u8], visit: &mut dyn FnMut(Node<'_>) -> S3Result<()>) -> S3Result<()> {
    let text = std::str::from_utf8(body).map_err(|_| malformed())?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    reader.config_mut().expand_empty_elements = true;
    let mut path: Vec<String> = Vec::new();
    let mut value = String::new();
    let mut closed_root = false;
    loop {
        match reader.read_event().map_err(|_| malformed())? {
            Event::Start(start) => {
                if path.len() == MAX_DEPTH || closed_root {
                    return Err(malformed());
                }
                path.push(start.local_name().as_ref().to_owned());
                value.clear();
                visit(Node::Open(&path))?;
            }
            Event::End(_) => {
                visit(Node::Close(&path, &value))?;
                value.clear();
                path.pop();
                closed_root = path.is_empty();
            }
            Event::Text(piece) => value.push_str(&piece.xml10_content()),
            Event::CData(piece) => value.push_str(&piece.xml10_content()),
            Event::GeneralRef(entity) => {
                match entity.resolve_char_ref().map_err(|_| malformed())? {
                    Some(c) => value.push(c),
                    None => value.push(match entity.into_inner().as_ref() {
                        "amp" => '&',
                        "lt" => '<',
                        "gt" => '>',
                        "quot" => '"',
                        "apos" => '\'',
                        _ => return Err(malformed()),
                    }),
                }
            }
            Event::DocType(_) => return Err(malformed()),
            Event::Eof if closed_root => return Ok(()),
            Event::Eof => return Err(malformed()),
            _ => {}
        }
    }
}

/// A list of objects to delete.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// Key and version id (empty for none) of each object, in order.
    pub(crate) objects: Vec<(String, String)>,
    /// Whether only failures are to be reported.
    pub(crate) quiet: bool,
}

/// Reads the body of DeleteObjects.
///
/// # Errors
/// `MalformedXML`, also for no object or more than 1000.
pub(crate) fn deletion(body: &[u8]) -> S3Result<Deletion> {
    let mut deletion = Deletion::default();
    let mut current = None;
    walk(body, |node| {
        match node {
            Node::Open(path) => {
                if path_is(path, &["Delete", "Object"]) {
                    current = Some((None, String::new()));
                }
            }
            Node::Close(path, text) => {
                if path_is(path, &["Delete", "Object", "Key"]) {
                    if let Some((key, _)) = &mut current {
                        *key = Some(text.to_owned());
                    }
                } else if path_is(path, &["Delete", "Object", "VersionId"]) {
                    if let Some((_, version)) = &mut current {
                        *version = text.trim().to_owned();
                    }
                } else if path_is(path, &["Delete", "Object"]) {
                    let (key, version) = current.take().ok_or_else(malformed)?;
                    deletion.objects.push((key.ok_or_else(malformed)?, version));
                    if deletion.objects.len() > MAX_DELETE {
                        return Err(malformed());
                    }
                } else if path_is(path, &["Delete", "Quiet"]) {
                    deletion.quiet = text.trim().eq_ignore_ascii_case("true");
                }
            }
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
/// `MalformedXML`, also for no part; `InvalidPart` for an entity tag that this store cannot have
/// given.
pub(crate) fn completion(body: &[u8]) -> S3Result<Vec<CompletedPart>> {
    const PART: [&str; 2] = ["CompleteMultipartUpload", "Part"];
    let mut parts = Vec::new();
    let mut current = None;
    walk(body, |node| {
        match node {
            Node::Open(path) if path_is(path, &PART) => {
                current = Some((0, CompletedPart::default()))
            }
            Node::Close(path, _) if path_is(path, &PART) => match current.take() {
                Some((number, part)) if number > 0 => parts.push(CompletedPart { number, ..part }),
                _ => return Err(malformed()),
            },
            Node::Close(path, text) if path.len() == 3 && path_is(&path[..2], &PART) => {
                let Some((number, part)) = &mut current else {
                    return Err(malformed());
                };
                let text = text.trim();
                match path[2].as_str() {
                    "PartNumber" => *number = text.parse().map_err(|_| malformed())?,
                    "ETag" => {
                        part.etag = Some(
                            text.parse::<ETag>()
                                .map_err(|_| S3Error::from(Code::InvalidPart))?,
                        )
                    }
                    other => {
                        if let Some(name) = other.strip_prefix("Checksum") {
                            part.checksums.push(Checksum {
                                algorithm: super::checksum::from_name(name)
                                    .map_err(|_| malformed())?,
                                kind: ChecksumKind::FullObject,
                                value: text.to_owned(),
                            });
                        }
                    }
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

/// Reads the location constraint of CreateBucket; `None` where the body is empty or names none.
///
/// # Errors
/// `MalformedXML`.
pub(crate) fn location(body: &[u8]) -> S3Result<Option<String>> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let mut location = None;
    walk(body, |node| {
        if let Node::Close(path, text) = node
            && path_is(path, &["CreateBucketConfiguration", "LocationConstraint"])
        {
            location = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        }
        Ok(())
    })?;
    Ok(location)
}

/// Whether a path is the given one.
pub(super) fn path_is(path: &[String], want: &[&str]) -> bool {
    path.len() == want.len() && path.iter().zip(want).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn deletions_are_read() {
        let body = "<?xml version=\"1.0\"?><Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n\
            <Object><Key>a &amp; b&#x2F;<![CDATA[<c>]]></Key></Object>\
            <Object><Key> x </Key><VersionId>null</VersionId></Object><Quiet>true</Quiet></Delete>";
        let got = deletion(body.as_bytes()).unwrap();
        assert!(got.quiet);
        assert_eq!(
            got.objects,
            [
                ("a & b/<c>".into(), String::new()),
                (" x ".into(), "null".into())
            ]
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
    fn completions_are_read() {
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
                Code::InvalidPart,
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
    fn locations_are_read() {
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
            prop_assert_eq!(&deletion(&out).unwrap().objects[0].0, &key);
        }
    }
}
