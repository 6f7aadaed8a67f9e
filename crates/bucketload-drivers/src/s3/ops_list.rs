//! Listings of objects (V2, V1) and the deletion of several objects in one request.
//!
//! A page is received as a whole and parsed after its last byte, outside the service time. Listings count entries: keys
//! and common prefixes.

use bucketload_core::driver::{Completion, DONE};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{Request, Watch};
use bucketload_core::record::Probe;

use super::error_map::ErrorDocument;
use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::{MAX_DOCUMENT, as_text, no_next_page, unreadable};
use crate::http::pool::Buffer;
use crate::http::render::{Render as _, each_key};
use crate::http::session::HttpSession as _;
use bucketload_s3::date::parse_iso;
use bucketload_s3::xml::{self, Text};

/// Maximum size of a page, in bytes: 5000 keys of 1024 bytes, percent-encoded, with their metadata.
pub(crate) const MAX_PAGE: usize = 32 << 20;
/// Maximum number of keys in one deletion (Amazon S3 API Reference, DeleteObjects).
pub(crate) const MAX_DELETE: u64 = 1000;

pub(crate) fn set(out: &mut Vec<u8>, text: Text<'_>) {
    out.clear();
    text.push_to(out);
}

/// Size and modification time of an entry, which follow its key in any order.
#[derive(Default)]
struct Details {
    bytes: Option<u64>,
    changed_s: Option<i64>,
}

impl Details {
    fn read(&mut self, name: &str, text: &str, watch: &dyn Watch) {
        match name {
            "Size" => self.bytes = text.parse().ok(),
            _ => self.changed_s = parse_iso(text).and_then(|second| i64::try_from(second).ok()),
        }
        if let (Some(bytes), Some(changed_s)) = (self.bytes, self.changed_s) {
            watch.details(bytes, changed_s);
        }
    }
}

impl S3Session {
    /// Lists under `request.key` with ListObjectsV2 (`v2`) or ListObjects.
    pub(crate) async fn list(
        &mut self,
        request: &Request<'_>,
        v2: bool,
        probe: &mut Probe,
    ) -> OpResult {
        let op = &request.op;
        let mut query = Buffer::take();
        let mut body = Buffer::take();
        // Where the page starts; empty for the first page.
        let mut from = Buffer::take();
        let mut next = Buffer::take();
        let mut items = 0;
        let mut pages = 0;
        loop {
            query.clear();
            if v2 && !from.is_empty() {
                query.parameter("continuation-token", as_text(&from));
            }
            if !request.delimiter.is_empty() {
                query.parameter("delimiter", request.delimiter);
            }
            if v2 {
                query.parameter("list-type", "2");
            } else if !from.is_empty() {
                query.parameter("marker", as_text(&from));
            }
            if op.count > 0 {
                query.number("max-keys", op.count);
            }
            query.parameter("prefix", request.key);
            let mut prepared = self.prepare(&S3Call::new("GET", request.bucket, "").query(&query));
            self.document(&mut prepared, &mut body, MAX_PAGE, probe)
                .await?;
            let mut truncated = false;
            let mut marked = false;
            next.clear();
            let mut details = Details::default();
            xml::leaves(&body, |path, text| match *path {
                [_, "Contents", "Key"] | [_, "CommonPrefixes", "Prefix"] => {
                    items += 1;
                    details = Details::default();
                    if let Some(watch) = request.watch
                        && path[1] == "Contents"
                    {
                        watch.listed(&text.get());
                    }
                    // ListObjects without a delimiter continues after the last key.
                    if !v2 && !marked {
                        set(&mut next, text);
                    }
                }
                [_, "Contents", "Size" | "LastModified"] => {
                    if let Some(watch) = request.watch.filter(|watch| watch.wants_details()) {
                        details.read(path[2], &text.get(), watch);
                    }
                }
                [_, "IsTruncated"] => truncated = text.is("true"),
                [_, "NextContinuationToken"] if v2 => set(&mut next, text),
                [_, "NextMarker"] if !v2 && !text.is_empty() => {
                    set(&mut next, text);
                    marked = true;
                }
                _ => {}
            })
            .map_err(|e| unreadable("listing", e))?;
            pages += 1;
            if !truncated || (op.pages > 0 && pages >= op.pages) {
                if let Some(watch) = request.watch.filter(|_| truncated) {
                    watch.cut_short();
                }
                return Ok(Completion { items, ..DONE });
            }
            if next.is_empty() || *next == *from {
                return Err(no_next_page());
            }
            std::mem::swap(&mut from, &mut next);
        }
    }

    pub(crate) async fn delete_many(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let count = request.op.count;
        if count == 0 || count > MAX_DELETE {
            let text = format!("delete-many takes 1 to {MAX_DELETE} keys per request, not {count}");
            return Err(OpError::new(ErrorKind::Rejected, text));
        }
        let mut document = Buffer::take();
        begin_delete(&mut document);
        each_key(request, |_, key| push_delete(&mut document, key))?;
        end_delete(&mut document);
        self.delete_document(request.bucket, &document, probe)
            .await?;
        Ok(Completion {
            items: count,
            ..DONE
        })
    }

    /// Sends a deletion and checks whether keys failed.
    pub(crate) async fn delete_document(
        &mut self,
        bucket: &str,
        document: &[u8],
        probe: &mut Probe,
    ) -> OpResult<()> {
        let call = S3Call::new("POST", bucket, "");
        let mut prepared = self.prepare(&call.query(b"delete=").document(document));
        let mut body = Buffer::take();
        let status = self
            .conclude(&mut prepared, &mut body, 8 * MAX_DOCUMENT, probe)
            .await?;
        if body.is_empty() {
            return Ok(());
        }
        let mut failed = 0u64;
        let mut first = ErrorDocument::default();
        xml::leaves(&body, |path, text| match *path {
            [_, "Error", "Code"] => {
                failed += 1;
                if failed == 1 {
                    first.code = text.get();
                }
            }
            [_, "Error", "Message"] if failed <= 1 => first.message = text.get(),
            _ => {}
        })
        .map_err(|e| unreadable("response to the deletion", e))?;
        if failed == 0 {
            return Ok(());
        }
        // Keys have no status of their own, so classify the error by its code.
        let mut error = self.refused_as(500, &first);
        error.status = status;
        error.detail = format!("{failed} keys were not deleted; {}", error.detail).into();
        Err(error)
    }
}

pub(crate) fn begin_delete(document: &mut Vec<u8>) {
    document.extend_from_slice(
        b"<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>",
    );
}

pub(crate) fn push_delete(document: &mut Vec<u8>, key: &str) {
    document.extend_from_slice(b"<Object><Key>");
    xml::push_escaped(document, key);
    document.extend_from_slice(b"</Key></Object>");
}

pub(crate) fn end_delete(document: &mut Vec<u8>) {
    document.extend_from_slice(b"</Delete>");
}
