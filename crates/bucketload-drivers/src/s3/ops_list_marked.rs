//! Listings that continue after two markers, a key and an identifier: unfinished uploads, and versions of objects.

use bucketload_core::driver::{Completion, DONE};
use bucketload_core::error::OpResult;
use bucketload_core::op::Request;
use bucketload_core::record::Probe;

use super::ops_list::{MAX_PAGE, set};
use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::{as_text, no_next_page, unreadable};
use crate::http::pool::Buffer;
use crate::http::render::Render as _;
use crate::http::session::HttpSession as _;
use bucketload_s3::xml;

/// What distinguishes the two listings.
pub(crate) struct Marked {
    /// The parameter that asks for this listing.
    name: &'static str,
    /// The parameter with the number of entries per page.
    maximum: &'static str,
    /// The parameter with the identifier after which a page starts.
    id_marker: &'static str,
    /// The element with the identifier after which the next page starts.
    next_id: &'static str,
    /// The elements that are counted, below the root.
    entries: &'static [[&'static str; 2]],
    /// What an error calls the document.
    document: &'static str,
}

pub(crate) const UPLOADS: Marked = Marked {
    name: "uploads",
    maximum: "max-uploads",
    id_marker: "upload-id-marker",
    next_id: "NextUploadIdMarker",
    entries: &[["Upload", "UploadId"], ["CommonPrefixes", "Prefix"]],
    document: "list of uploads",
};

pub(crate) const VERSIONS: Marked = Marked {
    name: "versions",
    maximum: "max-keys",
    id_marker: "version-id-marker",
    next_id: "NextVersionIdMarker",
    entries: &[
        ["Version", "Key"],
        ["DeleteMarker", "Key"],
        ["CommonPrefixes", "Prefix"],
    ],
    document: "listing of versions",
};

/// Where a page starts; empty at the first.
#[derive(Clone, Copy, Default)]
pub(crate) struct After<'a> {
    pub(crate) key: &'a str,
    pub(crate) id: &'a str,
}

impl Marked {
    /// Appends the query of a page to `query`, which may hold parameters that sort before `key-marker`. `count` is the
    /// number of entries per page; 0 leaves it to the server.
    pub(crate) fn query(&self, query: &mut Vec<u8>, prefix: &str, count: u64, after: After<'_>) {
        if !after.key.is_empty() {
            query.parameter("key-marker", after.key);
        }
        if count > 0 {
            query.number(self.maximum, count);
        }
        query.parameter("prefix", prefix);
        if !after.id.is_empty() {
            query.parameter(self.id_marker, after.id);
        }
        query.parameter(self.name, "");
    }
}

impl S3Session {
    /// Lists under `request.key`, page by page, and counts the entries.
    pub(crate) async fn list_marked(
        &mut self,
        listing: &Marked,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let op = &request.op;
        let mut query = Buffer::take();
        let mut body = Buffer::take();
        // Where this page starts, and where the next one does.
        let (mut key, mut id) = (Buffer::take(), Buffer::take());
        let (mut next_key, mut next_id) = (Buffer::take(), Buffer::take());
        let (mut items, mut pages) = (0, 0);
        loop {
            query.clear();
            if !request.delimiter.is_empty() {
                query.parameter("delimiter", request.delimiter);
            }
            let after = After {
                key: as_text(&key),
                id: as_text(&id),
            };
            listing.query(&mut query, request.key, op.count, after);
            let mut prepared = self.prepare(&S3Call::new("GET", request.bucket, "").query(&query));
            self.document(&mut prepared, &mut body, MAX_PAGE, probe)
                .await?;
            let mut truncated = false;
            next_key.clear();
            next_id.clear();
            xml::leaves(&body, |path, text| match *path {
                [_, "IsTruncated"] => truncated = text.is("true"),
                [_, "NextKeyMarker"] => set(&mut next_key, text),
                [_, name] if name == listing.next_id => set(&mut next_id, text),
                [_, entry, field] if listing.entries.contains(&[entry, field]) => items += 1,
                _ => {}
            })
            .map_err(|e| unreadable(listing.document, e))?;
            pages += 1;
            if !truncated || (op.pages > 0 && pages >= op.pages) {
                return Ok(Completion { items, ..DONE });
            }
            let stays = *next_key == *key && *next_id == *id;
            if next_key.is_empty() || stays {
                return Err(no_next_page());
            }
            std::mem::swap(&mut key, &mut next_key);
            std::mem::swap(&mut id, &mut next_id);
        }
    }
}
