//! HDFS: asks the name node over WebHDFS which data nodes hold the blocks of a file.
//!
//! The RPC library does not show block locations, so this is used for runs with either driver. Data nodes are named as
//! the name node names them: by their data transfer address.

use crate::hadoop::HadoopOverrides;
use crate::webhdfs::{WebHdfsConfig, WebHdfsDriver, WebHdfsSession};
use bucketload_core::driver::{Driver, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use bucketload_target::{Locate, OnCopy, OpenError};

/// A connection to a name node.
pub(crate) struct NameNode {
    runtime: Runtime,
    tasks: LocalSet,
    session: WebHdfsSession,
    /// Number of files with several blocks, which are read from several nodes.
    several_blocks: u64,
}

/// Connects to the name node in `urls`, or else to that of the run.
pub(crate) fn open(urls: &[String], target: &str) -> Result<NameNode, OpenError> {
    let usage = |e: String| OpenError::usage(e);
    let (url, root) = whereabouts(target);
    let given = urls.join(",");
    let overrides = HadoopOverrides {
        endpoint_url: (!given.is_empty()).then_some(given).or(url),
        ..HadoopOverrides::default()
    };
    let mut config = WebHdfsConfig::discover(&overrides, &|name| std::env::var(name).ok())
        .map_err(|e| usage(e.to_string()))?;
    if config.files.root.is_empty() {
        config.files.root = root;
    }
    let driver = WebHdfsDriver::new(config).map_err(|e| usage(e.to_string()))?;
    let runtime = super::runtime()?;
    let tasks = LocalSet::new();
    let probe = &mut Probe::untimed();
    let session = tasks
        .block_on(&runtime, driver.open(WorkerId::default(), probe))
        .map_err(|e| failed(&e))?;
    Ok(NameNode {
        runtime,
        tasks,
        session,
        several_blocks: 0,
    })
}

/// The WebHDFS URL in a run's target, if it has one; otherwise the directory that contains the buckets.
fn whereabouts(target: &str) -> (Option<String>, String) {
    let Some((place, at)) = target.split_once(" at ") else {
        return (None, String::new());
    };
    let url = at.split(' ').next().unwrap_or_default();
    if place.starts_with("webhdfs://") {
        return (Some(url.to_owned()), String::new());
    }
    let root = url
        .strip_prefix("hdfs://")
        .and_then(|rest| rest.find('/').map(|at| rest[at..].to_owned()));
    (None, root.unwrap_or_default())
}

fn failed(error: &OpError) -> OpenError {
    OpenError::target(format!(
        "placement: {error}; the lookup uses WebHDFS at the address of --endpoint-url"
    ))
}

impl Locate for NameNode {
    fn locate(
        &mut self,
        bucket: &str,
        keys: &[String],
        on_copy: OnCopy<'_>,
    ) -> Result<(), OpenError> {
        let Self {
            runtime,
            tasks,
            session,
            several_blocks,
        } = self;
        tasks.block_on(runtime, async {
            for (i, key) in keys.iter().enumerate() {
                match session.placement(bucket, key).await {
                    Ok(placement) => {
                        *several_blocks += u64::from(placement.blocks > 1);
                        placement.nodes.iter().for_each(|node| on_copy(i, node));
                    }
                    Err(error) if error.kind == ErrorKind::NotFound => {}
                    Err(error) => return Err(failed(&error)),
                }
            }
            Ok(())
        })
    }
}

impl Drop for NameNode {
    fn drop(&mut self) {
        if self.several_blocks > 0 {
            eprintln!(
                "placement: {} files have several blocks; each node with one of them counts as a copy",
                self.several_blocks
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::whereabouts;

    #[test]
    fn targets_contain_url_or_directory() {
        let webhdfs = "webhdfs://b/p at http://nn:9870/webhdfs/v1/user and others";
        assert_eq!(
            whereabouts(webhdfs),
            (
                Some("http://nn:9870/webhdfs/v1/user".to_owned()),
                String::new()
            )
        );
        let rpc = "hdfs://b/p at hdfs://nn:8020/user/me";
        assert_eq!(whereabouts(rpc), (None, "/user/me".to_owned()));
        assert_eq!(
            whereabouts("hdfs://b/p at hdfs://ns"),
            (None, String::new())
        );
        assert_eq!(whereabouts("the null target"), (None, String::new()));
    }
}
