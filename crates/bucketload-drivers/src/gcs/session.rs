//! One worker's session: its connection and the rendering of its requests.

use std::net::IpAddr;
use std::sync::Arc;

use bucketload_core::driver::{
    ErrorKind, OpClass, OpError, OpResult, Probe, Request, RequestRoute, Session,
};
use bucketload_s3::encode;
use bucketload_wire::Calls;

use super::auth::refresher::Bearer;
use super::driver::DriverShared;
use super::error_map;
use crate::http::{
    Buffer, Client, Connection, Endpoint, HttpSession, Refusal, Render as _, Rendering, park,
};

/// A session of the native Google Cloud Storage driver.
#[derive(Debug)]
pub struct GcsSession {
    pub(crate) shared: Arc<DriverShared>,
    endpoint: usize,
    connection: Connection,
    /// The token's generation and header line; none for anonymous requests.
    bearer: Option<(u64, Arc<Bearer>)>,
}

impl GcsSession {
    pub(crate) fn new(
        shared: Arc<DriverShared>,
        endpoint: usize,
        source: Option<IpAddr>,
    ) -> OpResult<Self> {
        let bearer = shared
            .refresher
            .as_ref()
            .map(|refresher| refresher.bearer())
            .transpose()?;
        Ok(Self {
            shared,
            endpoint,
            connection: Connection::new(endpoint, source),
            bearer,
        })
    }

    /// System calls made by the current connection; `None` while there is none.
    #[must_use]
    pub fn calls(&self) -> Option<Calls> {
        self.connection.calls()
    }

    /// The value of the requests' `Host` field.
    pub(crate) fn authority(&self) -> &str {
        &self.shared.client.endpoints()[self.endpoint].authority
    }

    /// Starts an upload of type `kind` to an object.
    pub(crate) fn begin_upload(&mut self, kind: &str, bucket: &str, key: &str) -> Buffer {
        let mut head = self.begin("POST");
        head.text("/upload");
        push_bucket(&mut head, bucket);
        head.text("/o?");
        head.parameter("uploadType", kind);
        head.parameter("name", key);
        head
    }

    /// The error for a refusal with `body`.
    #[cold]
    pub(crate) fn refusal(&self, status: u16, body: &[u8]) -> OpError {
        let mut error = error_map::to_error(status, body);
        if let Some((_, bearer)) = &self.bearer {
            error.detail = bearer.scrub(&error.detail).into();
        }
        error
    }
}

impl HttpSession for GcsSession {
    fn route(&mut self) -> (&mut Connection, &Client, &Endpoint) {
        let client = &self.shared.client;
        (
            &mut self.connection,
            client,
            &client.endpoints()[self.endpoint],
        )
    }

    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError {
        self.refusal(status, &refusal.body)
    }
}

impl Rendering for GcsSession {
    fn fields(&mut self, head: &mut Vec<u8>) {
        head.extend_from_slice(self.shared.client.fields(self.endpoint));
        if let (Some((generation, bearer)), Some(refresher)) =
            (&mut self.bearer, &self.shared.refresher)
        {
            if refresher.generation() != *generation
                && let Ok((new_generation, new_bearer)) = refresher.bearer()
            {
                (*generation, *bearer) = (new_generation, new_bearer);
            }
            head.extend_from_slice(&bearer.line);
        }
    }
}

/// Appends the path of a bucket: `/storage/v1/b/BUCKET`.
pub(crate) fn push_bucket(head: &mut Vec<u8>, bucket: &str) {
    head.extend_from_slice(b"/storage/v1/b/");
    encode::push_query(head, bucket);
}

/// Appends the path of an object: `/storage/v1/b/BUCKET/o/KEY`, where slashes in the key are escaped
/// (Cloud Storage, "Encoding URI path parts").
pub(crate) fn push_object(head: &mut Vec<u8>, bucket: &str, key: &str) {
    push_bucket(head, bucket);
    head.extend_from_slice(b"/o/");
    encode::push_query(head, key);
}

/// The error for an operation that Cloud Storage does not have.
#[cold]
fn unsupported(class: OpClass) -> OpError {
    let why = match class {
        OpClass::ListV1 => "Cloud Storage has one kind of listing; use `list`",
        OpClass::ListUploads => "Cloud Storage does not list unfinished uploads",
        OpClass::MultipartCopy => "Cloud Storage composes whole objects, not ranges of them",
        _ => "the JSON API has no such operation",
    };
    OpError::new(ErrorKind::Unsupported, format!("{class}: {why}"))
}

impl Session for GcsSession {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request, probe).await,
            OpClass::Put => self.put(request, probe).await,
            OpClass::PutIfAbsent => self.put_if_absent(request, probe).await,
            OpClass::Head => self.head(request, probe).await,
            OpClass::Delete => self.delete(request, probe).await,
            // The others send several requests, or build or read a document.
            OpClass::DeleteMany => park(self.delete_many(request, probe)).await,
            OpClass::Copy => park(self.copy(request, probe)).await,
            OpClass::List => park(self.list(request, probe)).await,
            OpClass::MultipartPut => park(self.put_in_parts(request, probe)).await,
            OpClass::MultipartAbort => park(self.begin_and_cancel(request, probe)).await,
            OpClass::PutTagging => park(self.put_tagging(request, probe)).await,
            OpClass::GetTagging => park(self.get_tagging(request, probe)).await,
            OpClass::DeleteTagging => park(self.delete_tagging(request, probe)).await,
            OpClass::MakeBucket => park(self.make_bucket(request.bucket, probe)).await,
            OpClass::HeadBucket => park(self.head_bucket_timed(request.bucket, probe)).await,
            OpClass::DeleteBucket => park(self.remove_bucket(request.bucket, probe)).await,
            OpClass::ListBuckets => park(self.list_buckets(probe)).await,
            class => Err(unsupported(class)),
        }
    }

    fn route(&self) -> RequestRoute {
        self.connection.route()
    }
}
