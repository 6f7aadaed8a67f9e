//! Operations on containers.
//!
//! The service deletes a container with everything in it. A bucket that holds objects must not
//! vanish, so a deletion looks first: it takes two requests, and a blob that somebody writes between
//! them is lost.

use bucketload_core::driver::{Completion, DONE};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;

use crate::http::answer::{no_way_on, unreadable};
use crate::http::pool::Buffer;
use crate::http::session::HttpSession as _;
use bucketload_s3::xml;

use super::head::Call;
use super::ops_list::{Listing, MAX_PAGE, without_mark};
use super::session::AzureSession;
use super::sign::Param;

const CONTAINER: [Param<'static>; 1] = [Param {
    name: "restype",
    value: "container",
}];

impl AzureSession {
    async fn on_container(
        &mut self,
        method: &'static str,
        container: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let call = Call::new(method, container, "").query(&CONTAINER);
        let mut request = self.bare(&call);
        self.complete(&mut request, probe).await
    }

    pub(super) async fn make_container(
        &mut self,
        container: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.on_container("PUT", container, probe).await
    }

    pub(super) async fn head_container(
        &mut self,
        container: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.on_container("HEAD", container, probe).await
    }

    /// Deletes a container unless there is something in it.
    pub(super) async fn delete_container(
        &mut self,
        container: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        if self.holds_blobs(container, probe).await? {
            return Err(OpError::new(
                ErrorKind::Conflict,
                format!(
                    "container `{container}` is not empty; Azure would delete it with its blobs"
                ),
            ));
        }
        self.on_container("DELETE", container, probe).await
    }

    /// Whether there is a blob, a snapshot or an uncommitted blob.
    async fn holds_blobs(&mut self, container: &str, probe: &mut Probe) -> Result<bool, OpError> {
        let mut body = Buffer::take();
        let mut from = String::new();
        loop {
            let mut prepared = {
                let query = Listing::new("", "snapshots,uncommittedblobs", &from, "1", "");
                let call = Call::new("GET", container, "").query(query.as_slice());
                self.bare(&call)
            };
            self.document(&mut prepared, &mut body, MAX_PAGE, probe)
                .await?;
            let mut found = false;
            let mut next = String::new();
            xml::leaves(without_mark(&body), |path, text| match *path {
                [_, "Blobs", "Blob", "Name"] => found = true,
                [_, "NextMarker"] => next = text.get(),
                _ => {}
            })
            .map_err(|e| unreadable("listing", e))?;
            // A page may be empty although more follow.
            if found || next.is_empty() {
                return Ok(found);
            }
            if next == from {
                return Err(no_way_on());
            }
            from = next;
        }
    }

    pub(super) async fn list_containers(
        &mut self,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut body = Buffer::take();
        let mut from = String::new();
        let mut items = 0;
        loop {
            let mut prepared = {
                let query = [
                    Param {
                        name: "comp",
                        value: "list",
                    },
                    Param {
                        name: "marker",
                        value: &from,
                    },
                ];
                let query = &query[..1 + usize::from(!from.is_empty())];
                self.bare(&Call::new("GET", "", "").query(query))
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
                return Ok(Completion { items, ..DONE });
            }
            if next == from {
                return Err(no_way_on());
            }
            from = next;
        }
    }
}
