//! One worker's connections: one to a filer or master, and with a master one to each volume server in
//! use.

use std::net::IpAddr;
use std::sync::Arc;

use bucketload_core::driver::{
    ErrorKind, OpClass, OpError, OpResult, Probe, Request, RequestRoute, Session,
};
use bucketload_wire::Calls;

use super::config::Mode;
use super::driver::DriverShared;
use super::error_map;
use super::servers::VolumeServers;
use crate::http::{
    Client, Connection, Endpoint, HttpSession, Plain, Refusal, Rendering, Reply, Sink, park,
};

/// A session of the native SeaweedFS driver.
#[derive(Debug)]
pub struct SeaweedSession {
    pub(crate) shared: Arc<DriverShared>,
    endpoint: usize,
    pub(crate) source: Option<IpAddr>,
    connection: Connection,
    pub(crate) servers: VolumeServers,
    /// With a master: the folder of the last object written, and its index.
    pub(crate) folder: (String, u64),
}

impl SeaweedSession {
    pub(crate) fn new(shared: Arc<DriverShared>, endpoint: usize, source: Option<IpAddr>) -> Self {
        Self {
            shared,
            endpoint,
            source,
            connection: Connection::new(endpoint, source),
            servers: VolumeServers::default(),
            folder: (String::new(), u64::MAX),
        }
    }

    /// System calls made by the current connection to the filer or master; `None` while there is none.
    #[must_use]
    pub fn calls(&self) -> Option<Calls> {
        self.connection.calls()
    }

    /// Whether the filer or master is reached over TLS.
    pub(crate) fn tls(&self) -> bool {
        self.shared.client.endpoints()[self.endpoint].tls
    }

    /// Performs one request to the volume server number `server`. A refusal is an error.
    pub(crate) async fn perform_at(
        &mut self,
        server: usize,
        request: &mut Plain<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let (client, directory) = (&self.shared.client, &self.shared.directory);
        let (volume_server, connection) = self.servers.get(directory, server, self.source);
        let endpoint = &volume_server.endpoint;
        let performing = connection.perform(client, endpoint, request, sink, probe);
        let reply = performing.await?;
        match &reply.refusal {
            None => Ok(reply),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }
}

/// Requests go to the filer or master; [`SeaweedSession::perform_at`] sends them to a volume server.
impl HttpSession for SeaweedSession {
    fn route(&mut self) -> (&mut Connection, &Client, &Endpoint) {
        let client = &self.shared.client;
        (
            &mut self.connection,
            client,
            &client.endpoints()[self.endpoint],
        )
    }

    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError {
        error_map::to_error(status, &refusal.body)
    }
}

impl Rendering for SeaweedSession {
    fn fields(&mut self, head: &mut Vec<u8>) {
        head.extend_from_slice(self.shared.client.fields(self.endpoint));
    }
}

/// The error for an operation that SeaweedFS's own interfaces do not have.
#[cold]
fn unsupported(class: OpClass, mode: Mode) -> OpError {
    let why = match (mode, class) {
        (Mode::Master, _) => "with file IDs, objects can only be put, got, looked up and deleted",
        (Mode::Filer, OpClass::PutIfAbsent) => "the filer has no conditional writes",
        (Mode::Filer, OpClass::DeleteMany) => "the filer deletes one path per request",
        (Mode::Filer, OpClass::Copy) => {
            "not every filer can copy, and older ones create an empty file instead"
        }
        (Mode::Filer, _) => "the filer has no such operation; its S3 gateway may have it",
    };
    OpError::new(ErrorKind::Unsupported, format!("{class}: {why}"))
}

impl Session for SeaweedSession {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mode = self.shared.config.mode;
        match (mode, request.op.class) {
            (Mode::Filer, OpClass::Get | OpClass::RangeGet) => self.get(request, probe).await,
            (Mode::Filer, OpClass::Put) => self.put(request, "", probe).await,
            (Mode::Filer, OpClass::Head) => self.head(request, probe).await,
            (Mode::Filer, OpClass::Delete) => self.delete(request, probe).await,
            (Mode::Master, OpClass::Get | OpClass::RangeGet) => {
                self.get_by_id(request, probe).await
            }
            (Mode::Master, OpClass::Put) => self.put_by_id(request, probe).await,
            (Mode::Master, OpClass::Head) => self.head_by_id(request, probe).await,
            (Mode::Master, OpClass::Delete) => self.delete_by_id(request, probe).await,
            (Mode::Filer, OpClass::Append) => park(self.put(request, "?op=append", probe)).await,
            (Mode::Filer, OpClass::List) => park(self.list(request, probe)).await,
            (Mode::Filer, OpClass::Rename) => park(self.rename(request, probe)).await,
            (Mode::Filer, OpClass::PutTagging) => park(self.put_tagging(request, probe)).await,
            (Mode::Filer, OpClass::GetTagging) => park(self.get_tagging(request, probe)).await,
            (Mode::Filer, OpClass::DeleteTagging) => {
                park(self.delete_tagging(request, probe)).await
            }
            (Mode::Filer, OpClass::MakeBucket) => {
                park(self.make_folder(request.bucket, probe)).await
            }
            (Mode::Filer, OpClass::HeadBucket) => {
                park(self.check_folder(request.bucket, probe)).await
            }
            (Mode::Filer, OpClass::DeleteBucket) => {
                park(self.remove_folder(request.bucket, probe)).await
            }
            (Mode::Filer, OpClass::ListBuckets) => park(self.list_buckets(probe)).await,
            (mode, class) => Err(unsupported(class, mode)),
        }
    }

    fn route(&self) -> RequestRoute {
        self.connection.route()
    }
}
