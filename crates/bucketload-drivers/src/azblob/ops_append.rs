//! Appends. Only append blobs can grow. An append creates one if there is no blob yet; the service
//! refuses to append to a block blob, which every other write creates.

use bucketload_core::driver::{
    Completion, ErrorKind, OpError, OpResult, Probe, Request, content_of,
};

use super::error_map::RefusalDetails;
use super::head::AzureCall;
use super::ops_object::checked;
use super::session::AzureSession;
use super::sign::Field;
use crate::http::{Body, HttpSession as _, Ignore, Reply, Span};

impl AzureSession {
    /// Append Block; for a new blob Append Block, Put Blob, Append Block.
    pub(super) async fn append(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let span = Span::whole(content_of(request)?);
        let done = Completion::of_bytes(span.len);
        // A block cannot be empty, a blob can.
        if span.len == 0 {
            self.make_append_blob(request, probe).await?;
            return Ok(done);
        }
        let reply = self.append_block(request, span, probe).await?;
        let Some(refusal) = &reply.refusal else {
            return Ok(done);
        };
        let refusal = RefusalDetails::of(refusal);
        if reply.status != 404 || refusal.code != "BlobNotFound" {
            return Err(self.append_refused(reply.status, &refusal));
        }
        self.make_append_blob(request, probe).await?;
        let reply = self.append_block(request, span, probe).await?;
        match &reply.refusal {
            None => Ok(done),
            Some(refusal) => Err(self.append_refused(reply.status, &RefusalDetails::of(refusal))),
        }
    }

    fn append_refused(&self, status: u16, refusal: &RefusalDetails) -> OpError {
        let mut error = self.refused_as(status, refusal);
        if refusal.code == "InvalidBlobType" {
            error.detail = format!(
                "{}; only blobs that an append created can be appended to",
                error.detail
            )
            .into();
        }
        error
    }

    async fn append_block(
        &mut self,
        request: &Request<'_>,
        span: Span<'_>,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let mut prepared = {
            let checksum = self.shared.config().checksum;
            let sum = checksum.map(|algorithm| (algorithm, algorithm.of(span)));
            let query = [("comp", "appendblock")];
            let mut fields: [Field<'_>; 1] = [("", b"")];
            let call = AzureCall::new("PUT", request.bucket, request.key).query(&query);
            let call = checked(call, sum.as_ref(), &mut fields, 0);
            self.prepare(&call, Body::Content(span))
        };
        self.attempt(&mut prepared, &mut Ignore, probe).await
    }

    /// Creates an empty append blob unless the blob exists.
    async fn make_append_blob(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult<()> {
        let fields: [Field<'_>; 1] = [("x-ms-blob-type", b"AppendBlob")];
        let call = AzureCall {
            if_none_match: "*",
            ..AzureCall::new("PUT", request.bucket, request.key).fields(&fields)
        };
        let mut prepared = self.bare(&call);
        match self.perform(&mut prepared, &mut Ignore, probe).await {
            Ok(_) => Ok(()),
            // Another client created it first.
            Err(error) if error.kind == ErrorKind::Conflict => Ok(()),
            Err(error) => Err(error),
        }
    }
}
