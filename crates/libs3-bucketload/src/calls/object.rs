//! Objects: put, get, head, delete, copy.

use std::ffi::{CString, c_int};

use bucketload_store::{ObjectInfo, Written};

use crate::abi::S3GetObjectDataCallback;
use crate::arguments::{self, Target};
use crate::backend::{Conditions, Result, Sink, Span};
use crate::calls::PutCallback;
use crate::clock::{self, Deadline};
use crate::reply::{Callbacks, Failure, ResponseProperties, quoted};

/// A request on one object, which may be part of a batch.
pub(crate) struct ObjectRequest {
    pub(crate) target: Target,
    pub(crate) operation: ObjectOperation,
    pub(crate) timeout_ms: c_int,
    pub(crate) callbacks: Callbacks,
}

/// The operation of such a request.
pub(crate) enum ObjectOperation {
    Put {
        /// Bytes of the object.
        size: u64,
        given: arguments::PutProperties,
        body: PutCallback,
    },
    Get {
        conditions: Conditions,
        span: Span,
        on_data: Option<S3GetObjectDataCallback>,
    },
    Head,
    Delete,
}

impl ObjectRequest {
    /// Runs the request with all callbacks except completion.
    pub(crate) fn run(self) -> Result<()> {
        let Self {
            target,
            operation,
            timeout_ms,
            callbacks,
        } = self;
        match operation {
            ObjectOperation::Put { size, given, body } => {
                put(target, size, given, body, timeout_ms, &callbacks)
            }
            ObjectOperation::Get {
                conditions,
                span,
                on_data,
            } => get(target, &conditions, span, on_data, timeout_ms, &callbacks),
            ObjectOperation::Head => head(target, &callbacks),
            ObjectOperation::Delete => delete(target, &callbacks),
        }
    }
}

/// Writes an object of `size` bytes.
fn put(
    target: Target,
    size: u64,
    given: arguments::PutProperties,
    body: PutCallback,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<()> {
    let options = given.options(size)?;
    let mut source = body.source(Deadline::after(timeout_ms));
    let commit = given.into_commit();
    let written = target
        .backend()?
        .put(target.name(), &options, commit, &mut source)?;
    callbacks.etag(written.etag)
}

/// Passes the bytes of an object to C.
struct CallbackSink<'a> {
    callbacks: &'a Callbacks,
    on_data: Option<S3GetObjectDataCallback>,
    deadline: Deadline,
}

fn describe(info: &ObjectInfo, content_length: u64) -> ResponseProperties<'_> {
    ResponseProperties {
        object: Some(&info.headers),
        content_length,
        etag: Some(info.etag),
        last_modified: Some(clock::seconds(info.modified)),
    }
}

impl Sink for CallbackSink<'_> {
    fn begin(&mut self, info: &ObjectInfo, length: u64) -> Result<()> {
        self.callbacks.properties(&describe(info, length))
    }

    fn data(&mut self, piece: &[u8]) -> Result<()> {
        self.deadline.check()?;
        let Some(on_data) = self.on_data else {
            return Ok(());
        };
        for piece in piece.chunks(c_int::MAX as usize) {
            let len = c_int::try_from(piece.len()).unwrap_or(c_int::MAX);
            // SAFETY: the function comes from the same handler as `callbacks`.
            let code = unsafe { on_data(len, piece.as_ptr().cast(), self.callbacks.data) };
            Failure::of_callback(code)?;
        }
        Ok(())
    }
}

/// Reads an object.
fn get(
    target: Target,
    conditions: &Conditions,
    span: Span,
    on_data: Option<S3GetObjectDataCallback>,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<()> {
    let mut sink = CallbackSink {
        callbacks,
        on_data,
        deadline: Deadline::after(timeout_ms),
    };
    target
        .backend()?
        .get(target.name(), conditions, span, &mut sink)
}

/// Reports an object and its bytes.
pub(super) fn report_bytes(
    info: &ObjectInfo,
    bytes: &[u8],
    on_data: Option<S3GetObjectDataCallback>,
    callbacks: &Callbacks,
) -> Result<()> {
    let mut sink = CallbackSink {
        callbacks,
        on_data,
        deadline: Deadline::after(0),
    };
    sink.begin(info, bytes.len() as u64)?;
    if bytes.is_empty() {
        return Ok(());
    }
    sink.data(bytes)
}

/// Reports an object's information.
fn head(target: Target, callbacks: &Callbacks) -> Result<()> {
    report_info(target.backend()?.head(target.name()), callbacks)
}

/// Reports the result of a HEAD. Its response has no body, so only the HTTP status of a failure is known.
pub(super) fn report_info(found: Result<ObjectInfo>, callbacks: &Callbacks) -> Result<()> {
    let info = found.map_err(Failure::without_body)?;
    callbacks.properties(&describe(&info, info.size))
}

/// Deletes an object.
fn delete(target: Target, callbacks: &Callbacks) -> Result<()> {
    target.backend()?.delete(target.name())?;
    callbacks.no_properties()
}

/// The result of a copy.
pub(crate) struct Copied {
    /// Seconds since the epoch.
    pub(crate) last_modified: i64,
    /// Entity tag in quotes.
    pub(crate) etag: CString,
}

impl From<Written> for Copied {
    fn from(written: Written) -> Self {
        Self {
            last_modified: clock::seconds(written.modified),
            etag: quoted(written.etag),
        }
    }
}

/// Copies an object. Without `given` properties, the copy has those of the source.
pub(crate) fn copy(
    from: Target,
    to: (&str, &str),
    given: Option<arguments::PutProperties>,
) -> Result<Copied> {
    let headers = given
        .map(arguments::PutProperties::into_headers)
        .transpose()?;
    Ok(from.backend()?.copy(from.name(), to, headers)?.into())
}
