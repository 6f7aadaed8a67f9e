//! Multipart uploads, step by step.

use super::answer::{Ask, words};
use super::lab::Lab;
use super::verdict::Verdict;
use bucketload_s3::encode;

/// The object that is put together.
const KEY: &str = "parts";
/// Its only part; the last part of an upload may be of any size.
const PART: &[u8] = b"the only part";

/// Begins an upload of `key`; returns its identifier, or the server's words.
async fn begin(lab: &mut Lab, key: &str) -> Result<String, String> {
    match lab.ask(Ask::new("POST", key).query("uploads=")).await {
        Ok(answer) if answer.is_ok() => match answer.element("UploadId") {
            Some(id) if !id.is_empty() => {
                lab.uploads.push((key.to_owned(), id.clone()));
                Ok(id)
            }
            _ => Err(format!("{} without an UploadId", answer.words())),
        },
        other => Err(words(&other)),
    }
}

/// The identifier of the running upload of `key`.
fn running(lab: &Lab, key: &str) -> Option<String> {
    let mut uploads = lab.uploads.iter();
    uploads
        .find(|(of, _)| of == key)
        .map(|(_, id)| encode::query_text(id))
}

pub(super) async fn create(lab: &mut Lab) -> Verdict {
    let key = lab.key(KEY);
    match begin(lab, &key).await {
        Ok(_) => Verdict::ok("an UploadId"),
        Err(said) => Verdict::differs(said),
    }
}

/// Writes the part; returns its ETag, which may be empty.
async fn write_part(lab: &mut Lab, key: &str) -> Result<String, String> {
    let id = running(lab, key).unwrap_or_default();
    let query = format!("partNumber=1&uploadId={id}");
    match lab.ask(Ask::new("PUT", key).query(&query).body(PART)).await {
        Ok(answer) if answer.is_ok() => Ok(answer.field("etag")),
        other => Err(words(&other)),
    }
}

/// Completes the upload of `key`.
async fn finish(lab: &mut Lab, key: &str, etag: &str) -> Result<(), String> {
    let id = running(lab, key).unwrap_or_default();
    let query = format!("uploadId={id}");
    let document = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
        etag.replace('&', "&amp;").replace('<', "&lt;")
    );
    match lab
        .ask(
            Ask::new("POST", key)
                .query(&query)
                .body(document.as_bytes()),
        )
        .await
    {
        Ok(answer) if answer.is_ok() => {
            lab.uploads.retain(|(of, _)| of != key);
            Ok(())
        }
        other => Err(words(&other)),
    }
}

pub(super) async fn part(lab: &mut Lab) -> Verdict {
    let key = lab.key(KEY);
    match write_part(lab, &key).await {
        Ok(_) => Verdict::ok("accepted"),
        Err(said) => Verdict::differs(said),
    }
}

pub(super) async fn list_parts(lab: &mut Lab) -> Verdict {
    let key = lab.key(KEY);
    let query = format!("uploadId={}", running(lab, &key).unwrap_or_default());
    match lab.ask(Ask::new("GET", &key).query(&query)).await {
        Ok(answer) if answer.is_ok() && answer.element("PartNumber").as_deref() == Some("1") => {
            Verdict::ok("1 part")
        }
        Ok(answer) if answer.is_ok() => {
            Verdict::differs(format!("{} without the part", answer.words()))
        }
        other => Verdict::differs(words(&other)),
    }
}

pub(super) async fn complete(lab: &mut Lab) -> Verdict {
    let key = lab.key(KEY);
    // Written again, because the ETag is needed; a part may be replaced until the end.
    let etag = match write_part(lab, &key).await {
        Ok(etag) if etag.is_empty() => return Verdict::differs("a part's answer carries no ETag"),
        Ok(etag) => etag,
        Err(said) => return Verdict::differs(said),
    };
    if let Err(said) = finish(lab, &key, &etag).await {
        return Verdict::differs(said);
    }
    if !lab.works("get") {
        return Verdict::ok("accepted");
    }
    match lab.ask(Ask::new("GET", &key)).await {
        Ok(answer) if answer.is_ok() && answer.body == PART => {
            Verdict::ok("the content of its part")
        }
        Ok(answer) if answer.is_ok() => Verdict::differs(format!(
            "accepted, but the object has {} bytes of other content",
            answer.body.len()
        )),
        other => Verdict::differs(format!(
            "accepted, but the object cannot be read: {}",
            words(&other)
        )),
    }
}

pub(super) async fn abort(lab: &mut Lab) -> Verdict {
    let key = lab.key("aborted");
    if let Err(said) = begin(lab, &key).await {
        return Verdict::differs(format!("beginning it: {said}"));
    }
    match abort_one(lab, &key).await {
        Ok(said) => Verdict::ok(said),
        Err(said) => Verdict::differs(said),
    }
}

async fn abort_one(lab: &mut Lab, key: &str) -> Result<String, String> {
    let query = format!("uploadId={}", running(lab, key).unwrap_or_default());
    match lab.ask(Ask::new("DELETE", key).query(&query)).await {
        Ok(answer) if answer.is_ok() || answer.status == 404 => {
            lab.uploads.retain(|(of, _)| of != key);
            Ok(answer.words().to_owned())
        }
        other => Err(words(&other)),
    }
}

/// Ends all uploads that are left: by aborting them or, where that is refused, by completing them, so that the object
/// can be deleted. Returns those that stay.
pub(super) async fn end_all(lab: &mut Lab) -> Vec<String> {
    let mut left = Vec::new();
    for (key, _) in lab.uploads.clone() {
        let Err(said) = abort_one(lab, &key).await else {
            continue;
        };
        let completed = match write_part(lab, &key).await {
            Ok(etag) => finish(lab, &key, &etag).await,
            Err(said) => Err(said),
        };
        if completed.is_err() {
            left.push(format!("the multipart upload of {key}: {said}"));
        }
    }
    left
}
