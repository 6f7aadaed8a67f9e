//! Operations on containers and accounts.

use bucketload_core::driver::Completion;
use bucketload_core::error::OpError;
use bucketload_core::record::Probe;

use super::head::Call;
use super::list::{MAX_PAGE, MOST_ENTRIES, as_text, entries, has_next, page_query, too_long};
use super::session::{DONE, SwiftSession};
use crate::http::outgoing::Body;
use crate::http::pool::Buffer;
use crate::http::sink::{Collect, Ignore};

impl SwiftSession {
    pub(crate) async fn make_container(
        &mut self,
        container: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.put_container(container, &[], probe).await?;
        Ok(DONE)
    }

    /// Creates a container; returns whether there was none (201, not 202).
    pub(crate) async fn put_container(
        &mut self,
        container: &str,
        fields: &[(&'static str, &[u8])],
        probe: &mut Probe,
    ) -> Result<bool, OpError> {
        let call = Call::new("PUT", container, "").fields(fields).length(0);
        let mut plain = self.prepare(&call, Body::Bytes(b""));
        let reply = self.perform(&mut plain, &mut Ignore, probe).await?;
        Ok(reply.status == 201)
    }

    pub(crate) async fn head_container(
        &mut self,
        container: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut plain = self.prepare(&Call::new("HEAD", container, ""), Body::Bytes(b""));
        self.perform(&mut plain, &mut Ignore, probe).await?;
        Ok(DONE)
    }

    pub(crate) async fn delete_container(
        &mut self,
        container: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut plain = self.prepare(&Call::new("DELETE", container, ""), Body::Bytes(b""));
        self.perform(&mut plain, &mut Ignore, probe).await?;
        Ok(DONE)
    }

    pub(crate) async fn list_containers(
        &mut self,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut query = Buffer::take();
        let mut body = Buffer::take();
        let mut marker = Buffer::take();
        let mut items = 0;
        loop {
            page_query(&mut query, "", "", MOST_ENTRIES, as_text(&marker));
            let mut plain = self.prepare(&Call::new("GET", "", "").query(&query), Body::Bytes(b""));
            let mut sink = Collect::new(&mut body, MAX_PAGE);
            self.perform(&mut plain, &mut sink, probe).await?;
            if sink.overflow {
                return Err(too_long());
            }
            let mut last = Buffer::take();
            let got = entries(&body, |entry| {
                last.clear();
                last.extend_from_slice(entry.marker().as_bytes());
            })?;
            items += got;
            if !has_next(got, MOST_ENTRIES) || *last <= *marker {
                return Ok(Completion { items, ..DONE });
            }
            marker = last;
        }
    }
}
