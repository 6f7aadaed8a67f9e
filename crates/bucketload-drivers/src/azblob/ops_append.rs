//! Appends. Only append blobs grow: an append makes one where there is no blob, and is refused
//! where there is a block blob, as every other write makes one.

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Request;
use bucketload_core::record::Probe;

use crate::http::exchange::Reply;
use crate::http::outgoing::Body;
use crate::http::session::HttpSession as _;
use crate::http::sink::Ignore;
use crate::http::span::Span;

use super::error_map::Explained;
use super::head::Call;
use super::ops_object::checked;
use super::session::AzureSession;
use super::sign::{Field, Param};

impl AzureSession {
    /// Append Block; for the first one of a blob Append Block, Put Blob, Append Block.
    pub(super) async fn append(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let span = Span::whole(content_of(request)?);
        let done = Completion {
            bytes: span.len,
            ..DONE
        };
        // A block cannot be empty, a blob can.
        if span.len == 0 {
            self.make_append_blob(request, probe).await?;
            return Ok(done);
        }
        let reply = self.append_block(request, span, probe).await?;
        let Some(refusal) = &reply.refusal else {
            return Ok(done);
        };
        let explained = Explained::of(refusal);
        if reply.status != 404 || explained.code != "BlobNotFound" {
            return Err(self.append_refused(reply.status, &explained));
        }
        self.make_append_blob(request, probe).await?;
        let reply = self.append_block(request, span, probe).await?;
        match &reply.refusal {
            None => Ok(done),
            Some(refusal) => Err(self.append_refused(reply.status, &Explained::of(refusal))),
        }
    }

    fn append_refused(&self, status: u16, explained: &Explained) -> OpError {
        let mut error = self.refused_as(status, explained);
        if explained.code == "InvalidBlobType" {
            error.detail = format!(
                "{}; only blobs that an append made can be appended to",
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
    ) -> Result<Reply, OpError> {
        let mut prepared = {
            let checksum = self.shared.config().checksum;
            let sum = checksum.map(|algorithm| (algorithm, algorithm.of(span)));
            let sum = sum.as_ref().map(|(algorithm, sum)| (*algorithm, sum));
            let query = [Param {
                name: "comp",
                value: "appendblock",
            }];
            let mut fields = [Field {
                name: "",
                value: b"",
            }];
            let call = Call::new("PUT", request.bucket, request.key).query(&query);
            let call = checked(call, sum, &mut fields, 0);
            self.prepare(&call, Body::Content(span))
        };
        self.attempt(&mut prepared, &mut Ignore, probe).await
    }

    /// Makes an empty append blob unless there is a blob.
    async fn make_append_blob(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        let fields = [Field {
            name: "x-ms-blob-type",
            value: b"AppendBlob",
        }];
        let call = Call {
            if_none_match: "*",
            ..Call::new("PUT", request.bucket, request.key).fields(&fields)
        };
        let mut prepared = self.bare(&call);
        match self.perform(&mut prepared, &mut Ignore, probe).await {
            Ok(_) => Ok(()),
            // Somebody was quicker.
            Err(error) if error.kind == ErrorKind::Conflict => Ok(()),
            Err(error) => Err(error),
        }
    }
}
