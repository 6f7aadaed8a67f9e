//! The data nodes of a file, according to the name node.

use bucketload_core::error::OpResult;
use bucketload_core::record::Probe;

use super::documents;
use super::request::NameNodeCall;
use super::session::WebHdfsSession;
use crate::hadoop::path;

/// Location of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePlacement {
    /// `ADDRESS:PORT` (for data transfer) of each data node with a copy of a block, each once, in the
    /// order of the blocks.
    pub nodes: Vec<String>,
    /// Number of blocks. A file with several blocks is read from several nodes.
    pub blocks: usize,
}

impl WebHdfsSession {
    /// Asks the name node for the locations of a file's blocks (`GETFILEBLOCKLOCATIONS`).
    ///
    /// # Errors
    /// `NotFound` when the file does not exist; otherwise the cluster's error.
    pub async fn placement(&mut self, bucket: &str, key: &str) -> OpResult<FilePlacement> {
        path::check(bucket, key)?;
        let call = NameNodeCall::new("GET", "GETFILEBLOCKLOCATIONS", bucket, key);
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
