//! Reads without the library: Hadoop's RPC to the name node and the data transfer protocol, on
//! connections of the session.
//!
//! ```text
//! session ── DirectReader ──┬── rpc        calls to the name node
//!                           ├── located    the locations of a file's blocks
//!                           └── nodes ── packets     data nodes and their answers
//!            proto                         the necessary part of Protocol Buffers
//! ```
//!
//! A read is one call and one request per block; it allocates nothing in the steady state. The library
//! reads from clusters with Kerberos, tokens, encryption or several name nodes
//! ([`HdfsConfig::library_reads`](super::HdfsConfig::library_reads)), and every file that is encrypted,
//! erasure-coded or still being written.

mod failure;
mod located;
mod nodes;
mod packets;
mod proto;
mod rpc;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe, Request};

use self::located::LocatedFile;
use self::nodes::DataNodes;
use self::proto::{Fields, put_bytes, put_number};
use self::rpc::{ID, NameNode};
use crate::hadoop::path;
use crate::hadoop::semantics::{explain_empty_read, past_the_end};
use crate::http::endpoint::Endpoint;
use crate::http::{Buffer, Reading};

/// The largest length that a request can have: Java's largest `long`.
const EVERYTHING: u64 = i64::MAX.cast_unsigned();
/// `FileType` of `HdfsFileStatusProto`.
const IS_DIRECTORY: u64 = 1;

/// Name node, user and root directory of a driver's direct reads.
#[derive(Debug)]
pub(super) struct DirectTarget {
    /// Address of the name node.
    pub(super) endpoint: Endpoint,
    pub(super) user: String,
    /// Directory of the buckets.
    pub(super) root: String,
}

/// A session's own connections to name node and data nodes.
#[derive(Debug)]
pub(super) struct DirectReader {
    id: [u8; ID],
    name_node: NameNode,
    nodes: DataNodes,
    /// Path of the current operation.
    path: String,
}

impl DirectReader {
    /// Connects to the name node and checks that the cluster allows unencrypted reads.
    ///
    /// # Errors
    /// When the name node cannot be reached, refuses, or requires encryption.
    pub(super) async fn open(target: &DirectTarget, probe: &mut Probe) -> OpResult<Self> {
        let mut id = [0; ID];
        let filled = SystemRandom::new().fill(&mut id);
        filled.map_err(|_| OpError::new(ErrorKind::Connect, "the system has no random bytes"))?;
        let client = format!("bucketload_{:032x}", u128::from_be_bytes(id));
        let mut direct = Self {
            id,
            name_node: NameNode::default(),
            nodes: DataNodes::new(client.into()),
            path: String::new(),
        };
        direct.connect(target, probe).await?;
        let mut answer = Buffer::take();
        let (id, untimed) = (&direct.id, &mut Probe::untimed());
        let name_node = &mut direct.name_node;
        let defaults = name_node.call("getServerDefaults", id, b"", &mut answer, untimed);
        if requires_encryption(defaults.await?)? {
            return Err(OpError::new(
                ErrorKind::Unsupported,
                "the cluster encrypts data transfer; configure the client for it, with \
                 dfs.encrypt.data.transfer=true in hdfs-site.xml and HADOOP_CONF_DIR",
            ));
        }
        Ok(direct)
    }

    async fn connect(&mut self, target: &DirectTarget, probe: &mut Probe) -> OpResult<()> {
        let name_node = &mut self.name_node;
        name_node
            .connect(&target.endpoint, &target.user, &self.id, probe)
            .await
    }

    /// Sets the path to `request`'s file.
    fn set_path(&mut self, target: &DirectTarget, request: &Request<'_>) -> OpResult<()> {
        path::check(request.bucket, request.key)?;
        self.path.clear();
        path::push(&mut self.path, &target.root, request.bucket, request.key);
        Ok(())
    }

    /// Performs a get or range-get; `None` when only the library can read the file.
    ///
    /// # Errors
    /// Those of the operation.
    pub(super) async fn get(
        &mut self,
        target: &DirectTarget,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult<Option<Completion>> {
        self.set_path(target, request)?;
        let mut reading = Reading::of(request);
        let asked = reading.range().map_or((0, EVERYTHING), |range| {
            (range.offset, range.len.min(EVERYTHING))
        });
        self.connect(target, probe).await?;
        let mut answer = Buffer::take();
        let answer = {
            let mut call = Buffer::take();
            put_bytes(&mut call, 1, self.path.as_bytes());
            put_number(&mut call, 2, asked.0);
            put_number(
                &mut call,
                3,
                asked.1.min(EVERYTHING.saturating_sub(asked.0)),
            );
            let name_node = &mut self.name_node;
            let called = name_node.call("getBlockLocations", &self.id, &call, &mut answer, probe);
            called.await?
        };
        let Some(file) = LocatedFile::parse(answer)? else {
            return Err(not_found(&self.path));
        };
        if file.special {
            return Ok(None);
        }
        let (offset, size) = match reading.range() {
            Some(range) if range.offset >= file.length => {
                return Err(past_the_end(range.offset, file.length));
            }
            Some(range) => (range.offset, range.len.min(file.length - range.offset)),
            None => (0, file.length),
        };
        let mut at = offset;
        while at < offset + size {
            let Some(block) = file.block_at(at)? else {
                return Err(OpError::new(
                    ErrorKind::Server,
                    format!("the name node returned no block for the file's byte {at}"),
                ));
            };
            let part = (
                at - block.offset,
                block.length.min(offset + size - block.offset),
            );
            self.nodes.read(&block, part, &mut reading, probe).await?;
            at = block.offset + part.1;
        }
        let judged = reading.judge(0, size, None);
        judged
            .map(Some)
            .map_err(|error| explain_empty_read(error, size))
    }

    /// Performs a head.
    ///
    /// # Errors
    /// Those of the operation.
    pub(super) async fn head(
        &mut self,
        target: &DirectTarget,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        self.set_path(target, request)?;
        self.connect(target, probe).await?;
        let mut answer = Buffer::take();
        let answer = {
            let mut call = Buffer::take();
            put_bytes(&mut call, 1, self.path.as_bytes());
            let name_node = &mut self.name_node;
            let called = name_node.call("getFileInfo", &self.id, &call, &mut answer, probe);
            called.await?
        };
        let mut found = None;
        for field in Fields(answer) {
            if let (1, status) = field? {
                found = Some(status.bytes());
            }
        }
        let Some(status) = found else {
            return Err(not_found(&self.path));
        };
        let mut object_size = 0;
        for field in Fields(status) {
            match field? {
                (1, kind) if kind.number() == IS_DIRECTORY => {
                    return Err(OpError::new(ErrorKind::NotFound, "the path is a directory"));
                }
                (3, length) => object_size = length.number(),
                _ => {}
            }
        }
        Ok(Completion::of_size(object_size))
    }
}

#[cold]
fn not_found(path: &str) -> OpError {
    OpError::new(
        ErrorKind::NotFound,
        format!("FileNotFoundException: {path}"),
    )
}

/// Reads `GetServerDefaultsResponseProto`.
fn requires_encryption(answer: &[u8]) -> OpResult<bool> {
    let mut demands = false;
    for field in Fields(answer) {
        if let (1, defaults) = field? {
            for field in Fields(defaults.bytes()) {
                if let (6, encrypt) = field? {
                    demands = encrypt.number() != 0;
                }
            }
        }
    }
    Ok(demands)
}
