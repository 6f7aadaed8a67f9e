//! Batches of small requests: they are sent together and answered together, so a batch costs one round trip.

use bucketload_store::{Commit, Condition, ObjectInfo, ReadConditions, Written};

use super::calls::{Client, finish};
use super::connection::Answer;
use super::error::{Error, Result};
use super::pool::Lease;
use crate::protocol::codec::Malformed;
use crate::protocol::request::{ByteRange, Name, ReadMode, Request};
use crate::protocol::{GetFileHead, HEADER_BYTES, SMALL_BODY};

/// Maximum number of bytes sent before answers are read. The socket buffers hold that much, so client and gateway never
/// wait for each other.
const WINDOW_BYTES: usize = 32 << 10;
/// Maximum number of requests sent before answers are read.
const WINDOW: usize = 128;

/// The result of one request of a pipeline.
#[derive(Debug)]
pub enum Reply {
    /// Result of [`Pipeline::head`].
    Info(ObjectInfo),
    /// Result of [`Pipeline::delete`]: whether the object existed.
    Deleted(bool),
    /// Result of [`Pipeline::put`].
    Written(Written),
    /// Result of [`Pipeline::get`]: the object, and the requested bytes.
    Object(ObjectInfo, Vec<u8>),
    /// Result of [`Pipeline::get`]: the requested bytes are more than 64 KiB.
    TooLarge,
}

#[derive(Clone, Copy, Debug)]
enum RequestKind {
    Head,
    Delete,
    Put,
    Get,
}

/// Requests that are sent together. Results come in the order of the requests, and a failed request does not stop the
/// others. The client's time limit applies to each batch of at most 128 requests and 32 KiB.
#[derive(Debug)]
pub struct Pipeline<'c> {
    client: &'c Client,
    lease: Option<Lease>,
    bytes: usize,
    kinds: Vec<RequestKind>,
    replies: Vec<Result<Reply>>,
}

impl<'c> Pipeline<'c> {
    pub(super) const fn new(client: &'c Client) -> Self {
        Self {
            client,
            lease: None,
            bytes: 0,
            kinds: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Requests information about an object.
    ///
    /// # Errors
    /// When a batch is full and sending it fails: see [`Error`]. The pipeline cannot be used afterwards.
    pub fn head(&mut self, bucket: &str, key: &str) -> Result<()> {
        let request = Request::Head(Name { bucket, key }, ReadConditions::default());
        self.push(&request, RequestKind::Head, &[])
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// As [`Pipeline::head`].
    pub fn delete(&mut self, bucket: &str, key: &str) -> Result<()> {
        let request = Request::Delete(Name { bucket, key }, Condition::None);
        self.push(&request, RequestKind::Delete, &[])
    }

    /// Writes an object. A large object forms a batch by itself.
    ///
    /// # Errors
    /// As [`Pipeline::head`].
    pub fn put(&mut self, bucket: &str, key: &str, body: &[u8], commit: Commit) -> Result<()> {
        let request = Request::Put(Name { bucket, key }, None, commit);
        self.push(&request, RequestKind::Put, body)
    }

    /// Reads an object or a range of it, if it is small. The bytes are kept until [`Pipeline::finish`], so thousands of
    /// reads should be divided among several pipelines.
    ///
    /// # Errors
    /// As [`Pipeline::head`].
    pub fn get(
        &mut self,
        bucket: &str,
        key: &str,
        range: Option<ByteRange>,
        conditions: ReadConditions,
    ) -> Result<()> {
        let request = Request::Get(Name { bucket, key }, range, conditions, ReadMode::SmallBody);
        self.push(&request, RequestKind::Get, &[])
    }

    /// Sends the rest and returns all results, in the order of the requests.
    ///
    /// # Errors
    /// As [`Pipeline::head`]; the requests may or may not have been carried out.
    pub fn finish(mut self) -> Result<Vec<Result<Reply>>> {
        self.exchange()?;
        Ok(std::mem::take(&mut self.replies))
    }

    fn push(&mut self, request: &Request<'_>, kind: RequestKind, body: &[u8]) -> Result<()> {
        let mut head = Vec::new();
        request.encode(&mut head);
        let bytes = HEADER_BYTES + head.len() + body.len();
        if self.kinds.len() >= WINDOW || (self.bytes > 0 && self.bytes + bytes > WINDOW_BYTES) {
            self.exchange()?;
        }
        if self.lease.is_none() {
            self.lease = Some(self.client.lease()?);
        }
        if let Some(lease) = &mut self.lease {
            lease.push(request, body.len() as u64)?;
            lease.push_bytes(body);
        }
        self.kinds.push(kind);
        self.bytes += bytes;
        Ok(())
    }

    /// Sends the batch and reads its answers.
    fn exchange(&mut self) -> Result<()> {
        let Some(mut lease) = self.lease.take() else {
            return Ok(());
        };
        self.bytes = 0;
        let kinds = std::mem::take(&mut self.kinds);
        let sent = lease.flush();
        lease.keep_or_close(sent)?;
        for kind in kinds {
            let reply = match lease.receive() {
                Err(error) => Err(error),
                Ok(answer) => match kind {
                    RequestKind::Head => finish(&mut lease, &answer).map(Reply::Info),
                    RequestKind::Delete => finish(&mut lease, &answer).map(Reply::Deleted),
                    RequestKind::Put => finish(&mut lease, &answer).map(Reply::Written),
                    RequestKind::Get => read_small(&mut lease, &answer),
                },
            };
            match lease.keep_or_close(reply) {
                Err(error) if !matches!(error, Error::Store(_) | Error::NotModified) => {
                    return Err(error);
                }
                reply => self.replies.push(reply),
            }
        }
        Ok(())
    }
}

/// Reads the answer to a `GetSmall`.
fn read_small(lease: &mut Lease, answer: &Answer) -> Result<Reply> {
    let head = Answer { body: 0, ..*answer };
    let ((info, _), left_out): GetFileHead = finish(lease, &head)?;
    match (left_out, answer.body) {
        (None, length @ 0..=SMALL_BODY) => {
            let mut bytes = vec![0; length as usize];
            let mut done = 0;
            while done < bytes.len() {
                done += lease.read_body(&mut bytes[done..], length - done as u64)?;
            }
            Ok(Reply::Object(info, bytes))
        }
        (Some(_), 0) => Ok(Reply::TooLarge),
        _ => Err(Malformed("a body larger than allowed").into()),
    }
}

impl Drop for Pipeline<'_> {
    fn drop(&mut self) {
        // The buffer holds requests that were never sent, so the connection cannot be reused.
        if let Some(lease) = &mut self.lease {
            lease.close();
        }
    }
}
