//! Parsing the completions of multipart uploads.

use bucketload_s3::xml::elements;
use bucketload_store::{CompletedPart, ETag};

use crate::reply::Failure;
use crate::status::Status;

/// The parts named by a completion.
pub(crate) fn completion(document: &[u8]) -> Result<Vec<CompletedPart>, Failure> {
    let malformed = || {
        Failure::new(
            Status::ErrorMalformedXML,
            "the list of parts cannot be read",
        )
    };
    let mut parts = Vec::new();
    let mut current = CompletedPart::default();
    let mut fault = None;
    elements(document, |path, text| match *path {
        ["CompleteMultipartUpload", "Part", "PartNumber"] => match text.get().trim().parse() {
            Ok(number) => current.number = number,
            Err(_) => fault = Some(malformed()),
        },
        ["CompleteMultipartUpload", "Part", "ETag"] => match text.get().trim().parse::<ETag>() {
            Ok(etag) => current.etag = Some(etag),
            Err(_) => {
                let message = "an entity tag is not from this store";
                fault = Some(Failure::new(Status::ErrorInvalidPart, message));
            }
        },
        ["CompleteMultipartUpload", "Part"] => parts.push(std::mem::take(&mut current)),
        _ => {}
    })
    .map_err(|_| malformed())?;
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
    fn completions_parse_with_and_without_quotes() {
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
    fn malformed_completions_are_refused() {
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
