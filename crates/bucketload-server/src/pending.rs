//! A request under way: where its body goes, and the answer when it is complete.

use super::body::BodyReader;
use super::checks::Checks;
use super::error::{Code, S3Error, S3Result};
use super::ops::{Ctx, bucket, delete, multipart, object, restore, tagging};
use super::respond::Body;
use super::router::Operation;
use super::thread::{Shared, Thread, Work};
use bucketload_store::{Checksum, Commit, Condition, ObjectUpload, PartUpload, Written};

/// Largest document taken: a completion of 10 000 parts with checksums fits.
const MAX_DOCUMENT: usize = 8 << 20;

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// What follows the head.
    pub(crate) body: Body,
    /// What was asked for, as far as it is known.
    pub(crate) operation: Option<Operation>,
    /// End the connection afterwards.
    pub(crate) close: bool,
    /// The client may still be sending what nobody will read.
    pub(crate) linger: bool,
    /// Most bytes per second of the body.
    pub(crate) rate: Option<u64>,
    /// The client waits for leave to send a body that has no bytes: it gets it before the answer.
    /// Clients that keep a connection after a final answer to such a wait (botocore does) read the
    /// next one wrongly.
    pub(crate) leave: bool,
}

/// A request whose body is being received.
pub(crate) struct Pending {
    pub(super) reply: Envelope,
    pub(super) reader: BodyReader,
    pub(super) checks: Checks,
    pub(super) sink: Sink,
    /// The client waits for leave to send the body.
    pub(crate) expects_continue: bool,
}

/// What is known about the answer before its body.
#[derive(Clone, Copy, Default)]
pub(super) struct Envelope {
    pub(super) operation: Option<Operation>,
    pub(super) close: bool,
    pub(super) rate: Option<u64>,
    pub(super) leave: bool,
}

impl Envelope {
    pub(super) fn with(self, body: Body) -> Reply {
        Reply {
            body,
            operation: self.operation,
            close: self.close,
            linger: false,
            rate: self.rate,
            leave: self.leave,
        }
    }
}

/// Where a body goes.
pub(super) enum Sink {
    Object {
        upload: Box<dyn ObjectUpload>,
        commit: Commit,
    },
    Part {
        upload: Box<dyn PartUpload>,
    },
    /// Nowhere: the store has accepted it unseen.
    Unseen(Written),
    /// Into the work's input buffer.
    Document {
        content_md5: Option<[u8; 16]>,
        purpose: Purpose,
    },
    /// Nowhere: the answer is settled.
    Answered(Body),
}

/// What a document is for.
pub(super) enum Purpose {
    DeleteMany,
    Complete {
        condition: Condition,
        announced: Option<Checksum>,
    },
    Tagging,
    Restore,
    MakeBucket,
    Acl {
        canned: bool,
    },
}

/// Renders the answer to a request that failed.
pub(super) fn render(work: &mut Work, error: &S3Error, with_body: bool) -> Body {
    work.head
        .error(&mut work.document, error, work.target.path(), with_body)
}

/// What the operations work with.
pub(super) fn context<'a>(shared: &'a Shared, work: &'a mut Work) -> Ctx<'a> {
    Ctx {
        shared,
        target: &work.target,
        head: &mut work.head,
        document: &mut work.document,
        extract: &mut work.extract,
    }
}

impl Pending {
    /// Whether the body is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.reader.is_done()
    }

    /// Most bytes per second that are to be received.
    pub(crate) fn rate(&self) -> Option<u64> {
        self.reply.rate
    }

    /// Bytes still to come where nothing but their number is of interest to the framing.
    pub(crate) fn plain_rest(&self) -> Option<u64> {
        self.reader.plain_rest()
    }

    /// Whether nobody looks at the bytes that are still to come.
    pub(crate) fn is_blind(&self) -> bool {
        let unseen = matches!(self.sink, Sink::Unseen(_) | Sink::Answered(_));
        (unseen && self.checks.is_empty()) || self.reader.has_failed()
    }

    /// Notes that the plain rest has been dropped.
    pub(crate) fn skip_rest(&mut self, thread: &Thread) {
        thread
            .counters()
            .bytes_in
            .add(self.reader.plain_rest().unwrap_or(0));
        self.reader.skip_rest();
    }

    /// Takes a piece of the body; returns how much of it was consumed.
    ///
    /// # Errors
    /// As [`BodyReader::feed`]: the connection is of no further use.
    pub(crate) fn feed(
        &mut self,
        thread: &Thread,
        work: &mut Work,
        bytes: &[u8],
    ) -> S3Result<usize> {
        let Self {
            reader,
            checks,
            sink,
            ..
        } = self;
        let used = reader.feed(bytes, &mut |data| {
            checks.update(data);
            match sink {
                Sink::Object { upload, .. } => Ok(upload.write(data)?),
                Sink::Part { upload } => Ok(upload.write(data)?),
                Sink::Document { .. } if work.input.len() + data.len() > MAX_DOCUMENT => {
                    Err(Code::MaxMessageLengthExceeded.into())
                }
                Sink::Document { .. } => {
                    work.input.extend_from_slice(data);
                    Ok(())
                }
                Sink::Unseen(_) | Sink::Answered(_) => Ok(()),
            }
        })?;
        thread.counters().bytes_in.add(used as u64);
        Ok(used)
    }

    /// The answer to a body that cannot be followed to its end.
    pub(crate) fn give_up(self, work: &mut Work, error: &S3Error) -> Reply {
        let body = render(work, error, true);
        Reply {
            close: true,
            linger: true,
            ..self.reply.with(body)
        }
    }

    /// Checks and commits what was received.
    pub(crate) fn finish(self, thread: &Thread, work: &mut Work) -> Reply {
        let reply = self.reply;
        let body = match self.complete(&thread.shared, work) {
            Ok(body) => body,
            Err(error) => render(work, &error, true),
        };
        reply.with(body)
    }

    fn complete(self, shared: &Shared, work: &mut Work) -> S3Result<Body> {
        if let Sink::Answered(body) = self.sink {
            return Ok(body);
        }
        let trailers = self.reader.finish()?;
        let sum = self.checks.finish(&trailers)?;
        let input = std::mem::take(&mut work.input);
        let mut ctx = context(shared, work);
        let outcome = match self.sink {
            Sink::Object { upload, mut commit } => {
                let sums: Vec<_> = sum.into_iter().collect();
                commit.checksums.clone_from(&sums);
                ctx.commit(upload, commit)
                    .map(|written| stored(&mut ctx, &written, &sums))
            }
            Sink::Part { upload } => {
                let sums: Vec<_> = sum.into_iter().collect();
                let written = upload.commit(sums.clone()).map_err(S3Error::from);
                written.map(|written| stored(&mut ctx, &written, &sums))
            }
            Sink::Unseen(written) => Ok(stored(&mut ctx, &written, &[])),
            Sink::Document {
                content_md5,
                purpose,
            } => document(&mut ctx, &input, content_md5, purpose),
            Sink::Answered(_) => unreachable!("handled above"),
        };
        work.input = input;
        outcome
    }
}

fn stored(ctx: &mut Ctx<'_>, written: &Written, sums: &[Checksum]) -> Body {
    ctx.head.start(200).etag(written.etag);
    object::echo_checksums(ctx.head, sums);
    Body::Empty
}

fn document(
    ctx: &mut Ctx<'_>,
    input: &[u8],
    content_md5: Option<[u8; 16]>,
    purpose: Purpose,
) -> S3Result<Body> {
    use md5::Digest as _;
    if content_md5.is_some_and(|announced| announced != <[u8; 16]>::from(md5::Md5::digest(input))) {
        return Err(Code::BadDigest.into());
    }
    match purpose {
        Purpose::DeleteMany => delete::many(ctx, input),
        Purpose::Complete {
            condition,
            announced,
        } => multipart::complete(ctx, input, &condition, announced.as_ref()),
        Purpose::Tagging => tagging::put(ctx, input),
        Purpose::Restore => restore::object(ctx, input),
        Purpose::MakeBucket => bucket::create(ctx, input),
        Purpose::Acl { canned } => bucket::put_acl(ctx, canned),
    }
}
