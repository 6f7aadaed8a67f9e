//! Reads of one part of an object that was uploaded in parts, by its number.

use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::Request;
use bucketload_core::record::Probe;

use super::keeping::Kind;
use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::size_of_object;
use crate::http::exchange::Reply;
use crate::http::pool::Buffer;
use crate::http::reading::{PART_IGNORED, Reading};
use crate::http::render::Render as _;
use crate::http::sink::{Ignore, Sink};

impl S3Session {
    pub(crate) async fn get_part(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut reading = Reading::of(request);
        let reply = self.by_part("GET", request, &mut reading, probe).await?;
        reading.finish(&reply)
    }

    /// HEAD of a part: the size that the server states has to be the part's.
    pub(crate) async fn head_part(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let reply = self.by_part("HEAD", request, &mut Ignore, probe).await?;
        let Completion {
            object_size: stated,
            ..
        } = size_of_object(&reply)?;
        let size = request.op.range.map_or(0, |range| range.len);
        let wrong = |kind, text: &str| Err(OpError::with_status(kind, reply.status, text));
        match (stated == size, reply.status) {
            (true, _) => Ok(Completion::of_size(stated)),
            (false, 206) => wrong(
                ErrorKind::Corrupt,
                &format!("the size differs: the part has {stated} bytes, expected {size}"),
            ),
            (false, _) => wrong(ErrorKind::Protocol, PART_IGNORED),
        }
    }

    async fn by_part(
        &mut self,
        method: &'static str,
        request: &Request<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let mut query = Buffer::take();
        query.number("partNumber", request.op.part_number());
        let call = S3Call::new(method, request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(&query).kind(Kind::Content));
        let mut reply = Reply::default();
        self.perform_into(&mut prepared, sink, probe, &mut reply)
            .await?;
        Ok(reply)
    }
}
