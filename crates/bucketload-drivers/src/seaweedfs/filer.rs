//! Operations on a filer (SeaweedFS, "Filer Server API"): an object is the file
//! `/buckets/BUCKET/KEY`, where the S3 gateway keeps it too, and each bucket is a collection.

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Request;
use bucketload_core::record::Probe;

use super::session::SeaweedSession;
use crate::http::answer::size_of_object;
use crate::http::outgoing::{Body, NO_BODY, Plain};
use crate::http::reading::Reading;
use crate::http::render::Render as _;
use crate::http::session::{HttpSession as _, Rendering as _};
use crate::http::sink::{Ignore, Sink};
use crate::http::span::Span;
use crate::json_size::Size;
use bucketload_s3::encode;

/// Folder of all buckets (SeaweedFS, "filer.options.buckets_folder": its default).
pub(crate) const BUCKETS: &str = "/buckets/";

/// Prefix of the header fields that are tags, in lower case (SeaweedFS, "Filer Server API", "tagging").
const TAG: &str = "seaweed-";

/// Counts the tags in an answer's head.
struct Tags(u64);

impl Sink for Tags {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, _value: &[u8]) {
        let prefix = name.get(..TAG.len());
        self.0 += u64::from(prefix.is_some_and(|p| p.eq_ignore_ascii_case(TAG)));
    }
}

/// Whether a filer would take `key` for another one: paths are cleaned of empty segments and dots, and
/// a slash at the end makes a folder.
pub(crate) fn changes(key: &str) -> bool {
    // From slash to slash.
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
        format!(
            "the filer has no place for the key `{key}`: empty segments, `.` and `..` are cleaned away"
        ),
    )
}

/// Appends the path of an object.
pub(crate) fn push_path(head: &mut Vec<u8>, bucket: &str, key: &str) {
    head.text(BUCKETS);
    encode::push_query(head, bucket);
    head.push(b'/');
    encode::push_key(head, key);
}

/// Appends the path of an object whose key keeps its meaning.
fn push_checked(head: &mut Vec<u8>, bucket: &str, key: &str) -> Result<(), OpError> {
    if changes(key) {
        return Err(refuse_key(key));
    }
    push_path(head, bucket, key);
    Ok(())
}

impl SeaweedSession {
    pub(crate) async fn get(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
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
    ) -> Result<Completion, OpError> {
        let span = Span::whole(content_of(request)?);
        let mut head = self.begin("PUT");
        push_checked(&mut head, request.bucket, request.key)?;
        head.text(how);
        let mut request = self.with(head, "application/octet-stream", Body::Content(span));
        let mut size = Size::new();
        let reply = self.perform(&mut request, &mut size, probe).await?;
        // Old filers keep the first 256 MiB of a PUT and say so in nothing but the size.
        match size.get() {
            Some(taken) if how.is_empty() && taken != span.len => {
                let text = format!("the filer took {taken} of {} bytes", span.len);
                Err(OpError::with_status(ErrorKind::Corrupt, reply.status, text))
            }
            _ => Ok(Completion {
                bytes: span.len,
                ..DONE
            }),
        }
    }

    pub(crate) async fn head(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("HEAD");
        push_checked(&mut head, request.bucket, request.key)?;
        let mut request = self.bare(head);
        let reply = self.perform(&mut request, &mut Ignore, probe).await?;
        size_of_object(&reply)
    }

    pub(crate) async fn delete(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        if changes(request.key) {
            return Err(refuse_key(request.key));
        }
        self.delete_path(request.bucket, request.key, probe).await
    }

    /// Deletes a file or an empty folder. A filer may be told to delete folders with all that is in
    /// them unless it is asked not to: it is always asked not to.
    pub(crate) async fn delete_path(
        &mut self,
        bucket: &str,
        path: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("DELETE");
        push_path(&mut head, bucket, path);
        head.text("?recursive=false");
        let mut request = self.bare(head);
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn rename(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        if changes(request.source) {
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
    ) -> Result<Completion, OpError> {
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

    /// Tags come with the head of the object.
    pub(crate) async fn get_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("HEAD");
        push_checked(&mut head, request.bucket, request.key)?;
        let mut request = self.bare(head);
        let mut tags = Tags(0);
        self.perform(&mut request, &mut tags, probe).await?;
        Ok(Completion {
            items: tags.0,
            ..DONE
        })
    }

    pub(crate) async fn delete_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("DELETE");
        push_checked(&mut head, request.bucket, request.key)?;
        head.text("?tagging");
        let mut request = self.bare(head);
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn make_folder(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("POST");
        push_path(&mut head, bucket, "");
        let mut request = self.with(head, "", NO_BODY);
        self.complete(&mut request, probe).await
    }

    /// Looks whether there is a bucket: a listing of at most one entry.
    pub(crate) async fn look_at(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("GET");
        push_path(&mut head, bucket, "");
        head.push(b'?');
        head.parameter("limit", "1");
        self.fields(&mut head);
        head.text("Accept: application/json\r\n");
        self.complete(&mut Plain::bare(head), probe).await
    }

    /// Deletes an empty bucket. Deleting what is absent is a success for a filer, so that it is looked
    /// for first: two requests.
    pub(crate) async fn remove_folder(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.look_at(bucket, probe).await?;
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

    use super::changes;

    #[test]
    fn keys_that_would_become_others_are_known() {
        for key in ["", "/a", "a/", "a//b", "./a", "a/.", "a/../b", ".."] {
            assert!(changes(key), "{key}");
        }
        for key in ["a", "a/b", ".a", "a..b/c.", "a/...", "\u{e4}/ "] {
            assert!(!changes(key), "{key}");
        }
    }

    proptest! {
        #[test]
        fn it_is_what_splitting_says(key in "[a./]{0,12}") {
            let odd = key.split('/').any(|s| matches!(s, "" | "." | ".."));
            prop_assert_eq!(changes(&key), odd);
        }
    }
}
