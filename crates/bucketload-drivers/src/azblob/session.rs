//! One worker's session: its connection and what it shares with the thread's others.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::Rc;

use bucketload_core::driver::{Completion, RequestRoute, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_wire::Calls;

use crate::http::Endpoint;
use crate::http::client::Client;
use crate::http::connection::Connection;
use crate::http::exchange::Refusal;
use crate::http::outgoing::{Body, NO_BODY, Plain};
use crate::http::parked::park;
use crate::http::pool::Buffer;
use crate::http::session::HttpSession;
use bucketload_wire::clock::wall_seconds;

use super::checksum::Base64;
use super::driver::Shared;
use super::error_map::{self, Explained};
use super::head::Call;

/// A session of the Azure Blob driver.
#[derive(Debug)]
pub struct AzureSession {
    pub(super) shared: Rc<Shared>,
    connection: Connection,
    /// Number of the next upload in blocks; begins at random, so that two sessions that write the
    /// same blob at the same time do not mix their blocks.
    pub(super) upload: u64,
    /// Checksums of an upload's blocks; without memory until the first one that needs it.
    pub(super) sums: Vec<Base64>,
}

impl AzureSession {
    pub(super) fn new(shared: Rc<Shared>, source: Option<IpAddr>) -> Self {
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

    /// Renders and signs; sends nothing.
    pub(super) fn prepare<'a>(&self, call: &Call<'_>, body: Body<'a>) -> Plain<'a> {
        let mut head = Buffer::take();
        let mut writer = self.shared.writer.borrow_mut();
        writer.render(&mut head, call, body.len());
        Plain::new(head, body, call.method == "HEAD")
    }

    /// A request without a body.
    pub(super) fn bare(&self, call: &Call<'_>) -> Plain<'static> {
        self.prepare(call, NO_BODY)
    }

    /// The error that `explained` means.
    pub(super) fn refused_as(&self, status: u16, explained: &Explained) -> OpError {
        error_map::to_error(status, explained, self.shared.config(), wall_seconds())
    }
}

impl HttpSession for AzureSession {
    fn route(&mut self) -> (&mut Connection, &Client, &Endpoint) {
        let shared = &self.shared;
        (&mut self.connection, shared.client(), shared.endpoint())
    }

    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError {
        self.refused_as(status, &Explained::of(refusal))
    }
}

/// An operation that the API does not have.
#[cold]
fn not_offered(class: OpClass) -> OpError {
    let why = match class {
        OpClass::ListV1 => "there is one listing; use `list`",
        OpClass::MultipartAbort | OpClass::ListUploads => {
            "there are no uploads to list or abort: blocks that are not committed belong to their \
             blob and expire after a week"
        }
        OpClass::Rename => "blobs of a flat account are copied and deleted",
        OpClass::Touch => "a blob's time changes only with its content or properties",
        _ => "this driver does not do it",
    };
    OpError::new(
        ErrorKind::Unsupported,
        format!("Azure Blob Storage offers no {class}: {why}"),
    )
}

impl Session for AzureSession {
    async fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request, probe).await,
            OpClass::Put => self.put(request, probe).await,
            OpClass::PutIfAbsent => self.put_if_absent(request, probe).await,
            OpClass::Head => self.head(request, probe).await,
            OpClass::Delete => self.delete(request, probe).await,
            // The others are several requests, or one with a document to be built or read.
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
            class => Err(not_offered(class)),
        }
    }

    fn route(&self) -> RequestRoute {
        self.connection.route()
    }
}
