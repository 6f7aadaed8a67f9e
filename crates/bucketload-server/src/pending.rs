//! A request whose body is being received: where the body goes, and the response once it is complete.

use super::body::BodyReader;
use super::checks::Checks;
use super::error::{Code, S3Error, S3Result};
use super::ops::archive::Archive;
use super::ops::grants::Asked;
use super::ops::sse::Encryption;
use super::ops::{
    Ctx, acl, append, bucket, config, delete, form, lock, multipart, restore, tagging,
};
use super::respond::Body;
use super::router::Operation;
use super::thread::{RequestBuffers, ServerState, Thread};
use bucketload_store::{
    Checksum, Commit, Condition, ObjectInfo, ObjectUpload, PartUpload, Written,
};

/// Largest accepted request document, in bytes. A completion of 10 000 parts with checksums fits.
const MAX_DOCUMENT: usize = 8 << 20;

/// A response to send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) body: Body,
    /// The requested operation, if known.
    pub(crate) operation: Option<Operation>,
    /// Close the connection afterwards.
    pub(crate) close: bool,
    /// The client may still be sending bytes that nobody will read.
    pub(crate) linger: bool,
    /// Rate limit of the body, in bytes per second.
    pub(crate) rate: Option<u64>,
    /// Send `100 Continue` before the response: the client asked for it although its body is empty.
    /// Clients that keep the connection after a final response without one (botocore does) misread
    /// the next response.
    pub(crate) continue_first: bool,
}

impl Reply {
    /// This reply with `body`.
    pub(super) fn with(self, body: Body) -> Self {
        Self { body, ..self }
    }

    /// This reply with `body`, as the last one on its connection while the client may still send.
    pub(super) fn last(self, body: Body) -> Self {
        Self {
            body,
            close: true,
            linger: true,
            ..self
        }
    }
}

/// A request whose body is being received.
pub(crate) struct Pending {
    /// The response so far: everything but its body.
    pub(super) reply: Reply,
    pub(super) reader: BodyReader,
    pub(super) checks: Checks,
    pub(super) sink: Sink,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
}

/// Where a body goes.
pub(super) enum Sink {
    Object {
        upload: Box<dyn ObjectUpload>,
        commit: Commit,
        encryption: Encryption,
        /// Whether the request would append if there were an object.
        creates: bool,
    },
    /// To the end of an object.
    Appended {
        upload: Box<dyn ObjectUpload>,
        base: Box<ObjectInfo>,
    },
    /// Into the objects that an archive holds.
    Archive(Box<Archive>),
    Part {
        upload: Box<dyn PartUpload>,
        encryption: Encryption,
    },
    /// Nowhere: the store accepted it unseen.
    Unseen(Written),
    /// Into the request's input buffer.
    Document {
        content_md5: Option<[u8; 16]>,
        purpose: Purpose,
    },
    /// Nowhere: the response is already decided.
    Answered(Body),
}

/// What a request document is for.
pub(super) enum Purpose {
    DeleteMany {
        bypass: bool,
    },
    Complete {
        condition: Condition,
        announced: Option<Checksum>,
    },
    Tagging,
    Restore,
    MakeBucket {
        locked: bool,
        asked: Option<Asked>,
        ownership: Option<&'static str>,
    },
    Acl {
        asked: Option<Asked>,
    },
    BucketConfig,
    Form {
        boundary: String,
        /// Scheme and host of the request's URL.
        origin: String,
    },
    ObjectLock {
        bypass: bool,
    },
}

/// Renders the response to a failed request.
pub(super) fn render(buffers: &mut RequestBuffers, error: &S3Error, with_body: bool) -> Body {
    buffers.head.error(
        &mut buffers.document,
        error,
        buffers.target.path(),
        with_body,
    )
}

/// The context of an operation, borrowed from the buffers.
pub(super) fn context<'a>(server: &'a ServerState, buffers: &'a mut RequestBuffers) -> Ctx<'a> {
    Ctx {
        server,
        target: &buffers.target,
        head: &mut buffers.head,
        document: &mut buffers.document,
        object_bytes: &mut buffers.object_bytes,
    }
}

impl Pending {
    /// Whether the body is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.reader.is_done()
    }

    /// The rate at which to receive the body, in bytes per second.
    pub(crate) fn rate(&self) -> Option<u64> {
        self.reply.rate
    }

    /// See [`BodyReader::plain_rest`].
    pub(crate) fn plain_rest(&self) -> Option<u64> {
        self.reader.plain_rest()
    }

    /// Whether the bytes still to come are ignored.
    pub(crate) fn is_blind(&self) -> bool {
        let unseen = matches!(self.sink, Sink::Unseen(_) | Sink::Answered(_));
        (unseen && self.checks.is_empty()) || self.reader.has_failed()
    }

    /// Records that the plain rest was discarded.
    pub(crate) fn skip_rest(&mut self, thread: &Thread) {
        thread
            .counters()
            .bytes_in
            .add(self.reader.plain_rest().unwrap_or(0));
        self.reader.skip_rest();
    }

    /// Consumes a piece of the body. Returns how many bytes were consumed.
    ///
    /// # Errors
    /// As [`BodyReader::feed`]: the connection is no longer usable.
    pub(crate) fn feed(
        &mut self,
        thread: &Thread,
        buffers: &mut RequestBuffers,
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
                Sink::Object { upload, .. } | Sink::Appended { upload, .. } => {
                    Ok(upload.write(data)?)
                }
                Sink::Archive(archive) => {
                    archive.write(&*thread.server.store, buffers.target.bucket(), data)
                }
                Sink::Part { upload, .. } => Ok(upload.write(data)?),
                Sink::Document { .. } if buffers.input.len() + data.len() > MAX_DOCUMENT => {
                    Err(Code::MaxMessageLengthExceeded.into())
                }
                Sink::Document { .. } => {
                    buffers.input.extend_from_slice(data);
                    Ok(())
                }
                Sink::Unseen(_) | Sink::Answered(_) => Ok(()),
            }
        })?;
        thread.counters().bytes_in.add(used as u64);
        Ok(used)
    }

    /// The response to a body with broken framing.
    pub(crate) fn give_up(self, buffers: &mut RequestBuffers, error: &S3Error) -> Reply {
        self.reply.last(render(buffers, error, true))
    }

    /// Checks and commits the received body.
    pub(crate) fn finish(self, thread: &Thread, buffers: &mut RequestBuffers) -> Reply {
        let reply = self.reply;
        let body = match self.complete(&thread.server, buffers) {
            Ok(body) => body,
            Err(error) => render(buffers, &error, true),
        };
        reply.with(body)
    }

    fn complete(self, server: &ServerState, buffers: &mut RequestBuffers) -> S3Result<Body> {
        if let Sink::Answered(body) = self.sink {
            return Ok(body);
        }
        let trailers = self.reader.finish()?;
        let sums: Vec<_> = self.checks.finish(&trailers)?.into_iter().collect();
        let (written, encryption) = match self.sink {
            Sink::Object {
                upload,
                mut commit,
                encryption,
                creates,
            } => {
                commit.checksums.clone_from(&sums);
                let written = context(server, buffers).commit(upload, commit);
                let written = match creates {
                    true => written.map_err(append::overtaken)?,
                    false => written?,
                };
                (written, encryption)
            }
            Sink::Appended { upload, base } => {
                let ctx = &mut context(server, buffers);
                append::finish(ctx, upload, &base, sums.first())?;
                return Ok(Body::Empty);
            }
            Sink::Archive(archive) => {
                archive.finish()?;
                buffers.head.start(200).checksums(&sums);
                return Ok(Body::Empty);
            }
            Sink::Part { upload, encryption } => (upload.commit(sums.clone())?, encryption),
            Sink::Unseen(written) => (written, Encryption::default()),
            Sink::Document {
                content_md5,
                purpose,
            } => {
                let input = std::mem::take(&mut buffers.input);
                let outcome = document(&mut context(server, buffers), &input, content_md5, purpose);
                buffers.input = input;
                return outcome;
            }
            Sink::Answered(_) => unreachable!("handled above"),
        };
        let head = &mut buffers.head;
        head.start(200).etag(written.etag).checksums(&sums);
        head.written(written.version);
        encryption.write(head);
        Ok(Body::Empty)
    }
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
        Purpose::DeleteMany { bypass } => delete::many(ctx, input, bypass),
        Purpose::Complete {
            condition,
            announced,
        } => multipart::complete(ctx, input, &condition, announced.as_ref()),
        Purpose::Tagging => tagging::put(ctx, input),
        Purpose::Restore => restore::object(ctx, input),
        Purpose::MakeBucket {
            locked,
            asked,
            ownership,
        } => bucket::create(ctx, input, locked, asked, ownership),
        Purpose::Acl { asked } => acl::put(ctx, asked, input),
        Purpose::Form { boundary, origin } => form::post(ctx, input, &boundary, &origin),
        Purpose::BucketConfig => config::put(ctx, input),
        Purpose::ObjectLock { bypass } => lock::put(ctx, input, bypass),
    }
}
