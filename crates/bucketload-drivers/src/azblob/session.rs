//! One worker's session: its connection and the state shared with the thread's other sessions.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::Rc;

use bucketload_core::driver::{
    ErrorKind, OpClass, OpError, OpResult, Probe, Request, RequestRoute, Session,
};
use bucketload_wire::Calls;
use bucketload_wire::clock::wall_seconds;

use super::checksum::Base64;
use super::config::ContentChecksum;
use super::driver::ThreadShared;
use super::error_map::{self, RefusalDetails};
use super::head::AzureCall;
use crate::http::{
    Body, Buffer, Client, Connection, Endpoint, HttpSession, NO_BODY, Plain, Refusal, park,
};

/// A session of the Azure Blob driver.
#[derive(Debug)]
pub struct AzureSession {
    pub(super) shared: Rc<ThreadShared>,
    connection: Connection,
    /// Number of the next block upload. Starts at random, so two sessions that write the same blob
    /// at the same time do not mix their blocks.
    pub(super) upload: u64,
    /// Checksums of an upload's blocks; allocated by the first upload that needs them.
    pub(super) sums: Vec<(ContentChecksum, Base64)>,
}

impl AzureSession {
    pub(super) fn new(shared: Rc<ThreadShared>, source: Option<IpAddr>) -> Self {
        Self {
            connection: Connection::new(shared.endpoint, source),
            shared,
            upload: RandomState::new().hash_one(0),
            sums: Vec::new(),
        }
    }

    /// System calls made by the current connection; `None` while there is none.
    #[must_use]
    pub fn calls(&self) -> Option<Calls> {
        self.connection.calls()
    }

    /// Renders and signs a request without sending it.
    pub(super) fn prepare<'a>(&self, call: &AzureCall<'_>, body: Body<'a>) -> Plain<'a> {
        let mut head = Buffer::take();
        let mut writer = self.shared.writer.borrow_mut();
        writer.render(&mut head, call, body.len());
        Plain::new(head, body, call.method == "HEAD")
    }

    /// A request without a body.
    pub(super) fn bare(&self, call: &AzureCall<'_>) -> Plain<'static> {
        self.prepare(call, NO_BODY)
    }

    /// The error for `refusal`.
    pub(super) fn refused_as(&self, status: u16, refusal: &RefusalDetails) -> OpError {
        error_map::to_error(status, refusal, self.shared.config(), wall_seconds())
    }
}

impl HttpSession for AzureSession {
    fn route(&mut self) -> (&mut Connection, &Client, &Endpoint) {
        let shared = &self.shared;
        (&mut self.connection, shared.client(), shared.endpoint())
    }

    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError {
        self.refused_as(status, &RefusalDetails::of(refusal))
    }
}

/// The error for an operation that the API does not have.
#[cold]
fn unsupported(class: OpClass) -> OpError {
    let why = match class {
        OpClass::ListV1 => "it has one kind of listing; use `list`",
        OpClass::MultipartAbort | OpClass::ListUploads => {
            "it has no uploads to list or abort: uncommitted blocks belong to their blob and expire \
             after a week"
        }
        OpClass::Rename => "copy and delete instead",
        OpClass::Touch => "a blob's time changes only with its content or properties",
        _ => "this driver does not support it",
    };
    OpError::new(
        ErrorKind::Unsupported,
        format!("Azure Blob Storage has no {class}: {why}"),
    )
}

impl Session for AzureSession {
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
            OpClass::Append => park(self.append(request, probe)).await,
            OpClass::List => park(self.list(request, probe)).await,
            OpClass::MultipartPut => park(self.multipart_put(request, probe)).await,
            OpClass::PutTagging => park(self.put_tagging(request, probe)).await,
            OpClass::GetTagging => park(self.get_tagging(request, probe)).await,
            OpClass::DeleteTagging => park(self.delete_tagging(request, probe)).await,
            OpClass::MakeBucket => park(self.make_container(request.bucket, probe)).await,
            OpClass::HeadBucket => park(self.head_container(request.bucket, probe)).await,
            OpClass::DeleteBucket => park(self.delete_container(request.bucket, probe)).await,
            OpClass::ListBuckets => park(self.list_containers(probe)).await,
            class => Err(unsupported(class)),
        }
    }

    fn route(&self) -> RequestRoute {
        self.connection.route()
    }
}
