//! Transfers object bytes between socket and store.
//!
//! Reads: a small object is sent together with its head; a file is sent by `sendfile`, directly from the page cache;
//! other objects are sent from memory without a copy. Writes: bytes are received into one buffer that stays in the
//! processor's cache, or moved within the kernel (`splice`) if the store need not see them.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};

use bucketload_store::{
    Commit, Object, ObjectUpload, PartUpload, PutOptions, Result, Store, StoreError, Write, Written,
};
use rustix::io::Errno;

use super::connection::{Connection, ConnectionEnd};
use super::perform::{push, push_error};
use super::replies::ReplyBuffer;
use super::splice::Splice;
use crate::protocol::codec::Value as _;
use crate::protocol::request::{Name, ReadMode, Request, UploadName};
use crate::protocol::{Header, Outcome, SMALL_BODY};
use crate::socket::Socket;

/// Maximum size of a body that is sent with its head, bytes: copying it costs less than a second call.
const MAX_COPIED: u64 = 64 << 10;
/// Minimum number of remaining bytes for `splice`.
const MIN_SPLICED: u64 = 128 << 10;
/// Size of the receive buffer for large bodies, bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// Sends bytes `range` of an object. `carries_files`: the socket can pass a file to the client.
pub(super) fn send_object(
    socket: &Socket,
    replies: &mut ReplyBuffer,
    sequence: u32,
    object: &Object,
    range: Range<u64>,
    mode: ReadMode,
    carries_files: bool,
) -> std::result::Result<(), ConnectionEnd> {
    let size = range.end - range.start;
    // A `GetHead`, or for modes other than `Body` a `GetFileHead`.
    let opening = |by_file: Option<Option<u64>>| {
        move |out: &mut Vec<u8>| {
            object.info().put(out);
            range.start.put(out);
            if let Some(by_file) = by_file {
                by_file.put(out);
            }
        }
    };
    if mode == ReadMode::File
        && carries_files
        && size > MAX_COPIED
        && let Some(file) = object.file_descriptor()
    {
        replies.flush(socket, false)?;
        replies.push(Outcome::Done, sequence, 0, opening(Some(Some(size))));
        return Ok(replies.flush_with_file(socket, file)?);
    }
    if mode == ReadMode::SmallBody && size > SMALL_BODY {
        replies.push(Outcome::Done, sequence, 0, opening(Some(Some(size))));
        return Ok(());
    }
    let before = replies.buffer().len();
    let by_file = (mode != ReadMode::Body).then_some(None);
    replies.push(Outcome::Done, sequence, size, opening(by_file));
    if size <= MAX_COPIED {
        let buffer = replies.buffer();
        let at = buffer.len();
        buffer.resize(at + size as usize, 0);
        let read = object.read_at(range.start, &mut buffer[at..]);
        let problem = match read {
            Ok(count) if count as u64 == size => return Ok(()),
            // The file was truncated meanwhile.
            Ok(_) => StoreError::Io {
                context: "reading an object",
                source: io::ErrorKind::UnexpectedEof.into(),
            },
            Err(error) => error,
        };
        buffer.truncate(before);
        push_error(replies, sequence, &problem);
        return Ok(());
    }
    replies.flush(socket, true)?;
    match object.file_descriptor() {
        Some(fd) => send_file(socket, fd, range)?,
        None => send_chunks(socket, object, range)?,
    }
    Ok(())
}

/// Sends bytes of a file by `sendfile`. On failure the connection must be closed, because the head has already
/// announced the bytes.
fn send_file(socket: &Socket, fd: BorrowedFd<'_>, range: Range<u64>) -> io::Result<()> {
    let mut offset = range.start;
    while offset < range.end {
        let want = usize::try_from(range.end - offset)
            .unwrap_or(usize::MAX)
            .min(1 << 30);
        match rustix::fs::sendfile(socket, fd, Some(&mut offset), want) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn send_chunks(socket: &Socket, object: &Object, range: Range<u64>) -> io::Result<()> {
    let mut offset = range.start;
    while offset < range.end {
        let mut chunk = object.chunk(offset).ok_or(io::ErrorKind::UnexpectedEof)?;
        chunk.truncate(usize::try_from(range.end - offset).unwrap_or(usize::MAX));
        offset += chunk.len() as u64;
        socket.send(&chunk, offset < range.end)?;
    }
    Ok(())
}

/// An object or a part being written.
pub(super) enum Upload {
    Object(Box<dyn ObjectUpload>, Commit),
    Part(Box<dyn PartUpload>),
}

impl Upload {
    /// Begins the write that `request` describes, of `size` bytes.
    pub(super) fn begin(store: &dyn Store, size: u64, request: Request<'_>) -> Result<Self> {
        let options = |content_md5| PutOptions {
            size: Some(size),
            content_md5,
        };
        match request {
            Request::Put(Name { bucket, key }, md5, commit) => store
                .put(bucket, key, &options(md5))
                .map(|upload| Self::Object(upload, commit)),
            Request::UploadPart(UploadName { name, upload_id }, number, md5) => store
                .upload_part(name.bucket, name.key, upload_id, number, &options(md5))
                .map(Self::Part),
            _ => unreachable!("requests without a body are answered"),
        }
    }

    /// The writer for its bytes.
    pub(super) fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Object(upload, _) => &mut **upload,
            Self::Part(upload) => &mut **upload,
        }
    }

    pub(super) fn commit(self) -> Result<Written> {
        match self {
            Self::Object(upload, commit) => upload.commit(commit),
            Self::Part(upload) => upload.commit(Vec::new()),
        }
    }
}

impl Connection<'_> {
    /// Performs a write whose body has not been received completely.
    pub(super) fn write(
        &mut self,
        header: &Header,
        request: Request<'_>,
    ) -> std::result::Result<(), ConnectionEnd> {
        let mut upload = Upload::begin(&*self.state.store, header.body, request);
        let received = self.receive(header.body, upload.as_mut().ok().map(Upload::writer))?;
        let written = received.and_then(|()| upload?.commit());
        self.has_written = written.is_ok();
        push(&mut self.replies, header.sequence, &written);
        Ok(())
    }

    /// Receives `size` bytes into `upload`. After an error, or without an upload, it receives and drops them, so that
    /// the next request can be read.
    fn receive(
        &mut self,
        size: u64,
        mut upload: Option<&mut (dyn Write + '_)>,
    ) -> std::result::Result<Result<()>, ConnectionEnd> {
        let mut result = Ok(());
        let buffered = self.incoming.bytes();
        let first = usize::try_from(size)
            .unwrap_or(usize::MAX)
            .min(buffered.len());
        if first > 0 {
            write(&mut upload, &mut result, &buffered[..first]);
            self.incoming.consume(first);
        }
        let mut left = size - first as u64;
        if left > 0 {
            self.replies.flush(self.socket, false)?;
        }
        if left >= MIN_SPLICED && self.state.is_tcp() {
            let (taken, stored) = self.splice(left, &mut upload)?;
            left -= taken;
            if let Err(error) = stored {
                result = Err(error);
                upload = None;
            }
        }
        if left > 0 {
            self.piece.resize(BUFFER_BYTES, 0);
        }
        while left > 0 {
            let max = usize::try_from(left)
                .unwrap_or(BUFFER_BYTES)
                .min(BUFFER_BYTES);
            match self.socket.receive(&mut self.piece[..max])? {
                0 => return Err(ConnectionEnd::Socket),
                count => {
                    write(&mut upload, &mut result, &self.piece[..count]);
                    left -= count as u64;
                }
            }
        }
        Ok(result)
    }

    /// Moves up to `size` bytes into the file of `upload`, if it has one and the store need not see the bytes. Returns
    /// the number of bytes taken from the socket.
    fn splice(
        &mut self,
        size: u64,
        upload: &mut Option<&mut (dyn Write + '_)>,
    ) -> std::result::Result<(u64, Result<()>), ConnectionEnd> {
        let Some(upload) = upload else {
            return Ok((0, Ok(())));
        };
        let mut taken = 0;
        while taken < size {
            let Some(file) = upload.file() else {
                break;
            };
            let pipe = match &self.splice {
                Some(pipe) => pipe,
                None => self.splice.insert(Splice::new()?),
            };
            let moved = pipe.step(self.socket.as_fd(), file, size - taken)?;
            if moved.taken == 0 {
                return Err(ConnectionEnd::Socket);
            }
            taken += moved.taken;
            let stored = moved.stored.and_then(|()| upload.appended(moved.taken));
            if stored.is_err() {
                // Drops the pipe with the bytes left in it.
                self.splice = None;
                return Ok((taken, stored));
            }
        }
        Ok((taken, Ok(())))
    }
}

/// Writes bytes, unless an earlier write failed.
fn write(upload: &mut Option<&mut (dyn Write + '_)>, result: &mut Result<()>, bytes: &[u8]) {
    if let Some(writer) = upload
        && let Err(error) = writer.write(bytes)
    {
        *result = Err(error);
        *upload = None;
    }
}
