//! HDFS: the data nodes that hold the blocks of a file, asked of the name node by WebHDFS.
//!
//! The RPC library does not show block locations, so runs by either driver are looked up this way. Data
//! nodes have the names that the name node gives them: the address of their data transfer.

use crate::hadoop::HadoopOverrides;
use crate::webhdfs::{WebHdfsConfig, WebHdfsDriver, WebHdfsSession};
use bucketload_core::driver::{Driver, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use bucketload_target::{Locate, OnCopy, OpenError};

/// A name node that is asked.
pub(crate) struct NameNode {
    runtime: Runtime,
    tasks: LocalSet,
    session: WebHdfsSession,
    /// Files of several blocks, which are read from several nodes.
    long: u64,
}

/// Connects to the name node of the run, or to the one that `urls` name.
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
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| OpenError::Aborted(e.to_string()))?;
    let tasks = LocalSet::new();
    let worker = WorkerId {
        thread: 0,
        worker: 0,
    };
    let probe = &mut Probe::untimed();
    let session = tasks
        .block_on(&runtime, driver.open(worker, probe))
        .map_err(|e| failed(&e))?;
    Ok(NameNode {
        runtime,
        tasks,
        session,
        long: 0,
    })
}

/// The WebHDFS address of a run's target, where it was one, and the directory that its buckets lie in,
/// where the address does not say it.
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
        "placement: {error}; the name node is asked by WebHDFS, at the address of --endpoint-url"
    ))
}

impl Locate for NameNode {
    fn locate(
        &mut self,
        bucket: &str,
        keys: &[String],
        found: OnCopy<'_>,
    ) -> Result<(), OpenError> {
        let Self {
            runtime,
            tasks,
            session,
            long,
        } = self;
        tasks.block_on(runtime, async {
            for (i, key) in keys.iter().enumerate() {
                match session.placement(bucket, key).await {
                    Ok(placement) => {
                        *long += u64::from(placement.blocks > 1);
                        placement.nodes.iter().for_each(|node| found(i, node));
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
        if self.long > 0 {
            eprintln!(
                "placement: {} files have several blocks: each node that holds one of them counts as a copy",
                self.long
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::whereabouts;

    #[test]
    fn targets_say_where_they_were() {
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
