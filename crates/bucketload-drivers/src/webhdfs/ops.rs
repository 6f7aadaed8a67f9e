//! Operations on one file.

use bucketload_core::driver::{Completion, DONE, ErrorKind, OpResult, Probe, Request, content_of};

use super::request::NameNodeCall;
use super::session::WebHdfsSession;
use crate::hadoop::path;
use crate::hadoop::prune::Tree as _;
use crate::hadoop::semantics::{
    explain_empty_read, is_existing_file, is_missing_parent, now_ms, size_of_file,
};
use crate::http::{Body, Buffer, Reading, Render as _, Span};

/// First step of a write that replaces an existing file.
const CREATE: &str = "CREATE&noredirect=true&overwrite=true";
/// First step of a write that fails if the file exists.
const CREATE_NEW: &str = "CREATE&noredirect=true&overwrite=false";

impl WebHdfsSession {
    pub(super) async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        let mut reading = Reading::of(request);
        let location = {
            let mut query = Buffer::take();
            if let Some(range) = reading.range() {
                query.number("offset", range.offset);
                query.number("length", range.len);
            }
            let call =
                NameNodeCall::new("GET", "OPEN&noredirect=true", request.bucket, request.key);
            self.locate(&call.query(&query), probe).await?
        };
        let reply = self.read_from(&location, &mut reading, probe).await?;
        reading
            .judge(reply.status, reply.received, None)
            .map_err(|error| explain_empty_read(error, reply.received))
    }

    pub(super) async fn put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        self.create(CREATE, request, probe).await
    }

    /// CREATE without overwriting. If the file exists or another client is writing it, the operation
    /// succeeds without items.
    pub(super) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        match self.create(CREATE_NEW, request, probe).await {
            Ok(done) => Ok(Completion { items: 1, ..done }),
            Err(error) if is_existing_file(&error) => Ok(DONE),
            Err(error) => Err(error),
        }
    }

    /// Writes the content of `request`, with `op` as the first step.
    async fn create(
        &mut self,
        op: &'static str,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        path::check(request.bucket, request.key)?;
        let content = content_of(request)?;
        let location = {
            let mut query = Buffer::take();
            query.extend_from_slice(&self.inner.layout);
            let call = NameNodeCall::new("PUT", op, request.bucket, request.key);
            self.locate(&call.query(&query), probe).await?
        };
        let size = content.size();
        let body = Body::Content(Span::whole(content));
        self.write_to("PUT", &location, body, size, op == CREATE_NEW, probe)
            .await?;
        Ok(Completion::of_bytes(size))
    }

    pub(super) async fn append(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        let content = content_of(request)?;
        let size = content.size();
        let call = NameNodeCall::new(
            "POST",
            "APPEND&noredirect=true",
            request.bucket,
            request.key,
        );
        let location = match self.locate(&call, probe).await {
            Ok(location) => location,
            // The first append creates the file.
            Err(error) if error.kind == ErrorKind::NotFound => {
                return self.create(CREATE_NEW, request, probe).await;
            }
            Err(error) => return Err(error),
        };
        let body = Body::Content(Span::whole(content));
        self.write_to("POST", &location, body, size, false, probe)
            .await?;
        Ok(Completion::of_bytes(size))
    }

    pub(super) async fn touch(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let (bucket, key) = (request.bucket, request.key);
        path::check(bucket, key)?;
        let mut query = Buffer::take();
        let millis = now_ms();
        query.number("modificationtime", millis);
        let call = NameNodeCall::new("PUT", "SETTIMES&accesstime=-1", bucket, key);
        match self.ask(&call.query(&query), probe).await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            result => return result.map(|()| DONE),
        }
        let location = self
            .locate(&NameNodeCall::new("PUT", CREATE_NEW, bucket, key), probe)
            .await?;
        let body = Body::Bytes(b"");
        match self.write_to("PUT", &location, body, 0, false, probe).await {
            // Another client created it meanwhile.
            Err(error) if is_existing_file(&error) => Ok(DONE),
            result => result.map(|()| DONE),
        }
    }

    /// Renames, replacing an existing file. Creates a missing parent directory, with two more requests.
    pub(super) async fn rename(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let (bucket, key) = (request.bucket, request.key);
        path::check(bucket, key)?;
        path::check(bucket, request.source)?;
        let mut query = Buffer::take();
        let mut destination = String::new();
        path::push(&mut destination, &self.inner.config.files.root, bucket, key);
        query.parameter("destination", &destination);
        let op = "RENAME&renameoptions=OVERWRITE";
        let call = NameNodeCall::new("PUT", op, bucket, request.source).query(&query);
        match self.ask(&call, probe).await {
            Err(error) if is_missing_parent(&error) => {}
            result => return result.map(|()| DONE),
        }
        let parent = path::parent(key).unwrap_or_default();
        self.ask(&NameNodeCall::new("PUT", "MKDIRS", bucket, parent), probe)
            .await?;
        self.ask(&call, probe).await.map(|()| DONE)
    }

    pub(super) async fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        self.status(request.bucket, request.key, probe, |status| {
            size_of_file(status.is_dir(), status.length)
        })
        .await
    }

    pub(super) async fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        path::check(request.bucket, request.key)?;
        self.unlink(request.bucket, request.key, probe)
            .await
            .map(|()| DONE)
    }

    /// Writes a small file, untimed.
    pub(super) async fn put_bytes(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        path::check(bucket, key)?;
        let layout = self.inner.layout.clone();
        let call = NameNodeCall::new("PUT", CREATE, bucket, key).query(&layout);
        let probe = &mut Probe::untimed();
        let location = self.locate(&call, probe).await?;
        let length = body.len() as u64;
        self.write_to("PUT", &location, Body::Bytes(body), length, false, probe)
            .await
    }
}
