//! Listings (Objects: list). A session receives a page in full, then parses it outside the service
//! time. A listing counts its entries: keys and common prefixes.

use bucketload_core::driver::{Completion, OpResult, Probe, Request};

use super::session::{GcsSession, push_bucket};
use crate::http::answer::{as_text, no_next_page, unreadable};
use crate::http::{Buffer, HttpSession as _, Render as _, Rendering as _};
use crate::json::{self, Value};

/// Most bytes of a page: 5000 keys of 1024 bytes, escaped, with their metadata.
pub(crate) const MAX_PAGE: usize = 32 << 20;

/// The fields to return for each object: those of an S3 listing, so pages of both APIs carry the same
/// facts. The default is an object's whole metadata (some 900 bytes).
const FIELDS: &str = "&fields=items(name,size,updated,etag),nextPageToken,prefixes";

/// Reads a page: passes each key to `key`, writes the token of the next page into `next` (empty at the
/// end), and returns the number of common prefixes.
pub(crate) fn read_page(
    body: &[u8],
    next: &mut Vec<u8>,
    mut key: impl FnMut(json::Text<'_>),
) -> OpResult<u64> {
    next.clear();
    let mut groups = 0;
    json::values(body, |path, value| match (path, value) {
        (["items", "[]", "name"], Value::Text(text)) => key(text),
        (["prefixes", "[]"], Value::Text(_)) => groups += 1,
        (["nextPageToken"], Value::Text(text)) => text.push_to(next),
        _ => {}
    })
    .map_err(|e| unreadable("listing", e))?;
    Ok(groups)
}

impl GcsSession {
    /// Lists under `request.key`.
    pub(crate) async fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let op = &request.op;
        let mut body = Buffer::take();
        // Where to continue; empty on the first page.
        let mut from = Buffer::take();
        let mut next = Buffer::take();
        let (mut items, mut pages) = (0, 0);
        loop {
            self.page(
                request.bucket,
                request.key,
                request.delimiter,
                op.count,
                &from,
                &mut body,
                probe,
            )
            .await?;
            let mut keys = 0;
            let groups = read_page(&body, &mut next, |key| {
                keys += 1;
                if let Some(watch) = request.watch {
                    watch.listed(&key.get());
                }
            })?;
            items += keys + groups;
            pages += 1;
            let more = !next.is_empty();
            if !more || (op.pages > 0 && pages >= op.pages) {
                if let Some(watch) = request.watch.filter(|_| more) {
                    watch.cut_short();
                }
                return Ok(Completion::of_items(items));
            }
            if *next == *from {
                return Err(no_next_page());
            }
            std::mem::swap(&mut from, &mut next);
        }
    }

    /// Requests a page of at most `count` entries (0: the store decides) and receives it into `body`.
    pub(crate) async fn page(
        &mut self,
        bucket: &str,
        prefix: &str,
        delimiter: &str,
        count: u64,
        from: &[u8],
        body: &mut Vec<u8>,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut head = self.begin("GET");
        push_bucket(&mut head, bucket);
        head.text("/o?");
        head.parameter("prefix", prefix);
        if !delimiter.is_empty() {
            head.parameter("delimiter", delimiter);
        }
        if count > 0 {
            head.number("maxResults", count);
        }
        if !from.is_empty() {
            head.parameter("pageToken", as_text(from));
        }
        head.text(FIELDS);
        let mut request = self.bare(head);
        self.document(&mut request, body, MAX_PAGE, probe)
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read_page;

    #[test]
    fn pages_are_read() {
        let page = br#"{"kind":"storage#objects","nextPageToken":"Cg\u003d\u003d","prefixes":["a/b/","a/c/"],
            "items":[{"name":"a/1","size":"5"},{"size":"7","name":"a/\"2\"","metadata":{"name":"no"}}]}"#;
        let (mut next, mut keys) = (Vec::new(), Vec::new());
        let groups = read_page(page, &mut next, |key| keys.push(key.get())).unwrap();
        assert_eq!(groups, 2);
        assert_eq!(next, b"Cg==");
        assert_eq!(keys, ["a/1", "a/\"2\""]);
        let groups = read_page(b"{}", &mut next, |_| panic!("no keys")).unwrap();
        assert_eq!((groups, next.is_empty()), (0, true));
        assert!(read_page(b"<html>", &mut next, |_| ()).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_page(&bytes, &mut Vec::new(), |key| drop(key.get()));
        }
    }
}
