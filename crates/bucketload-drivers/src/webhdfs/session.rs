//! One worker's session: its connection to the name node, and those to data nodes.
//!
//! Only one of several name nodes is active. When a session's name node cannot be reached or answers that
//! it is on standby, the operation fails without being repeated, and the session switches to the next
//! name node.

use std::net::IpAddr;
use std::sync::Arc;

use bucketload_core::driver::{
    ErrorKind, OpClass, OpError, OpResult, Probe, Request, RequestRoute, Session,
};

use super::documents::{self, FileStatus};
use super::driver::DriverShared;
use super::redirect::DataNodes;
use super::request::{self, NameNodeCall, SecondStepBody};
use super::upload::Upload;
use crate::hadoop::exception::{RemoteException, to_error};
use crate::hadoop::listing::Listed;
use crate::hadoop::semantics::unsupported;
use crate::http::answer::{as_text, too_long};
use crate::http::{Body, Buffer, Collect, Connection, Ignore, Plain, Refusal, Reply, Sink, park};

/// Most bytes of a name node's answer: a page of 1000 entries with long names.
const MAX_ANSWER: usize = 16 << 20;

/// A session of the WebHDFS driver.
pub struct WebHdfsSession {
    pub(super) inner: Arc<DriverShared>,
    /// Index of the name node in use.
    active: usize,
    connection: Connection,
    nodes: DataNodes,
    source: Option<IpAddr>,
    pub(super) listed: Listed<Option<String>>,
}

impl WebHdfsSession {
    pub(super) fn new(inner: Arc<DriverShared>, source: Option<IpAddr>) -> Self {
        Self {
            inner,
            active: 0,
            connection: Connection::new(0, source),
            nodes: DataNodes::new(source),
            source,
            listed: Listed::default(),
        }
    }

    /// Connects to the active name node.
    pub(super) async fn connect(&mut self, probe: &mut Probe) -> OpResult<()> {
        let count = self.inner.heads.len();
        for _ in 1..count {
            match self.connect_to_candidate(probe).await {
                Ok(()) => return Ok(()),
                Err(_) => self.switch_name_node(),
            }
        }
        self.connect_to_candidate(probe).await
    }

    async fn connect_to_candidate(&mut self, probe: &mut Probe) -> OpResult<()> {
        let client = &self.inner.client;
        let endpoint = &client.endpoints()[self.active];
        self.connection.connect(client, endpoint, probe).await?;
        if self.inner.heads.len() == 1 {
            return Ok(());
        }
        let before = self.active;
        let root = NameNodeCall::new("GET", "GETFILESTATUS", "", "");
        let asked = Box::pin(self.ask(&root, &mut Probe::untimed())).await;
        match asked {
            // A standby's answer has already switched the session.
            Err(error) if self.active != before || error.kind == ErrorKind::Connect => {
                self.active = before;
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Switches to the next name node, if there is one.
    fn switch_name_node(&mut self) {
        let count = self.inner.heads.len();
        if count > 1 {
            self.active = (self.active + 1) % count;
            self.connection = Connection::new(self.active, self.source);
        }
    }

    /// Sends `call` to the name node. The answer is a success or a redirect.
    async fn name_node(
        &mut self,
        call: &NameNodeCall<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let client = &self.inner.client;
        let endpoint = &client.endpoints()[self.active];
        let head = self.inner.heads[self.active].render(call);
        let mut plain = Plain::new(head, Body::Bytes(b""), false);
        let performed = self
            .connection
            .perform(client, endpoint, &mut plain, sink, probe);
        match performed.await {
            Ok(reply) => match &reply.refusal {
                Some(refusal) if !matches!(reply.status, 301..=303 | 307 | 308) => {
                    Err(self.refused(reply.status, refusal))
                }
                _ => Ok(reply),
            },
            Err(error) => {
                if error.kind == ErrorKind::Connect {
                    self.switch_name_node();
                }
                Err(error)
            }
        }
    }

    #[cold]
    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError {
        let Some(remote) = RemoteException::parse(&refusal.body) else {
            let mut error = to_error("", "", status);
            let negotiate = refusal.field("www-authenticate");
            if status == 401 && negotiate.to_ascii_lowercase().starts_with("negotiate") {
                error.detail =
                    "the cluster requires Kerberos (SPNEGO), which this driver does not \
                                support; set WEBHDFS_DELEGATION_TOKEN to a delegation token"
                        .into();
            } else if (300..400).contains(&status) {
                error.kind = ErrorKind::Protocol;
                error.detail = "a data node redirects again".into();
            } else if status == 404 {
                error.detail =
                    "not found, but not a name node's answer; is this a WebHDFS address?".into();
            }
            return error;
        };
        if remote.exception == "StandbyException" {
            self.switch_name_node();
        }
        let mut error = to_error(remote.class(), &remote.message, status);
        if let Some(token) = &self.inner.config.token {
            error.detail = error.detail.replace(token.expose(), "***").into();
        }
        error
    }

    /// Performs a call and ignores the content of its answer.
    pub(super) async fn ask(&mut self, call: &NameNodeCall<'_>, probe: &mut Probe) -> OpResult<()> {
        self.name_node(call, &mut Ignore, probe)
            .await
            .and_then(check_not_redirected)
    }

    /// Performs a call and returns the document in its answer.
    pub(super) async fn fetch(
        &mut self,
        call: &NameNodeCall<'_>,
        probe: &mut Probe,
    ) -> OpResult<Buffer> {
        let mut body = Buffer::take();
        let mut sink = Collect::new(&mut body, MAX_ANSWER);
        let reply = self.name_node(call, &mut sink, probe).await?;
        if sink.overflow {
            return Err(too_long(reply.status));
        }
        check_not_redirected(reply)?;
        Ok(body)
    }

    /// Passes the status of a file or directory to `f`.
    pub(super) async fn status<T>(
        &mut self,
        bucket: &str,
        key: &str,
        probe: &mut Probe,
        f: impl FnOnce(&FileStatus<'_>) -> OpResult<T>,
    ) -> OpResult<T> {
        let call = NameNodeCall::new("GET", "GETFILESTATUS", bucket, key);
        let body = self.fetch(&call, probe).await?;
        f(&documents::status(&body)?)
    }

    /// The first step: the data node's URL, as text.
    pub(super) async fn locate(
        &mut self,
        call: &NameNodeCall<'_>,
        probe: &mut Probe,
    ) -> OpResult<Buffer> {
        let mut body = Buffer::take();
        let mut sink = Collect::new(&mut body, MAX_ANSWER);
        let reply = self.name_node(call, &mut sink, probe).await?;
        let mut location = Buffer::take();
        match &reply.refusal {
            Some(redirect) => location.extend_from_slice(redirect.field("location").as_bytes()),
            None => location.extend_from_slice(documents::location(&body)?.as_bytes()),
        }
        Ok(location)
    }

    /// The second step of a read.
    pub(super) async fn read_from(
        &mut self,
        location: &Buffer,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let location = as_text(location);
        let head = request::second_step("GET", location, SecondStepBody::Nothing)?;
        let mut plain = Plain::new(head, Body::Bytes(b""), false);
        let client = &self.inner.client;
        let performed = self
            .nodes
            .perform(client, location, &mut plain, sink, probe);
        let reply = performed.await?;
        match &reply.refusal {
            None => Ok(reply),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }

    /// The second step of a write of `length` bytes. With `expect_continue` even a small body waits for
    /// `100 Continue`.
    pub(super) async fn write_to(
        &mut self,
        method: &'static str,
        location: &Buffer,
        body: Body<'_>,
        length: u64,
        expect_continue: bool,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let expect_continue = length > 0 && (expect_continue || length > super::upload::SMALL);
        let location = as_text(location);
        let head = request::second_step(
            method,
            location,
            SecondStepBody::Bytes {
                length,
                expect_continue,
            },
        )?;
        let mut upload = Upload::new(head, body, expect_continue);
        let client = &self.inner.client;
        let mut ignore = Ignore;
        let performed = self
            .nodes
            .perform(client, location, &mut upload, &mut ignore, probe);
        let reply = performed.await?;
        match &reply.refusal {
            None => Ok(()),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }
}

fn check_not_redirected(reply: Reply) -> OpResult<()> {
    match &reply.refusal {
        None => Ok(()),
        Some(refusal) => Err(OpError::with_status(
            ErrorKind::Protocol,
            reply.status,
            format!(
                "the address is not a name node's: it redirects ({})",
                request::origin(&refusal.field("location")).map_or("", |(origin, _)| origin)
            ),
        )),
    }
}

impl Session for WebHdfsSession {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request, probe).await,
            OpClass::Put => self.put(request, probe).await,
            OpClass::Head => self.head(request, probe).await,
            OpClass::Delete => self.delete(request, probe).await,
            OpClass::PutIfAbsent => park(self.put_if_absent(request, probe)).await,
            OpClass::Append => park(self.append(request, probe)).await,
            OpClass::Touch => park(self.touch(request, probe)).await,
            OpClass::Rename => park(self.rename(request, probe)).await,
            OpClass::List => park(self.list(request, probe)).await,
            OpClass::MakeBucket => park(self.make_bucket(request.bucket, probe)).await,
            OpClass::HeadBucket => park(self.find_bucket(request.bucket, probe)).await,
            OpClass::DeleteBucket => park(self.remove_bucket(request.bucket, probe)).await,
            OpClass::ListBuckets => park(self.list_buckets(probe)).await,
            class => Err(unsupported(class)),
        }
    }

    fn route(&self) -> RequestRoute {
        self.connection.route()
    }
}
