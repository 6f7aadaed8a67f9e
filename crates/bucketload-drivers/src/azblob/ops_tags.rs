//! Blob index tags.

use bucketload_core::driver::{Completion, DONE, ErrorKind, OpError, OpResult, Probe, Request};
use bucketload_s3::{encode, xml};

use super::head::AzureCall;
use super::session::AzureSession;
use super::sign::Param;
use crate::http::answer::unreadable;
use crate::http::{Body, Buffer, HttpSession as _, Ignore};

/// Most bytes of a tag set: ten tags of 128 and 256 characters, escaped.
const MAX_TAGS: usize = 64 * 1024;

const TAGS: [Param<'static>; 1] = [("comp", "tags")];

impl AzureSession {
    pub(super) async fn put_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut tag = Buffer::take();
        tag.extend_from_slice(b"<Tag><Key>bucketload</Key><Value>");
        encode::push_decimal(&mut tag, u64::from(request.op.version));
        tag.extend_from_slice(b"</Value></Tag>");
        self.set_tags(request, &tag, probe).await?;
        Ok(Completion::of_items(1))
    }

    pub(super) async fn get_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let call = AzureCall::new("GET", request.bucket, request.key).query(&TAGS);
        let mut prepared = self.bare(&call);
        let mut body = Buffer::take();
        self.document(&mut prepared, &mut body, MAX_TAGS, probe)
            .await?;
        let mut items = 0;
        xml::leaves(super::ops_list::without_mark(&body), |path, _| {
            items += u64::from(path.ends_with(&["Tag", "Key"]));
        })
        .map_err(|e| unreadable("tags", e))?;
        Ok(Completion::of_items(items))
    }

    /// Sets an empty tag set: no request removes tags.
    pub(super) async fn delete_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        self.set_tags(request, b"", probe).await?;
        Ok(DONE)
    }

    async fn set_tags(
        &mut self,
        request: &Request<'_>,
        tags: &[u8],
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut document = Buffer::take();
        document.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet>");
        document.extend_from_slice(tags);
        document.extend_from_slice(b"</TagSet></Tags>");
        let call = AzureCall {
            content_type: "application/xml",
            ..AzureCall::new("PUT", request.bucket, request.key).query(&TAGS)
        };
        let mut prepared = self.prepare(&call, Body::Bytes(&document));
        let reply = self.perform(&mut prepared, &mut Ignore, probe).await?;
        match reply.status {
            200 | 204 => Ok(()),
            status => Err(OpError::with_status(
                ErrorKind::Protocol,
                status,
                "the tags were not set",
            )),
        }
    }
}
