//! Operations on a filer (SeaweedFS, "Filer Server API"). An object is the file `/buckets/BUCKET/KEY`,
//! as with the S3 gateway, and each bucket is a collection.

use bucketload_core::driver::{
    Completion, ErrorKind, OpError, OpResult, Probe, Request, content_of,
};
use bucketload_s3::encode;

use super::session::SeaweedSession;
use crate::http::answer::size_of_object;
use crate::http::{
    Body, Buffer, HttpSession as _, Ignore, NO_BODY, Plain, Reading, Render as _, Rendering as _,
    Sink, Span,
};
use crate::json_size::Size;

/// Folder of all buckets (SeaweedFS, "filer.options.buckets_folder": its default).
pub(crate) const BUCKETS: &str = "/buckets/";

/// Prefix of the header fields for tags, in lower case (SeaweedFS, "Filer Server API", "tagging").
const TAG: &str = "seaweed-";

/// Counts the tags in an answer's header fields.
struct TagCount(u64);

impl Sink for TagCount {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, _value: &[u8]) {
        let prefix = name.get(..TAG.len());
        self.0 += u64::from(prefix.is_some_and(|p| p.eq_ignore_ascii_case(TAG)));
    }
}

/// Whether a filer would change `key`: it cleans empty segments and dots from paths, and a trailing slash
/// means a folder.
pub(crate) fn is_rewritten(key: &str) -> bool {
    let (mut begin, bytes) = (0, key.as_bytes());
    for at in 0..=bytes.len() {
        if at == bytes.len() || bytes[at] == b'/' {
            if matches!(&bytes[begin..at], b"" | b"." | b"..") {
                return true;
            }
            begin = at + 1;
        }
    }
    false
}

#[cold]
fn refuse_key(key: &str) -> OpError {
    OpError::new(
        ErrorKind::Rejected,
        format!("the filer cannot store the key `{key}`: it removes empty segments, `.` and `..`"),
    )
}

/// Appends the path of an object.
pub(crate) fn push_path(head: &mut Vec<u8>, bucket: &str, key: &str) {
    head.text(BUCKETS);
    encode::push_query(head, bucket);
    head.push(b'/');
    encode::push_key(head, key);
}

/// Appends the path of an object; refuses keys that the filer would change.
fn push_checked(head: &mut Vec<u8>, bucket: &str, key: &str) -> OpResult<()> {
    if is_rewritten(key) {
        return Err(refuse_key(key));
    }
    push_path(head, bucket, key);
    Ok(())
}

impl SeaweedSession {
    pub(crate) async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut reading = Reading::of(request);
        let mut head = self.begin("GET");
        push_checked(&mut head, request.bucket, request.key)?;
        self.fields(&mut head);
        head.range(reading.range());
        let mut request = Plain::bare(head);
        let reply = self.perform(&mut request, &mut reading, probe).await?;
        reading.finish(&reply)
    }

    /// Writes the request's content, with `how` as the query.
    pub(crate) async fn put(
        &mut self,
        request: &Request<'_>,
        how: &str,
        probe: &mut Probe,
    ) -> OpResult {
        let span = Span::whole(content_of(request)?);
        let mut head = self.begin("PUT");
        push_checked(&mut head, request.bucket, request.key)?;
        head.text(how);
        let mut request = self.with(head, "application/octet-stream", Body::Content(span));
        let mut size = Size::new();
        let reply = self.perform(&mut request, &mut size, probe).await?;
        // Old filers keep only the first 256 MiB of a PUT; only the returned size shows it.
        match size.get() {
            Some(taken) if how.is_empty() && taken != span.len => {
                let text = format!("the filer stored {taken} of {} bytes", span.len);
                Err(OpError::with_status(ErrorKind::Corrupt, reply.status, text))
            }
            _ => Ok(Completion::of_bytes(span.len)),
        }
    }

    pub(crate) async fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut head = self.begin("HEAD");
        push_checked(&mut head, request.bucket, request.key)?;
        let mut request = self.bare(head);
        let reply = self.perform(&mut request, &mut Ignore, probe).await?;
        size_of_object(&reply)
    }

    pub(crate) async fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        if is_rewritten(request.key) {
            return Err(refuse_key(request.key));
        }
        self.delete_path(request.bucket, request.key, probe).await
    }

    /// Deletes a file or an empty folder. A filer may be configured to delete folders recursively by
    /// default, so the request always forbids that.
    pub(crate) async fn delete_path(
        &mut self,
        bucket: &str,
        path: &str,
        probe: &mut Probe,
    ) -> OpResult {
        let mut head = self.begin("DELETE");
        push_path(&mut head, bucket, path);
        head.text("?recursive=false");
        let mut request = self.bare(head);
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn rename(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        if is_rewritten(request.source) {
            return Err(refuse_key(request.source));
        }
        let mut head = self.begin("POST");
        push_checked(&mut head, request.bucket, request.key)?;
        head.text("?mv.from=");
        encode::push_query(&mut head, BUCKETS);
        encode::push_query(&mut head, request.bucket);
        encode::push_query(&mut head, "/");
        encode::push_query(&mut head, request.source);
        let mut request = self.with(head, "", NO_BODY);
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn put_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut head = self.begin("PUT");
        push_checked(&mut head, request.bucket, request.key)?;
        head.text("?tagging");
        self.fields(&mut head);
        head.text("Seaweed-Bucketload: ");
        encode::push_decimal(&mut head, u64::from(request.op.version));
        head.text("\r\n");
        let done = self
            .complete(&mut Plain::with(head, NO_BODY), probe)
            .await?;
        Ok(Completion { items: 1, ..done })
    }

    /// Reads the tags from the header fields of the object.
    pub(crate) async fn get_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut head = self.begin("HEAD");
        push_checked(&mut head, request.bucket, request.key)?;
        let mut request = self.bare(head);
        let mut tags = TagCount(0);
        self.perform(&mut request, &mut tags, probe).await?;
        Ok(Completion::of_items(tags.0))
    }

    pub(crate) async fn delete_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut head = self.begin("DELETE");
        push_checked(&mut head, request.bucket, request.key)?;
        head.text("?tagging");
        let mut request = self.bare(head);
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn make_folder(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        let mut head = self.begin("POST");
        push_path(&mut head, bucket, "");
        let mut request = self.with(head, "", NO_BODY);
        self.complete(&mut request, probe).await
    }

    /// Checks that a bucket exists, with a listing of at most one entry.
    pub(crate) async fn check_folder(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        let mut head = self.begin("GET");
        push_path(&mut head, bucket, "");
        head.push(b'?');
        head.parameter("limit", "1");
        let mut request = self.listing(head);
        self.complete(&mut request, probe).await
    }

    /// A request for a folder's listing, whose path and query are in `head`.
    pub(crate) fn listing(&mut self, mut head: Buffer) -> Plain<'static> {
        self.fields(&mut head);
        head.text("Accept: application/json\r\n");
        Plain::bare(head)
    }

    /// Deletes an empty bucket. A filer accepts the deletion of a missing folder, so this checks first
    /// and takes two requests.
    pub(crate) async fn remove_folder(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        self.check_folder(bucket, probe).await?;
        let mut head = self.begin("DELETE");
        head.text(BUCKETS);
        encode::push_query(&mut head, bucket);
        head.text("?recursive=false");
        let mut request = self.bare(head);
        self.complete(&mut request, probe).await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::is_rewritten;

    #[test]
    fn keys_that_a_filer_would_change_are_recognised() {
        for key in ["", "/a", "a/", "a//b", "./a", "a/.", "a/../b", ".."] {
            assert!(is_rewritten(key), "{key}");
        }
        for key in ["a", "a/b", ".a", "a..b/c.", "a/...", "\u{e4}/ "] {
            assert!(!is_rewritten(key), "{key}");
        }
    }

    proptest! {
        #[test]
        fn the_check_matches_splitting_at_slashes(key in "[a./]{0,12}") {
            let odd = key.split('/').any(|s| matches!(s, "" | "." | ".."));
            prop_assert_eq!(is_rewritten(&key), odd);
        }
    }
}
