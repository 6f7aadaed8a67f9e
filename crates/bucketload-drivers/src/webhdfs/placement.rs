//! Which data nodes hold a file, as the name node knows it.

use bucketload_core::error::OpError;
use bucketload_core::record::Probe;

use super::documents;
use super::request::Call;
use super::session::WebHdfsSession;
use crate::hadoop::path;

/// Where a file lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePlacement {
    /// `ADDRESS:PORT` (of the data transfer) of each data node with a copy of a block, in the order of
    /// the blocks, each once.
    pub nodes: Vec<String>,
    /// Number of blocks. A file of several blocks is read from several nodes.
    pub blocks: usize,
}

impl WebHdfsSession {
    /// Asks the name node where the blocks of a file are (`GETFILEBLOCKLOCATIONS`).
    ///
    /// # Errors
    /// `NotFound` when there is no such file; as the cluster says.
    pub async fn placement(&mut self, bucket: &str, key: &str) -> Result<FilePlacement, OpError> {
        path::check(bucket, key)?;
        let call = Call::new("GET", "GETFILEBLOCKLOCATIONS", bucket, key);
        let body = self.fetch(&call, &mut Probe::untimed()).await?;
        let locations = documents::block_locations(&body)?;
        let mut placement = FilePlacement {
            blocks: locations.len(),
            nodes: Vec::new(),
        };
        for name in locations.into_iter().flat_map(|location| location.names) {
            if !placement.nodes.contains(&name) {
                placement.nodes.push(name);
            }
        }
        Ok(placement)
    }
}
