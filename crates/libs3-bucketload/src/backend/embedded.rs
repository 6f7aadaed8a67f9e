//! Reading and writing the bytes of objects in a store of this process.

use bucketload_store::{Object, ObjectInfo, PosixStore, ReadDecision, Store as _, Write};

use super::{Conditions, ObjectName, PIECE_BYTES, Result, Sink, Source, Span, with_buffer};
use crate::reply::Failure;
use crate::status::Status;

/// The bytes of a span in an object of `size` bytes.
pub(super) fn resolve(span: Span, size: u64) -> Result<std::ops::Range<u64>> {
    if span == (Span { start: 0, count: 0 }) {
        return Ok(0..size);
    }
    if span.start >= size {
        return Err(Failure::new(
            Status::ErrorInvalidRange,
            "the range begins after the object's end",
        ));
    }
    let end = match span.count {
        0 => size,
        count => span.start.saturating_add(count).min(size),
    };
    Ok(span.start..end)
}

/// Copies `size` bytes from a source to an upload, or fewer if the source ends.
pub(super) fn fill(
    upload: &mut (impl Write + ?Sized),
    size: u64,
    source: &mut Source<'_>,
) -> Result<()> {
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
        ReadDecision::PreconditionFailed => Err(super::condition_failed()),
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
                return Err(Failure::new(
                    Status::ErrorInternalError,
                    "the object's file is truncated",
                ));
            }
            sink.data(&buffer[..got])?;
            at += got as u64;
        }
        Ok(())
    })
}

/// Reads an object, subject to conditions.
pub(super) fn get(
    store: &PosixStore,
    (bucket, key): ObjectName<'_>,
    conditions: &Conditions,
    span: Span,
    sink: &mut dyn Sink,
) -> Result<()> {
    let object = store.open(bucket, key)?;
    let info = object.info();
    check(conditions, info)?;
    let range = resolve(span, info.size)?;
    sink.begin(info, range.end - range.start)?;
    give(&object, range, sink)
}
