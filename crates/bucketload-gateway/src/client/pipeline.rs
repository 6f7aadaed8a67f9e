//! Several small requests in one go: they are sent together and answered together, so that a batch costs one round
//! trip instead of one each.

use bucketload_store::{Commit, Condition, ObjectInfo, ReadConditions, Written};

use super::calls::{Client, finish};
use super::connection::Answer;
use super::error::{Error, Result};
use super::pool::Lease;
use crate::protocol::codec::Malformed;
use crate::protocol::request::{ByteRange, Name, Request, Way};
use crate::protocol::{FileOpening, HEADER_BYTES, SMALL_BODY};

/// Most bytes that are sent before answers are read. The sockets' own buffers hold that much, so that client and
/// gateway never wait for each other.
const WINDOW_BYTES: usize = 32 << 10;
/// Most requests that are sent before answers are read.
const WINDOW: usize = 128;

/// The result of one request of a pipeline.
#[derive(Debug)]
pub enum Reply {
    /// Of [`Pipeline::head`].
    Info(ObjectInfo),
    /// Of [`Pipeline::delete`]: whether there was one.
    Deleted(bool),
    /// Of [`Pipeline::put`].
    Written(Written),
    /// Of [`Pipeline::get`]: the object, and the bytes of it that were asked for.
    Object(ObjectInfo, Vec<u8>),
    /// Of [`Pipeline::get`]: there are more than 64 KiB of them.
    TooLarge,
}

#[derive(Clone, Copy, Debug)]
enum Asked {
    Head,
    Delete,
    Put,
    Get,
}

/// Requests that are sent together. Answers come in their order; one that fails does not keep the others from being
/// carried out. A client's time limit holds for each batch of at most 128 requests and 32 KiB.
#[derive(Debug)]
pub struct Pipeline<'c> {
    client: &'c Client,
    lease: Option<Lease>,
    bytes: usize,
    asked: Vec<Asked>,
    replies: Vec<Result<Reply>>,
}

impl<'c> Pipeline<'c> {
    pub(super) const fn new(client: &'c Client) -> Self {
        Self {
            client,
            lease: None,
            bytes: 0,
            asked: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Asks for information about an object.
    ///
    /// # Errors
    /// When a batch was full and the gateway cannot be talked to: see [`Error`]. The pipeline is of no use then.
    pub fn head(&mut self, bucket: &str, key: &str) -> Result<()> {
        let request = Request::Head(Name { bucket, key }, ReadConditions::default());
        self.push(&request, Asked::Head, &[])
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// As [`Pipeline::head`].
    pub fn delete(&mut self, bucket: &str, key: &str) -> Result<()> {
        let request = Request::Delete(Name { bucket, key }, Condition::None);
        self.push(&request, Asked::Delete, &[])
    }

    /// Writes an object. A large one is a batch by itself.
    ///
    /// # Errors
    /// As [`Pipeline::head`].
    pub fn put(&mut self, bucket: &str, key: &str, body: &[u8], commit: Commit) -> Result<()> {
        let request = Request::Put(Name { bucket, key }, None, commit);
        self.push(&request, Asked::Put, body)
    }

    /// Reads an object or a range of it, if that is small. The bytes are kept until the end: whoever asks for
    /// thousands should ask for them in several pipelines.
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
        let request = Request::Get(Name { bucket, key }, range, conditions, Way::SmallBody);
        self.push(&request, Asked::Get, &[])
    }

    /// Sends what has not been sent and returns all results, in the order of the requests.
    ///
    /// # Errors
    /// As [`Pipeline::head`]; what was asked for may or may not have happened.
    pub fn finish(mut self) -> Result<Vec<Result<Reply>>> {
        self.exchange()?;
        Ok(std::mem::take(&mut self.replies))
    }

    fn push(&mut self, request: &Request<'_>, asked: Asked, body: &[u8]) -> Result<()> {
        let mut head = Vec::new();
        request.encode(&mut head);
        let bytes = HEADER_BYTES + head.len() + body.len();
        if self.asked.len() >= WINDOW || (self.bytes > 0 && self.bytes + bytes > WINDOW_BYTES) {
            self.exchange()?;
        }
        if self.lease.is_none() {
            self.lease = Some(self.client.lease()?);
        }
        if let Some(lease) = &mut self.lease {
            lease.push(request, body.len() as u64)?;
            lease.push_bytes(body);
        }
        self.asked.push(asked);
        self.bytes += bytes;
        Ok(())
    }

    /// Sends the batch and reads its answers.
    fn exchange(&mut self) -> Result<()> {
        let Some(mut lease) = self.lease.take() else {
            return Ok(());
        };
        self.bytes = 0;
        let asked = std::mem::take(&mut self.asked);
        let sent = lease.flush();
        lease.keep_or_close(sent)?;
        for asked in asked {
            let reply = match lease.receive() {
                Err(error) => Err(error),
                Ok(answer) => match asked {
                    Asked::Head => finish(&mut lease, &answer).map(Reply::Info),
                    Asked::Delete => finish(&mut lease, &answer).map(Reply::Deleted),
                    Asked::Put => finish(&mut lease, &answer).map(Reply::Written),
                    Asked::Get => read_small(&mut lease, &answer),
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

/// Reads the answer to `GetSmall`.
fn read_small(lease: &mut Lease, answer: &Answer) -> Result<Reply> {
    let head = Answer { body: 0, ..*answer };
    let ((info, _), elsewhere): FileOpening = finish(lease, &head)?;
    match (elsewhere, answer.body) {
        (None, length @ 0..=SMALL_BODY) => {
            let mut bytes = vec![0; length as usize];
            let mut done = 0;
            while done < bytes.len() {
                done += lease.read_body(&mut bytes[done..], length - done as u64)?;
            }
            Ok(Reply::Object(info, bytes))
        }
        (Some(_), 0) => Ok(Reply::TooLarge),
        _ => Err(Malformed("a body that is not small").into()),
    }
}

impl Drop for Pipeline<'_> {
    fn drop(&mut self) {
        // Requests in the buffer that were never sent must not be taken for sent ones.
        if let Some(lease) = &mut self.lease {
            lease.spoil();
        }
    }
}
