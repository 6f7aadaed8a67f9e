//! The store in this process: a directory.

use bucketload_store::{
    BucketInfo, Commit, CompletedPart, Condition, Headers, ListRequest, ListUploadsRequest,
    Listing, MultipartOptions, Object, ObjectInfo, PartListing, PosixOptions, PosixStore,
    PutOptions, ReadDecision, Store, UploadListing, Write, Written,
};

use super::{
    Backend, Conditions, PIECE_BYTES, PartOf, Place, Result, Sink, Source, Span, with_buffer,
};
use crate::status::Status;

/// A store in a directory.
pub(crate) struct Embedded {
    store: PosixStore,
}

impl Embedded {
    /// Opens a directory.
    pub(crate) fn open(options: PosixOptions) -> Result<Self> {
        Ok(Self {
            store: PosixStore::open(options)?,
        })
    }
}

/// The bytes of a span in an object of `size` bytes.
fn resolve(span: Span, size: u64) -> Result<std::ops::Range<u64>> {
    if span == (Span { start: 0, count: 0 }) {
        return Ok(0..size);
    }
    if span.start >= size {
        return Err(Status::ErrorInvalidRange.because("the range begins behind the object's end"));
    }
    let end = match span.count {
        0 => size,
        count => span.start.saturating_add(count).min(size),
    };
    Ok(span.start..end)
}

/// Moves `size` bytes from a source into an upload, or fewer if the source ends.
fn fill(upload: &mut (impl Write + ?Sized), size: u64, source: &mut Source<'_>) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    with_buffer(|buffer| {
        let mut left = size;
        let mut filled = 0;
        while left > 0 {
            let room = (buffer.len() - filled).min(PIECE_BYTES);
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(room);
            let got = source(&mut buffer[filled..filled + want])?;
            if got == 0 {
                break;
            }
            filled += got;
            left -= got as u64;
            if filled == buffer.len() {
                upload.write(buffer)?;
                filled = 0;
            }
        }
        if filled > 0 {
            upload.write(&buffer[..filled])?;
        }
        Ok(())
    })
}

fn check(conditions: &Conditions, info: &ObjectInfo) -> Result<()> {
    let decision = if conditions.never {
        ReadDecision::PreconditionFailed
    } else {
        conditions.read.evaluate(info)
    };
    match decision {
        ReadDecision::Proceed => Ok(()),
        // HTTP 304 has no error code.
        ReadDecision::NotModified => Err(Status::HttpErrorUnknown.into()),
        ReadDecision::PreconditionFailed => Err(conditions.unmet()),
    }
}

fn give(object: &Object, range: std::ops::Range<u64>, sink: &mut dyn Sink) -> Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    with_buffer(|buffer| {
        let mut at = range.start;
        while at < range.end {
            let want = usize::try_from(range.end - at)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let got = object.read_at(at, &mut buffer[..want])?;
            if got == 0 {
                return Err(Status::ErrorInternalError.because("the object's file was cut short"));
            }
            sink.data(&buffer[..got])?;
            at += got as u64;
        }
        Ok(())
    })
}

impl Backend for Embedded {
    fn buckets(&self) -> Result<Vec<BucketInfo>> {
        Ok(self.store.list_buckets()?)
    }

    fn test_bucket(&self, bucket: &str) -> Result<()> {
        self.store.head_bucket(bucket)?;
        Ok(())
    }

    fn create_bucket(&self, bucket: &str) -> Result<()> {
        Ok(self.store.create_bucket(bucket)?)
    }

    fn delete_bucket(&self, bucket: &str) -> Result<()> {
        Ok(self.store.delete_bucket(bucket)?)
    }

    fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<Listing> {
        Ok(self.store.list(bucket, request)?)
    }

    fn put(
        &self,
        (bucket, key): Place<'_>,
        options: &PutOptions,
        commit: Commit,
        source: &mut Source<'_>,
    ) -> Result<Written> {
        let mut upload = self.store.put(bucket, key, options)?;
        fill(&mut *upload, options.size.unwrap_or(0), source)?;
        Ok(upload.commit(commit)?)
    }

    fn get(
        &self,
        (bucket, key): Place<'_>,
        conditions: &Conditions,
        span: Span,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let object = self.store.open(bucket, key)?;
        let info = object.info();
        check(conditions, info)?;
        let range = resolve(span, info.size)?;
        sink.begin(info, range.end - range.start)?;
        give(&object, range, sink)
    }

    fn head(&self, (bucket, key): Place<'_>) -> Result<ObjectInfo> {
        Ok(self.store.head(bucket, key)?)
    }

    fn delete(&self, (bucket, key): Place<'_>) -> Result<()> {
        self.store.delete(bucket, key, &Condition::None)?;
        Ok(())
    }

    fn copy(&self, from: Place<'_>, to: Place<'_>, headers: Option<Headers>) -> Result<Written> {
        let source = self.store.open(from.0, from.1)?;
        let info = source.info();
        let commit = Commit {
            headers: headers.unwrap_or_else(|| info.headers.clone()),
            checksums: info.checksums.clone(),
            tags: info.tags.clone(),
            condition: Condition::None,
        };
        Ok(self.store.copy(&source, to.0, to.1, commit)?)
    }

    fn create_upload(&self, (bucket, key): Place<'_>, headers: Headers) -> Result<String> {
        let options = MultipartOptions {
            headers,
            ..MultipartOptions::default()
        };
        Ok(self.store.create_multipart(bucket, key, options)?)
    }

    fn put_part(
        &self,
        (bucket, key): Place<'_>,
        part: &PartOf<'_>,
        options: &PutOptions,
        source: &mut Source<'_>,
    ) -> Result<Written> {
        let mut upload =
            self.store
                .upload_part(bucket, key, part.upload_id, part.number, options)?;
        fill(&mut *upload, options.size.unwrap_or(0), source)?;
        Ok(upload.commit(Vec::new())?)
    }

    fn copy_part(
        &self,
        from: Place<'_>,
        span: Span,
        (bucket, key): Place<'_>,
        part: &PartOf<'_>,
    ) -> Result<Written> {
        let source = self.store.open(from.0, from.1)?;
        let range = resolve(span, source.info().size)?;
        let (id, number) = (part.upload_id, part.number);
        Ok(self
            .store
            .copy_part(&source, range, bucket, key, id, number)?)
    }

    fn complete_upload(
        &self,
        (bucket, key): Place<'_>,
        upload_id: &str,
        parts: &[CompletedPart],
    ) -> Result<Written> {
        let condition = Condition::None;
        Ok(self
            .store
            .complete_multipart(bucket, key, upload_id, parts, Vec::new(), &condition)?)
    }

    fn abort_upload(&self, (bucket, key): Place<'_>, upload_id: &str) -> Result<()> {
        Ok(self.store.abort_multipart(bucket, key, upload_id)?)
    }

    fn parts(
        &self,
        (bucket, key): Place<'_>,
        upload_id: &str,
        marker: u32,
        max_parts: usize,
    ) -> Result<PartListing> {
        Ok(self
            .store
            .list_parts(bucket, key, upload_id, marker, max_parts)?)
    }

    fn uploads(&self, bucket: &str, request: &ListUploadsRequest<'_>) -> Result<UploadListing> {
        Ok(self.store.list_uploads(bucket, request)?)
    }
}
