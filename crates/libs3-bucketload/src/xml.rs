//! Reads the small XML documents that clients hand in: access control policies and completions.

use bucketload_store::{CompletedPart, ETag};
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::reply::Failure;
use crate::status::Status;

/// Deepest nesting taken.
const MAX_DEPTH: usize = 8;

/// An element that has closed: its path (root first) and the text in it.
pub(crate) struct Leaf<'a> {
    pub(crate) path: &'a [String],
    pub(crate) text: &'a str,
}

impl Leaf<'_> {
    /// Whether the path consists of these names.
    pub(crate) fn is(&self, path: &[&str]) -> bool {
        self.path == path
    }
}

/// Hands every element to `visit` when it closes. `None` if the document is not well formed;
/// document type definitions are refused.
pub(crate) fn walk(document: &[u8], mut visit: impl FnMut(Leaf<'_>)) -> Option<()> {
    let text = std::str::from_utf8(document).ok()?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    reader.config_mut().expand_empty_elements = true;
    let mut path: Vec<String> = Vec::new();
    let mut value = String::new();
    let mut closed_root = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                if path.len() == MAX_DEPTH || closed_root {
                    return None;
                }
                path.push(start.local_name().as_ref().to_owned());
                value.clear();
            }
            Event::End(_) => {
                visit(Leaf {
                    path: &path,
                    text: &value,
                });
                value.clear();
                path.pop();
                closed_root = path.is_empty();
            }
            Event::Text(piece) => value.push_str(&piece.xml10_content()),
            Event::CData(piece) => value.push_str(&piece.xml10_content()),
            Event::GeneralRef(entity) => match entity.resolve_char_ref().ok()? {
                Some(c) => value.push(c),
                None => value.push(match entity.into_inner().as_ref() {
                    "amp" => '&',
                    "lt" => '<',
                    "gt" => '>',
                    "quot" => '"',
                    "apos" => '\'',
                    _ => return None,
                }),
            },
            Event::DocType(_) => return None,
            Event::Eof => return closed_root.then_some(()),
            _ => {}
        }
    }
}

/// The parts that a completion names.
pub(crate) fn completion(document: &[u8]) -> Result<Vec<CompletedPart>, Failure> {
    const PART: [&str; 2] = ["CompleteMultipartUpload", "Part"];
    let malformed = || {
        Failure::new(
            Status::ErrorMalformedXML,
            "the list of parts cannot be read",
        )
    };
    let mut parts = Vec::new();
    let mut current = CompletedPart::default();
    let mut fault = None;
    walk(document, |leaf| {
        if leaf.is(&[PART[0], PART[1], "PartNumber"]) {
            match leaf.text.trim().parse() {
                Ok(number) => current.number = number,
                Err(_) => fault = Some(malformed()),
            }
        } else if leaf.is(&[PART[0], PART[1], "ETag"]) {
            match leaf.text.trim().parse::<ETag>() {
                Ok(etag) => current.etag = Some(etag),
                Err(_) => {
                    let message = "an entity tag is none of this store";
                    fault = Some(Failure::new(Status::ErrorInvalidPart, message));
                }
            }
        } else if leaf.is(&PART) {
            parts.push(std::mem::take(&mut current));
        }
    })
    .ok_or_else(malformed)?;
    match fault {
        Some(fault) => Err(fault),
        None if parts.is_empty() => Err(malformed()),
        None => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_read_with_and_without_quotes() {
        let tag = "d41d8cd98f00b204e9800998ecf8427e";
        let document = format!(
            "<?xml version=\"1.0\"?>\n<CompleteMultipartUpload xmlns=\"x\">\
             <Part><PartNumber>1</PartNumber><ETag>&quot;{tag}&quot;</ETag></Part>\
             <Part><ETag>\"{tag}\"</ETag><PartNumber> 7 </PartNumber></Part>\
             <Part><PartNumber>9</PartNumber><ETag>{tag}</ETag></Part>\
             </CompleteMultipartUpload>"
        );
        let parts = completion(document.as_bytes()).unwrap();
        let numbers: Vec<u32> = parts.iter().map(|part| part.number).collect();
        assert_eq!(numbers, [1, 7, 9]);
        assert!(parts.iter().all(|part| part.etag == tag.parse().ok()));
    }

    #[test]
    fn what_is_no_completion_is_refused() {
        for document in [
            "",
            "<a/>",
            "<CompleteMultipartUpload/>",
            "<CompleteMultipartUpload><Part><PartNumber>x</PartNumber></Part></CompleteMultipartUpload>",
            "<CompleteMultipartUpload><Part>",
            "<!DOCTYPE a><CompleteMultipartUpload/>",
        ] {
            assert!(completion(document.as_bytes()).is_err(), "{document}");
        }
    }
}
