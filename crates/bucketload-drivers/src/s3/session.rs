//! One worker's session: its connection and what it shares with the thread's others.

use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;

use bucketload_core::driver::{AnySession, Completion, Place, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_wire::Calls;

use super::admin_list::Listing;
use super::dispatch::Dispatch;
use super::driver::Shared;
use super::error_map::{self, Context, ErrorDocument};
use super::prepare::{Call, Hashes, Prepared};
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
    pub(crate) shared: Rc<Shared>,
    connection: Connection,
    /// Writes files of this machine, where the driver was given a directory for them.
    local: Option<Box<AnySession>>,
    /// Made for the first multipart upload.
    pub(crate) parts: Option<Box<PartHashes>>,
    /// How far the control plane has listed.
    pub(crate) listing: Listing,
}

/// What a multipart upload knows of its parts before its first request.
#[derive(Debug, Default)]
pub(crate) struct PartHashes {
    /// What requests say of each part's content, and where its chunks' digests stand.
    pub(crate) each: Vec<(Hashes, Range<usize>)>,
}

impl S3Session {
    pub(crate) fn new(
        shared: Rc<Shared>,
        source: Option<IpAddr>,
        local: Option<Box<AnySession>>,
    ) -> Self {
        Self {
            connection: Connection::new(shared.endpoint_index(), source),
            shared,
            local,
            parts: None,
            listing: Listing::default(),
        }
    }

    /// Index of the endpoint in [`super::S3Config::endpoints`].
    #[must_use]
    pub fn endpoint_index(&self) -> usize {
        self.shared.endpoint_index()
    }

    /// System calls made by the current connection; `None` while there is none.
    #[must_use]
    pub fn calls(&self) -> Option<Calls> {
        self.connection.calls()
    }

    /// Writes a file below the directory for local files: bucket and key are directory and name.
    async fn local_write(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
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

    /// Operations that are several requests, or one with a document to be built or read.
    async fn execute_rare(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        match request.op.class {
            OpClass::PutIfAbsent => park(self.put_if_absent(request, probe)).await,
            OpClass::DeleteMany => park(self.delete_many(request, probe)).await,
            OpClass::Copy => park(self.copy(request, probe)).await,
            OpClass::List => park(self.list(request, true, probe)).await,
            OpClass::ListV1 => park(self.list(request, false, probe)).await,
            OpClass::MultipartPut => park(self.multipart_put(request, probe)).await,
            OpClass::MultipartCopy => park(self.multipart_copy(request, probe)).await,
            OpClass::MultipartAbort => park(self.multipart_abort(request, probe)).await,
            OpClass::ListUploads => park(self.list_uploads(request, probe)).await,
            OpClass::PutTagging => park(self.put_tagging(request, probe)).await,
            OpClass::GetTagging => park(self.get_tagging(request, probe)).await,
            OpClass::DeleteTagging => park(self.delete_tagging(request, probe)).await,
            OpClass::Restore => park(self.restore(request, probe)).await,
            OpClass::LocalWrite => park(self.local_write(request, probe)).await,
            OpClass::MakeBucket => park(self.make_bucket(request.bucket, probe)).await,
            OpClass::HeadBucket => park(self.head_one_bucket(request.bucket, probe)).await,
            OpClass::DeleteBucket => park(self.remove_bucket(request.bucket, probe)).await,
            OpClass::ListBuckets => park(self.list_buckets(probe)).await,
            // The frequent ones are not asked for here.
            class @ (OpClass::Get
            | OpClass::RangeGet
            | OpClass::Put
            | OpClass::Head
            | OpClass::Delete
            | OpClass::Append
            | OpClass::Touch
            | OpClass::Rename
            | OpClass::RangePut
            | OpClass::Sync) => Err(absent(class)),
        }
    }

    /// Hashes nothing, sends nothing: renders and signs.
    pub(crate) fn prepare<'a>(&self, call: &Call<'a>) -> Prepared<'a> {
        let writer = &mut self.shared.writer.borrow_mut();
        Prepared::new(self.shared.config(), writer, call)
    }

    /// As [`HttpSession::perform`], into `reply`, which is as it is by default: for operations that are frequent.
    pub(crate) fn perform_into<'p>(
        &'p mut self,
        prepared: &'p mut Prepared<'_>,
        sink: &'p mut dyn Sink,
        probe: &'p mut Probe,
        reply: &'p mut Reply,
    ) -> impl Future<Output = Result<(), OpError>> {
        self.connection
            .perform_on(&*self.shared, prepared, sink, probe, reply)
    }

    /// The error that `document` means when there is no answer of its own to it.
    pub(crate) fn refused_as(&self, status: u16, document: &ErrorDocument) -> OpError {
        self.shared
            .refused_with(status, document, &Refusal::default())
    }

    /// Performs an operation that may report its failure in the body of an answer with status 200, which goes to `body`.
    /// Returns the status.
    pub(crate) async fn conclude(
        &mut self,
        prepared: &mut Prepared<'_>,
        body: &mut Vec<u8>,
        limit: usize,
        probe: &mut Probe,
    ) -> Result<u16, OpError> {
        let status = self.document(prepared, body, limit, probe).await?.status;
        match ErrorDocument::find(body) {
            None => Ok(status),
            Some(document) => {
                // The code says what the status would have been, had it not been sent already.
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

impl RequestTarget for Shared {
    fn client(&self) -> &Client {
        self.client()
    }

    fn endpoint(&self) -> &Endpoint {
        self.endpoint()
    }

    #[inline]
    fn judge(&self, reply: &Reply) -> Result<(), OpError> {
        match &reply.refusal {
            None => Ok(()),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }
}

impl Shared {
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
        error_map::to_error(status, document, &context)
    }
}

#[cold]
fn absent(class: OpClass) -> OpError {
    OpError::new(ErrorKind::Unsupported, format!("S3 has no {class}"))
}

impl Session for S3Session {
    fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> impl Future<Output = Result<Completion, OpError>> {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => Dispatch::Get {
                get: self.get(request, probe),
            },
            OpClass::Put => Dispatch::Put {
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

    fn place(&self) -> Place {
        self.connection.place()
    }
}
