//! Operations on containers.
//!
//! The service deletes a container together with its blobs. Deleting a bucket must not delete
//! objects, so a deletion lists the container first. It takes two requests; a blob written between
//! them is lost.

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe};
use bucketload_s3::xml;

use super::head::AzureCall;
use super::ops_list::{MAX_PAGE, without_mark};
use super::session::AzureSession;
use super::sign::Param;
use crate::http::answer::{no_next_page, unreadable};
use crate::http::{Buffer, HttpSession as _};

const CONTAINER: [Param<'static>; 1] = [("restype", "container")];

impl AzureSession {
    async fn on_container(
        &mut self,
        method: &'static str,
        container: &str,
        probe: &mut Probe,
    ) -> OpResult {
        let call = AzureCall::new(method, container, "").query(&CONTAINER);
        let mut request = self.bare(&call);
        self.complete(&mut request, probe).await
    }

    pub(super) async fn make_container(&mut self, container: &str, probe: &mut Probe) -> OpResult {
        self.on_container("PUT", container, probe).await
    }

    pub(super) async fn head_container(&mut self, container: &str, probe: &mut Probe) -> OpResult {
        self.on_container("HEAD", container, probe).await
    }

    /// Deletes a container if it is empty.
    pub(super) async fn delete_container(
        &mut self,
        container: &str,
        probe: &mut Probe,
    ) -> OpResult {
        if self.holds_blobs(container, probe).await? {
            return Err(OpError::new(
                ErrorKind::Conflict,
                format!(
                    "container `{container}` is not empty; Azure would delete its blobs with it"
                ),
            ));
        }
        self.on_container("DELETE", container, probe).await
    }

    /// Whether the container holds a blob, a snapshot or an uncommitted blob.
    async fn holds_blobs(&mut self, container: &str, probe: &mut Probe) -> OpResult<bool> {
        let include = "snapshots,uncommittedblobs";
        let mut from: Option<String> = None;
        loop {
            let page = self.page(container, "", include, "1", from.as_deref(), probe);
            let page = page.await?;
            // An empty page need not be the last.
            if !page.keys.is_empty() || page.next.is_none() {
                return Ok(!page.keys.is_empty());
            }
            from = page.next;
        }
    }

    pub(super) async fn list_containers(&mut self, probe: &mut Probe) -> OpResult {
        let mut body = Buffer::take();
        let mut from = String::new();
        let mut items = 0;
        loop {
            let mut prepared = {
                let query = [("comp", "list"), ("marker", &from)];
                let query = &query[..1 + usize::from(!from.is_empty())];
                self.bare(&AzureCall::new("GET", "", "").query(query))
            };
            self.document(&mut prepared, &mut body, MAX_PAGE, probe)
                .await?;
            let mut next = String::new();
            xml::leaves(without_mark(&body), |path, text| match *path {
                [_, "Containers", "Container", "Name"] => items += 1,
                [_, "NextMarker"] => next = text.get(),
                _ => {}
            })
            .map_err(|e| unreadable("list of containers", e))?;
            if next.is_empty() {
                return Ok(Completion::of_items(items));
            }
            if next == from {
                return Err(no_next_page());
            }
            from = next;
        }
    }
}
