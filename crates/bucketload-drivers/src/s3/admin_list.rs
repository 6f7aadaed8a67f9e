//! Listings of the control plane: ListObjectsV2, with ListObjects (V1) as the fallback.
//!
//! ```text
//!  V2 page ──▶ V2 page ──✗ 5xx, 501, no token ──▶ V1 after the last key ──▶ V1 …
//! ```
//!
//! Some servers know only V1, others fail at the second page of V2. A clean-up can only delete the objects that it can
//! list, so a page that fails with V2 is requested again with V1. From then on the session uses V1.

use bucketload_core::driver::KeyPage;
use bucketload_core::error::{ErrorKind, OpError, OpResult};

use super::ops_list::MAX_PAGE;
use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::{no_next_page, unreadable};
use crate::http::render::Render as _;
use crate::http::session::HttpSession as _;
use bucketload_s3::encode;
use bucketload_s3::xml;

/// Keys requested per page.
const PAGE: u64 = 1000;

/// A session's state of its listings.
#[derive(Debug, Default)]
pub(crate) struct ListState {
    /// Whether the session has switched to V1.
    v1: bool,
    /// The last continuation token and the last key before it, which is where V1 continues.
    /// Boxed to keep sessions small: most never list.
    last: Option<Box<(String, String)>>,
}

impl ListState {
    /// The key after which the page of `after` starts; `None` if unknown.
    fn key_before(&self, after: Option<&str>) -> Option<String> {
        match (after, &self.last) {
            (None, _) => Some(String::new()),
            (Some(after), Some(last)) if after == last.0 => Some(last.1.clone()),
            // V1 continues after a key.
            (Some(after), _) => self.v1.then(|| after.to_owned()),
        }
    }
}

impl S3Session {
    /// A page of the keys that start with `prefix`; `after` is the `next` of the previous page.
    pub(super) async fn list_page(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        let before = self.listing.key_before(after);
        if self.listing.v1 {
            return self
                .page_v1(bucket, prefix, &before.unwrap_or_default())
                .await;
        }
        let error = match self.page_v2(bucket, prefix, after).await {
            Ok(page) => {
                if let Some(token) = &page.next {
                    // A page may be empty without being the last one.
                    let key = page.keys.last().cloned().or(before).unwrap_or_default();
                    self.listing.last = Some(Box::new((token.clone(), key)));
                }
                return Ok(page);
            }
            Err(error) => error,
        };
        let Some(before) = before.filter(|_| may_know_v1(&error)) else {
            return Err(error);
        };
        match self.page_v1(bucket, prefix, &before).await {
            Ok(mut page) => {
                self.listing.v1 = true;
                page.note = Some(
                    format!(
                        "bucket `{bucket}` was listed with ListObjects (V1), because ListObjectsV2 \
                         failed: {error}"
                    )
                    .into(),
                );
                Ok(page)
            }
            // Both fail: report the first failure.
            Err(_) => Err(error),
        }
    }

    async fn page_v2(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        let mut query = Vec::new();
        if let Some(after) = after {
            query.parameter("continuation-token", after);
        }
        query.parameter("encoding-type", "url");
        query.parameter("list-type", "2");
        let (mut page, truncated) = self.page(bucket, prefix, query).await?;
        if !truncated {
            page.next = None;
        } else if page.next.as_deref().is_none_or(|next| after == Some(next)) {
            return Err(no_next_page());
        }
        Ok(page)
    }

    /// A page of ListObjects after the key `before`. Without a delimiter, V1 continues after a page's last key.
    async fn page_v1(&mut self, bucket: &str, prefix: &str, before: &str) -> OpResult<KeyPage> {
        let mut query = Vec::new();
        query.parameter("encoding-type", "url");
        if !before.is_empty() {
            query.parameter("marker", before);
        }
        let (mut page, truncated) = self.page(bucket, prefix, query).await?;
        page.next = page.keys.last().cloned().filter(|_| truncated);
        if truncated && page.next.as_deref().is_none_or(|next| next == before) {
            return Err(no_next_page());
        }
        Ok(page)
    }

    /// Requests a page with `query`, to which page size and prefix are added. Also returns whether it was truncated.
    async fn page(
        &mut self,
        bucket: &str,
        prefix: &str,
        mut query: Vec<u8>,
    ) -> OpResult<(KeyPage, bool)> {
        query.number("max-keys", PAGE);
        query.parameter("prefix", prefix);
        let call = S3Call::new("GET", bucket, "").query(&query);
        let mut request = self.prepare(&call);
        let body = self.fetch(&mut request, MAX_PAGE).await?;
        let mut page = KeyPage::default();
        let mut encoded = false;
        let mut truncated = false;
        xml::leaves(&body, |path, text| match *path {
            [_, "Contents", "Key"] => page.keys.push(text.get()),
            [_, "EncodingType"] => encoded = text.is("url"),
            [_, "IsTruncated"] => truncated = text.is("true"),
            [_, "NextContinuationToken"] => page.next = Some(text.get()),
            _ => {}
        })
        .map_err(|e| unreadable("listing", e))?;
        if encoded {
            let keys = page.keys.iter_mut();
            keys.for_each(|key| *key = encode::decode(key));
        }
        Ok((page, truncated))
    }
}

/// True if V1 may work although V2 ended with `error`: the server failed, does not offer V2, or took the request for V1
/// and answered without a continuation token.
fn may_know_v1(error: &OpError) -> bool {
    matches!(error.kind, ErrorKind::Server | ErrorKind::Unsupported) || *error == no_next_page()
}
