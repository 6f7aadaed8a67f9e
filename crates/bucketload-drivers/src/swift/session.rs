//! One worker's session: maps operations to functions, and refusals to errors.

use std::net::IpAddr;
use std::rc::Rc;

use bucketload_core::driver::{
    ErrorKind, OpClass, OpError, OpResult, Probe, Request, RequestRoute, Session,
};

use super::driver::SwiftShared;
use super::error_map;
use super::head::SwiftCall;
use crate::http::{
    Body, Buffer, Client, Connection, Endpoint, HttpSession, NO_BODY, Plain, Refusal, park,
};

/// A session of the native Swift driver.
#[derive(Debug)]
pub struct SwiftSession {
    pub(crate) shared: Rc<SwiftShared>,
    connection: Connection,
    /// Generation of the token in the last request.
    generation: u64,
}

impl SwiftSession {
    pub(crate) fn new(shared: Rc<SwiftShared>, source: Option<IpAddr>) -> Self {
        Self {
            connection: Connection::new(shared.endpoint, source),
            shared,
            generation: 0,
        }
    }

    /// Renders a request.
    #[inline]
    pub(crate) fn prepare<'a>(&mut self, call: &SwiftCall<'_>, body: Body<'a>) -> Plain<'a> {
        let writer = &mut *self.shared.writer.borrow_mut();
        self.shared.driver.tokens.refresh(writer);
        self.generation = writer.generation;
        let mut head = Buffer::take();
        writer.render(&mut head, call);
        Plain::new(head, body, call.is_head())
    }

    /// A request without a body.
    #[inline]
    pub(crate) fn bare(&mut self, call: &SwiftCall<'_>) -> Plain<'static> {
        self.prepare(call, NO_BODY)
    }
}

impl HttpSession for SwiftSession {
    fn route(&mut self) -> (&mut Connection, &Client, &Endpoint) {
        let client = &self.shared.driver.client;
        let endpoint = &client.endpoints()[self.shared.endpoint];
        (&mut self.connection, client, endpoint)
    }

    #[cold]
    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError {
        let tokens = &self.shared.driver.tokens;
        if status == 401 {
            tokens.refused(self.generation);
        }
        let location = refusal.field("location");
        tokens.with_token(|token| error_map::to_error(status, &refusal.body, &location, token))
    }
}

#[cold]
fn unsupported(class: OpClass) -> OpError {
    let why = match class {
        OpClass::MultipartAbort | OpClass::ListUploads => {
            "Swift has segments and manifests, but no unfinished uploads"
        }
        OpClass::MultipartCopy => {
            "a Swift manifest refers to a range of an object instead of copying it"
        }
        OpClass::PutTagging | OpClass::GetTagging | OpClass::DeleteTagging => {
            "Swift has object metadata, but no tags"
        }
        _ => "the Swift API has no such operation",
    };
    OpError::new(ErrorKind::Unsupported, format!("{class}: {why}"))
}

impl Session for SwiftSession {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request, probe).await,
            OpClass::Put => self.put(request, probe).await,
            OpClass::PutIfAbsent => self.put_if_absent(request, probe).await,
            OpClass::Head => self.head(request, probe).await,
            OpClass::Delete => self.delete(request, probe).await,
            // The others take several requests, or one with a document in the request or the response.
            OpClass::DeleteMany => park(self.delete_many(request, probe)).await,
            OpClass::Copy => park(self.copy(request, probe)).await,
            // Swift has one kind of listing, paged by marker.
            OpClass::List | OpClass::ListV1 => park(self.list(request, probe)).await,
            OpClass::MultipartPut => park(self.large_put(request, probe)).await,
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
