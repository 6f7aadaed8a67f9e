//! Reading and writing the bytes of objects in a store behind a gateway, over TCP or a Unix socket.

use std::io::{self, Read};

use bucketload_gateway::{ByteRange, Client, Error, Reply};
use bucketload_store::Written;

use super::{
    BatchRequest, BatchResult, Conditions, ObjectName, PIECE_BYTES, Result, Sink, Source, Span,
    with_buffer,
};
use crate::reply::Failure;
use crate::status::Status;

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
        Failure::new(status, error.to_string())
    }
}

/// A request body for the gateway client, read in pieces of the size that libs3 uses. Keeps the failure
/// of the source.
pub(super) struct Body<'a, 'b> {
    source: &'a mut Source<'b>,
    failure: Option<Failure>,
}

impl<'a, 'b> Body<'a, 'b> {
    pub(super) fn new(source: &'a mut Source<'b>) -> Self {
        Self {
            source,
            failure: None,
        }
    }

    /// The result of the write, or the failure of the source.
    pub(super) fn end(self, result: bucketload_gateway::Result<Written>) -> Result<Written> {
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

/// The range of a span; `None` means the whole object.
pub(super) fn range(span: Span) -> Option<ByteRange> {
    (span != Span { start: 0, count: 0 }).then_some(ByteRange {
        start: span.start,
        length: (span.count > 0).then_some(span.count),
    })
}

/// Sends a batch; see [`super::Backend::send_batch`].
pub(super) fn send_batch(
    client: &Client,
    requests: Vec<BatchRequest<'_>>,
) -> Vec<Result<BatchResult>> {
    let count = requests.len();
    let mut pipeline = client.pipeline();
    let pushed = requests.into_iter().try_for_each(|small| match small {
        BatchRequest::Put((bucket, key), body, commit) => pipeline.put(bucket, key, body, commit),
        BatchRequest::Get((bucket, key), conditions, span) => {
            pipeline.get(bucket, key, range(span), conditions)
        }
        BatchRequest::Head((bucket, key)) => pipeline.head(bucket, key),
        BatchRequest::Delete((bucket, key)) => pipeline.delete(bucket, key),
    });
    let replies = match pushed.and_then(|()| pipeline.finish()) {
        Ok(replies) => replies,
        Err(error) => {
            let failure = Failure::from(error);
            return std::iter::repeat_n(failure, count).map(Err).collect();
        }
    };
    let results = replies.into_iter().map(|reply| {
        Ok(match reply? {
            Reply::Written(written) => BatchResult::Written(written),
            Reply::Object(info, bytes) => BatchResult::Bytes(info, bytes),
            Reply::TooLarge => BatchResult::TooLarge,
            Reply::Info(info) => BatchResult::Info(info),
            Reply::Deleted(_) => BatchResult::Deleted,
        })
    });
    results.collect()
}

/// Reads an object, subject to conditions.
pub(super) fn get(
    client: &Client,
    (bucket, key): ObjectName<'_>,
    conditions: &Conditions,
    span: Span,
    sink: &mut dyn Sink,
) -> Result<()> {
    if conditions.never {
        // Asks the store anyway, because a missing object is a different failure.
        client.head(bucket, key)?;
        return Err(super::condition_failed());
    }
    let mut download = client.get(bucket, key, range(span), conditions.read.clone())?;
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
