//! The store behind a gateway, over TCP or a Unix socket.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bucketload_gateway::{Address, ByteRange, Client, Error, Options, Reply, Token};
use bucketload_store::{
    BucketInfo, Commit, CompletedPart, Condition, Headers, ListRequest, ListUploadsRequest,
    Listing, MultipartOptions, ObjectInfo, PartListing, PutOptions, ReadConditions, UploadListing,
    Written,
};

use super::{
    Answer, Backend, Conditions, Far, PIECE_BYTES, PartOf, Place, Result, Sink, Small, Source,
    Span, with_buffer,
};
use crate::reply::Failure;
use crate::status::Status;

/// A store behind a gateway.
pub(crate) struct Remote {
    client: Client,
}

impl Remote {
    /// A client of the gateway at `address`; the first call connects.
    pub(crate) fn new(address: Address, token: Option<Token>) -> Self {
        let mut options = Options::new(address);
        options.token = token;
        Self {
            client: Client::new(options),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::Store(error) => return error.into(),
            // HTTP 304 has no error code.
            Error::NotModified => return Status::HttpErrorUnknown.into(),
            Error::Connect(_) => Status::FailedToConnect,
            Error::Refused(_) => Status::ErrorAccessDenied,
            Error::Lost(_) => Status::ConnectionFailed,
            Error::TimedOut => Status::ErrorRequestTimeout,
            Error::Body(_) => Status::ErrorIncompleteBody,
            _ => Status::InternalError,
        };
        status.because(error.to_string())
    }
}

/// The bytes of a request as the client reads them: in the pieces that libs3 offers. Keeps why the
/// source failed.
struct Body<'a, 'b> {
    source: &'a mut Source<'b>,
    failure: Option<Failure>,
}

impl<'a, 'b> Body<'a, 'b> {
    fn new(source: &'a mut Source<'b>) -> Self {
        Self {
            source,
            failure: None,
        }
    }

    /// The result of the write, or why the source failed.
    fn end(self, result: bucketload_gateway::Result<Written>) -> Result<Written> {
        match (self.failure, result) {
            (Some(failure), Err(_)) => Err(failure),
            (_, result) => Ok(result?),
        }
    }
}

impl Read for Body<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(PIECE_BYTES);
        (self.source)(&mut out[..most]).map_err(|failure| {
            self.failure = Some(failure);
            io::Error::other("the data callback has failed")
        })
    }
}

/// The range of a span; `None` is the whole object.
fn range(span: Span) -> Option<ByteRange> {
    (span != Span { start: 0, count: 0 }).then_some(ByteRange {
        start: span.start,
        length: (span.count > 0).then_some(span.count),
    })
}

impl Far for Remote {
    fn together(&self, asked: Vec<Small<'_>>) -> Vec<Result<Answer>> {
        let count = asked.len();
        let mut pipeline = self.client.pipeline();
        let pushed = asked.into_iter().try_for_each(|small| match small {
            Small::Put((bucket, key), body, commit) => pipeline.put(bucket, key, body, commit),
            Small::Get((bucket, key), conditions, span) => {
                pipeline.get(bucket, key, range(span), conditions)
            }
            Small::Head((bucket, key)) => pipeline.head(bucket, key),
            Small::Delete((bucket, key)) => pipeline.delete(bucket, key),
        });
        let replies = match pushed.and_then(|()| pipeline.finish()) {
            Ok(replies) => replies,
            Err(error) => {
                let failure = Failure::from(error);
                return std::iter::repeat_n(failure, count).map(Err).collect();
            }
        };
        let answers = replies.into_iter().map(|reply| {
            Ok(match reply? {
                Reply::Written(written) => Answer::Written(written),
                Reply::Object(info, bytes) => Answer::Bytes(info, bytes),
                Reply::TooLarge => Answer::TooLarge,
                Reply::Info(info) => Answer::Info(info),
                Reply::Deleted(_) => Answer::Deleted,
            })
        });
        answers.collect()
    }
}

impl Backend for Remote {
    fn far(&self) -> Option<&dyn Far> {
        Some(self)
    }

    fn within(&self, limit: Duration) -> Option<Arc<dyn Backend>> {
        Some(Arc::new(Self {
            client: self.client.limited(Some(limit)),
        }))
    }

    fn buckets(&self) -> Result<Vec<BucketInfo>> {
        Ok(self.client.list_buckets()?)
    }

    fn test_bucket(&self, bucket: &str) -> Result<()> {
        self.client.head_bucket(bucket)?;
        Ok(())
    }

    fn create_bucket(&self, bucket: &str) -> Result<()> {
        Ok(self.client.create_bucket(bucket)?)
    }

    fn delete_bucket(&self, bucket: &str) -> Result<()> {
        Ok(self.client.delete_bucket(bucket)?)
    }

    fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<Listing> {
        Ok(self.client.list(bucket, request)?)
    }

    fn put(
        &self,
        (bucket, key): Place<'_>,
        options: &PutOptions,
        commit: Commit,
        source: &mut Source<'_>,
    ) -> Result<Written> {
        let (size, md5) = (options.size.unwrap_or(0), options.content_md5);
        let mut body = Body::new(source);
        let written = self
            .client
            .put_from(bucket, key, size, &mut body, md5, commit);
        body.end(written)
    }

    fn get(
        &self,
        (bucket, key): Place<'_>,
        conditions: &Conditions,
        span: Span,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if conditions.never {
            // The store is asked all the same: a missing object is another failure.
            self.client.head(bucket, key)?;
            return Err(conditions.unmet());
        }
        let mut download = self
            .client
            .get(bucket, key, range(span), conditions.read.clone())?;
        sink.begin(download.info(), download.length())?;
        if download.length() == 0 {
            return Ok(());
        }
        with_buffer(|buffer| {
            loop {
                match download.receive(buffer)? {
                    0 => return Ok(()),
                    got => sink.data(&buffer[..got])?,
                }
            }
        })
    }

    fn head(&self, (bucket, key): Place<'_>) -> Result<ObjectInfo> {
        Ok(self.client.head(bucket, key)?)
    }

    fn delete(&self, (bucket, key): Place<'_>) -> Result<()> {
        self.client.delete(bucket, key, Condition::None)?;
        Ok(())
    }

    fn copy(&self, from: Place<'_>, to: Place<'_>, headers: Option<Headers>) -> Result<Written> {
        let commit = headers.map(|headers| Commit {
            headers,
            ..Commit::default()
        });
        let always = ReadConditions::default();
        Ok(self
            .client
            .copy(from.0, from.1, always, to.0, to.1, commit)?)
    }

    fn create_upload(&self, (bucket, key): Place<'_>, headers: Headers) -> Result<String> {
        let options = MultipartOptions {
            headers,
            ..MultipartOptions::default()
        };
        Ok(self.client.create_multipart(bucket, key, options)?)
    }

    fn put_part(
        &self,
        (bucket, key): Place<'_>,
        part: &PartOf<'_>,
        options: &PutOptions,
        source: &mut Source<'_>,
    ) -> Result<Written> {
        let (size, md5) = (options.size.unwrap_or(0), options.content_md5);
        let mut body = Body::new(source);
        let (id, number) = (part.upload_id, part.number);
        let written = self
            .client
            .upload_part_from(bucket, key, id, number, size, &mut body, md5);
        body.end(written)
    }

    fn copy_part(
        &self,
        from: Place<'_>,
        span: Span,
        (bucket, key): Place<'_>,
        part: &PartOf<'_>,
    ) -> Result<Written> {
        let (id, number) = (part.upload_id, part.number);
        Ok(self
            .client
            .copy_part(from.0, from.1, range(span), bucket, key, id, number)?)
    }

    fn complete_upload(
        &self,
        (bucket, key): Place<'_>,
        upload_id: &str,
        parts: &[CompletedPart],
    ) -> Result<Written> {
        Ok(self
            .client
            .complete_multipart(bucket, key, upload_id, parts, Condition::None)?)
    }

    fn abort_upload(&self, (bucket, key): Place<'_>, upload_id: &str) -> Result<()> {
        Ok(self.client.abort_multipart(bucket, key, upload_id)?)
    }

    fn parts(
        &self,
        (bucket, key): Place<'_>,
        upload_id: &str,
        marker: u32,
        max_parts: usize,
    ) -> Result<PartListing> {
        Ok(self
            .client
            .list_parts(bucket, key, upload_id, marker, max_parts)?)
    }

    fn uploads(&self, bucket: &str, request: &ListUploadsRequest<'_>) -> Result<UploadListing> {
        Ok(self.client.list_uploads(bucket, request)?)
    }
}
