//! Operations on one file.

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Request;
use bucketload_core::record::Probe;

use super::documents;
use super::request::Call;
use super::session::WebHdfsSession;
use crate::hadoop::path;
use crate::hadoop::semantics::{exists, lacks_parent, late, now_ms, size_of_file, unlinked};
use crate::http::outgoing::Body;
use crate::http::pool::Buffer;
use crate::http::reading::Reading;
use crate::http::render::Render as _;
use crate::http::span::Span;

/// First step of a write that replaces what is there.
const CREATE: &str = "CREATE&noredirect=true&overwrite=true";
/// First step of a write that fails when there is a file.
const CREATE_NEW: &str = "CREATE&noredirect=true&overwrite=false";

impl WebHdfsSession {
    pub(super) async fn get(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        path::check(request.bucket, request.key)?;
        let mut reading = Reading::of(request);
        let location = {
            let mut query = Buffer::take();
            if let Some(range) = reading.range() {
                query.number("offset", range.offset);
                query.number("length", range.len);
            }
            let call = Call::new("GET", "OPEN&noredirect=true", request.bucket, request.key);
            self.locate(&call.query(&query), probe).await?
        };
        let reply = self.take(&location, &mut reading, probe).await?;
        reading
            .judge(reply.status, reply.received, None)
            .map_err(|error| late(error, reply.received))
    }

    pub(super) async fn put(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.create(CREATE, request, probe).await
    }

    /// CREATE without overwriting. That there is a file, or that somebody is writing one, is a success
    /// without items.
    pub(super) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        match self.create(CREATE_NEW, request, probe).await {
            Ok(done) => Ok(Completion { items: 1, ..done }),
            Err(error) if exists(&error) => Ok(DONE),
            Err(error) => Err(error),
        }
    }

    /// Writes the content of `request` by the first step `op`.
    async fn create(
        &mut self,
        op: &'static str,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        path::check(request.bucket, request.key)?;
        let content = content_of(request)?;
        let location = {
            let mut query = Buffer::take();
            query.extend_from_slice(&self.inner.layout);
            let call = Call::new("PUT", op, request.bucket, request.key);
            self.locate(&call.query(&query), probe).await?
        };
        let size = content.size();
        let body = Body::Content(Span::whole(content));
        self.give("PUT", &location, body, size, op == CREATE_NEW, probe)
            .await?;
        Ok(Completion {
            bytes: size,
            ..DONE
        })
    }

    pub(super) async fn append(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        path::check(request.bucket, request.key)?;
        let content = content_of(request)?;
        let size = content.size();
        let call = Call::new(
            "POST",
            "APPEND&noredirect=true",
            request.bucket,
            request.key,
        );
        let location = match self.locate(&call, probe).await {
            Ok(location) => location,
            // Where there is no file, it begins with these bytes.
            Err(error) if error.kind == ErrorKind::NotFound => {
                return self.create(CREATE_NEW, request, probe).await;
            }
            Err(error) => return Err(error),
        };
        let body = Body::Content(Span::whole(content));
        self.give("POST", &location, body, size, false, probe)
            .await?;
        Ok(Completion {
            bytes: size,
            ..DONE
        })
    }

    pub(super) async fn touch(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let (bucket, key) = (request.bucket, request.key);
        path::check(bucket, key)?;
        let mut query = Buffer::take();
        let millis = now_ms();
        query.number("modificationtime", millis);
        let call = Call::new("PUT", "SETTIMES&accesstime=-1", bucket, key);
        match self.ask(&call.query(&query), probe).await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            result => return result.map(|()| DONE),
        }
        let location = self
            .locate(&Call::new("PUT", CREATE_NEW, bucket, key), probe)
            .await?;
        let body = Body::Bytes(b"");
        match self.give("PUT", &location, body, 0, false, probe).await {
            // Somebody else made it meanwhile.
            Err(error) if exists(&error) => Ok(DONE),
            result => result.map(|()| DONE),
        }
    }

    /// Renames over whatever file is there. A directory that is missing is made, in two further requests.
    pub(super) async fn rename(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let (bucket, key) = (request.bucket, request.key);
        path::check(bucket, key)?;
        path::check(bucket, request.source)?;
        let mut query = Buffer::take();
        let mut destination = String::new();
        path::push(&mut destination, &self.inner.config.files.root, bucket, key);
        query.parameter("destination", &destination);
        let op = "RENAME&renameoptions=OVERWRITE";
        let call = Call::new("PUT", op, bucket, request.source).query(&query);
        match self.ask(&call, probe).await {
            Err(error) if lacks_parent(&error) => {}
            result => return result.map(|()| DONE),
        }
        let parent = path::parent(key).unwrap_or_default();
        self.ask(&Call::new("PUT", "MKDIRS", bucket, parent), probe)
            .await?;
        self.ask(&call, probe).await.map(|()| DONE)
    }

    pub(super) async fn head(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        path::check(request.bucket, request.key)?;
        self.status(request.bucket, request.key, probe, |status| {
            size_of_file(status.is_dir(), status.length)
        })
        .await
    }

    pub(super) async fn delete(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        path::check(request.bucket, request.key)?;
        self.unlink(request.bucket, request.key, probe)
            .await
            .map(|()| DONE)
    }

    /// Deletes a file or an empty directory.
    ///
    /// # Errors
    /// `NotFound` when there is neither, `Conflict` when the directory is not empty.
    pub(super) async fn unlink(
        &mut self,
        bucket: &str,
        key: &str,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        let call = Call::new("DELETE", "DELETE&recursive=false", bucket, key);
        let body = self.fetch(&call, probe).await?;
        unlinked(documents::boolean(&body)?)
    }

    /// Writes a small file, untimed.
    pub(super) async fn put_bytes(
        &mut self,
        bucket: &str,
        key: &str,
        body: &[u8],
    ) -> Result<(), OpError> {
        path::check(bucket, key)?;
        let layout = self.inner.layout.clone();
        let call = Call::new("PUT", CREATE, bucket, key).query(&layout);
        let probe = &mut Probe::untimed();
        let location = self.locate(&call, probe).await?;
        let length = body.len() as u64;
        self.give("PUT", &location, Body::Bytes(body), length, false, probe)
            .await
    }
}
