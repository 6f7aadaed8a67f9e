//! Operations on one file, through the library.
//!
//! The library accepts and returns reference-counted buffers. A write copies the content once, one
//! mebibyte at a time and the first before the timed start; the library sends these buffers without
//! copying. A read's data are checked in place. The individual requests of an operation are not visible,
//! so the probe counts one.

use std::future::poll_fn;
use std::pin::{Pin, pin};

use bucketload_core::driver::{Completion, DONE, ErrorKind, OpResult, Probe, Request, content_of};
use bucketload_core::payload::Content;
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use hdfs_native::file::FileWriter;

use super::error::to_op_error;
use super::session::HdfsSession;
use crate::hadoop::path;
use crate::hadoop::prune::Tree as _;
use crate::hadoop::semantics::{
    explain_empty_read, is_existing_file, is_missing_parent, now_ms, past_the_end, size_of_file,
};
use crate::http::{Reading, Sink};

/// Bytes handed to the library at a time.
const CHUNK: usize = 1 << 20;
/// Permission of directories, before the cluster's mask.
pub(super) const DIRECTORY: u32 = 0o755;

/// The bytes of `content` from `at` on, at most [`CHUNK`].
fn chunk(content: &Content<'_>, at: u64) -> Bytes {
    let left = content.size().saturating_sub(at);
    let size = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
    let mut out = BytesMut::with_capacity(size);
    while out.len() < size {
        let segment = content.segment(at + out.len() as u64, size - out.len());
        if segment.as_bytes().is_empty() {
            break;
        }
        out.extend_from_slice(segment.as_bytes());
    }
    out.freeze()
}

/// Writes `first` and the rest of `content`, then closes the file.
async fn write_all(writer: &mut FileWriter, content: &Content<'_>, first: Bytes) -> OpResult<()> {
    let mut at = first.len() as u64;
    let mut next = first;
    while !next.is_empty() {
        writer.write_bytes(next).await.map_err(to_op_error)?;
        next = chunk(content, at);
        at += next.len() as u64;
    }
    writer.close().await.map_err(to_op_error)
}

/// Reports the end of a single call to `probe`.
pub(super) fn call_done<T>(probe: &mut Probe, result: hdfs_native::Result<T>) -> OpResult<T> {
    probe.first_byte_and_done();
    result.map_err(to_op_error)
}

impl HdfsSession {
    pub(super) async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        let path = self.path(request.bucket, request.key);
        let mut reading = Reading::of(request);
        probe.started();
        let reader = self.client.read(&path).await;
        probe.first_byte_and_done();
        let reader = reader.map_err(to_op_error)?;
        let length = reader.file_length() as u64;
        let (offset, size) = match reading.range() {
            Some(range) if range.offset >= length => {
                return Err(past_the_end(range.offset, length));
            }
            Some(range) => (range.offset, range.len.min(length - range.offset)),
            None => (0, length),
        };
        let mut received = 0;
        if size > 0 {
            // Both are at most the file's length, which the library returns as `usize`.
            let stream = reader.read_range_stream(offset as usize, size as usize);
            let mut stream = pin!(stream);
            while let Some(bytes) = next(stream.as_mut()).await {
                let bytes = bytes.map_err(to_op_error)?;
                received += bytes.len() as u64;
                probe.done();
                if reading.wants_body() {
                    reading.data(&bytes);
                }
            }
        }
        reading
            .judge(0, received, None)
            .map_err(|error| explain_empty_read(error, received))
    }

    pub(super) async fn put(
        &mut self,
        request: &Request<'_>,
        replace: bool,
        probe: &mut Probe,
    ) -> OpResult {
        path::check(request.bucket, request.key)?;
        let path = self.path(request.bucket, request.key);
        let content = *content_of(request)?;
        let first = chunk(&content, 0);
        let options = match replace {
            true => &self.inner.replace,
            false => &self.inner.create,
        };
        probe.started();
        let writer = self.client.create(&path, options).await;
        probe.first_byte_and_done();
        let mut writer = writer.map_err(to_op_error)?;
        let written = write_all(&mut writer, &content, first).await;
        probe.done();
        written?;
        let size = content.size();
        Ok(Completion::of_bytes(size))
    }

    /// Creates without overwriting. If the file exists or another client is writing it, the operation
    /// succeeds without items.
    pub(super) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        match self.put(request, false, probe).await {
            Ok(done) => Ok(Completion { items: 1, ..done }),
            Err(error) if is_existing_file(&error) => Ok(DONE),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn append(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        let path = self.path(request.bucket, request.key);
        let content = *content_of(request)?;
        let first = chunk(&content, 0);
        probe.started();
        let writer = self.client.append(&path).await;
        probe.first_byte_and_done();
        let mut writer = match writer.map_err(to_op_error) {
            Ok(writer) => writer,
            // The first append creates the file.
            Err(error) if error.kind == ErrorKind::NotFound => {
                let created = self.client.create(&path, &self.inner.create).await;
                created.map_err(to_op_error)?
            }
            Err(error) => return Err(error),
        };
        let written = write_all(&mut writer, &content, first).await;
        probe.done();
        written?;
        Ok(Completion::of_bytes(content.size()))
    }

    pub(super) async fn touch(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        let path = self.path(request.bucket, request.key);
        let millis = now_ms();
        probe.started();
        // All ones mean -1 on the wire, which leaves the access time unchanged.
        let set = self.client.set_times(&path, millis, u64::MAX).await;
        match call_done(probe, set) {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            result => return result.map(|()| DONE),
        }
        let made = match self.client.create(&path, &self.inner.create).await {
            Ok(mut writer) => writer.close().await,
            Err(error) => Err(error),
        };
        match call_done(probe, made) {
            // Another client created it meanwhile.
            Err(error) if is_existing_file(&error) => Ok(DONE),
            result => result.map(|()| DONE),
        }
    }

    /// Renames, replacing an existing file. Creates a missing parent directory, with two more calls.
    pub(super) async fn rename(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        path::check(request.bucket, request.source)?;
        let from = self.path(request.bucket, request.source);
        let to = self.path(request.bucket, request.key);
        probe.started();
        let renamed = self.client.rename(&from, &to, true).await;
        match call_done(probe, renamed) {
            Err(error) if is_missing_parent(&error) => {}
            result => return result.map(|()| DONE),
        }
        let parent = path::parent(request.key).unwrap_or_default();
        let parent = self.path(request.bucket, parent);
        let made = self.client.mkdirs(&parent, DIRECTORY, true).await;
        call_done(probe, made)?;
        let renamed = self.client.rename(&from, &to, true).await;
        call_done(probe, renamed).map(|()| DONE)
    }

    pub(super) async fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        let path = self.path(request.bucket, request.key);
        probe.started();
        let status = self.client.get_file_info(&path).await;
        let status = call_done(probe, status)?;
        size_of_file(status.isdir, status.length as u64)
    }

    pub(super) async fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        self.unlink(request.bucket, request.key, probe)
            .await
            .map(|()| DONE)
    }
}

/// The next item of a stream.
async fn next<S: Stream>(mut stream: Pin<&mut S>) -> Option<S::Item> {
    poll_fn(|cx| stream.as_mut().poll_next(cx)).await
}

#[cfg(test)]
mod tests {
    use bucketload_core::payload::{Arena, PayloadKind};

    use super::{CHUNK, chunk};

    #[test]
    fn chunks_together_are_the_content() {
        let arena = Arena::new(PayloadKind::Random, 5);
        let size = 2 * CHUNK as u64 + 12_345;
        let content = arena.content(0, 3, 0, size);
        let mut all = Vec::new();
        loop {
            let next = chunk(&content, all.len() as u64);
            if next.is_empty() {
                break;
            }
            assert!(next.len() <= CHUNK);
            all.extend_from_slice(&next);
        }
        assert_eq!(all.len() as u64, size);
        assert_eq!(content.verify(0, &all), Ok(()));
        assert!(chunk(&arena.content(0, 1, 0, 0), 0).is_empty());
    }
}
