//! How a store behind a gateway, over TCP or a Unix socket, gets and gives the bytes of objects.

use std::io::{self, Read};

use bucketload_gateway::{ByteRange, Client, Error, Reply};
use bucketload_store::Written;

use super::{
    Answer, Conditions, PIECE_BYTES, Place, Result, Sink, Small, Source, Span, with_buffer,
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

/// The bytes of a request as the client reads them: in the pieces that libs3 offers. Keeps why the
/// source failed.
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

    /// The result of the write, or why the source failed.
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

/// The range of a span; `None` is the whole object.
pub(super) fn range(span: Span) -> Option<ByteRange> {
    (span != Span { start: 0, count: 0 }).then_some(ByteRange {
        start: span.start,
        length: (span.count > 0).then_some(span.count),
    })
}

/// Sends requests together; see [`super::Backend::together`].
pub(super) fn together(client: &Client, asked: Vec<Small<'_>>) -> Vec<Result<Answer>> {
    let count = asked.len();
    let mut pipeline = client.pipeline();
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

/// Reads an object under conditions.
pub(super) fn get(
    client: &Client,
    (bucket, key): Place<'_>,
    conditions: &Conditions,
    span: Span,
    sink: &mut dyn Sink,
) -> Result<()> {
    if conditions.never {
        // The store is asked all the same: a missing object is another failure.
        client.head(bucket, key)?;
        return Err(conditions.unmet());
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
