//! One worker's session: its connection, and the state it shares with the thread's other sessions.

use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;

use bucketload_core::driver::{AnySession, RequestRoute, Session};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_wire::Calls;

use super::admin_list::ListState;
use super::dispatch::Dispatch;
use super::driver::S3Shared;
use super::error_map::{self, Context, ErrorDocument};
use super::ops_list_marked::{UPLOADS, VERSIONS};
use super::prepare::{ContentHashes, Prepared, S3Call};
use crate::http::client::Client;
use crate::http::connection::{Connection, RequestTarget};
use crate::http::endpoint::Endpoint;
use crate::http::exchange::{Refusal, Reply};
use crate::http::parked::park;
use crate::http::session::HttpSession;
use crate::http::sink::Sink;

/// A session of the native S3 driver.
#[derive(Debug)]
pub struct S3Session {
    pub(crate) shared: Rc<S3Shared>,
    connection: Connection,
    /// Writes local files, if the driver was given a directory for them.
    local: Option<Box<AnySession>>,
    /// Created for the first multipart upload.
    pub(crate) parts: Option<Box<PartHashes>>,
    /// State of the control plane's listings.
    pub(crate) listing: ListState,
}

/// What a session keeps for multipart uploads: the hashes of the parts, computed before the first request, and further
/// connections.
#[derive(Debug, Default)]
pub(crate) struct PartHashes {
    /// For each part: its hashes, and the range of its chunks' digests.
    pub(crate) each: Vec<(ContentHashes, Range<usize>)>,
    /// Further sessions, over which parts are sent at the same time.
    pub(crate) lanes: Vec<S3Session>,
}

impl S3Session {
    pub(crate) fn new(
        shared: Rc<S3Shared>,
        source: Option<IpAddr>,
        local: Option<Box<AnySession>>,
    ) -> Self {
        Self {
            connection: Connection::new(shared.endpoint, source),
            shared,
            local,
            parts: None,
            listing: ListState::default(),
        }
    }

    /// Another session to the same endpoint, not connected yet.
    pub(crate) fn another(&self) -> Self {
        Self::new(Rc::clone(&self.shared), self.connection.source(), None)
    }

    /// Index of the endpoint in [`super::S3Config::endpoints`].
    #[must_use]
    pub fn endpoint_index(&self) -> usize {
        self.shared.endpoint
    }

    /// System calls made on the current connection; `None` if there is none.
    #[must_use]
    pub fn calls(&self) -> Option<Calls> {
        self.connection.calls()
    }

    /// Writes a file below the directory for local files, with the bucket as directory and the key as name.
    async fn local_write(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let Some(local) = &mut self.local else {
            return Err(absent(request.op.class));
        };
        let op = Op {
            class: OpClass::Put,
            ..*request.op
        };
        let put = Request {
            op: &op,
            ..*request
        };
        local.execute(&put, probe).await
    }

    /// Performs operations that take several requests, or one with a document in the request or the response.
    async fn execute_rare(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match request.op.class {
            OpClass::PutIfAbsent => match request.version {
                None => park(self.put_if_absent(request, probe)).await,
                Some(version) => park(self.put_version_if_absent(request, version, probe)).await,
            },
            OpClass::PutIfMatch => park(self.put_if_match(request, probe)).await,
            OpClass::DeleteMany => park(self.delete_many(request, probe)).await,
            OpClass::Copy => park(self.copy(request, probe)).await,
            OpClass::List => park(self.list(request, true, probe)).await,
            OpClass::ListV1 => park(self.list(request, false, probe)).await,
            OpClass::MultipartPut => park(self.multipart_put(request, probe)).await,
            OpClass::MultipartCopy => park(self.multipart_copy(request, probe)).await,
            OpClass::MultipartAbort => park(self.multipart_abort(request, probe)).await,
            OpClass::ListUploads => park(self.list_marked(&UPLOADS, request, probe)).await,
            OpClass::PutTagging => park(self.put_tagging(request, probe)).await,
            OpClass::GetTagging => park(self.get_tagging(request, probe)).await,
            OpClass::DeleteTagging => park(self.delete_tagging(request, probe)).await,
            OpClass::Append => park(self.append(request, probe)).await,
            OpClass::DeleteIfMatch => park(self.delete_if_match(request, probe)).await,
            OpClass::ListVersions => park(self.list_marked(&VERSIONS, request, probe)).await,
            OpClass::GetPart => park(self.get_part(request, probe)).await,
            OpClass::HeadPart => park(self.head_part(request, probe)).await,
            OpClass::GetVersion => park(self.get_version(request, probe)).await,
            OpClass::DeleteVersion => park(self.delete_version(request, probe)).await,
            OpClass::PutRetention => park(self.put_retention(request, probe)).await,
            OpClass::PutLegalHold => park(self.put_legal_hold(request, probe)).await,
            OpClass::GetRetention => {
                let facts = (&b"retention="[..], "RetainUntilDate");
                park(self.get_facts(request, facts, probe)).await
            }
            OpClass::GetLegalHold => {
                let facts = (&b"legal-hold="[..], "Status");
                park(self.get_facts(request, facts, probe)).await
            }
            OpClass::GetAcl => {
                let facts = (&b"acl="[..], "Permission");
                park(self.get_facts(request, facts, probe)).await
            }
            OpClass::PutAcl => park(self.put_acl(request, probe)).await,
            OpClass::GetAttributes => park(self.get_attributes(request, probe)).await,
            OpClass::Restore => park(self.restore(request, probe)).await,
            OpClass::LocalWrite => park(self.local_write(request, probe)).await,
            OpClass::MakeBucket => park(self.make_bucket(request.bucket, false, probe)).await,
            OpClass::HeadBucket => park(self.head_one_bucket(request.bucket, probe)).await,
            OpClass::DeleteBucket => park(self.remove_bucket(request.bucket, probe)).await,
            OpClass::ListBuckets => park(self.list_buckets(probe)).await,
            // A write whose version somebody wants to know.
            OpClass::Put => match request.version {
                Some(version) => park(self.put_version(request, version, probe)).await,
                None => park(self.put(request, probe)).await,
            },
            // `execute` handles the frequent ones itself. The API does not have the others.
            class => Err(absent(class)),
        }
    }

    /// Renders and signs a request.
    pub(crate) fn prepare<'a>(&self, call: &S3Call<'a>) -> Prepared<'a> {
        let writer = &mut self.shared.writer.borrow_mut();
        Prepared::new(
            self.shared.config(),
            &self.shared.driver.fields,
            writer,
            call,
        )
    }

    /// As [`HttpSession::perform`], but writes to `reply`, which must be a default [`Reply`]; for frequent operations.
    pub(crate) fn perform_into<'p>(
        &'p mut self,
        prepared: &'p mut Prepared<'_>,
        sink: &'p mut dyn Sink,
        probe: &'p mut Probe,
        reply: &'p mut Reply,
    ) -> impl Future<Output = OpResult<()>> {
        self.connection
            .perform_on(&*self.shared, prepared, sink, probe, reply)
    }

    /// The error that `document` means, if it did not arrive as a refusal of its own.
    pub(crate) fn refused_as(&self, status: u16, document: &ErrorDocument) -> OpError {
        self.shared
            .refused_with(status, document, &Refusal::default())
    }

    /// Performs an operation that may report its failure in the body of a response with status 200. Stores that body in
    /// `body` and returns the status.
    pub(crate) async fn conclude(
        &mut self,
        prepared: &mut Prepared<'_>,
        body: &mut Vec<u8>,
        limit: usize,
        probe: &mut Probe,
    ) -> OpResult<u16> {
        let status = self.document(prepared, body, limit, probe).await?.status;
        self.concluded(status, body)
    }

    /// The status, unless `body` reports a failure.
    pub(crate) fn concluded(&self, status: u16, body: &[u8]) -> OpResult<u16> {
        match ErrorDocument::find(body) {
            None => Ok(status),
            Some(document) => {
                // The status was already sent as 200, so classify the error by its code.
                let mut error = self.refused_as(500, &document);
                error.status = status;
                Err(error)
            }
        }
    }
}

impl HttpSession for S3Session {
    fn route(&mut self) -> (&mut Connection, &Client, &Endpoint) {
        let shared = &self.shared;
        (&mut self.connection, shared.client(), shared.endpoint())
    }

    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError {
        self.shared.refused(status, refusal)
    }
}

impl RequestTarget for S3Shared {
    fn client(&self) -> &Client {
        &self.driver.client
    }

    fn endpoint(&self) -> &Endpoint {
        &self.driver.client.endpoints()[self.endpoint]
    }

    #[inline]
    fn judge(&self, reply: &Reply) -> OpResult<()> {
        match &reply.refusal {
            None => Ok(()),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }
}

impl S3Shared {
    #[cold]
    fn refused(&self, status: u16, refusal: &Refusal) -> OpError {
        let document = ErrorDocument::parse(&refusal.body);
        self.refused_with(status, &document, refusal)
    }

    fn refused_with(&self, status: u16, document: &ErrorDocument, refusal: &Refusal) -> OpError {
        let config = self.config();
        let context = Context {
            region: &config.region,
            credentials: config.credentials.as_ref(),
            bucket_region: &refusal.field("x-amz-bucket-region"),
            location: &refusal.field("location"),
        };
        let mut error = error_map::to_error(status, document, &context);
        if let Some(key) = config.keeping.customer_key() {
            error.detail = key.scrub(&error.detail).into();
        }
        error
    }
}

#[cold]
pub(crate) fn absent(class: OpClass) -> OpError {
    OpError::new(ErrorKind::Unsupported, format!("S3 has no {class}"))
}

impl Session for S3Session {
    fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> impl Future<Output = OpResult> {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => Dispatch::Get {
                get: self.get(request, probe),
            },
            OpClass::Put if request.version.is_none() => Dispatch::Put {
                put: self.put(request, probe),
            },
            OpClass::Head => Dispatch::Head {
                head: self.head(request, probe),
            },
            OpClass::Delete => Dispatch::Delete {
                delete: self.delete(request, probe),
            },
            _ => Dispatch::Rare {
                rare: self.execute_rare(request, probe),
            },
        }
    }

    fn route(&self) -> RequestRoute {
        self.connection.route()
    }
}
