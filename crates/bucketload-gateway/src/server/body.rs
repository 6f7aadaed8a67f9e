//! The bytes of objects, between socket and store.
//!
//! Out: a small object leaves with its head in one piece; the bytes of a file go by `sendfile`, which hands the
//! page cache's own pages to the socket; others are sent from where they lie. In: bytes are received into one
//! buffer that stays in the processor's cache and written from there, or moved within the kernel (`splice`) where
//! the store does not look at them.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};

use bucketload_store::{
    Commit, Object, ObjectUpload, PartUpload, PutOptions, Result, Store, StoreError, Write, Written,
};
use rustix::io::Errno;

use super::connection::{Connection, End};
use super::output::Output;
use super::perform::{push, push_error};
use super::splice::Splice;
use crate::protocol::codec::Value as _;
use crate::protocol::request::{Name, Request, UploadName};
use crate::protocol::{Header, Outcome, SMALL_BODY};
use crate::socket::Socket;

/// Bodies up to this leave with their head: a copy of it costs less than a second call.
const COPIED: u64 = 64 << 10;
/// Bytes to come from which on they are moved within the kernel, where they can be.
const SPLICED: u64 = 128 << 10;
/// Size of the buffer for what is received.
const PIECE: usize = 256 << 10;

/// How the client gets the bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Body,
    /// It would take the file, which it cannot get.
    BodyNotFile,
    /// By the file, if there is one and the bytes are many.
    File,
    /// Not at all if they are many.
    SmallBody,
}

/// Sends bytes `range` of an object.
pub(super) fn send_object(
    socket: &Socket,
    output: &mut Output,
    sequence: u32,
    object: &Object,
    range: Range<u64>,
    way: By,
) -> std::result::Result<(), End> {
    let size = range.end - range.start;
    // An `Opening`, or with what may come as a file a `FileOpening`.
    let opening = |by_file: Option<Option<u64>>| {
        move |out: &mut Vec<u8>| {
            object.info().put(out);
            range.start.put(out);
            if let Some(by_file) = by_file {
                by_file.put(out);
            }
        }
    };
    if way == By::File
        && size > COPIED
        && let Some(file) = object.file_descriptor()
    {
        output.flush(socket, false)?;
        output.push(Outcome::Done, sequence, 0, opening(Some(Some(size))));
        return Ok(output.flush_with_file(socket, file)?);
    }
    if way == By::SmallBody && size > SMALL_BODY {
        output.push(Outcome::Done, sequence, 0, opening(Some(Some(size))));
        return Ok(());
    }
    let before = output.buffer().len();
    let by_file = (way != By::Body).then_some(None);
    output.push(Outcome::Done, sequence, size, opening(by_file));
    if size <= COPIED {
        let buffer = output.buffer();
        let at = buffer.len();
        buffer.resize(at + size as usize, 0);
        let read = object.read_at(range.start, &mut buffer[at..]);
        let problem = match read {
            Ok(count) if count as u64 == size => return Ok(()),
            // Somebody has cut the file.
            Ok(_) => StoreError::Io {
                context: "reading an object",
                source: io::ErrorKind::UnexpectedEof.into(),
            },
            Err(error) => error,
        };
        buffer.truncate(before);
        push_error(output, sequence, &problem);
        return Ok(());
    }
    output.flush(socket, true)?;
    match object.file_descriptor() {
        Some(fd) => send_file(socket, fd, range)?,
        None => send_chunks(socket, object, range)?,
    }
    Ok(())
}

/// Sends bytes of a file without looking at them. When they cannot be had, the connection ends: that more bytes
/// follow has been said already.
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

/// An object or a part that is being written.
pub(super) enum Upload {
    Object(Box<dyn ObjectUpload>, Commit),
    Part(Box<dyn PartUpload>),
}

impl Upload {
    /// Begins what `request` asks for, of `size` bytes.
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

    /// Where its bytes go.
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

/// Appends the answer to a write.
pub(super) fn answer_write(output: &mut Output, sequence: u32, written: &Result<Written>) {
    push(output, sequence, written);
}

impl Connection<'_> {
    /// Performs a request with a body, an object or a part, whose bytes are to be received.
    pub(super) fn write(
        &mut self,
        header: &Header,
        request: Request<'_>,
    ) -> std::result::Result<(), End> {
        let mut upload = Upload::begin(&*self.shared.store, header.body, request);
        let received = self.receive(header.body, upload.as_mut().ok().map(Upload::writer))?;
        let written = received.and_then(|()| upload?.commit());
        self.has_written = written.is_ok();
        answer_write(&mut self.output, header.sequence, &written);
        Ok(())
    }

    /// Receives `size` bytes into `upload`. They are received in any case, so that the next request can be read;
    /// after an error, or without an upload, they are dropped.
    fn receive(
        &mut self,
        size: u64,
        mut upload: Option<&mut (dyn Write + '_)>,
    ) -> std::result::Result<Result<()>, End> {
        let mut result = Ok(());
        let there = self.incoming.bytes();
        let first = usize::try_from(size).unwrap_or(usize::MAX).min(there.len());
        if first > 0 {
            write(&mut upload, &mut result, &there[..first]);
            self.incoming.consume(first);
        }
        let mut left = size - first as u64;
        if left > 0 {
            self.output.flush(self.socket, false)?;
        }
        if left >= SPLICED && self.shared.is_tcp() {
            let (taken, stored) = self.splice(left, &mut upload)?;
            left -= taken;
            if let Err(error) = stored {
                result = Err(error);
                upload = None;
            }
        }
        if left > 0 {
            self.piece.resize(PIECE, 0);
        }
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            match self.socket.receive(&mut self.piece[..most])? {
                0 => return Err(End::Socket),
                count => {
                    write(&mut upload, &mut result, &self.piece[..count]);
                    left -= count as u64;
                }
            }
        }
        Ok(result)
    }

    /// Moves up to `size` bytes into the file of `upload`, if it has one and needs not see them. Returns how many were
    /// taken off the socket.
    fn splice(
        &mut self,
        size: u64,
        upload: &mut Option<&mut (dyn Write + '_)>,
    ) -> std::result::Result<(u64, Result<()>), End> {
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
                return Err(End::Socket);
            }
            taken += moved.taken;
            let stored = moved.stored.and_then(|()| upload.appended(moved.taken));
            if stored.is_err() {
                // What is left in the pipe goes with it.
                self.splice = None;
                return Ok((taken, stored));
            }
        }
        Ok((taken, Ok(())))
    }
}

/// Writes bytes, unless something has failed before.
fn write(upload: &mut Option<&mut (dyn Write + '_)>, result: &mut Result<()>, bytes: &[u8]) {
    if let Some(writer) = upload
        && let Err(error) = writer.write(bytes)
    {
        *result = Err(error);
        *upload = None;
    }
}
