//! Operations on containers and accounts.

use bucketload_core::driver::{Completion, DONE, OpResult, Probe};

use super::head::SwiftCall;
use super::list::{MAX_PAGE, MOST_ENTRIES, entries, has_next, page_query};
use super::session::SwiftSession;
use crate::http::answer::as_text;
use crate::http::{Buffer, HttpSession as _, Ignore};

impl SwiftSession {
    pub(crate) async fn make_container(&mut self, container: &str, probe: &mut Probe) -> OpResult {
        self.put_container(container, &[], probe).await?;
        Ok(DONE)
    }

    /// Creates a container; returns false if it existed (status 202 instead of 201).
    pub(crate) async fn put_container(
        &mut self,
        container: &str,
        fields: &[(&'static str, &[u8])],
        probe: &mut Probe,
    ) -> OpResult<bool> {
        let call = SwiftCall::new("PUT", container, "")
            .fields(fields)
            .length(0);
        let mut plain = self.bare(&call);
        let reply = self.perform(&mut plain, &mut Ignore, probe).await?;
        Ok(reply.status == 201)
    }

    pub(crate) async fn head_container(&mut self, container: &str, probe: &mut Probe) -> OpResult {
        let mut request = self.bare(&SwiftCall::new("HEAD", container, ""));
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn delete_container(
        &mut self,
        container: &str,
        probe: &mut Probe,
    ) -> OpResult {
        let mut request = self.bare(&SwiftCall::new("DELETE", container, ""));
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn list_containers(&mut self, probe: &mut Probe) -> OpResult {
        let mut query = Buffer::take();
        let mut body = Buffer::take();
        let mut marker = Buffer::take();
        let mut items = 0;
        loop {
            page_query(&mut query, "", "", MOST_ENTRIES, as_text(&marker));
            let mut plain = self.bare(&SwiftCall::new("GET", "", "").query(&query));
            self.document(&mut plain, &mut body, MAX_PAGE, probe)
                .await?;
            let mut last = Buffer::take();
            let got = entries(&body, |entry| {
                last.clear();
                last.extend_from_slice(entry.marker().as_bytes());
            })?;
            items += got;
            if !has_next(got, MOST_ENTRIES) || *last <= *marker {
                return Ok(Completion::of_items(items));
            }
            marker = last;
        }
    }
}
