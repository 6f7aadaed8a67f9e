//! Listings of containers and accounts: JSON, in pages by marker.
//!
//! A page is received as a whole and parsed after its last byte, outside the service time. Listings count entries: names
//! and common prefixes (`subdir`). Pages do not say whether they are the last one. A page with fewer entries than
//! requested is the last, except that radosgw always cuts pages at 1000 entries.

use std::borrow::Cow;
use std::fmt;

use bucketload_core::driver::{Completion, OpResult, Probe, Request};
use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};

use super::head::SwiftCall;
use super::session::SwiftSession;
use crate::http::answer::{as_text, no_next_page, unreadable};
use crate::http::{Buffer, HttpSession as _, Render as _};

/// Maximum size of a page, in bytes: 10 000 names of 1024 bytes, escaped, with their metadata.
pub(crate) const MAX_PAGE: usize = 64 << 20;
/// Swift's default maximum of entries per page (`container_listing_limit`). Listings without a page size request as
/// many.
pub(crate) const MOST_ENTRIES: u64 = 10_000;
/// Entries after which radosgw cuts pages (`rgw_max_listing_results`).
const CUT_AT: u64 = 1000;

/// An entry of a listing: an object or a container, or a common prefix.
#[derive(Deserialize)]
pub(crate) struct Entry<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    subdir: Cow<'a, str>,
}

impl Entry<'_> {
    /// The name of an object or container; `None` for a common prefix.
    pub(crate) fn name(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(&*self.name)
    }

    /// The marker with which a listing continues after this entry.
    pub(crate) fn marker(&self) -> &str {
        self.name().unwrap_or(&self.subdir)
    }
}

struct Entries<F>(F);

impl<'de, F: FnMut(&Entry<'de>)> Visitor<'de> for Entries<F> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<u64, A::Error> {
        let mut count = 0;
        while let Some(entry) = list.next_element()? {
            count += 1;
            (self.0)(&entry);
        }
        Ok(count)
    }
}

/// Calls `each` with every entry of a page and returns their number. An empty page may have no body.
pub(crate) fn entries<'a>(body: &'a [u8], each: impl FnMut(&Entry<'a>)) -> OpResult<u64> {
    if body.is_empty() {
        return Ok(0);
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    json.deserialize_seq(Entries(each))
        .map_err(|e| unreadable("listing", e))
}

/// True if a page of `got` entries, with `asked` requested, may not be the last one.
pub(crate) const fn has_next(got: u64, asked: u64) -> bool {
    got > 0 && (got >= asked || got == CUT_AT)
}

/// The query of one page.
pub(crate) fn page_query(
    query: &mut Vec<u8>,
    prefix: &str,
    delimiter: &str,
    limit: u64,
    marker: &str,
) {
    query.clear();
    query.extend_from_slice(b"format=json");
    query.number("limit", limit);
    if !prefix.is_empty() {
        query.parameter("prefix", prefix);
    }
    if !delimiter.is_empty() {
        query.parameter("delimiter", delimiter);
    }
    if !marker.is_empty() {
        query.parameter("marker", marker);
    }
}

impl SwiftSession {
    /// Lists under `request.key`.
    pub(crate) async fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let op = &request.op;
        let asked = match op.count {
            0 => MOST_ENTRIES,
            count => count.min(MOST_ENTRIES),
        };
        let mut query = Buffer::take();
        let mut body = Buffer::take();
        // Where the page starts; empty for the first page.
        let mut marker = Buffer::take();
        let mut items = 0;
        let mut pages = 0;
        loop {
            let from = as_text(&marker);
            page_query(&mut query, request.key, request.delimiter, asked, from);
            let call = SwiftCall::new("GET", request.bucket, "").query(&query);
            let mut plain = self.bare(&call);
            self.document(&mut plain, &mut body, MAX_PAGE, probe)
                .await?;
            let mut last = Cow::Borrowed("");
            let got = entries(&body, |entry| {
                if let (Some(watch), Some(name)) = (request.watch, entry.name()) {
                    watch.listed(name);
                }
                last = match entry.name() {
                    Some(_) => entry.name.clone(),
                    None => entry.subdir.clone(),
                };
            })?;
            items += got;
            pages += 1;
            let more = has_next(got, asked);
            if !more || (op.pages > 0 && pages >= op.pages) {
                if let Some(watch) = request.watch.filter(|_| more) {
                    watch.cut_short();
                }
                return Ok(Completion::of_items(items));
            }
            if last.as_bytes() <= marker.as_slice() {
                return Err(no_next_page());
            }
            marker.clear();
            marker.extend_from_slice(last.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{entries, has_next, page_query};

    #[test]
    fn names_and_prefixes_are_entries() {
        let page = r#"[
            {"hash": "x", "last_modified": "2026-01-01T00:00:00.0", "bytes": 3, "name": "a/\u00e4 \"b\"",
             "content_type": "application/octet-stream"},
            {"subdir": "b/"}, {"name": "c", "extra": {"deep": [1, null]}}
        ]"#;
        let mut seen = Vec::new();
        let count = entries(page.as_bytes(), |entry| {
            seen.push((entry.name().map(str::to_owned), entry.marker().to_owned()));
        });
        assert_eq!(count, Ok(3));
        let name = |name: &str| (Some(name.to_owned()), name.to_owned());
        assert_eq!(
            seen,
            [name("a/\u{e4} \"b\""), (None, "b/".to_owned()), name("c")]
        );
        assert_eq!(entries(b"", |_| {}), Ok(0));
        assert_eq!(entries(b"[]", |_| {}), Ok(0));
        assert!(entries(b"<html>", |_| {}).is_err());
        assert!(entries(br#"[{"name": "cut"#, |_| {}).is_err());
    }

    #[test]
    fn short_pages_are_the_last() {
        for (got, asked, more) in [
            (0, 10, false),
            (9, 10, false),
            (10, 10, true),
            (1000, 10_000, true),
            (999, 10_000, false),
            (10_000, 10_000, true),
        ] {
            assert_eq!(has_next(got, asked), more, "{got} of {asked}");
        }
    }

    #[test]
    fn queries_are_encoded() {
        let mut query = Vec::new();
        page_query(&mut query, "a/&", "/", 5, "a/\u{e4}");
        assert_eq!(
            query,
            b"format=json&limit=5&prefix=a%2F%26&delimiter=%2F&marker=a%2F%C3%A4"
        );
        page_query(&mut query, "", "", 5, "");
        assert_eq!(query, b"format=json&limit=5");
    }
}
